"""View "Sizes" of a study: does an effect hold in larger models?"""

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.figures.charts.ladder import LINE, MEASURED, PREDICTED, SEED, effect_by_size
from core.study.ladder import (
    RULE,
    Ladder,
    count_ladders,
    describe_ladder,
    describe_sizes,
    describe_verdict,
    ladder_table,
)
from core.study.picture import shown_name
from core.study.plan import StudyError
from ui.kit.page import FIT, explain_terms, figure, literal, table
from ui.studies import server
from ui.studies.context import StudyContext, view
from ui.studies.views import choose_task

COLUMNS = 3
HEIGHT = 200  # pixels of a chart
STEP = 10  # points to which the axis is rounded
WITHOUT = (
    "This study trains its tasks at one size. To see whether effects hold at other sizes, press"
    " *New study* and choose sizes."
)
READING = (
    "Point: mean effect with its corrected 95 % CI. Small dots: seeds. Line: mean of the seeds'"
    " lines. Open point: prediction for the next size, with its 95 % prediction interval. Sizes set"
    " width, layers, heads and steps together."
)


@view.register(
    "sizes",
    label="Sizes",
    help="does an effect hold in larger models? the effect at each size, and a verdict.",
)
def sizes(context: StudyContext):
    """Draw each variant's effect at every size of a task, verdicts, and the same as a table."""
    try:
        ladders = server.ladders(context, *context.version)
    except StudyError as error:
        st.caption(literal(error.problems[0]))
        return
    if not ladders:
        st.caption(WITHOUT)
        return
    tasks = list(dict.fromkeys(ladder.task for ladder in ladders))
    name = choose_task(context.look, tasks)
    shown = [ladder for ladder in ladders if ladder.task == name]
    figure(f"Effect by size, {name}", count_ladders(shown))
    low, high = _find_scale(shown)
    for start in range(0, len(shown), COLUMNS):
        for column, ladder in zip(st.columns(COLUMNS), shown[start : start + COLUMNS]):
            with column:
                _draw_ladder(ladder, low, high)
    st.caption(f"{READING} {describe_sizes(shown)}")
    with st.expander("Rule of the verdicts"):
        st.markdown(RULE, help=explain_terms(RULE))
    with st.expander("Table view"):
        numbers = ladder_table(shown)
        table(
            _in_points(numbers),
            "Effect of each variant at each size.",
            exported=numbers,
            width="stretch",
        )


def _in_points(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a ladder's table that are shown, in points."""
    shown = pd.DataFrame(
        {
            "variant": numbers.variant.map(shown_name),
            "size": numbers["size"],
            "effect": 100 * numbers.difference,
            "low": 100 * numbers.difference_low,
            "high": 100 * numbers.difference_high,
            "seeds": numbers.seeds.where(numbers.verdict != "predicted"),
            "at this size": numbers.verdict,
            "over sizes": numbers.trend,
            "slope": 100 * numbers.slope,
            "slope low": 100 * numbers.slope_low,
            "slope high": 100 * numbers.slope_high,
        }
    )
    return shown.round(2)


def _find_scale(ladders: Sequence[Ladder]) -> tuple[float, float]:
    """Return the ends of the axis of all charts of a task, in points."""
    ends = [
        100 * end
        for ladder in ladders
        for rung in ladder.rungs
        for end in (rung.low, rung.high, *rung.by_seed.values())
        if not math.isnan(end)
    ]
    ends += [100 * ladder.predicted.mean for ladder in ladders if ladder.predicted]
    low = min([*ends, -STEP / 2])
    high = max([*ends, STEP / 2])
    return STEP * math.floor(low / STEP), STEP * math.ceil(high / STEP)


def _draw_ladder(ladder: Ladder, low: float, high: float):
    """Draw one variant: its name and verdict, the chart, and a sentence."""
    st.markdown(f"**{literal(shown_name(ladder.variant))}** · {describe_verdict(ladder)}")
    sentence = describe_ladder(ladder)
    sizes = tuple(rung.size for rung in ladder.rungs)
    sizes += (ladder.next_size,) if ladder.predicted else ()
    st.vega_lite_chart(
        _chart_rows(ladder),
        effect_by_size(low, high, sizes) | {"height": HEIGHT, "autosize": FIT},
        alt=f"Effect of {shown_name(ladder.variant)}: {describe_verdict(ladder)}. {sentence}",
        width="stretch",
        height="content",
    )
    st.caption(literal(sentence))


def _chart_rows(ladder: Ladder) -> pd.DataFrame:
    """Return the rows of a chart, in points: measured and predicted effects, seeds, the line."""
    rows = []
    for rung in ladder.rungs:
        mean = {"value": rung.mean, "low": rung.low, "high": rung.high}
        rows.append({"size": rung.size, "kind": MEASURED, **mean})
        rows += [
            {"size": rung.size, "kind": SEED, "value": value, "seed": seed}
            for seed, value in rung.by_seed.items()
        ]
    if ladder.trend.n:
        ends = {ladder.rungs[0].size: ladder.trend.begin, ladder.rungs[-1].size: ladder.trend.end}
        rows += [{"size": size, "kind": LINE, "value": value} for size, value in ends.items()]
    if ladder.predicted:
        mean = ladder.predicted._asdict()
        mean = {"value": mean["mean"], "low": mean["low"], "high": mean["high"]}
        rows.append({"size": ladder.next_size, "kind": PREDICTED, **mean})
    frame = pd.DataFrame(rows)
    frame[["value", "low", "high"]] *= 100
    return frame
