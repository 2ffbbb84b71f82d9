"""Side by side: baseline and one variant, in the diagram and in every view."""

import dataclasses
from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st

from core.experiments.forward import Pass
from core.experiments.weights import weights
from core.model import cost
from core.model.config import Config
from core.model.variants import NOW, Variant, decode
from core.settings.wording import count, explain_head_name
from ui.block.context import BlockContext, usual
from ui.kit import beside, pins
from ui.kit.page import literal
from ui.kit.pages import ONE_BLOCK
from ui.kit.panel.control import Control, among, of
from ui.kit.panel.panel import first_row
from ui.kit.store import amend, change, is_moved, session
from ui.pictures import drawing
from ui.shared.base import views_of_tab


def summary(forward_pass: Pass) -> str:
    """Return a pass's parameters, tokens, FLOPs and time as HTML."""
    config = forward_pass.config
    blocks = count(config.n_layers, "block") if config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(config).values())
    operations = sum(cost.flops(config, len(forward_pass.tokens)).values())
    padding = f" + {config.padding} padding" if config.padding else ""
    key = f"<br><i>{explain_head_name(config.n_layers, config.n_heads)}</i>"
    return (
        f"<b>{parameters:,} parameters</b> in"
        f" {blocks}<br>{count(forward_pass.n_real, 'token')}{padding} · {operations / 1e6:.3g}"
        f" MFLOPs<br>{forward_pass.timing} on {escape(forward_pass.machine.name)},"
        f" {forward_pass.machine.dtype}<br><i>{forward_pass.weights}</i>{key}"
    )


ALONE = ("compare",)  # views that show all variants by themselves
HINT = "One forward pass. Click a component to compare the block with and without it."
MORE = "Click a component to add a variant without it."
LOCKED = "Components are locked by the link you opened."


def with_and_without(context: BlockContext, say: Callable[[], None]):
    """Draw the block and the open view, for the baseline and for a selected variant.

    say: draws what there is to say of the settings, or nothing: below the view's rows, where it
    moves neither these nor the drawing.
    """
    baseline, *others = context.variants
    selected = _asked(context, others)
    variant = next(
        (variant_shown for variant_shown in others if _text(context, variant_shown) == selected),
        others[0] if others else None,
    )
    picture, view = st.columns([31, 69], gap="medium")
    with picture:
        _drawings(context, baseline, variant, others)
    with view:
        rows = st.container()
        try:
            _view(context, rows, baseline, variant, others)
        finally:  # of a view that cannot be drawn, too
            with rows:
                for reason in context.left_out * (context.look.view not in ALONE):
                    st.caption(literal(reason))
                say()


def _view(
    context: BlockContext, rows, baseline: Variant, variant: Variant | None, others: list[Variant]
):
    """Draw the open view.

    Args:
        rows: Container of its rows of controls.
    """
    if context.look.view in ALONE:
        with beside.rows_in(rows), first_row(views_of_tab(ONE_BLOCK)):
            return ONE_BLOCK.open_view(context)
    with (
        beside.rows_in(rows),
        first_row(views_of_tab(ONE_BLOCK), _comparison(context, variant, others)),
    ):
        if variant is None:
            ONE_BLOCK.open_view(context)
        else:
            sides = {_name(context, side): side for side in (baseline, variant)}
            less = ", minus the baseline" * context.look.difference
            drawn = [
                (name, partial(ONE_BLOCK.open_view, _of(context, side)))
                for name, side in sides.items()
            ]

            def head(name: str):
                side = sides[name]
                return pins.marks([(side.colour, name + less * (side is variant), None)], [])

            a = baseline.config
            other = variant.config
            counts = {
                "layer": max(a.n_layers, other.n_layers),
                "head": max(a.n_heads, other.n_heads),
            }
            in_rows = (
                context.look.view == "attention" and context.look.maps == "heads"
            )  # wide, where others are high
            colour = pins.COLOURS[variant.colour]
            beside.beside(drawn, head, context.look.difference, counts, colour, in_rows)


