import math

import numpy as np
import pandas as pd
import streamlit as st

from core.experiments.findings import number
from core.experiments.gradients import gradients as run
from ui import pins
from ui.curves import Line, Panel, curves
from ui.depth.base import views
from ui.heatmaps import heatmaps
from ui.page import figure, literal

VANISHED, EXPLODED = 1e-3, 1e3  # a thousandth, a thousandfold of what went in at the end


@views
def gradients(seen):
    """Gradients: what of the error arrives at each layer, and at each weight."""
    found = {v.name: run(v.config, seen.tokens, seen.machine, seen.depth) for v in seen.variants}
    said = {name: "diverged" if each.diverged else None for name, each in found.items()}
    pins.legend(seen.variants, said, pins.baseline_words(seen.pins))
    lines = [Line(v.place, [x or math.nan for x in found[v.name].stream.tolist()], said[v.name]) for v in seen.variants]
    panel = Panel(
        title="How much of the gradient arrives?",
        label="Norm of ∂loss/∂stream after each pass; 0: at the input",
        help="Loss: cross-entropy of each word naming the next one, and of the last naming the first.",
        log=True,
        sentence=travelled(found),
        lines=lines,
    )
    left, right = st.columns([2, 3], gap="medium")
    with left:
        curves("gradient_curves", [panel], {v.place: v.name for v in seen.variants}, height=330)
    with right:
        per_weight(seen, found)


def travelled(found) -> str:
    """What becomes of the gradient on its way from the last pass to the first, told of the variant farthest from 1."""
    shares = {}
    for name, each in found.items():
        if each.diverged:
            shares[name] = math.inf
        elif each.stream[-1] > 0:
            shares[name] = each.stream[0] / each.stream[-1]
    names = list(found)
    far = max(shares, key=lambda name: (name != names[0]) * abs(math.log10(shares[name] or 1e-300)), default=None)
    if far is None:
        return "No gradient leaves the last pass."
    told = [f"{_share(shares[name])} in {name}" for name in dict.fromkeys([far, names[0]]) if name in shares]
    return f"On its way back from the last pass to the input the gradient changes {', '.join(told)}."


def _share(share: float) -> str:
    if math.isinf(share):
        return "beyond all numbers"
    kind = " (vanished)" if share < VANISHED else " (exploded)" if share > EXPLODED else ""
    return f"× {number(share)}{kind}"


def per_weight(seen, found):
    """The norm of every weight's gradient: one panel per variant, a row per weight, a column per layer."""
    tables = {name: each.weights for name, each in found.items() if len(each.weights)}
    if not tables:
        st.caption("No weight gets a gradient: both sub-layers are off.")
        return
    weights = list(dict.fromkeys(weight for table in tables.values() for weight in table.weight))
    layers = max(table.layer.max() for table in tables.values())
    shared = seen.depth.blocks == "same"
    where = "summed over all passes of the one block" if shared else f"in each of {layers} blocks"
    figure(f"How large is each weight's gradient, {where}?", largest(tables), seen.weights)
    if "b_K" in weights and seen.baseline.position != "rope":
        st.caption(
            "The gradient of b_K is rounding: it adds the same to all scores of a query, which a softmax ignores."
        )
    matrices = [
        table.pivot(index="weight", columns="layer", values="value").reindex(
            index=weights, columns=range(1, layers + 1)
        )
        for table in tables.values()
    ]
    if shared:  # one block: its variants side by side, instead of panels of a single column
        together = pd.concat([matrix[1].rename(name) for name, matrix in zip(tables, matrices)], axis=1)
        heatmaps(
            "weight_gradients", together.to_numpy()[None], weights, list(tables), square=False, **_words("variants")
        )
        return
    heatmaps(
        "weight_gradients", np.stack([m.to_numpy() for m in matrices]), weights, [f"block {n + 1}" for n in range(layers)],
        titles=list(tables), square=False, **_words("blocks"),
    )  # fmt: skip


def _words(columns) -> dict:
    return {
        "what": "norm of the gradient",
        "blank": "no such weight",
        "alt": f"Norm of each weight's gradient; columns are {columns}.",
        "log": True,
        "arrow": "in",
        "height": 470,
        "numbers": True,
    }


def largest(tables) -> str:
    """Where the largest gradient of the first table stands."""
    name, table = next(iter(tables.items()))
    known = table[table.value.apply(math.isfinite)]
    if not len(known):
        return "The numbers have left their range here, so nothing can be said."
    top = known.loc[known.value.idxmax()]
    return literal(f"Largest in {name}: {top.weight} in block {top.layer}, {number(top.value)}.").replace("\\", "")
