"""Ablation matrix as SVG: a row per variant, a column per task.

CSS classes carry the meaning, the page's style sheet the colours; STYLE is a style sheet for a
file of its own.
"""

import math
from collections import Counter
from html import escape
from itertools import groupby
from textwrap import wrap
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.sentences import (
    decimals_of,
    format_learnt,
    format_margin,
    format_percent,
    format_points,
)
from core.figures.palette import BASELINE as MORE
from core.figures.palette import VARIANTS
from core.figures.svg import picture
from core.measure.verdicts import DIFFERENCE, EQUIVALENT, MARGIN, UNDECIDED, find_verdict
from core.settings.wording import count, fixed, number
from core.study.summary import Line, select_variants
from core.study.summary import lines as lines_of
from core.study.training_link import format_address, read_query
from core.tasks import task

LESS = VARIANTS[0]
# width and height of a cell, with an interval or without, height of a line of words, width of a
# letter
COLUMN = 85
ROW = 40
LOW = 34
LINE = 15
LETTER = 7.6
WIDEST_FLOOR = 0.25  # noise floor that fills the width of a cell
CEILING = 0.005  # share below the best accuracy within which a model does a task perfectly
PALE = 0.4  # of the colour, where a difference is not significant
LETTERS = 12, 26  # of a task's name in one line, and of a variant's
GROUP = 24  # height of the names of groups of columns
FEW = 2  # columns beside which there is room for longer names of variants

# Stored name of a variant of the built-in studies -> its name on screen.
SHOWN = {
    "window of 4, every second layer without": "alternating window (4)",
    "one block for all layers": "shared weights",
    "RoPE on a quarter": "partial RoPE (25 %)",
    "RoPE, every second layer": "RoPE in alternate layers",
    "SwiGLU, a third more": "SwiGLU, unmatched (+33 %)",
}


def shown_name(variant: str) -> str:
    """Return the name on screen of a stored "variant" or "variant: task": replaced if in SHOWN."""
    name, colon, task_name = variant.partition(":")
    return f"{SHOWN.get(name, name)}{colon}{task_name}"


COLOURS = f"""
.less {{ fill: {LESS}; }} .more {{ fill: {MORE}; }}
text {{ font-size: 14px; }} .name, .skill {{ font-weight: 600; }} .small {{ font-size: 12px; }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }} .noise {{ opacity: 0.7; }} \
.floor {{ fill-opacity: 0.45; }} .edge {{ stroke-opacity: 0.18; }}
"""
# For SVG files outside the app: smaller letters, as other viewers may have wider fonts.
STYLE = f"""
svg {{ --ink: #1b1f24; --paper: #ffffff; font-family: system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ svg {{ --ink: #e8ecf0; --paper: #11151a; }} }}
text, .floor {{ fill: var(--ink); }} .paper {{ fill: var(--paper); }} \
.edge {{ stroke: var(--ink); fill: none; }}
{COLOURS}
.name {{ font-size: 12px; }} .small {{ font-size: 10.5px; }}"""


