"""Row of variants: the baseline and what it is compared with, on every comparing page."""

import html
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import streamlit as st

from core.experiments.weights import weights
from core.figures.palette import BASELINE, DASHES, NOW, VARIANTS
from core.model.config import Config
from core.model.published import find_published, list_choices
from core.model.variants import (
    MOST,
    Pins,
    Variant,
    ablation,
    apply,
    decode,
    difference,
    encode,
    encode_baseline,
    join_slots,
    name_of,
)
from core.settings.setting import ConfigError
from core.settings.wording import capitalise
from ui.kit.panel.control import Control, pills, press
from ui.kit.store import change, is_movable, restore, value

COLOURS = (BASELINE, *VARIANTS, NOW)
DIVERGED = "Diverged: a value became infinite or NaN."
PILLS = "compared_with"
WHOSE = {
    "random": "Random weights",
    "trained": "Each variant was trained separately",
    "cut": "Variants ablated after training",
}


def variant_controls(
    config: Config,
    pins: Pins,
    on_new: Callable[[str], None] = lambda text: None,
    is_possible: Callable[[str, Config], bool] | None = None,
) -> list[Control]:
    """Return the menu "Compare with"; without `is_possible` pin buttons, too; on_new(text).

    Args:
        config: Current settings.
        pins: Pinned baseline and variants.
        on_new: Called with the text of an added variant, or "" when one or none is left.
        is_possible: Whether a change is possible; None if all are.
    """
    baseline = config if is_possible else pins.read_baseline() or config
    # The mask is the task's on Training.
    open_block = None if is_possible else find_published(baseline.replace(mask="causal"))
    choices = list_choices(open_block, baseline) if open_block else []
    ready = [
        encode(part)
        for part in (*choices, *ablation.values())
        if any(getattr(baseline, name) != value for name, value in part.items())
    ]
    others = [encode({name: value}) for name, value in baseline.list_changes()]
    if is_possible:
        ready, others = (
            [text for text in texts if is_possible(text, baseline)] for texts in (ready, others)
        )
    offered = list(dict.fromkeys([*ready, *others, *pins.texts]))
    labels = list(map(_label, offered))
    turn = partial(_toggle_text, on_new)
    chosen = pills(
        "Compare with",
        PILLS,
        pins.texts,
        offered,
        labels,
        on_toggle=turn,
        search="Search ablations",
    )
    chosen["titles"] = list(map(_help_of, offered))
    chosen["colours"] = {text: colour for text, colour in zip(pins.slots, VARIANTS) if text}
    return [chosen, *([] if is_possible else _pin_buttons(config, pins, on_new))]


@lru_cache(maxsize=1000)
def _label(text: str) -> str:
    """Return the name on screen of a variant, given its text in links."""
    return name_of(decode(text, "variants"))


@lru_cache(maxsize=1000)
def _help_of(text: str) -> str:
    """Return the help texts of all settings that a variant changes, joined, for the search."""
    settings = Config.settings()
    changes = decode(text, "variants")
    helps = [
        settings[name].menu.help(value) if settings[name].menu else settings[name].help
        for name, value in changes.items()
    ]
    return " ".join(map(capitalise, helps))


def current_pins() -> Pins:
    """Return the pinned baseline and variants as they are set now, for callbacks."""
    return Pins(baseline=value("baseline"), variants=value("variants"))


def _toggle_text(on_new: Callable[[str], None], text: str, is_on: bool):
    """Add a variant to the comparison, or remove it; see _set_compared (a callback)."""
    texts = [other for other in current_pins().texts if other != text]
    _set_compared(on_new, [*texts, text] if is_on else texts)


def _set_compared(on_new: Callable[[str], None], texts: list[str]):
    """Compare these variants (texts as in links); tell on_new the added one, or "" below two.

    A callback. Too many are refused with a toast.
    """
    pins = current_pins()
    if len(texts) > MOST:
        # And the pill goes out again, since what is compared has not changed.
        st.toast(
            f"You can compare up to {MOST} variants. Remove one first.", icon=":material/info:"
        )
    else:
        added = [text for text in texts if text not in pins.texts]
        change(variants=pins.place_variants(texts))
        if added or len(texts) < 2:
            on_new(added[-1] if added and len(texts) > 1 else "")


def _pin_buttons(config: Config, pins: Pins, on_new: Callable[[str], None]) -> list[Control]:
    """Return the buttons: pin the baseline, or add the settings as variant and unpin."""
    pinned = pins.read_baseline()
    if pinned is None:
        about = "Use the current settings as the baseline and compare later changes against it."
        return [
            press(
                "Pin baseline",
                "pin",
                about,
                lambda: change(baseline=encode_baseline(config)),
                icon="keep",
            )
        ]
    changes = encode(difference(config, pinned))
    off = not changes or changes in pins.texts or len(pins.texts) >= MOST
    about = "Add the current settings as a variant."
    keep = press(
        "Add as variant",
        "keep",
        about,
        lambda: _set_compared(on_new, [*current_pins().texts, changes]),
        icon="add",
        is_disabled=off,
    )
    about = "Restore the pinned settings."
    return [keep, press("Unpin", "pin", about, partial(_unpin, pinned), icon="keep_off")]


def _unpin(pinned: Config):
    """Restore the pinned settings and remove the pin (a callback)."""
    restore(pinned)
    change(baseline="")


