"""Report of a study as one HTML page that opens offline: question, rule, pictures and tables.

The pictures of all tasks have one scale around zero, in percentage points.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.sentences import (
    decimals_of,
    format_learnt,
    format_margin,
    format_percent,
    format_points,
)
from core.export.sheets import slug
from core.export.templates import open_templates
from core.figures.svg import picture, text
from core.measure.power import LEAST_SEEDS
from core.measure.verdicts import DIFFERENCE, EQUIVALENT, UNDECIDED
from core.settings.wording import count, fixed, number
from core.study.conditions import CONDITIONS, describe_mixed_comparisons
from core.study.curves import Made
from core.study.database.schema import ENDED
from core.study.database.store import Store, progress_of
from core.study.file import describe_guards, looks_of, margin_of, read
from core.study.imports import open_shipped
from core.study.picture import describe_cell, describe_rates, shown_name, verdict_of
from core.study.plan import NULL_ARMS, StudyError
from core.study.shipped import study_of
from core.study.summary import Line, select_variants
from core.study.summary import lines as lines_of
from core.study.tables import Name, list_seed_differences, made_of, summary_with_guards
from core.study.verdict import (
    CORRECTION,
    LEAST,
    describe_looks,
    describe_rule,
    describe_verdicts,
    find_provenance,
)

VERSIONS = ("torch", "numpy", "python")
TEMPLATES = open_templates(Path(__file__).parent / "templates")

# Verdict -> its symbol and its word. They differ without colours, too.
BADGES = {
    DIFFERENCE: ("≠", "differs"),
    EQUIVALENT: ("=", "equivalent"),
    UNDECIDED: ("?", "undecided"),
}

# Pixels of a picture
NAMES = 196  # width of the names of variants
PLOT = 420  # width of the scale
SIDE = 24  # between the scale and its neighbours: half of a tick's label
VALUES = 172  # width of the column of means
BADGE = 112
WIDTH = NAMES + PLOT + 2 * SIDE + VALUES + BADGE
HEAD = 56  # height of the names of columns and of the scale
ROW = 48
NOTE = 16  # height of a further line of notes
INTERVAL_Y = 15  # of a row's interval, below the row's upper edge
SEEDS_Y = 31  # of a row's seeds
NAME_LETTERS = 24  # in a line of a variant's name
NOTE_LETTERS = 44  # in a line of notes

LEAST_SCALE = 0.1  # share that the scale has at least on each side of zero
SCALE_STEP = 0.1


@dataclass(frozen=True)
class Entry:
    """Line of a report's table: texts, and the key of the verdict ("" for the baseline)."""

    name: str
    accuracy: str
    difference: str
    p: str
    p_exact: str
    n: str
    verdict: str
    notes: str


@dataclass(frozen=True)
class TaskPart:
    """Part of a report about one task. counts: verdict -> number of its comparisons."""

    name: str
    baseline: str
    facts: str
    svg: str
    entries: list[Entry]
    counts: Counter[str]
    warning: str

    @property
    def has_notes(self) -> bool:
        """Whether some line of the table has a note."""
        return any(entry.notes for entry in self.entries)


def report_html(store: Store, study: int) -> str:
    """Return the report of a stored study as an HTML page; StudyError if the study is gone.

    It needs no finished run.
    """
    provenance = made_of(store.runs(study, *ENDED, spec=False))
    return _render_report(store, study, provenance)


def shipped_report(name: str) -> str:
    """Return the report of a built-in study (key) from its curves as HTML; StudyError, OSError."""
    provenance = find_provenance(name, read(study_of(name)))
    with open_shipped(name) as (store, study_id):
        return _render_report(store, study_id, provenance, f"studies/{name}.toml")