def matrix_svg(
    summary: pd.DataFrame, links: bool = False, style: str = "", intervals: bool = True
) -> str:
    """Return a summary as an SVG matrix; without `intervals` variants only, in whole points.

    Args:
        summary: The table.
        links: Whether every cell is a link, from the column link.
        style: A style sheet to stand in the picture.
        intervals: Whether each cell has its interval, and the baseline a row. Without them
            differences are whole points.
    """
    if not intervals:
        summary = select_variants(summary)
    height_of_row = ROW if intervals else LOW
    tasks, variants = (list(dict.fromkeys(summary[name])) for name in ("task", "variant"))
    cells: dict[tuple[str, str], Line] = {
        (line.task, line.variant): line for line in lines_of(summary)
    }
    heads = [wrap(name, LETTERS[0], max_lines=3, placeholder="…") for name in tasks]
    wide = LETTERS[1] * (
        2 if len(tasks) <= FEW and max(map(len, variants), default=0) > 2 * LETTERS[1] - 8 else 1
    )
    names = [wrap(shown_name(name), wide, max_lines=2, placeholder="…") for name in variants]
    groups = _groups(summary, tasks) if not intervals else []
    top = GROUP if groups else 0
    head = top + 12 + LINE * max(map(len, heads))
    left = 14 + LETTER * max(len(line) for lines in names for line in lines)
    width = left + COLUMN * len(tasks)
    height = head + height_of_row * len(variants)
    shapes = [
        _words_svg(
            left + COLUMN * (n + 0.5), head - 10 - LINE * (len(lines) - 1), lines, "middle name"
        )
        for n, lines in enumerate(heads)
    ]
    for skill, first, n_tasks in groups:
        middle = left + COLUMN * (first + n_tasks / 2)
        shapes.append(_words_svg(middle, 14, [skill], "middle skill"))
        edges = left + COLUMN * first + 4, left + COLUMN * (first + n_tasks) - 4
        shapes.append(
            f'<line class="edge" x1="{edges[0]:g}" x2="{edges[1]:g}" y1="{GROUP - 2}"'
            f' y2="{GROUP - 2}"/>'
        )
    for row, variant in enumerate(variants):
        y = head + height_of_row * row
        lines = names[row]
        shapes.append(
            _words_svg(
                left - 10,
                y + height_of_row / 2 + 5 - LINE / 2 * (len(lines) - 1),
                lines,
                "end name",
            )
        )
        for column, name in enumerate(tasks):
            line = cells.get((name, variant))
            if line is None:
                words = "n/a: the same as the baseline, or not a valid combination."
                dash = _words_svg(
                    left + COLUMN * (column + 0.5),
                    y + height_of_row / 2 + 5,
                    ["n/a"],
                    "middle noise",
                )
                shapes.append(f"<g><title>{words}</title>{dash}</g>")
                continue
            cell = _cell_svg(line, left + COLUMN * column, y, intervals)
            href = format_address(read_query(line.link))
            shapes.append(f'<a href="{escape(href)}">{cell}</a>' if links else cell)
    ground = (
        f'<style>{style}</style><rect class="paper" width="{width:g}" height="{height}"/>'
        if style
        else ""
    )
    return picture(
        width, height, ground + "".join(shapes), describe(summary), "group" if links else "img"
    )


def _groups(summary: pd.DataFrame, tasks: list[str]) -> list[tuple[str, int, int]]:
    """Group neighbouring tasks by skill: (skill, first column from 0, number); [] for one."""
    task_of = dict(zip(summary.task, summary.of))
    skills = [task[task_of[name]].skill for name in tasks]
    groups = []
    for skill, columns in groupby(range(len(tasks)), key=lambda column: skills[column]):
        among = list(columns)
        groups.append((skill, among[0], len(among)))
    return groups if len(groups) > 1 else []


def describe(summary: pd.DataFrame) -> str:
    """Describe a summary in a sentence: the variant of each task with the lowest difference."""
    parts = []
    for name, lines in select_variants(summary).groupby("task", sort=False):
        worst: Line = None
        if lines.difference.notna().any():
            label: Any = lines.difference.idxmin()
            worst = lines.loc[label]
        if worst is not None:
            parts.append(f"{name}: {shown_name(worst.variant)} {format_points(worst.difference)}")
    return (
        f"Change in accuracy, in percentage points; worst variant of each task: {'; '.join(parts)}."
    )


def describe_rates(rates: str) -> str:
    """Describe a table's "0.003 on 4, 0.01 on 1" as "0.003 for 4 seeds, 0.01 for 1".

    It must not be "".
    """
    first, *others = rates.replace(" on ", " for ").split(", ")
    unit = "seed" if first.endswith(" for 1") else "seeds"
    return ", ".join([f"{first} {unit}", *others])


def count_verdicts(summary: pd.DataFrame) -> str:
    """Return a sentence on how many comparisons have each verdict, and margins in points."""
    rows = list(lines_of(select_variants(summary)))
    counts = Counter(verdict_of(row) for row in rows)
    margins = sorted({getattr(row, "margin", MARGIN) for row in rows})
    within = " or ".join(map(format_margin, margins))
    within += ", depending on the task" if len(margins) > 1 else ""
    words = (
        f"{count(len(rows), 'comparison')}: {counts[DIFFERENCE]} show a difference,"
        f" {counts[EQUIVALENT]} equivalence (within {within}), {counts[UNDECIDED]} are undecided."
    )
    bases = {line.task: line.accuracy for line in lines_of(summary) if line.variant == BASELINE}
    at_ceiling = [
        row
        for row in rows
        if verdict_of(row) == EQUIVALENT
        and min(row.accuracy, bases.get(row.task, math.nan)) >= row.best - CEILING
    ]
    if not at_ceiling:
        return words
    return (
        f"{words} Of the equivalent pairs {len(at_ceiling)} are at the ceiling: both models do the"
        " task perfectly, and a harder one might tell them apart."
    )


