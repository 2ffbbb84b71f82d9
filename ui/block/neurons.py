import streamlit as st

from core.experiments.block import neurons as experiment
from core.figures import charts
from core.model.parts import MENUS
from core.model.parts.activation import inputs
from ui.block.base import views
from ui.kit.page import chart, figure
from ui.kit.page import table as show_table
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, pick, sure, weights


@views
def neurons(seen, look):
    """Neurons: which hidden units of the feed-forward network fire for which word."""
    if not needs(seen, "ffn", "The feed-forward network"):
        return
    pick("token", "layer", seen=seen)
    layer, token = look.layer_of(seen), look.token_of(seen)
    gates = inputs(seen.config.part("activation"))
    units, numbers = experiment.unit_map(seen, layer)
    name = MENUS["activation"].label(seen.config.activation)
    zeros = experiment.sparsity(seen, layer)
    some = f", the {len(numbers)} most active" if len(numbers) < seen.config.d_ff else ""
    figure(
        f"Which of {seen.config.d_ff} hidden units fire for which word?",
        sure(
            f"{zeros.value.mean():.1%} of them are exactly zero after {name}. One column per unit{some}.",
            float(units.sum()),
        ),
        weights(seen),
    )
    heatmaps(
        "units", units[None], seen.labels[: seen.n_real], [str(n) for n in numbers], colTips=[f"unit {n}" for n in numbers],
        what="value after the activation", alt="Hidden units by token.", diverging=bool((units < 0).any()), square=False, height=300,
    )  # fmt: skip
    left, right = st.columns(2)
    with left:
        exact = zeros.value.any()
        figure(
            f"How many units are {'' if exact else 'nearly '}silent for each word?",
            "Exact zeros after the activation."
            if exact
            else f"{name} makes no exact zeros; counted are units below a tenth of the RMS.",
            weights(seen),
        )
        zeros = zeros.assign(
            label=[charts.word(at, word) for at, word in enumerate(zeros.word)],
            value=zeros.value if exact else zeros.small,
        )
        chart(
            charts.per_token(seen.n_real <= 24, "share of units", 1.0, True),
            zeros,
            "Share of hidden units that are silent, by token.",
            height=240,
        )
    with right:
        figure(
            f"Which units fire most for “{seen.labels[token]}”?",
            "By size after the activation." + " Before: the value, without its gate." * (gates > 1),
            weights(seen),
        )
        show_table(
            experiment.strongest(seen, layer, token),
            "The strongest hidden units of this token.",
            column_config={"unit": "Unit", "before": st.column_config.NumberColumn("Before", format="%.4f"), "after": st.column_config.NumberColumn("After", format="%.4f")},
        )  # fmt: skip
    compared = experiment.every_activation(seen, layer)
    figure(
        "How silent would they be under another activation?",
        "Same weights, same sentence; “nearly zero” is below a tenth of the RMS.",
        weights(seen),
    )
    names = {"zeros": "exactly zero", "small": "nearly zero", "negative": "negative"}
    table = (
        compared.rename(columns=names)
        .melt("label", list(names.values()), "kind", "value")
        .rename(columns={"label": "name"})
    )
    chart(charts.shares("share of hidden units"), table, "Silent hidden units under every activation.", height=330)