def _render_report(store: Store, study: int, provenance: Made, path: str = "") -> str:
    """Return a stored study's report as HTML, naming its file `path`; StudyError if gone.

    Args:
        store: The store.
        study: Id of the study.
        provenance: Versions and devices that trained the runs.
        path: Path of its file in this project; "" if it has none.
    """
    entry = next((entry for entry in store.studies() if entry.id == study), None)
    if entry is None:
        raise StudyError(["The study has been deleted in the meantime."])
    table = summary_with_guards(store, study)
    gaps = list_seed_differences(store, study)
    reach = find_reach(table, gaps)
    looks = looks_of(entry.source)
    margins = {name: margin_of(entry.source, name) for name in dict.fromkeys(table.task)}
    runs = store.runs(study, *ENDED, spec=False)
    mixed = describe_mixed_comparisons(table.mixed[table.variant != BASELINE])
    compared = select_variants(table)
    progress = progress_of(store, study)
    return TEMPLATES.get_template("report.html").render(
        name=entry.name,
        question=entry.question,
        margins=describe_margins(margins),
        rule=" ".join([CORRECTION, LEAST, describe_looks(looks) if looks else ""]).strip(),
        whole_rule=describe_rule(looks),
        verdicts=describe_verdicts(),
        badges=BADGES,
        counts=describe_counts(compared),
        progress="" if progress.complete else progress.describe(),
        guards=", ".join(describe_guards(entry.source)) or "none",
        provenance=describe_provenance(provenance),
        mixed=" ".join(filter(None, (mixed, describe_unknown(runs, provenance)))),
        legend=_legend(table),
        tasks=[
            _build_task(table[table.task == name], margins[name], gaps, reach) for name in margins
        ],
        path=path or f"{slug(entry.name)}.toml",
        is_shipped=bool(path),
        source=entry.source,
    )


def describe_provenance(provenance: Made) -> dict[str, str]:
    """Return label (Devices, Versions, Commit) -> what trained the runs, where known, as text."""
    versions = [f"{name} {', '.join(provenance[name])}" for name in VERSIONS if provenance[name]]
    described = {
        "Devices": ", ".join(provenance["device"]),
        "Versions": "; ".join(versions),
        "Commit": ", ".join(provenance["code"]),
    }
    return {label: words for label, words in described.items() if words}


def describe_unknown(runs: Sequence[Line], provenance: Made) -> str:
    """Name conditions that have several values and are unknown for some run; "" if none.

    Args:
        runs: The runs that have ended.
        provenance: Versions and devices that trained them.
    """
    unknown = [
        name
        for name in CONDITIONS
        if len(provenance[name]) > 1 and any(not getattr(run, name) for run in runs)
    ]
    if not unknown:
        return ""
    return f"Several values, and not known for each run: {', '.join(unknown)}."


def describe_margins(margins: Mapping[str, float]) -> str:
    """Describe task -> margin (share), the commonest first: "±2 points (±5 points in subtraction)".

    "none" for no tasks.
    """
    if not margins:
        return "none"
    usual, _ = Counter(margins.values()).most_common(1)[0]
    others: dict[float, list[str]] = {}
    for name, margin in margins.items():
        if margin != usual:
            others.setdefault(margin, []).append(name)
    parts = [f"{format_margin(margin)} in {', '.join(names)}" for margin, names in others.items()]
    return format_margin(usual) + (f" ({'; '.join(parts)})" if parts else "")


def describe_counts(compared: pd.DataFrame) -> str:
    """Describe in one or two sentences how many comparisons have which verdict.

    "No comparison." for an empty table.

    Args:
        compared: Lines of a summary without baselines and null arms.
    """
    if compared.empty:
        return "No comparison."
    counts = Counter(verdict_of(line) for line in lines_of(compared))
    differs = "differs" if counts[DIFFERENCE] == 1 else "differ"
    words = (
        f"{count(len(compared), 'comparison')}: {counts[DIFFERENCE]} {differs},"
        f" {counts[EQUIVALENT]} equivalent, {counts[UNDECIDED]} undecided."
    )
    few = int((compared.pairs < LEAST_SEEDS).sum())
    if few:
        words += f" {few} of the undecided have too few seeds for a verdict."
    return words