def describe_cell(line: Line) -> str:
    """Describe a cell in plain text: names, accuracy, difference with verdict, interval, notes."""
    first = f"{line.task}, {shown_name(line.variant)}:"
    seeds = count(line.seeds, "seed")
    note = (
        f" {line.diverged} of {line.seeds + line.diverged} seeds diverged." if line.diverged else ""
    )
    note += f" {line.missing} not trained yet." if line.missing else ""
    note += (
        f" Learning rate (chosen by training loss): {describe_rates(line.rates)}."
        if getattr(line, "rates", "")
        else ""
    )
    note += f" Mixed conditions: {line.mixed}." if getattr(line, "mixed", "") else ""
    if math.isnan(line.accuracy):
        return f"{first}{note or ' no results yet.'}"
    got = f"accuracy {format_percent(line.accuracy)} ({seeds}"
    if _is_told_by_runs(line):
        got += f"; {format_learnt(line.learnt, line.seeds)}{_format_learnt_mean(line)}"
    if line.variant == BASELINE:
        if _is_told_by_runs(line):
            return f"{first} {got}).{note}"
        return f"{first} {got}; {_format_interval(line.low, line.high, 1)}).{note}"
    if math.isnan(line.difference):
        return f"{first} {got}).{note}"
    if not line.difference and line.difference_low == line.difference_high:
        verdict = "" if math.isnan(line.p) else _describe_verdict(line)
        return f"{first} {got}); same as the baseline on every seed{verdict}.{note}"
    floor = getattr(line, "noise_floor", math.nan)
    if not math.isnan(floor):
        note = f" Noise floor: ±{format_points(floor)} points.{note}"
    noise = ", too few seeds for a verdict"
    if not math.isnan(line.p):
        noise = _describe_verdict(line)
    fine = decimals_of((line.difference, line.difference_low, line.difference_high))
    if math.isnan(line.difference_low):
        return f"{first} {format_points(line.difference, fine)} points{noise}; {got}).{note}"
    span = _format_interval(line.difference_low, line.difference_high, fine)
    return f"{first} {format_points(line.difference, fine)} points{noise} ({span}); {got}).{note}"


def _format_interval(low: float, high: float, decimals: int) -> str:
    """Format an interval of shares in points: "95 % CI −2.1 to 0.4"; NaN: "no interval"."""
    return (
        "no interval"
        if math.isnan(low)
        else f"95 % CI {format_points(low, decimals)} to {format_points(high, decimals)}"
    )


def _is_told_by_runs(line: Line) -> bool:
    """Return whether a cell shows how many runs learnt the task, in place of an interval."""
    if not hasattr(line, "two_groups"):  # a file from before that
        return False
    is_compared = not math.isnan(line.p) and math.isnan(line.difference_low)
    return bool(line.two_groups) or is_compared


def _format_learnt_mean(line: Line) -> str:
    """Format the mean of learnt runs: ", mean 98 % of those that did, 95 % CI …"; "" if none."""
    if not line.learnt:
        return ""
    span = _format_interval(line.learnt_low, line.learnt_high, 1)
    return f", mean {format_percent(line.learnt_accuracy)} of those that did, {span}"


def verdict_of(line: Line) -> str:
    """Return the verdict on a cell's difference, from its p, interval and margin (or MARGIN)."""
    margin = getattr(line, "margin", MARGIN)
    return find_verdict(line.p, line.difference_low, line.difference_high, margin)


def _describe_verdict(line: Line) -> str:
    """Describe the verdict on a cell behind its difference: ", undecided", ", differs"."""
    verdict = verdict_of(line)
    margin = getattr(line, "margin", MARGIN)
    if verdict == EQUIVALENT:
        return f", equivalent within {format_margin(margin)}"
    if verdict == UNDECIDED:
        return ", undecided"
    # False for NaN, where the numbers of runs that learnt are compared.
    is_perhaps_small = min(abs(line.difference_low), abs(line.difference_high)) < margin
    if is_perhaps_small:
        is_inside = max(-line.difference_low, line.difference_high) < margin
        perhaps = "but" if is_inside else "perhaps"
        return f", differs, {perhaps} by less than {number(100 * margin, 2)} points"
    return ", differs"


