"""View of the feed-forward network's hidden units."""

from core.experiments.block import neurons as experiment
from core.figures.charts import stream as charts
from core.figures.spec import word_label
from core.model.parts import MENUS
from core.model.parts.activation import count_inputs
from ui.block.context import BlockContext, view
from ui.kit import side_by_side
from ui.kit.page import chart, figure, style_numbers
from ui.kit.page import table as show_table
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared.base import draw_picks, finite_sentence, has_sublayer

RARE = 0.01  # share of exact zeros below which a chart of them is empty


@view.register(
    "neurons",
    label="Neurons",
    help="which hidden units of the feed-forward network are active for which token.",
)
def neurons(context: BlockContext):
    """Draw the FFN's hidden units by token, sparsity and the strongest; a notice without one."""
    forward_pass = context.forward_pass
    if not has_sublayer(forward_pass, "ffn", "The feed-forward network"):
        return
    draw_picks("token", "layer", forward_pass=forward_pass)
    layer = context.look.layer_of(forward_pass)
    token = context.look.token_of(forward_pass)
    silent = experiment.sparsity(forward_pass, layer)
    units, numbers = experiment.unit_map(forward_pass, layer)
    activation = MENUS["activation"].label(forward_pass.config.activation)
    some = f", the {len(numbers)} most active" if len(numbers) < forward_pass.config.d_ff else ""
    sentence = (
        f"Which hidden units are active for which token? {100 * silent.value.mean():.1f} % are"
        f" exactly zero after {activation}. One column per unit{some}."
    )
    title = f"Activations of {forward_pass.config.d_ff} hidden units"
    figure(title, finite_sentence(sentence, float(units.sum())), forward_pass.weights)
    draw_heatmaps(
        "units",
        units[None],
        forward_pass.labels[: forward_pass.n_real],
        [str(n) for n in numbers],
        colTips=[f"unit {n}" for n in numbers],
        quantity="activation",
        alt="Hidden units by token.",
        diverging=bool((units < 0).any()),
        square=False,
        height=300,
    )
    left, right = side_by_side.columns(2)
    with left:
        counted = "exact zeros"
        values = silent.value
        title = "Inactive units per token"
        sentence = "Share of exact zeros after the activation function."
        if silent.value.mean() < RARE:
            # the one is not to be subtracted from the other
            counted = "nearly inactive"
            values = silent.small
            title = "Nearly inactive units per token"
            has = "rarely gives" if silent.value.any() else "has no"
            sentence = (
                f"{activation} {has} exact zeros; units below a tenth of the RMS are counted."
            )
        figure(title, sentence, forward_pass.weights)
        labels = [word_label(index, text) for index, text in enumerate(silent.word)]
        shares = silent.assign(label=labels, value=values, counted=counted)
        spec = charts.per_token(forward_pass.n_real <= 24, "share of units", 1.0, True)
        chart(spec, shares, "Share of inactive hidden units, by token.", height=240)
    with right:
        sentence = "Sorted by magnitude after the activation function."
        if count_inputs(forward_pass.config.part("activation")) > 1:
            sentence += " Before: the value, without the gate."
        figure(
            f"Most active units for “{forward_pass.labels[token]}”", sentence, forward_pass.weights
        )
        strongest = experiment.strongest(forward_pass, layer, token)
        formatted = style_numbers(strongest, {"before": ".4f", "after": ".4f"})
        names = {"unit": "Unit", "before": "Before", "after": "After"}
        show_table(
            formatted,
            "The strongest hidden units of this token.",
            exported=strongest,
            column_config=names,
        )
    title = "Sparsity under other activation functions"
    sentence = "Same weights, same sentence. Nearly zero: |x| < 0.1 × the RMS of all units."
    figure(title, sentence, forward_pass.weights)
    kinds = {"zeros": "exactly zero", "small": "nearly zero", "negative": "negative"}
    table = experiment.every_activation(forward_pass, layer).rename(
        columns=kinds | {"label": "name"}
    )
    table = table.melt("name", list(kinds.values()), "kind", "value")
    chart(
        charts.shares("share of hidden units"),
        table,
        "Sparsity under every activation function.",
        height=330,
    )
