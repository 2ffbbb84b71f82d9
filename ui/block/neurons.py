import streamlit as st

from core.experiments.block import neurons as experiment
from core.figures.charts import stream as charts
from core.figures.spec import word
from core.model.parts import MENUS
from core.model.parts.activation import inputs
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.kit.page import table as show_table
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, pick, sure


@view.register("neurons", label="Neurons", help="which hidden units of the feed-forward network fire for which word.")
def neurons(context):
    forward_pass = context.forward_pass
    if not needs(forward_pass, "ffn", "The feed-forward network"):
        return
    pick("token", "layer", forward_pass=forward_pass)
    layer, token = context.look.layer_of(forward_pass), context.look.token_of(forward_pass)
    silent = experiment.sparsity(forward_pass, layer)
    units, numbers = experiment.unit_map(forward_pass, layer)
    activation = MENUS["activation"].label(forward_pass.config.activation)
    some = f", the {len(numbers)} most active" if len(numbers) < forward_pass.config.d_ff else ""
    said = f"{silent.value.mean():.1%} of them are exactly zero after {activation}. One column per unit{some}."
    title = f"Which of {forward_pass.config.d_ff} hidden units fire for which word?"
    figure(title, sure(said, float(units.sum())), forward_pass.weights)
    heatmaps(
        "units", units[None], forward_pass.labels[: forward_pass.n_real], [str(n) for n in numbers], colTips=[f"unit {n}" for n in numbers],
        what="value after the activation", alt="Hidden units by token.", diverging=bool((units < 0).any()), square=False, height=300,
    )  # fmt: skip
    left, right = beside.columns(2)
    with left:
        counted, values = "exact zeros", silent.value
        title, said = "How many units are silent for each word?", "Exact zeros after the activation."
        if not silent.value.any():
            counted, values = "nearly silent", silent.small  # the one is not to be subtracted from the other
            title = "How many units are nearly silent for each word?"
            said = f"{activation} makes no exact zeros; counted are units below a tenth of the RMS."
        figure(title, said, forward_pass.weights)
        labels = [word(at, text) for at, text in enumerate(silent.word)]
        shares = silent.assign(label=labels, value=values, counted=counted)
        spec = charts.per_token(forward_pass.n_real <= 24, "share of units", 1.0, True)
        chart(spec, shares, "Share of hidden units that are silent, by token.", height=240)
    with right:
        said = "By size after the activation."
        if inputs(forward_pass.config.part("activation")) > 1:
            said += " Before: the value, without its gate."
        figure(f"Which units fire most for “{forward_pass.labels[token]}”?", said, forward_pass.weights)
        words = {name: st.column_config.NumberColumn(name.capitalize(), format="%.4f") for name in ("before", "after")}
        strongest = experiment.strongest(forward_pass, layer, token)
        about = "The strongest hidden units of this token."
        show_table(strongest, about, column_config={"unit": "Unit", **words})
    title = "How silent would they be under another activation?"
    said = "Same weights, same sentence; “nearly zero” is below a tenth of the RMS."
    figure(title, said, forward_pass.weights)
    kinds = {"zeros": "exactly zero", "small": "nearly zero", "negative": "negative"}
    table = experiment.every_activation(forward_pass, layer).rename(columns=kinds | {"label": "name"})
    table = table.melt("name", list(kinds.values()), "kind", "value")
    chart(charts.shares("share of hidden units"), table, "Silent hidden units under every activation.", height=330)