def _all_diverged(line: Line) -> bool:
    """Return whether every seed that has ended diverged; False if none has ended."""
    return bool(line.diverged) and not line.seeds


def _cell_svg(line: Line, x: float, y: float, intervals: bool) -> str:
    """Return a cell as SVG, upper left corner at x, y; without `intervals` only whole points."""
    height = (ROW if intervals else LOW) - 2
    value = line.accuracy if line.variant == BASELINE else line.difference
    drawn = f"<title>{escape(describe_cell(line))}</title>"
    drawn += (
        f'<rect class="paper" x="{x + 1:g}" y="{y + 1}" width="{COLUMN - 2}" height="{height}"/>'
    )
    note = _all_diverged(line)
    verdict = verdict_of(line)
    is_compared = line.variant != BASELINE and not note
    is_equivalent = is_compared and verdict == EQUIVALENT
    is_undecided = is_compared and verdict == UNDECIDED
    if line.variant != BASELINE and (note or value):
        share = 0.0 if math.isnan(value) else min(1.0, abs(value))
        if is_equivalent or is_undecided:
            share *= PALE
        if note:
            share = 1.0
        kind = "less" if note or value < 0 else "more"
        drawn += (
            f'<rect class="{kind}" x="{x + 1:g}" y="{y + 1}" width="{COLUMN - 2}" height="{height}"'
            f' fill-opacity="{0.8 * share:.3f}"/>'
        )
    drawn += (
        f'<rect class="edge" x="{x + 1:g}" y="{y + 1}" width="{COLUMN - 2}" height="{height}"/>'
    )
    drawn += _noise_floor_svg(line, x, y + height)
    first, second = _cell_texts(line, value)
    if not intervals:
        second = ""
        first = fixed(100 * value, 0) if math.isfinite(value) else first
    if is_equivalent:
        drawn += _words_svg(x + COLUMN - 7, y + 15, ["="], "small end")
    noise = " noise" if is_undecided else ""
    first_y = y + (18 if second else height / 2 + 6)
    drawn += _words_svg(x + COLUMN / 2, first_y, [first], f"middle{noise}")
    if second:
        drawn += _words_svg(x + COLUMN / 2, y + 32, [second], f"middle small{noise}")
    return drawn


def _noise_floor_svg(line: Line, x: float, y: float) -> str:
    """Return a bar at a cell's foot as SVG, as wide as its noise floor; "" without one."""
    floor = getattr(line, "noise_floor", math.nan)
    if math.isnan(floor) or line.variant == BASELINE:
        return ""
    width = max(1.0, min(1.0, floor / WIDEST_FLOOR) * (COLUMN - 2))
    return f'<rect class="floor" x="{x + 1:g}" y="{y - 2:g}" width="{width:.1f}" height="3"/>'


def _cell_texts(line: Line, value: float) -> tuple[str, str]:
    """Return the two lines of a cell: `value` (share) in points; its interval, a note, or ""."""
    if math.isnan(value):
        if _all_diverged(line):
            return "diverged", ""
        return "…" if math.isnan(line.accuracy) else "no baseline", ""
    low = line.difference_low
    high = line.difference_high
    first = format_points(value, 1)
    if line.variant == BASELINE:
        low = line.low
        high = line.high
        first += " %"
    if line.diverged:
        return first, f"{line.diverged} of {line.seeds + line.diverged} diverged"
    if _is_told_by_runs(line):
        return first, f"{line.learnt} of {line.seeds} learnt"
    spread = low < high  # neither of one seed nor of several that agree to the last digit
    return first, f"{format_points(low, 1)} to {format_points(high, 1)}" if spread else ""


def _words_svg(x: float, y: float, lines: list[str], css_classes: str) -> str:
    """Return lines of text as SVG, one below the other, with these CSS classes.

    Args:
        x: Of the first line.
        y: Of its baseline.
        lines: The texts.
        css_classes: CSS classes.
    """
    return "".join(
        f'<text class="{css_classes}" x="{x:g}" y="{y + LINE * n:g}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