def find_reach(table: pd.DataFrame, gaps: Mapping[Name, Mapping[int, float]]) -> float:
    """Return the scale's end for all tasks (share, a multiple of 0.1): at least 0.1, at most 1.

    `gaps`: (task, variant) -> seed -> difference as a share; NaN does not count.
    """
    columns = ("difference", "difference_low", "difference_high", "noise_floor", "margin")
    values = [value for name in columns for value in table[name].tolist()]
    values += [gap for by_seed in gaps.values() for gap in by_seed.values()]
    farthest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    steps = math.ceil(round(farthest / SCALE_STEP, 6))
    return min(1.0, max(LEAST_SCALE, SCALE_STEP * steps))


def _legend(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (sample as SVG, words) of each mark that the pictures of a study have."""
    mean = '<line class="interval" x1="3" x2="37" y1="9" y2="9"/>'
    entries = [
        (
            f'{mean}<circle class="mean" cx="20" cy="9" r="5"/>',
            "mean difference with its confidence interval (95 %, Holm-corrected)",
        ),
        (
            "".join(f'<circle class="seed" cx="{x}" cy="9" r="3.5"/>' for x in (7, 16, 21, 33)),
            "difference on one seed",
        ),
        (
            '<rect class="margin" x="6" y="1" width="28" height="16"/>',
            "margin of equivalence",
        ),
    ]
    if table.noise_floor.notna().any():
        floor = '<rect class="floor" x="6" y="1" width="28" height="16"/>'
        entries.append(
            (floor, "noise floor: reach of the wider null arm (other seeds, exact rewriting)")
        )
    without_interval = table.difference.notna() & table.difference_low.isna()
    if without_interval.any():
        hollow = '<circle class="mean hollow" cx="20" cy="9" r="5"/>'
        words = "mean difference without an interval: too few seeds, or runs in two groups"
        entries.append((hollow, words))
    return [
        (
            f'<svg viewBox="0 0 40 18" width="40" height="18" aria-hidden="true">{mark}</svg>',
            words,
        )
        for mark, words in entries
    ]


def _build_task(
    table: pd.DataFrame,
    margin: float,
    gaps: Mapping[Name, Mapping[int, float]],
    reach: float,
) -> TaskPart:
    """Return the part of a report about one task, the only one in `table`.

    Args:
        table: Lines of the task in the summary.
        margin: Its margin of equivalence, as a share.
        gaps: (task, variant) -> seed -> difference.
        reach: End of the scale.
    """
    base = next(line for line in lines_of(table) if line.variant == BASELINE)
    arms = list(lines_of(select_variants(table)))
    null = [line for line in lines_of(table) if line.variant in NULL_ARMS]
    facts = f"Margin {format_margin(margin)}."
    if not math.isnan(base.noise_floor):
        facts += f" Noise floor ±{format_points(base.noise_floor)} points."
    facts += f" Chance is {format_percent(base.chance)}."
    warning = " ".join(
        f"The null arm “{line.variant}” differs from the baseline (p {format_p(line.p)}), although"
        " it is the same model. Do not trust the differences of this task."
        for line in null
        if verdict_of(line) == DIFFERENCE
    )
    return TaskPart(
        base.task,
        _describe_baseline(base),
        facts,
        task_svg([*arms, *null], margin, base.noise_floor, gaps, reach) if arms or null else "",
        [_build_entry(line) for line in (base, *arms, *null)],
        Counter(verdict_of(line) for line in arms),
        warning,
    )


def _describe_baseline(base: Line) -> str:
    """Describe "baseline 97.2 % (95.0 to 99.4)", and learnt runs if they are in two groups.

    Without results it says so.
    """
    if math.isnan(base.accuracy):
        return "no result of the baseline"
    words = f"baseline {_format_accuracy(base)}"
    if base.two_groups:
        words += f"; {base.learnt} of {base.seeds} runs learnt it"
    return words


def _format_accuracy(line: Line) -> str:
    """Format an accuracy with its interval: "97.2 % (95.0 to 99.4)"; "–" for NaN."""
    if math.isnan(line.accuracy):
        return "–"
    words = format_percent(line.accuracy)
    if math.isnan(line.low):
        return words
    return f"{words} ({format_points(line.low, 1)} to {format_points(line.high, 1)})"


def _format_difference(line: Line) -> str:
    """Format a difference in points: "−4.1 (−6.0 to −2.2)", or "(no interval)"; "–" for NaN."""
    if math.isnan(line.difference):
        return "–"
    fine = decimals_of((line.difference, line.difference_low, line.difference_high))
    mean = format_points(line.difference, fine)
    if math.isnan(line.difference_low):
        return f"{mean} (no interval)"
    low, high = (format_points(end, fine) for end in (line.difference_low, line.difference_high))
    return f"{mean} ({low} to {high})"


def format_p(p: float) -> str:
    """Format a p-value behind its name: "= 0.012", "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"= {number(p, 2)}"


def _format_p_cell(p: float) -> str:
    """Format a p-value in a table; "–" where there is none."""
    return "–" if math.isnan(p) else format_p(p).removeprefix("= ")


def _build_entry(line: Line) -> Entry:
    """Return the texts of a table's line; for a baseline, those on comparisons are ""."""
    is_baseline = line.variant == BASELINE
    least = ""
    if not math.isnan(line.p_exact_least):
        least = f" ({_format_p_cell(line.p_exact_least)})"
    return Entry(
        _name_variant(line.variant),
        _format_accuracy(line),
        "" if is_baseline else _format_difference(line),
        "" if is_baseline else _format_p_cell(line.p),
        "" if is_baseline else f"{_format_p_cell(line.p_exact)}{least}",
        str(line.seeds if is_baseline else line.pairs),
        "" if is_baseline else verdict_of(line),
        "; ".join(_list_notes(line)),
    )


def _name_variant(variant: str) -> str:
    """Return a variant's name on screen, with "(null arm)" after a null arm's."""
    return f"{variant} (null arm)" if variant in NULL_ARMS else shown_name(variant)


def _list_notes(line: Line) -> list[str]:
    """Return notes on a cell, such as diverged seeds, rates or mixed conditions; or []."""
    notes = []
    if line.diverged:
        notes.append(f"{line.diverged} of {line.seeds + line.diverged} diverged")
    if line.missing:
        notes.append(f"{line.missing} not trained yet")
    is_compared_by_runs = not math.isnan(line.p) and math.isnan(line.difference_low)
    if line.seeds and (line.two_groups or is_compared_by_runs):
        learnt = format_learnt(line.learnt, line.seeds).replace(" runs learnt it", " learnt")
        notes.append(learnt.replace(" %", "\N{NO-BREAK SPACE}%"))
    if line.variant != BASELINE and line.pairs < LEAST_SEEDS:
        notes.append("too few seeds for a verdict")
    if getattr(line, "rates", ""):
        notes.append(f"learning rate {describe_rates(line.rates)}")
    if line.mixed:
        notes.append(f"mixed conditions: {line.mixed}")
    return notes


# Pictures


def task_svg(
    arms: Sequence[Line],
    margin: float,
    noise_floor: float,
    gaps: Mapping[Name, Mapping[int, float]],
    reach: float,
) -> str:
    """Return the differences of one task as SVG: a row per variant on a scale around zero.

    Args:
        arms: Lines of the summary, without the baseline; null arms last.
        margin: Margin of equivalence, as a share.
        noise_floor: Half-width of the interval of the wider null arm; NaN without any.
        gaps: (task, variant) -> seed -> difference, as shares.
        reach: End of the scale, as a share.
    """
    notes = [wrap("; ".join(_list_notes(line)), NOTE_LETTERS) for line in arms]
    heights = [ROW + NOTE * max(0, len(several) - 1) for several in notes]
    height = HEAD + sum(heights) + 4
    shapes = _scale_svg(margin, noise_floor, reach, height)
    y = HEAD
    for line, several, height_of_row in zip(arms, notes, heights):
        shapes += f'<line class="rule" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
        shapes += _row_svg(line, several, y, gaps.get((line.task, line.variant), {}), reach)
        y += height_of_row
    words = " ".join(describe_cell(line) for line in arms)
    description = f"Differences from the baseline in percentage points. {words}"
    svg = picture(WIDTH, height, shapes, description)
    return svg.replace("<svg ", f'<svg width="{WIDTH}" height="{height}" ', 1)


def _find_x(share: float, reach: float) -> float:
    """Return the x in pixels of a difference (share) on the scale, cut to ±reach."""
    return NAMES + SIDE + PLOT * (1 + min(max(share / reach, -1.0), 1.0)) / 2


def _scale_svg(margin: float, noise_floor: float, reach: float, height: float) -> str:
    """Return the heads of the columns, the bands around zero and the scale as SVG."""
    values_x = NAMES + PLOT + 2 * SIDE
    shapes = text(0, 14, "Variant", "head")
    shapes += text(_find_x(0, reach), 14, "Accuracy − baseline, percentage points", "head middle")
    shapes += text(values_x, 14, "Mean (95 % CI)", "head")
    shapes += text(values_x + VALUES, 14, "Verdict", "head")
    for kind, half in (("margin", margin), ("floor", noise_floor)):
        if not math.isnan(half):
            left = _find_x(-half, reach)
            right = _find_x(half, reach)
            shapes += (
                f'<rect class="{kind}" x="{left:.2f}" y="{HEAD - 8}" width="{right - left:.2f}"'
                f' height="{height - HEAD + 6}"/>'
            )
    for quarter in range(-2, 3):
        share = reach * quarter / 2
        x = _find_x(share, reach)
        kind = "zero" if quarter == 0 else "grid"
        shapes += f'<line class="{kind}" x1="{x:.2f}" x2="{x:.2f}" y1="{HEAD - 8}" y2="{height}"/>'
        sign = "+" if share > 0 else ""
        label = sign + fixed(100 * share, 0)
        shapes += text(x, HEAD - 14, label, "small middle")
    return shapes


def _row_svg(
    line: Line, notes: Sequence[str], y: float, gaps: Mapping[int, float], reach: float
) -> str:
    """Return a variant's row as SVG from y on: name, seeds, interval, mean, verdict and notes.

    `gaps` is seed -> difference as a share; a NaN difference has no dot.
    """
    shapes = ""
    name = _name_variant(line.variant).replace(" %", "\N{NO-BREAK SPACE}%")
    names = wrap(name, NAME_LETTERS, max_lines=2, placeholder="…")
    first_y = y + (27 if len(names) == 1 else 20)
    for place, part in enumerate(names):
        shapes += text(0, first_y + 17 * place, part, "name")
    for seed, gap in gaps.items():
        shapes += (
            f'<circle class="seed" cx="{_find_x(gap, reach):.2f}" cy="{y + SEEDS_Y}" r="3.5">'
            f"<title>Seed {seed}: {format_points(gap, 1)}</title></circle>"
        )
    verdict = verdict_of(line)
    kind = "mean"
    if verdict == DIFFERENCE:
        kind += " less" if line.difference < 0 else " more"
    if not math.isnan(line.difference_low):
        left = _find_x(line.difference_low, reach)
        right = _find_x(line.difference_high, reach)
        shapes += (
            f'<line class="{kind.replace("mean", "interval")}" x1="{left:.2f}" x2="{right:.2f}"'
            f' y1="{y + INTERVAL_Y}" y2="{y + INTERVAL_Y}"/>'
        )
    else:
        kind += " hollow"
    if not math.isnan(line.difference):
        x = _find_x(line.difference, reach)
        shapes += f'<circle class="{kind}" cx="{x:.2f}" cy="{y + INTERVAL_Y}" r="5"/>'
    values_x = NAMES + PLOT + 2 * SIDE
    shapes += text(values_x, y + 20, _format_difference(line), "value")
    symbol, word = BADGES[verdict]
    badge_x = values_x + VALUES
    shapes += (
        f'<rect class="badge {verdict}" x="{badge_x}" y="{y + 5}" width="{BADGE - 2}" height="21"'
        ' rx="10.5"/>'
    )
    shapes += text(badge_x + (BADGE - 2) / 2, y + 20, f"{symbol} {word}", f"middle {verdict}")
    for place, note in enumerate(notes):
        shapes += text(values_x, y + 41 + NOTE * place, note, "small note")
    return shapes
