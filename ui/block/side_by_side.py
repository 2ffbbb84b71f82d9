"""Side-by-side drawing of the baseline and one variant, in the diagram and every view."""

import dataclasses
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from core.experiments.forward import Pass
from core.experiments.weights import weights
from core.model import cost
from core.model.config import Config
from core.model.variants import NOW, Variant, decode
from core.settings.wording import count, explain_head_name
from ui.block.context import BlockContext, default_config
from ui.kit import pins, side_by_side
from ui.kit.page import literal
from ui.kit.pages import ONE_BLOCK
from ui.kit.panel.control import Control, among, control_of
from ui.kit.panel.panel import first_row
from ui.kit.store import change, change_quietly, is_movable, session
from ui.pictures import drawing
from ui.shared.base import views_of_tab


def summary_html(forward_pass: Pass) -> str:
    """Return HTML below a diagram: parameters, tokens, FLOPs, timing, weights, accuracy, heads."""
    config = forward_pass.config
    blocks = count(config.n_layers, "block") if config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(config).values())
    operations = sum(cost.flops(config, len(forward_pass.tokens)).values())
    padding = f" + {config.padding} padding" if config.padding else ""
    measured = weights[forward_pass.kind].measured(config)
    accuracy = f"<br>{measured}" if measured else ""
    key = f"<br><i>{explain_head_name(config.n_layers, config.n_heads)}</i>"
    return (
        f"<b>{parameters:,} parameters</b> in"
        f" {blocks}<br>{count(forward_pass.n_real, 'token')}{padding} · {operations / 1e6:.3g}"
        f" MFLOPs<br>{forward_pass.timing} on {escape(forward_pass.machine.name)},"
        f" {forward_pass.machine.dtype}<br><i>{forward_pass.weights}</i>{accuracy}{key}"
    )


ALONE = ("compare",)  # views that show all variants by themselves
HINT = "The block is then shown with and without it."
MORE = "Click a component to add a variant without it."
LOCKED = "Components are locked by the link you opened."


def draw_with_and_without(context: BlockContext, draw_notes: Callable[[], None]):
    """Draw the block diagram and the open view, for the baseline and the selected variant.

    Without a variant the baseline alone.

    Args:
        context: Pass, variants and view settings of the page.
        draw_notes: Called to draw notes about the settings below the view's controls, where they
            move neither the controls nor the diagram.
    """
    baseline, *others = context.variants
    selected = _read_beside(context, others)
    variant = next(
        (
            variant_shown
            for variant_shown in others
            if _beside_value(context, variant_shown) == selected
        ),
        others[0] if others else None,
    )
    picture, view = drawing.columns_with_diagram()
    with picture:
        _draw_diagrams(context, baseline, variant, others)
    with view:
        rows = st.container()
        try:
            _draw_view(context, rows, baseline, variant, others)
        finally:  # of a view that cannot be drawn, too
            with rows:
                for reason in context.left_out * (context.look.view not in ALONE):
                    st.caption(literal(reason))
                draw_notes()


def _draw_view(
    context: BlockContext, rows, baseline: Variant, variant: Variant | None, others: list[Variant]
):
    """Draw the open view once, or baseline and variant side by side; controls go into `rows`.

    Args:
        context: Pass, variants and view settings of the page.
        rows: Container for the view's rows of controls.
        baseline: Variant drawn first.
        variant: Variant drawn beside the baseline; None to draw the baseline alone.
        others: All variants but the baseline.
    """
    if context.look.view in ALONE:
        with side_by_side.rows_in(rows), first_row(views_of_tab(ONE_BLOCK)):
            ONE_BLOCK.open_view(context)
        return
    with (
        side_by_side.rows_in(rows),
        first_row(views_of_tab(ONE_BLOCK), _comparison_controls(context, variant, others)),
    ):
        if variant is None:
            ONE_BLOCK.open_view(context)
        else:
            sides = {_side_name(context, side): side for side in (baseline, variant)}
            less = ", minus the baseline" if context.look.difference else ""
            drawn = [
                (name, partial(ONE_BLOCK.open_view, _variant_context(context, side)))
                for name, side in sides.items()
            ]

            def head(name: str):
                side = sides[name]
                return pins.draw_variant_legend(
                    [(side.colour, name + less if side is variant else name, None)], []
                )

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
            side_by_side.draw_side_by_side(
                drawn, head, context.look.difference, counts, colour, in_rows
            )


