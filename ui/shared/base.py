"""Controls and view settings that pages with a text share."""

import html
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.checkpoints import Opened
from core.experiments.block.attention import read_pairs
from core.experiments.forward import Pass
from core.model.text import EXAMPLES, shorten_token, split_words
from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from ui.kit import side_by_side
from ui.kit.pages import Page
from ui.kit.panel.control import FOLDS, Control, among, choice, field, register_handler
from ui.kit.panel.panel import draw_bar
from ui.kit.store import change, is_movable, value

OWN = "Your own text"
NAMED = 8  # unknown words that are named
NO_WORD = "Type a sentence above, or pick an example."


def sentence_controls() -> list[Control]:
    """Return the controls of the setting `text`: a text field and a list of examples."""
    return text_controls(
        "Sentence",
        "text",
        "Type a sentence …",
        {example.name: example.text for example in EXAMPLES},
    )


def text_controls(label: str, name: str, hint: str, examples: dict[str, str]) -> list[Control]:
    """Return controls of a text setting: a field, and a list of examples (name -> text)."""
    text = value(name)
    texts = list(examples.values())
    words = list(examples)
    if text not in texts:
        texts.append(text)
        words.append(OWN)
    example = choice("Example", f"example_of_{name}", text, texts, words)
    # Another text: what was marked in the old one means nothing in it.
    anew = {"also": {"pairs": None}}
    return [field(label, name, hint) | anew, example | anew | {"set": name}]


def draw_unknown_words(labels: Sequence[str], unknown: Collection[int]):
    """Draw a notice that names the labels at the indices `unknown`; nothing without any.

    Args:
        labels: Tokens of the text.
        unknown: Indices of the missing ones, from 0.
    """
    if not unknown:
        return
    missing = list(dict.fromkeys(labels[index] for index in unknown))
    named = ", ".join(f"“{html.escape(shorten_token(word))}”" for word in missing[:NAMED])
    if len(missing) > NAMED:
        named += f" and {len(missing) - NAMED:,} more"
    escaped = list(map(html.escape, labels))
    for missing_index in unknown:
        escaped[missing_index] = (
            f"<span style='border-bottom:2px dotted #D55E00'>{escaped[missing_index]}</span>"
        )
    marked = " ".join(escaped)
    st.html(
        "<div style='font-size:14px;line-height:20px'>Not in the vocabulary, treated as one"
        f" unknown token: {named}. <span"
        f" style='opacity:.75'>{marked}</span></div>"
    )


maps: Menu[Any] = Menu("Picture")


maps.add("heads", label="All heads", help="one small map per head; click one to open it.")
maps.add("one", label="One head", help="one large map, with all tokens labelled.")
maps.add("average", label="Average", help="the mean over all heads.")
maps.add("lines", label="Lines", help="lines from each token to those it attends to, for one head.")


@dataclass(frozen=True)
class Picked(Settings):
    """View settings of a pass on all pages, counted from 1; larger values mean the last."""

    maps: str = setting("heads", "Picture", "How attention is drawn.", group="Look", menu=maps)
    layer: int = setting(
        1, "Layer", "Which block of the stack.", group="Look", low=1, high=100, step=1
    )
    head: int = setting(1, "Head", "Which attention head.", group="Look", low=1, high=64, step=1)
    token: int = setting(
        2, "Token", "Which token of the sentence.", group="Look", low=1, high=272, step=1
    )
    step: int = setting(1, "Step", "Which step of attention.", group="Look", low=1, high=11, step=1)
    pairs: str = setting(
        "",
        "Marked pairs",
        "Pairs of tokens that depend on each other, such as 12-2,13-2.",
        group="Look",
    )

    def layer_of(self, forward_pass: Pass | Opened) -> int:
        """Return the selected layer of this pass, from 0; its last if there are fewer."""
        return min(self.layer, forward_pass.config.n_layers) - 1

    def head_of(self, forward_pass: Pass | Opened) -> int:
        """Return the selected head of this pass, from 0; its last if there are fewer."""
        return min(self.head, forward_pass.config.n_heads) - 1

    def token_of(self, forward_pass: Pass) -> int:
        """Return the index of the selected token, from 0; the last one if there are fewer."""
        return min(self.token, forward_pass.n_real) - 1

    def pairs_of(
        self, forward_pass: Pass, text: str
    ) -> tuple[tuple[tuple[int, int], ...], list[str]]:
        """Return marked (query, key) index pairs from 0, else the example's; and error notes."""
        if not self.pairs:
            example_pairs = next(
                (example.pairs for example in EXAMPLES if example.text == text), ()
            )
            # a trained model may have left words out
            return (
                example_pairs
                if split_words(text) == list(forward_pass.tokens[: forward_pass.n_real])
                else ()
            ), []
        return read_pairs("" if self.pairs == "none" else self.pairs, forward_pass.n_real)


