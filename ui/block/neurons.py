import streamlit as st

from core.experiments.block import neurons as experiment
from core.figures import charts
from core.model.parts import MENUS
from core.model.parts.activation import inputs
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.kit.page import table as show_table
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, pick, sure, weights


@view
def neurons(context):
    """Neurons: which hidden units of the feed-forward network fire for which word."""
    forward_pass = context.forward_pass
    if not needs(forward_pass, "ffn", "The feed-forward network"):
        return
    pick("token", "layer", forward_pass=forward_pass)
    layer, token = context.look.layer_of(forward_pass), context.look.token_of(forward_pass)
    silent = experiment.sparsity(forward_pass, layer)
    _unit_map(forward_pass, layer, silent)
    left, right = beside.columns(2)
    with left:
        _silent(forward_pass, silent)
    with right:
        _strongest(forward_pass, layer, token)
    _every_activation(forward_pass, layer)


def _activation(forward_pass) -> str:
    return MENUS["activation"].label(forward_pass.config.activation)


def _unit_map(forward_pass, layer, silent):
    """Hidden units by token. silent: as of experiment.sparsity."""
    units, numbers = experiment.unit_map(forward_pass, layer)
    some = f", the {len(numbers)} most active" if len(numbers) < forward_pass.config.d_ff else ""
    figure(
        f"Which of {forward_pass.config.d_ff} hidden units fire for which word?",
        sure(
            f"{silent.value.mean():.1%} of them are exactly zero after {_activation(forward_pass)}. One column per unit{some}.",
            float(units.sum()),
        ),
        weights(forward_pass),
    )
    heatmaps(
        "units", units[None], forward_pass.labels[: forward_pass.n_real], [str(n) for n in numbers], colTips=[f"unit {n}" for n in numbers],
        what="value after the activation", alt="Hidden units by token.", diverging=bool((units < 0).any()), square=False, height=300,
    )  # fmt: skip


def _silent(forward_pass, silent):
    """The share of units that are silent, by token."""
    exact = silent.value.any()
    figure(
        f"How many units are {'' if exact else 'nearly '}silent for each word?",
        "Exact zeros after the activation."
        if exact
        else f"{_activation(forward_pass)} makes no exact zeros; counted are units below a tenth of the RMS.",
        weights(forward_pass),
    )
    shares = silent.assign(
        label=[charts.word(at, word) for at, word in enumerate(silent.word)],
        value=silent.value if exact else silent.small,
        counted="exact zeros" if exact else "nearly silent",  # the one is not to be subtracted from the other
    )
    chart(
        charts.per_token(forward_pass.n_real <= 24, "share of units", 1.0, True),
        shares,
        "Share of hidden units that are silent, by token.",
        height=240,
    )


def _strongest(forward_pass, layer, token):
    gates = inputs(forward_pass.config.part("activation"))
    figure(
        f"Which units fire most for “{forward_pass.labels[token]}”?",
        "By size after the activation." + " Before: the value, without its gate." * (gates > 1),
        weights(forward_pass),
    )
    show_table(
        experiment.strongest(forward_pass, layer, token),
        "The strongest hidden units of this token.",
        column_config={"unit": "Unit", "before": st.column_config.NumberColumn("Before", format="%.4f"), "after": st.column_config.NumberColumn("After", format="%.4f")},
    )  # fmt: skip


def _every_activation(forward_pass, layer):
    figure(
        "How silent would they be under another activation?",
        "Same weights, same sentence; “nearly zero” is below a tenth of the RMS.",
        weights(forward_pass),
    )
    kinds = {"zeros": "exactly zero", "small": "nearly zero", "negative": "negative"}
    table = (
        experiment.every_activation(forward_pass, layer)
        .rename(columns=kinds)
        .melt("label", list(kinds.values()), "kind", "value")
        .rename(columns={"label": "name"})
    )
    chart(charts.shares("share of hidden units"), table, "Silent hidden units under every activation.", height=330)
