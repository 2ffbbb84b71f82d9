"""View "Rates" of a study: how much of an effect is the learning rate, how much the part?"""

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.experiments.training.sentences import format_points
from core.figures.charts.rates import AS_SET, TUNED, effect_by_rate
from core.settings.wording import count
from core.study.picture import shown_name
from core.study.plan import StudyError
from core.study.rates import (
    NOT_LEARNT,
    RULE,
    RateLine,
    describe_range,
    describe_split,
    format_interval,
    format_split,
    rate_table,
)
from ui.kit.page import chart, explain_terms, figure, literal, table
from ui.studies import server
from ui.studies.context import StudyContext, view
from ui.studies.views import choose_task

ROW = 44  # pixels of a variant in the chart
FRAME = 90  # of axis and legend
WITHOUT = (
    "This study trains every model at one learning rate. To search for the best one, press *New"
    " study* and choose learning rates."
)


@view.register(
    "rates",
    label="Rates",
    help="how much of an effect is the learning rate, how much the part; and sensitivity to it.",
)
def rates(context: StudyContext):
    """Draw each variant's effect at the set and at the best rate of a task, and a table."""
    try:
        every = server.rates(context, *context.version)
    except StudyError as error:
        st.caption(literal(error.problems[0]))
        return
    if not every:
        st.caption(WITHOUT)
        return
    tasks = list(dict.fromkeys(line.task for line in every))
    chosen = choose_task(context.look, tasks)
    lines = [line for line in every if line.task == chosen]
    measured = [line for line in lines if not math.isnan(line.rate.mean)]
    learnt = [line for line in measured if NOT_LEARNT not in line.notes]
    sentence = "No variant has been trained at all rates yet."
    if learnt:
        largest = max(learnt, key=lambda line: abs(line.rate.mean))
        first = "Most comes from the rate" if len(measured) > 1 else "What comes from the rate"
        of_all = f" (of {count(len(measured), 'variant')})" if len(measured) > 1 else ""
        sentence = f"{first}{of_all}: {shown_name(largest.variant)}. {describe_split(largest)}"
    elif measured:
        sentence = "No variant learns this task at any rate, so the rate explains nothing here."
    figure(f"Effect as set and at the best learning rates, {chosen}", sentence)
    chart(
        effect_by_rate(),
        _chart_rows(lines),
        f"Effects at the set and at the best learning rates, {chosen}",
        height=FRAME + ROW * len(lines),
    )
    numbers = rate_table(lines)
    table(
        pd.DataFrame(
            {
                "variant": [shown_name(line.variant) for line in lines],
                "as set": [format_split(line.as_set) for line in lines],
                "best rates": [format_split(line.part) for line in lines],
                "from the rate": [format_split(line.rate) for line in lines],
                "notes": ["; ".join(line.notes) for line in lines],
                "accuracy, %": [_format_accuracies(line.accuracies[:2]) for line in lines],
                "baseline, %": [_format_accuracies(line.accuracies[2:]) for line in lines],
                "rates chosen": [line.best for line in lines],
                "rates chosen, baseline": [line.best_base for line in lines],
                "sensitivity": [format_interval(line.sensitivity) for line in lines],
                "minus baseline": [format_interval(line.sensitivity_change) for line in lines],
            }
        ),
        "Effects in points, rates and sensitivity in nats, with 95 % CI.",
        exported=numbers,
        width="stretch",
    )
    st.caption(f"{describe_range(lines)} {RULE}", help=explain_terms(RULE))


def _format_accuracies(pair: Sequence[float]) -> str:
    """Format accuracies as set and at the best rates, shares, in per cent: "5.9 → 100.0"."""
    return " → ".join(format_points(share, 1) for share in pair)


def _chart_rows(lines: Sequence[RateLine]) -> pd.DataFrame:
    """Return two rows for each variant, in points: at the set and at the best rates."""
    rows = []
    for line in lines:
        for how, gap in ((AS_SET, line.as_set), (TUNED, line.part)):
            best = f"{line.best}; baseline {line.best_base}" if how == TUNED else "as set"
            rows.append(
                {
                    "variant": shown_name(line.variant),
                    "how": how,
                    "value": 100 * gap.mean,
                    "low": 100 * gap.low,
                    "high": 100 * gap.high,
                    "seeds": gap.n,
                    "best": best,
                }
            )
    return pd.DataFrame(rows)
