"""View of the grid: all combinations of components at once."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from core.experiments.depth.axes import AXES, MOST, Axes, count_variants, name_entries, write_axes
from core.experiments.depth.grid import Grid, simplify_config
from core.experiments.depth.grid import grid as run
from core.measure.stream_statistics import statistic
from core.settings.wording import capitalise, count, lower_first, number
from ui.depth.context import DepthContext, orders, view
from ui.kit import pins
from ui.kit.page import figure, literal
from ui.kit.panel.control import choice, tabs
from ui.kit.panel.panel import draw_bar
from ui.kit.store import bind, change, is_movable, value
from ui.pictures.heatmaps import draw_heatmaps


@view.register("grid", label="Grid", help="all combinations of components at once.")
def grid(context: DepthContext):
    """Draw the grid's controls and a statistic of each combination; clicks add or remove one."""
    draw_grid_controls(context)
    results = run(context.baseline, context.axes, context.tokens, context.machine, context.depth)
    meter = context.look.grid_statistic
    label = statistic.label(meter)
    size = len(results.configs)
    when = "after the last pass" if context.look.grid_order == "parts" else "pass by pass"
    figure(
        f"{label} of {count(size, 'variant')}, {when}."
        + " Click a cell to add it to the comparison; click again to remove it."
        * is_movable("variants"),
        describe_grid(results, meter),
        context.weights,
    )
    for reason in results.left_out:
        st.caption(literal(f"Skipped: {reason}"))
    context.draw_rounding_note({"baseline": context.travel(context.baseline)})
    if results.repeats:
        same = f"{results.repeats:,} duplicates are omitted."
        if results.repeats == 1:
            same = "1 combination, a duplicate, is omitted."
        st.caption(literal(" ".join((same, *results.reasons))))
    (draw_grid_heatmap if context.look.grid_order == "parts" else draw_ranked)(
        context, results, meter
    )


def draw_grid_controls(context: DepthContext):
    """Draw the controls of the grid: its colour, its order and its axes."""
    left, right = st.columns([5, 2], vertical_alignment="bottom")
    with left:
        labels = list(map(statistic.label, statistic))
        coloured = choice(
            "Colour", "grid_statistic", context.look.grid_statistic, list(statistic), labels
        )
        draw_bar("lens", [coloured, tabs("Order", orders, "grid_order")])
    with right:
        popover = st.popover(
            "Grid axes",
            icon=":material/filter_alt:",
            key="grid_parts",
            on_change="rerun",
            width="stretch",
        )
        if popover.open:
            with popover:
                st.caption(
                    "All combinations of the selected entries are run. Unselected components keep"
                    " their baseline value."
                )
                for axis, entries in context.axes.chosen.items():
                    offered = list(AXES[axis].entries)
                    st.pills(
                        AXES[axis].label,
                        offered,
                        format_func=AXES[axis].words.get,
                        selection_mode="multi",
                        **bind(f"axis_{axis}", list(entries), partial(_set_entries, axis)),
                    )


def _set_entries(axis: str, entries: list[str]):
    """Set the entries (texts) of an axis, a setting; a toast if the grid would be too large.

    A callback; then nothing changes.
    """
    chosen = Axes(value("grid")).chosen | {axis: tuple(entries)}
    size = count_variants(chosen)
    if size > MOST:  # and the pill goes out again, since the grid has not changed
        st.toast(
            f"That would be {size:,} variants; at most {MOST:,} are run at once.",
            icon=":material/info:",
        )
    else:
        change(grid=write_axes(chosen))


def describe_grid(results: Grid, statistic_name: str) -> str:
    """Return sentences on a grid's range, what explains its variance, and diverged variants."""
    ends = results.final_values(statistic_name)
    finite = np.flatnonzero(np.isfinite(ends))
    if not len(finite):
        return (
            f"{statistic.label(statistic_name)} is undefined for all of them after the last"
            f" pass.{_describe_diverged(results)}"
        )
    if results.ends_equal(statistic_name):
        return (
            f"All {'of them' if len(finite) == len(ends) else f'{len(finite)} with a value'} end at"
            f" {number(ends[finite[0]])}.{_describe_diverged(results)}"
        )
    places = finite[ends[finite].argmin()], finite[ends[finite].argmax()]
    # As many digits as it takes to tell the two ends apart: float32 has seven.
    digits = next(
        (n for n in range(3, 7) if number(ends[places[0]], n) != number(ends[places[1]], n)), 7
    )
    low, high = (
        f"{number(ends[index], digits)} ({results.name(index)}{_describe_ties(ends, index)})"
        for index in places
    )
    return (
        f"{statistic.label(statistic_name)} ranges from {low} to"
        f" {high}.{_describe_cause(results, statistic_name)}{_describe_diverged(results)}"
    )


def _describe_ties(ends: np.ndarray, index: int | None) -> str:
    """Return "; tied with 2 other variants" if so many end at the value of `index`; "" for none.

    `ends` has the last value of each variant.
    """
    same = int(np.isclose(ends, ends[index], rtol=1e-4, atol=0).sum()) - 1
    if not same:
        return ""
    return "; tied with one other variant" if same == 1 else f"; tied with {same} other variants"