def _asked(context: BlockContext, others: list[Variant]) -> str:
    """Return the variant to show beside the baseline: one whose control just moved, or the selected."""
    remembered = session().kept
    selected = context.look.beside
    now = next((variant.name for variant in others if variant.colour == NOW), "")
    name, before = remembered.get("beside", (now, selected))
    if now and now != name and selected == before != "now":
        remembered["beside"] = now, "now"
        amend(beside="now")
        st.rerun()  # its link says so, too
    remembered["beside"] = now, selected
    return selected


def _comparison(
    context: BlockContext, variant: Variant | None, others: list[Variant]
) -> list[Control]:
    """Return the controls of what is drawn for the variant; none where there is no variant."""
    if variant is None:
        return []
    row = [of(context.look, "difference")]
    if len(others) > 1:
        texts = [_text(context, variant) for variant in others]
        row.append(
            among(
                "Compared with",
                "beside",
                _text(context, variant),
                texts,
                [variant.name for variant in others],
            )
        )
    return row


def _drawings(
    context: BlockContext, baseline: Variant, variant: Variant | None, others: list[Variant]
):
    figures = summary(_of(context, baseline).forward_pass)
    if variant is None:
        return _drawn(context, baseline, baseline, "", HINT, figures, usual(context.kind))
    name = _name(context, variant)
    statistics = summary(_of(context, variant).forward_pass)
    which = f" (variant {others.index(variant) + 1} of {len(others)})" if len(others) > 1 else ""
    _drawn(context, baseline, baseline, "Baseline", MORE, "")
    below = f"<b>{escape(name)}:</b><br>{statistics}<br><br><b>Baseline:</b><br>{figures}"
    _drawn(context, variant, baseline, f"{name}{which}", "", below)


def _of(context: BlockContext, variant: Variant) -> BlockContext:
    """Return what a view is handed of a variant."""
    forward_pass = context.forward_pass
    if variant.config == forward_pass.config:
        return context
    return dataclasses.replace(context, forward_pass=forward_pass.other(variant.config))


def _name(context: BlockContext, variant: Variant) -> str:
    if variant.colour == 0:
        return f"Baseline ({pins.baseline_words(context.pins, context.kind)})"
    return weights[context.kind].name(variant.config) or variant.name


def _text(context: BlockContext, variant: Variant) -> str:
    """A variant as the link names it."""
    return "now" if variant.colour == NOW else context.pins.slots[variant.colour - 1]


def _drawn(
    context: BlockContext,
    variant: Variant,
    baseline: Variant,
    name: str,
    hint: str,
    below: str,
    other: Config | None = None,
):
    """Draw a block, in which a click removes a part, or puts it back.

    Args:
        name: Of the variant, as the legend above the drawing has it; empty where there is no other.
        hint: What a click does; empty where the drawing above says so.
        below: What stands below, as HTML.
        other: What it is drawn as differing from, where that is not the baseline.
    """
    forward_pass = _of(context, variant).forward_pass
    first = variant.colour == 0

    def clicked(text: str):
        changes = decode(text, "variants")
        if first:
            pins.toggle(changes, variant.config, lambda text: change(beside=text))
        elif variant.colour == NOW:
            change(**changes)
        else:
            pins.vary(variant.colour - 1, changes, baseline.config)

    title = pins.legend_html([(variant.colour, name, None)]) if name else "<b>Block</b>"
    if hint and not is_moved("variants"):
        hint = LOCKED
    words = {"compact": bool(name), "above": f"{title}<div>{hint}</div>", "below": below}
    words |= {
        "key": "drawing" if first else "drawing_beside",
        "beside": context.pins.texts if first else None,
    }
    drawing.block(
        forward_pass,
        context.look.layer_of(forward_pass),
        usual=other or baseline.config,
        on_pick=clicked,
        **words,
    )