LOST = "The values overflowed (infinite or NaN): there is nothing to show."


def finite_sentence(sentence: str, *values) -> str:
    """Return the sentence, or LOST if one of the values in it is infinite or NaN."""
    return sentence if all(math.isfinite(value) for value in values) else LOST


def has_sublayer(forward_pass: Pass, part: str, label: str) -> bool:
    """Return whether the pass has "attention" or "ffn"; draw a notice on what to do if not.

    Args:
        forward_pass: The pass.
        part: Setting of the sub-layer, "attention" or "ffn".
        label: Its name in the notice.
    """
    if getattr(forward_pass.config, part):
        return True
    if not forward_pass.kind:  # a model from a file, which is as it is
        message = "is not part of this model. Choose another view or another model."
    else:
        place = ""
        back = "Switch it on under Components."
        setting_name = part
        if side_by_side.is_second_side():
            place = " in this variant"
            back = f"Click {label} in the diagram to restore it."
            setting_name = "variants"
        message = f"is removed{place}, so there is nothing to show."
        if is_movable(setting_name):
            message += f" {back}"
    st.info(f"{label} {message}", icon=":material/toggle_off:")
    return False


def pick_controls(*names, forward_pass: Pass) -> list[Control]:
    """Return menus for these of "token", "layer" and "head", with all that both sides have.

    For one layer or head there is no menu.
    """
    counts = {
        "layer": forward_pass.config.n_layers,
        "head": forward_pass.config.n_heads,
        "token": forward_pass.n_real,
    }
    counts = {name: side_by_side.count_of(name, count) for name, count in counts.items()}
    layer = min(value("layer"), counts["layer"]) - 1
    words = {
        "layer": [f"layer {n + 1}" for n in range(counts["layer"])],
        "head": [forward_pass.head_name(layer, n) for n in range(counts["head"])],
        "token": [
            f"token {n}: {label}"
            for n, label in enumerate(forward_pass.labels[: counts["token"]], 1)
        ],
    }
    return [
        choice(
            name.capitalize(),
            name,
            min(value(name), counts[name]),
            range(1, counts[name] + 1),
            words[name],
        )
        for name in names
        if counts[name] > 1 or name == "token"
    ]


def views_of_tab(page: Page) -> list[Control]:
    """Return the control that selects a view of the open tab or attention map; [] if only one."""
    row = page.views_of_tab()
    parameter = page.parameter
    open_view = value(parameter)
    if (
        "attention" not in page.groups.get("Attention", ())
        or open_view not in page.groups["Attention"]
    ):
        return row
    others = [option for option in row[0]["options"] if option[0] != "attention"] if row else []
    keys = [*(f"attention/{key}" for key in maps), *(key for key, _ in others)]
    labels = [*map(maps.label, maps), *(label for _, label in others)]
    now = f"attention/{value('maps')}" if open_view == "attention" else open_view

    def open_picture(text: str):
        view, _, picture = text.partition("/")
        change(**{parameter: view}, **({"maps": picture} if picture else {}))

    control = among("Picture", "picture", now, keys, labels)
    return [control | FOLDS | {"set": register_handler("picture", open_picture)}]


def draw_picks(*names, forward_pass: Pass, before: list[Control] | None = None):
    """Draw a row of controls: `before`, then these of "layer", "head", "token" (pick_controls)."""
    draw_bar("lens", [*(before or []), *pick_controls(*names, forward_pass=forward_pass)])