def _describe_cause(results: Grid, statistic_name: str) -> str:
    """Describe, after a space, which component explains most of the variance; "" for none."""
    shares = results.explained(statistic_name)
    axis = max(shares, key=shares.get, default=None)
    if axis is None:
        return ""
    label = lower_first(statistic.label(statistic_name))
    quantity = f"the variance in {'log ' * statistic[statistic_name].log}{label}"
    left = (
        " (without diverged ones)"
        if any(diverged_at is not None for diverged_at in results.diverged)
        else ""
    )
    share = round(100 * shares[axis], 1)
    word = "the residual connection" if axis == "residual" else _axis_word(axis)
    if share <= 50:
        return (
            f" No component explains more than half; {word} explains {share:g} % of"
            f" {quantity}{left}."
        )
    return f" {capitalise(word)} explains {share:g} % of {quantity}{left}."


def _describe_diverged(results: Grid) -> str:
    """Describe, after a space, how many variants diverged and what they share; "" if none did."""
    n_diverged = sum(diverged_at is not None for diverged_at in results.diverged)
    if not n_diverged:
        return ""
    shared = results.shared_by_diverged()
    explanation = ""
    if shared and n_diverged < len(results.diverged):
        explanation = f": exactly those with {AXES[shared[0]].words[shared[1]]}"
    return f" {n_diverged} of {len(results.diverged)} diverged{explanation}."


def _axis_word(axis: str) -> str:
    """Return an axis's label as it stands inside a sentence."""
    label = AXES[axis].label
    return label if label[1:2].isupper() or "(" in label else label.lower()


def split_axes(results: Grid) -> tuple[list[str], list[str]]:
    """Split the names of axes, in order, into (rows, columns), with about 1.5 rows per column."""
    axes = list(results.axes)
    sizes = [len(results.axes[axis]) for axis in axes]
    cuts = range(len(axes) + 1)
    cut = min(cuts, key=lambda n: abs(math.log(math.prod(sizes[:n]) / math.prod(sizes[n:]) / 1.5)))
    return axes[:cut], axes[cut:]


def _combinations(results: Grid, axes: list[str]) -> list[tuple[str, ...]]:
    """Return the combinations of these axes' values (texts) in the grid, in the axes' order."""
    shown_combinations = {tuple(entry[axis] for axis in axes) for entry in results.entries}
    return [
        combination
        for combination in itertools.product(*[results.axes[axis] for axis in axes])
        if combination in shown_combinations
    ]


def draw_grid_heatmap(context: DepthContext, results: Grid, statistic_name: str):
    """Draw a cell per variant, rows and columns by the axes' entries; a click adds or removes."""
    down, across = split_axes(results)
    rows, columns = (_combinations(results, side) for side in (down, across))
    cells = np.full((len(rows), len(columns)), math.nan)
    chosen = {}
    for index, entry in enumerate(results.entries):
        place = (
            rows.index(tuple(entry[axis] for axis in down)),
            columns.index(tuple(entry[axis] for axis in across)),
        )
        cells[place] = results.final_values(statistic_name)[index]
        chosen[place] = index
    built, order = context.depth.plan(context.baseline)
    size = len(context.tokens) + built.padding, len(order)
    compared = [
        simplify_config(v.config.replace(n_layers=built.n_layers), *size)[0]
        for v in context.variants
    ]
    marks = [
        place
        for place, variant_index in chosen.items()
        if simplify_config(results.configs[variant_index], *size)[0] in compared
    ]
    draw_heatmaps(
        "grid_cells",
        cells[None],
        [name_entries(down, row) for row in rows],
        [name_entries(across, column) for column in columns],
        height=520,
        marks=marks,
        numbers="brief",
        arrow="·",
        on_pick=lambda _, row, column: toggle_grid_variant(
            context, results, chosen.get((row, column))
        ),
        **_heatmap_options(context, statistic_name, "outlined: in the comparison"),
    )


def draw_ranked(context: DepthContext, results: Grid, statistic_name: str):
    """Draw the grid with one row per variant and one column per pass, sorted by last value."""
    ends = results.final_values(statistic_name)
    first = context.look.grid_order == "largest"
    lost = np.array(
        [
            -1.0 if diverged_at is None else 1e9 / (1 + diverged_at)
            for diverged_at in results.diverged
        ]
    )
    nothing = np.isnan(ends) & (
        lost < 0
    )  # no number, and yet not diverged: attention that is switched off
    keys = (
        np.where(np.isfinite(ends), ends, 0.0) * (-1 if first else 1),
        lost * (-1 if first else 1),
        nothing,
    )
    order = np.lexsort(keys)
    cells = results.values[order, :, list(statistic).index(statistic_name)]
    names = [results.name(index) for index in order]
    draw_heatmaps(
        "grid_cells",
        cells[None],
        names,
        [str(n) for n in range(cells.shape[1])],
        height=max(520, 6 * len(names)),
        arrow="· pass",
        on_pick=lambda _, row, column: toggle_grid_variant(context, results, int(order[row])),
        **_heatmap_options(context, statistic_name, "columns: passes"),
    )


def _heatmap_options(context: DepthContext, statistic_name: str, note: str) -> dict:
    """Return the heatmap arguments that both layouts share; `note` stands after the quantity."""
    label = statistic.label(statistic_name)
    words: dict[str, Any] = {
        "quantity": f"{label} ({note})",
        "alt": f"{label} of every variant in the grid.",
    }
    words |= {"blank": "diverged or undefined", "square": False}
    return words | {"log": statistic[statistic_name].log, "diverging": statistic_name == "cosine"}


def toggle_grid_variant(context: DepthContext, results: Grid, index: int | None):
    """Add variant `index` of the grid to the comparison, or remove it; None: do nothing."""
    if index is not None:
        pins.toggle_variant(results.changes[index], context.baseline)
