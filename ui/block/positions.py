"""View of position encodings: sensitivity to word order, values and similarities."""

import torch

from core.experiments.block import positions as experiment
from core.experiments.weights import weights as weights_menu
from core.figures.charts import stream as charts
from core.measure.stream_statistics import cosines
from core.model.config import Config
from core.model.parts import MENUS
from ui.block.context import BlockContext, view
from ui.kit import side_by_side
from ui.kit.page import chart, figure
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared.base import finite_sentence, has_sublayer


@view.register("positions", label="Positions", help="how word order reaches the model.")
def positions(context: BlockContext):
    """Draw sensitivity to word order, and sinusoidal and learned position encodings."""
    forward_pass = context.forward_pass
    if has_sublayer(forward_pass, "attention", "Attention"):
        table = experiment.compare_word_orders(forward_pass)
        words = weights_menu[forward_pass.kind].order
        figure(
            f"“{' '.join(words)}” vs “{' '.join(reversed(words))}”: can the model tell them apart?",
            f"{_describe_order(table, forward_pass.config)} Identical outputs (up to rounding) mean"
            " that the model is blind to word order. The exception is ALiBi without a mask:"
            " its bias depends only on distance, not on direction. So it cannot tell a sentence"
            " from its reversal, but can tell other orders apart.",
            forward_pass.weights,
        )
        table["seen"] = table["mask"].map({"none": "no mask", "causal": "causal mask"})
        chart(
            charts.word_orders(),
            table,
            "Difference between the two orders under every position encoding.",
            height=270,
        )
    tables = experiment.position_tables(forward_pass)
    rows = [str(n + 1) for n in range(len(tables["sinusoidal"]))]
    left, right = side_by_side.columns(2)
    with left:
        sentence = (
            "With sinusoidal positions, this table is added to the token embeddings. One row per"
            " position, one column per dimension."
        )
        figure("Sinusoidal position encoding", sentence, "Not learned")
        draw_heatmaps(
            "sinusoid",
            tables["sinusoidal"][None],
            [f"position {n}" for n in rows],
            [str(n + 1) for n in range(forward_pass.config.d_model)],
            colTips=[f"dimension {n + 1}" for n in range(forward_pass.config.d_model)],
            quantity="value",
            alt="The sinusoidal table.",
            diverging=True,
            square=False,
            height=600,
        )
    with right:
        sentence = (
            "Sinusoidal encodings are similar at nearby positions. Learned encodings are random"
            " before training."
        )
        figure(
            "Similarity of positions",
            sentence,
            weights_menu["random"].describe(forward_pass.config),
        )
        both = [cosines(tables[name]) for name in ("sinusoidal", "learned")]
        draw_heatmaps(
            "position_pairs",
            torch.stack(both),
            rows,
            rows,
            titles=["sinusoidal", "learned (untrained)"],
            quantity="cosine similarity",
            alt="Similarity between positions.",
            diverging=True,
            rowTips=[f"position {n}" for n in rows],
            arrow="and",
            height=600,
        )


def _describe_order(table, config: Config) -> str:
    """Describe whether the model, as set, tells the two word orders apart."""
    rows = table[(table.position == config.position) & (table["mask"] == config.mask)]
    position = (
        "no position encoding"
        if config.position == "none"
        else MENUS["position"].label(config.position)
    )
    mask = (
        "no mask" if config.mask == "none" else f"{MENUS['mask'].label(config.mask).lower()} mask"
    )
    name = f"This model ({position}, {mask})"
    if not len(rows):
        return f"{name}: not available."
    row = rows.iloc[0]
    answer = "no, the outputs are identical up to rounding"
    if row.notices:
        answer = f"yes, the outputs differ by up to {row.value:.2g}"
    return finite_sentence(f"{name}: {answer}.", row.value)
