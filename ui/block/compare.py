"""View that compares baseline and variants: output distances, statistics and attention."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
import torch

from core.experiments.block.attention import patterns
from core.experiments.block.compare import compare as measure
from core.experiments.forward import Pass
from core.measure.stream_statistics import SAME, statistic
from core.model.config import Config
from core.settings.wording import fixed, number
from ui.block.context import BlockContext, BlockLook, view
from ui.kit import pins
from ui.kit.page import figure, literal
from ui.kit.store import is_movable
from ui.kit.takeaway import offer_table
from ui.pictures.heatmaps import draw_heatmaps, in_one_frame
from ui.shared.base import draw_picks


@view.register("compare", label="Compare", help="baseline and variants side by side.")
def draw_comparison(context: BlockContext):
    """Draw the view Compare: legend, effect, table of statistics, mean attention in a layer."""
    forward_pass = context.forward_pass
    for reason in context.left_out:
        st.caption(literal(reason))
    passes = OneByOne(forward_pass, context.variants, context.look)
    table = measure(passes)
    pins.draw_legend(context.variants, {}, context.pins, forward_pass.kind)
    figure("Effect on the output", describe_farthest(table, passes.seen))
    draw_statistics(table)
    draw_picks("layer", forward_pass=forward_pass)
    draw_maps(passes.seen)


@dataclass(frozen=True)
class PassSummary:
    """Parts of a pass that a comparison keeps; attention is the mean over heads, or None."""

    config: Config
    finite: bool
    labels: list[str]
    attention: torch.Tensor | None


class OneByOne(Mapping):
    """Passes of a comparison, computed one at a time to save memory."""

    def __init__(self, forward_pass: Pass, variants, look: BlockLook):
        self.forward_pass = forward_pass
        self.look = look
        self.configs = {variant.name: variant.config for variant in variants}
        self.seen: dict[str, PassSummary] = {}

    def __getitem__(self, name: str) -> Pass:
        forward_pass = self.forward_pass.run_with(self.configs[name])
        has_pattern = "pattern" in forward_pass.sites
        mean = (
            patterns(forward_pass, self.look.layer_of(forward_pass)).mean(0)
            if has_pattern
            else None
        )
        self.seen[name] = PassSummary(
            forward_pass.config, forward_pass.finite, forward_pass.labels, mean
        )
        return forward_pass

    def __iter__(self):
        return iter(self.configs)

    def __len__(self) -> int:
        return len(self.configs)


def describe_farthest(table, passes: Mapping[str, PassSummary]) -> str:
    """Describe the variant with the greatest column distance, and those without a distance."""
    if len(table) == 1:
        return "Choose an ablation above." if is_movable("variants") else "Nothing to compare with."
    base, *others = passes
    if not passes[base].finite:
        return "The baseline overflowed (infinite or NaN), so nothing can be compared with it."
    phrases = []
    defined_rows = table[1:][table.distance[1:].notna()]
    if len(defined_rows):
        row = defined_rows.loc[defined_rows.distance.idxmax()]
        sentence = "All outputs are identical to the baseline's."
        if row.distance > SAME:
            sentence = (
                f"Largest effect: {row.variant}, relative distance {number(row.distance)}, cosine"
                f" similarity {fixed(row.direction)}."
            )
        phrases.append(sentence)
    lost = [name for name in others if not passes[name].finite]
    wide = [
        name
        for name in others
        if passes[name].config.d_model != passes[base].config.d_model and name not in lost
    ]
    phrases += [f"Overflowed (infinite or NaN): {', '.join(lost)}."] if lost else []
    phrases += (
        [f"No distance for {', '.join(wide)}: the output has a different width."] if wide else []
    )
    return " ".join(phrases)


HELP = {
    "distance": "‖output − baseline's‖ / ‖baseline's output‖",
    "direction": "Mean cosine similarity to the baseline's output, over tokens.",
    "entropy": "Attention entropy in bits, averaged over layers, heads and query tokens.",
}


# Names of columns with which the table fits beside the drawing; the help of each has the whole
# name.
SHORT = {
    "direction": "Cosine",
    "rms": "RMS",
    "cosine": "Similarity",
    "parameters": "Params",
    "std": "SD",
    "largest": "Max",
}


def draw_statistics(table):
    """Draw the table of statistics, one row per variant, and offer it for export.

    It has a column variant and one per statistic.
    """
    offer_table("Baseline and variants", lambda: table)
    columns = [
        "distance",
        "direction",
        "rms",
        "cosine",
        "rank",
        "entropy",
        "parameters",
        "std",
        "largest",
        "mean",
    ]
    columns += [name for name in table if name not in (*columns, "variant")]
    words = {"variant": st.column_config.TextColumn("", width=116)}
    formatted = table[["variant"]].copy()
    for name in columns:
        label = SHORT.get(name, name.capitalize())
        about = HELP.get(name) or (
            f"{statistic.label(name)}: {statistic.help(name)} Of the output."
            if name in statistic
            else None
        )
        width = max(50, 7 * len(label) + 14)
        words[name] = st.column_config.TextColumn(label, help=about, alignment="right", width=width)
        formatted[name] = [_format_cell(value) for value in table[name]]
    st.dataframe(formatted, column_config=words, hide_index=True, width="stretch", height="content")


def _format_cell(value: float) -> str:
    """Format a number: an integer with commas, others with 3 significant digits; NaN: "–"."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    return number(value, 3)


def draw_maps(summaries: dict[str, PassSummary]):
    """Draw each variant's attention pattern at the selected layer, averaged over heads."""
    labels = max((summary.labels for summary in summaries.values()), key=len)
    patterns = [summary.attention for summary in summaries.values()]
    draw_heatmaps(
        "compared_maps",
        in_one_frame(patterns, len(labels)),
        labels,
        labels,
        titles=list(summaries),
        quantity="Mean attention weight (row = query, column = key)",
        blank="masked or removed",
        alt="Attention of each variant, averaged over its heads.",
        height=330,
    )
