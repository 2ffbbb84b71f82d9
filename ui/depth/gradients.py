"""View of gradients: norm by depth, and norm of each weight's gradient."""

import math

import numpy as np
import streamlit as st

from core.experiments.depth.gradients import Gradients, ignores_key_bias
from core.experiments.depth.gradients import gradients as run
from core.settings.wording import count, number
from ui.depth.context import DepthContext, view
from ui.kit import pins
from ui.kit.page import figure, literal
from ui.pictures.curves import Line, Panel, draw_curves
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared.base import LOST

# a thousandth, a thousandfold of what went in at the end
VANISHED = 1e-3
EXPLODED = 1e3


@view.register("gradients", label="Gradients", help="gradient norm by layer and parameter tensor.")
def gradients(context: DepthContext):
    """Draw the gradient norm by pass, and of each weight, for all variants."""
    of_variants = {
        v.name: run(v.config, context.tokens, context.machine, context.depth)
        for v in context.variants
    }
    notes = {name: why_incomplete(travel) for name, travel in of_variants.items()}
    pins.draw_legend(context.variants, notes, context.pins)
    lines = [
        Line(v.colour, of_variants[v.name].stream.tolist(), notes[v.name]) for v in context.variants
    ]
    label = "Gradient norm by depth"
    about = (
        "Norm of ∂loss/∂(residual stream) after each pass; 0 is the input. Loss: next-token"
        " cross-entropy; the last token's target is the first token."
    )
    panel = Panel(
        "How much of the gradient reaches each pass?",
        label,
        describe_ratios(of_variants),
        lines,
        log=True,
        help=about,
    )
    left, right = st.columns([2, 3], gap="medium")
    with left:
        draw_curves(
            "gradient_curves", [panel], {v.colour: v.name for v in context.variants}, height=330
        )
    with right:
        draw_weight_gradients(context, of_variants)


def why_incomplete(gradients_of_variant: Gradients) -> str | None:
    """Return why a variant's gradient is incomplete, for a legend; None if it is complete."""
    if not gradients_of_variant.diverged:
        return None
    return (
        "gradient overflowed"
        if math.isfinite(gradients_of_variant.loss)
        else "diverged in the forward pass"
    )


def describe_ratios(by_variant: dict[str, Gradients]) -> str:
    """Describe each variant's ratio of gradient norms, input / output, and why some have none."""
    factors = []
    without = []
    for name, travel in by_variant.items():
        if travel.diverged:
            without.append(f"{name} ({why_incomplete(travel)})")
        elif travel.stream[-1] > 0:
            share = travel.stream[0] / travel.stream[-1]
            kind = ""
            if share < VANISHED:
                kind = " (vanished)"
            elif share > EXPLODED:
                kind = " (exploded)"
            factors.append(f"{name} {number(share)}{kind}")
    without += [
        f"{name} (no gradient at the output)"
        for name, variant_travel in by_variant.items()
        if variant_travel.stream[-1] == 0
    ]
    notes = []
    if factors:
        notes.append(f"Ratio of gradient norms, input to output: {', '.join(factors)}.")
    if without:
        notes.append(f"Not available: {', '.join(without)}.")
    return " ".join(notes)


def draw_weight_gradients(context: DepthContext, by_variant: dict[str, Gradients]):
    """Draw each weight's gradient norm: a panel per variant, or a column for one shared block."""
    tables = {name: travel.weights for name, travel in by_variant.items() if len(travel.weights)}
    if not tables:
        st.caption("No weights: both sub-layers are removed.")
        return
    weights = list(dict.fromkeys(weight for table in tables.values() for weight in table.weight))
    layers = max(table.layer.max() for table in tables.values())
    shared = context.depth.blocks == "same"
    where = "summed over passes" if shared else f"by block, {count(int(layers), 'block')}"
    figure(f"Gradient norm per parameter tensor ({where})", describe_largest(tables, shared))
    ignored = [
        v.name for v in context.variants if ignores_key_bias(context.depth.plan(v.config)[0])
    ]
    if ignored:
        whose = "" if len(ignored) == len(tables) else f" ({', '.join(ignored)})"
        st.caption(
            literal(
                "b_K shifts all scores of a query equally, and softmax ignores such a shift. So the"
                f" gradient of b_K is zero up to rounding{whose}."
            )
        )
    pivots = [
        table.pivot(index="weight", columns="layer", values="value") for table in tables.values()
    ]
    cells = np.stack(
        [pivot.reindex(index=weights, columns=range(1, layers + 1)).to_numpy() for pivot in pivots]
    )
    columns = [f"block {n + 1}" for n in range(layers)]
    titles = list(tables)
    if shared:  # one block: its variants side by side, instead of panels of a single column
        cells = cells[:, :, 0].T[None]
        columns = list(tables)
        titles = None
    draw_heatmaps(
        "weight_gradients",
        cells,
        weights,
        columns,
        titles=titles,
        quantity="Gradient norm",
        log=True,
        numbers="brief",
        alt="Gradient norm of each parameter tensor;"
        f" columns are {'variants' if shared else 'blocks'}.",
        square=False,
        blank="absent or undefined",
        arrow="in",
        height=470,
    )


def describe_largest(tables_by_variant, shared: bool) -> str:
    """Describe which weight has the largest finite gradient in each variant; LOST if none has.

    Args:
        tables_by_variant: Variant's name -> table of weights and gradient norms.
        shared: Whether all passes share one block.
    """
    phrases = []
    for name, table in tables_by_variant.items():
        finite = table[table.value.apply(math.isfinite)]
        if len(finite):
            top = finite.loc[finite.value.idxmax()]
            phrases.append(
                f"{name} {top.weight}{'' if shared else f' of block {top.layer}'}"
                f" ({number(top.value)})"
            )
    return f"Largest: {'; '.join(phrases)}." if phrases else LOST