def _read_beside(context: BlockContext, others: list[Variant]) -> str:
    """Return the link's "beside"; when the settings become a variant, set it to "now", rerun."""
    remembered = session().kept
    selected = context.look.beside
    now = next((variant.name for variant in others if variant.colour == NOW), "")
    name, before = remembered.get("beside", (now, selected))
    if now and now != name and selected == before != "now":
        remembered["beside"] = now, "now"
        change_quietly(beside="now")
        st.rerun()  # its link says so, too
    remembered["beside"] = now, selected
    return selected


def _comparison_controls(
    context: BlockContext, variant: Variant | None, others: list[Variant]
) -> list[Control]:
    """Return the controls that select the variant and its difference; [] without a variant."""
    if variant is None:
        return []
    row = [control_of(context.look, "difference")]
    if len(others) > 1:
        texts = [_beside_value(context, variant) for variant in others]
        row.append(
            among(
                "Compared with",
                "beside",
                _beside_value(context, variant),
                texts,
                [variant.name for variant in others],
            )
        )
    return row


def _draw_diagrams(
    context: BlockContext, baseline: Variant, variant: Variant | None, variants: list[Variant]
):
    """Draw the baseline's block diagram and, if any, the variant's, one of `variants`, below."""
    figures = summary_html(_variant_context(context, baseline).forward_pass)
    if variant is None:
        _draw_block(context, baseline, baseline, "", HINT, figures, default_config(context.kind))
        return
    name = _side_name(context, variant)
    statistics = summary_html(_variant_context(context, variant).forward_pass)
    which = (
        f" (variant {variants.index(variant) + 1} of {len(variants)})" if len(variants) > 1 else ""
    )
    _draw_block(context, baseline, baseline, "Baseline", MORE, "")
    below = f"<b>{escape(name)}:</b><br>{statistics}<br><br><b>Baseline:</b><br>{figures}"
    _draw_block(context, variant, baseline, f"{name}{which}", "", below)


def _variant_context(context: BlockContext, variant: Variant) -> BlockContext:
    """Return the context with the forward pass of this variant."""
    forward_pass = context.forward_pass
    if variant.config == forward_pass.config:
        return context
    return dataclasses.replace(context, forward_pass=forward_pass.run_with(variant.config))


def _side_name(context: BlockContext, variant: Variant) -> str:
    """Return the variant's name on screen; the baseline's says what it consists of."""
    if variant.colour == 0:
        return f"Baseline ({pins.describe_baseline(context.pins, context.kind)})"
    return weights[context.kind].name(variant.config) or variant.name


def _beside_value(context: BlockContext, variant: Variant) -> str:
    """Return the variant's value of the link parameter "beside", such as "norm-none" or "now"."""
    return "now" if variant.colour == NOW else context.pins.slots[variant.colour - 1]


def _draw_block(
    context: BlockContext,
    variant: Variant,
    baseline: Variant,
    name: str,
    hint: str,
    below: str,
    highlight_against: Config | None = None,
):
    """Draw a diagram; a click toggles a variant (in the baseline's), or changes this variant.

    Args:
        context: Pass, variants and view settings of the page.
        variant: Variant to draw.
        baseline: Variant to compare with; a click changes settings relative to it.
        name: Variant's name in the legend above the drawing; "" if it is the only drawing.
        hint: Sentence on what a click does; "" where another drawing says so.
        below: HTML below the drawing.
        highlight_against: Config whose differences are highlighted, if not the baseline's.
    """
    forward_pass = _variant_context(context, variant).forward_pass
    first = variant.colour == 0

    def clicked(text: str):
        changes = decode(text, "variants")
        if first:
            pins.toggle_variant(changes, variant.config, lambda text: change(beside=text))
        elif variant.colour == NOW:
            change(**changes)
        else:
            pins.vary_variant(variant.colour - 1, changes, baseline.config)

    title = "<b>Click a component to remove it</b>"
    if hint and not is_movable("variants"):
        title = "<b>Block</b>"
        hint = LOCKED
    if name:
        title = pins.legend_html([(variant.colour, name, None)])
    words: dict[str, Any] = {
        "compact": bool(name),
        "above": f"{title}<div>{hint}</div>",
        "below": below,
    }
    words |= {
        "key": "drawing" if first else "drawing_beside",
        "compared_variants": context.pins.texts if first else None,
    }
    drawing.draw_block(
        forward_pass,
        context.look.layer_of(forward_pass),
        reference=highlight_against or baseline.config,
        on_pick=clicked,
        **words,
    )