def draw_legend(
    variants: list[Variant],
    notes: dict[str, str | None],
    pins: Pins,
    weights_kind: str = "random",
    line_above: str = "",
):
    """Draw the legend of variants, baseline first: colours, names, notes, HTML line above.

    Args:
        variants: Variants, the baseline first.
        notes: Note on a variant by its name, such as "diverged at pass 7"; None without one.
        pins: Pinned baseline and variants.
        weights_kind: Kind of weights, a key of the menu `weights`.
        line_above: HTML of a line above, in place of the hint on how to compare.
    """
    entries = [
        (
            v.colour,
            f"Baseline ({describe_baseline(pins, weights_kind)})" if v.colour == 0 else v.name,
            notes.get(v.name),
        )
        for v in variants
    ]
    common = [f"{describe_weights(variants, weights_kind)}."]
    if len(variants) > 1:
        common.append(f"{describe_pairing(variants, weights_kind)}.")
    elif not line_above and is_movable("variants"):
        common.append("Remove a component under “Compare with” to see what it does.")
    if any("diverged" in (text or "") for text in notes.values()):
        common.append(DIVERGED)
    st.html(legend_html(entries, common, line_above))


def draw_variant_legend(entries: list[tuple[int, str, str | None]], shared_sentences: list[str]):
    """Draw the legend of variants: (colour index, name, note) of each, and sentences about all."""
    st.html(legend_html(entries, shared_sentences))


def legend_html(
    entries: list[tuple[int, str, str | None]],
    shared_sentences: Sequence[str] = (),
    line_above: str = "",
) -> str:
    """Return a legend as HTML, from (colour index, name, note) of each variant.

    Args:
        entries: Colour, name and note of each variant.
        shared_sentences: Sentences about all of them.
        line_above: HTML of a line above; presentation mode hides it.
    """
    spans = [f"<span class='about' style='flex:1 0 100%'>{line_above}</span>"] if line_above else []
    for colour, name, note in entries:
        details = f" <span style='opacity:.75'>· {html.escape(note)}</span>" if note else ""
        spans.append(
            f"<span style='overflow-wrap:anywhere'>{_line_html(colour)}<span"
            f" style='color:{COLOURS[colour]}'>●</span> {html.escape(name)}{details}</span>"
        )
    if shared_sentences:
        spans.append(f"<span style='opacity:.7'>{' '.join(shared_sentences)}</span>")
    style = "display:flex;flex-wrap:wrap;gap:2px 18px;font-size:14px"
    return f"<div class='legend' style='{style}'>{''.join(spans)}</div>"


def _line_html(colour_index: int) -> str:
    """Return HTML of a short line with this variant's colour and dashes."""
    shade = COLOURS[colour_index]
    position = 0
    stops = []
    for n, length in enumerate(map(int, DASHES[colour_index].split() or "1")):
        stops.append(f"{'transparent' if n % 2 else shade} {position}px {position + length}px")
        position += length
    line = (
        "display:inline-block;width:28px;height:2.5px;vertical-align:middle;margin-right:4px;"
        f"background:repeating-linear-gradient(90deg,{','.join(stops)})"
    )
    return f"<span style='{line}'></span>"


def describe_weights(variants: list[Variant], weights_kind: str = "random") -> str:
    """Describe the source of weights and their seeds: "Random weights, seed 0"."""
    seeds = list(dict.fromkeys(variant.config.seed for variant in variants))
    label = "seeds" if len(seeds) > 1 else "seed"
    return f"{WHOSE[weights_kind]}, {label} {' and '.join(map(str, seeds))}"


def describe_pairing(variants: list[Variant], weights_kind: str = "random") -> str:
    """Describe which weights baseline and variants share (parts/init.py), also without variants."""
    other = len({variant.config.seed for variant in variants}) > 1
    return (
        f"{weights[weights_kind].paired} at the same seed"
        if other
        else weights[weights_kind].paired
    )


def describe_baseline(pins: Pins, weights_kind: str = "random") -> str:
    """Describe the baseline: "current settings", "− norm"; one fixed phrase for trained weights."""
    if weights_kind != "random":
        return "trained with all components"
    pinned = pins.read_baseline()
    if pinned is None:
        return "current settings"
    return name_of(difference(pinned, Config())) or "default settings"


def toggle_variant(
    changes: dict, baseline: Config, on_new: Callable[[str], None] = lambda text: None
):
    """Add a variant (setting -> value) or remove it; a toast if invalid or equal (a callback).

    Args:
        changes: Settings that the variant changes.
        baseline: Config that it is compared with.
        on_new: As for variant_controls().
    """
    texts = current_pins().texts
    text = _encode_variant(changes, baseline, baseline)
    if text == "":
        st.toast("These settings equal the baseline.", icon=":material/info:")
    elif text:
        _set_compared(
            on_new,
            (
                [text_of_pin for text_of_pin in texts if text_of_pin != text]
                if text in texts
                else [*texts, text]
            ),
        )


def vary_variant(slot: int, changes: dict, baseline: Config):
    """Apply more changes to the variant in this slot, from 0; nothing if empty (a callback)."""
    slots = current_pins().slots
    if not (slot < len(slots) and slots[slot]):
        return  # it was taken away meanwhile
    text = _encode_variant(changes, apply(decode(slots[slot], "variants"), baseline), baseline)
    if text is not None:
        slots[slot] = "" if text in slots else text
        change(
            variants=join_slots(slots), beside=text if len(list(filter(None, slots))) > 1 else ""
        )


def _encode_variant(changes: dict, config: Config, baseline: Config) -> str | None:
    """Return `config` after changes as a variant of `baseline`; None, and a toast, if invalid.

    Args:
        changes: Settings to change.
        config: Config that they change.
        baseline: Config that the text is relative to.
    """
    try:
        return encode(difference(apply(changes, config), baseline))
    except ConfigError as error:
        st.toast(str(error), icon=":material/block:")
        return None
