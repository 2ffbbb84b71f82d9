"""Tables and curves of a stored study: every run, every row, the cost of each ablation."""

import math
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE, Arm, Plan, Trial
from core.experiments.training.results import RANGE, facts_of
from core.export.sheets import write_csv
from core.measure.intervals import half_width, interval
from core.measure.verdicts import (
    DIGITS,
    NO_NOISE,
    NOTHING,
    Difference,
    Looked,
    Noise,
    Pair,
    Values,
    compare_in_looks,
    compare_runs,
    describe_learnt,
    measure_noise,
    pair_runs,
)
from core.settings.device import Machine
from core.study.conditions import describe_mixed
from core.study.curves import MADE, Made
from core.study.database.schema import DIVERGED, DONE, ENDED, runs
from core.study.database.store import HIDDEN, Store, StoredRun
from core.study.file import describe_guards, looks_of, margin_of, search_of
from core.study.plan import (
    NULL,
    NULL_ARMS,
    TRAINING,
    Run,
    StudyError,
    machine_of,
    pair_seed,
    read_run,
    read_settings,
    without_rate,
)
from core.study.training_link import format_address, link_parameters
from core.tasks import task
from core.train import Row
from core.train.match import choose_rate, count_rates, match

Name = tuple[str, str]  # of a cell: task, variant

COLUMNS = [
    column.name for column in runs.c if column.name not in HIDDEN
]  # of Store.runs, where there are none too
WHILE_RUNNING = ["owner", "heartbeat"]  # columns that are not exported


def run_table(store: Store, study: int) -> pd.DataFrame:
    """Return wanted runs: Store.runs with `run` for id, without owner and heartbeat.

    Times are seconds since 1970, or NaN.
    """
    return (
        pd.DataFrame(store.runs(study), columns=COLUMNS)
        .drop(columns=WHILE_RUNNING)
        .rename(columns={"id": "run"})
    )


def row_table(store: Store, study: int) -> pd.DataFrame:
    """Return one line per row: run (id), task, variant, seed, fields of core.train.Row.

    NaN after divergence.
    """
    table = pd.DataFrame(store.rows(study), columns=["run", *Row._fields])
    columns = [name for name in COLUMNS if name != "spec"]
    names = pd.DataFrame(store.runs(study, spec=False), columns=columns).set_index("id")[
        ["task", "variant", "seed"]
    ]
    return table.join(names, on="run")[["run", *names.columns, *Row._fields]]


def summary_table(store: Store, study: int) -> pd.DataFrame:
    """Return a study's accuracies (shares): one line per task and variant, from runs' last rows.

    task (its name in the study), of (key of the task), variant; accuracy, low, high (95 %
    interval), seeds (of which it is the mean), diverged, missing (not trained yet, or failed);
    difference to the task's baseline, difference_low, difference_high, p (core/measure/verdicts.py,
    on the seeds that both have, corrected for all variants of the task, Holm), as on the Training
    page; p_uncorrected (before that), pairs (number of those seeds); verdict and margin (of
    equivalence), the columns of core.measure.verdicts.Noise and of describe_learnt; chance, best
    (of the task); parameters, flops (of one sequence, forward), steps, seconds (of a worker, on
    average); mixed: versions and devices in which runs of the cell and of its baseline differ (""
    if they do not); link: opens the cell on the page Training. Needs no run to be done.
    """
    cells = _read_cells(store, study)
    source = find_source(store, study)
    return _summarise_cells(cells, store.results(study), store.specs(study), source)


def _read_cells(store: Store, study: int) -> dict[Name, list[StoredRun]]:
    """Return (task, variant with its rate) -> its wanted runs, one per seed, in any state."""
    cells: dict[Name, list[StoredRun]] = {}
    for run in store.runs(study, spec=False):
        cells.setdefault((run.task, run.variant), []).append(run)
    return cells


def find_source(store: Store, study: int) -> str:
    """Return the text of a study's file, given its id; "" for an unknown id."""
    return next((entry.source for entry in store.studies() if entry.id == study), "")


def summary_with_guards(store: Store, study: int) -> pd.DataFrame:
    """Return any study's summary, each seed at its chosen rate if searched, and column guards.

    Its column guards says what was equal for all models or searched.
    """
    source = find_source(store, study)
    search = search_of(source)
    table = (
        summary_table(store, study) if search == "none" else searched_table(store, study, search)
    )
    return table.assign(guards=", ".join(describe_guards(source)) or "none")


def searched_table(store: Store, study: int, search: str) -> pd.DataFrame:
    """Return a summary at each seed's best rate, column rates: "0.003 on 4"; `search` for links.

    A seed whose rates are not all trained counts as missing.

    Args:
        store: The store.
        study: Id of the study.
        search: Key of the menu (core.train.match), as in links, or "" for a list of rates that no
            link has: then a cell opens at the rate that was chosen most often.
    """
    last = store.results(study)
    specs = store.specs(study)
    cells: dict[Name, list[StoredRun]] = {}
    rates: list[str] = []
    for key, several in choose_rates(
        store.runs(study, spec=False), store.late_losses(study), specs
    ).items():
        best_rates = [rate for _, rate in several if not math.isnan(rate)]
        often = max(several, key=lambda entry: best_rates.count(entry[1]))[0]
        specs[key] = specs[key if search else (often.task, often.variant)]
        cells[key] = [run for run, _ in several]
        rates.append(count_rates(best_rates))
    source = find_source(store, study)
    return _summarise_cells(cells, last, specs, source, search or "none").assign(rates=rates)


def choose_rates(
    runs: Sequence[StoredRun], losses: Mapping[int, float], specs: Mapping[Name, str]
) -> dict[Name, list[tuple[StoredRun, float]]]:
    """Return (task, model) -> [(best run, rate)] by seed; a run and NaN while a rate is open.

    Args:
        runs: All runs of a study.
        losses: Run to late_loss, of runs that did not diverge.
        specs: Spec of one run by (task, variant).

    Returns:
        (task, model) to (run, its rate) for each seed. Where a rate is not trained to the end: such
        a run, and NaN.
    """
    lines_by_name: dict[Name, list[tuple[StoredRun, float]]] = {}
    for (name, model, _), grid in group_by_rate(runs, specs).items():
        open_runs = [run for run in grid.values() if run.state not in ENDED]
        if open_runs:
            best = open_runs[0], math.nan
        else:
            rate = choose_rate(
                {
                    rate: losses[run.id] if run.state == DONE else math.inf
                    for rate, run in grid.items()
                }
            )
            best = grid[rate], rate
        lines_by_name.setdefault((name, model), []).append(best)
    return lines_by_name


def group_by_rate(
    runs: Sequence[StoredRun], specs: Mapping[Name, str]
) -> dict[tuple[str, str, int], dict[float, StoredRun]]:
    """Group runs of a searched study: (task, model, seed) -> learning rate -> run.

    Args:
        runs: All runs of the study.
        specs: Spec of one run by (task, variant).
    """
    grids: dict[tuple[str, str, int], dict[float, StoredRun]] = {}
    for run in runs:
        rate = read_settings(specs[run.task, run.variant])[1].learning_rate
        grids.setdefault((run.task, without_rate(run.variant, rate), run.seed), {})[rate] = run
    return grids


def _summarise_cells(
    cells: Mapping[Name, Sequence[StoredRun]],
    last_accuracy: Mapping[int, float],
    specs: Mapping[Name, str],
    toml_text: str,
    search: str = "none",
) -> pd.DataFrame:
    """Return a line per cell, columns as in summary_table; `search` only goes into its links.

    Args:
        cells: (task, variant) -> its runs, one per seed.
        last_accuracy: Run id -> accuracy at its end.
        specs: (task, variant) -> spec of one of its runs.
        toml_text: Text of the study's file.
        search: Key of the menu of searches, for links.
    """
    accuracy = _accuracy_of_ended_runs(cells, last_accuracy)
    looked = _look_at_cells(cells, last_accuracy, specs, toml_text)
    off_by: dict[Name, Difference] = {}
    for task_look in looked.values():
        off_by |= task_look.differences
    noise: dict[Name, Noise] = {}
    for name, task_look in looked.items():
        comparisons = sum(
            not math.isnan(gap.p)
            for key, gap in task_look.differences.items()
            if key[1] not in NULL_ARMS
        )
        _, training = read_settings(specs[next(iter(task_look.differences))])
        answers = facts_of(training).answers
        base = accuracy.get((name, BASELINE), {})
        for key in task_look.differences:
            noise[key] = measure_noise(accuracy[key], base, answers, comparisons)
    floors = {
        name: _noise_floor(
            [
                (noise[name, arm].spread, task_look.differences[name, arm].n)
                for arm in NULL_ARMS
                if (name, arm) in task_look.differences
            ]
        )
        for name, task_look in looked.items()
    }
    return pd.DataFrame(
        _summarise_cell(
            key,
            runs,
            cells.get((key[0], BASELINE), ()),
            specs,
            accuracy[key],
            off_by.get(key),
            noise.get(key, NO_NOISE),
            search,
            floors.get(key[0], math.nan),
        )
        for key, runs in cells.items()
    )


def _noise_floor(arms: Iterable[tuple[float, int]]) -> float:
    """Return the wider interval's half-width over arms' (SD, seeds); NaN if none has two seeds.

    Args:
        arms: Standard deviation over seeds of each arm's difference from the baseline, and the
            number of its seeds.
    """
    widths = [half_width(spread / math.sqrt(n), n) for spread, n in arms if n]
    return max((width for width in widths if not math.isnan(width)), default=math.nan)


def look_at_tasks(store: Store, study: int) -> dict[str, Looked]:
    """Return by task, of a stored study, the difference of each variant and the seeds it needs."""
    cells, specs = _read_compared_cells(store, study)
    return _look_at_cells(cells, store.results(study), specs, find_source(store, study))


def _read_compared_cells(
    store: Store, study: int
) -> tuple[dict[Name, list[StoredRun]], dict[Name, str]]:
    """Return cell -> its runs, at chosen rates if searched, and cell -> spec of one of them."""
    specs = store.specs(study)
    if search_of(find_source(store, study)) == "none":
        return _read_cells(store, study), specs
    chosen = choose_rates(store.runs(study, spec=False), store.late_losses(study), specs)
    cells = {key: [run for run, _ in several] for key, several in chosen.items()}
    for key, several in cells.items():
        specs.setdefault(key, specs[several[0].task, several[0].variant])
    return cells, specs


def list_seed_differences(store: Store, study: int) -> dict[Name, dict[int, float]]:
    """Return the differences that comparisons count: (task, variant) -> seed -> share.

    Returns:
        (task, variant) -> seed of the baseline -> accuracy − that of the baseline, as a share.
    """
    cells, specs = _read_compared_cells(store, study)
    last_accuracy = store.results(study)
    looked = _look_at_cells(cells, last_accuracy, specs, find_source(store, study))
    accuracy = _accuracy_of_ended_runs(cells, last_accuracy)
    differences: dict[Name, dict[int, float]] = {}
    for task_look in looked.values():
        for key, gap in task_look.differences.items():
            base = accuracy.get((key[0], BASELINE), {})
            gaps = {
                seed: round(value - base.get(seed, math.nan), DIGITS)
                for seed, value in sorted(accuracy[key].items())
            }
            pairs = [seed for seed in gaps if not math.isnan(gaps[seed])]
            # A comparison that an early look decided counts the first seeds alone.
            differences[key] = {seed: gaps[seed] for seed in pairs[: gap.n]}
    return differences


def _accuracy_of_ended_runs(
    cells: Mapping[Name, Sequence[StoredRun]], last_accuracy: Mapping[int, float]
) -> dict[Name, dict[int, float]]:
    """Return cell -> seed of the baseline -> accuracy of ended runs; NaN if it diverged."""
    return {
        key: {
            pair_seed(run.variant, run.seed): last_accuracy.get(run.id, math.nan)
            for run in runs
            if run.state in ENDED
        }
        for key, runs in cells.items()
    }


def _look_at_cells(
    cells: Mapping[Name, Sequence[StoredRun]],
    last_accuracy: Mapping[int, float],
    specs: Mapping[Name, str],
    toml_text: str,
) -> dict[str, Looked]:
    """Compare variants and null arms with baselines: task -> Looked; see _summarise_cells."""
    ended = _accuracy_of_ended_runs(cells, last_accuracy)
    null_pairs: dict[Name, Pair] = {}
    looks = looks_of(toml_text)
    looked: dict[str, Looked] = {}
    for name in dict.fromkeys(name for name, _ in cells):
        several = {
            key: (ended[key], ended.get((name, BASELINE), {}))
            for key in cells
            if key[0] == name and key[1] != BASELINE
        }
        if not several:
            continue
        _, training = read_settings(specs[next(iter(several))])
        facts = facts_of(training, margin_of(toml_text, name))
        arms = {
            (name, arm): several.pop((name, arm)) for arm in NULL_ARMS if (name, arm) in several
        }
        null_pairs |= pair_runs(arms, facts)
        if looks:
            looked[name] = compare_in_looks(several, facts, looks)
        else:
            looked[name] = Looked(compare_runs(pair_runs(several, facts)), {})
    # Null arms are no variants: those of all tasks are corrected for each other alone.
    for key, gap in compare_runs(null_pairs).items():
        looked[key[0]].differences[key] = gap
    return looked


def link(spec: str, baseline: str | None, seeds: list[int], search: str = "none") -> str:
    """Return the relative address that opens a cell on Training; `baseline`: spec, None: itself.

    Args:
        spec: Of any of its runs.
        baseline: Spec of a run of the baseline; None if the cell is the baseline.
        seeds: Seeds of the runs.
        search: Key of the menu of searches.
    """
    settings = read_settings(spec)
    first = read_settings(baseline) if baseline else settings
    return format_address(link_parameters(*settings, first, seeds, machine_of(spec), search))


def _summarise_cell(
    cell: Name,
    runs: Sequence[StoredRun],
    base_runs: Sequence[StoredRun],
    specs: Mapping[Name, str],
    accuracy_by_seed: Mapping[int, float],
    difference: Difference | None,
    noise: Noise,
    search: str,
    noise_floor: float,
) -> dict[str, Any]:
    """Return a summary's line of a task and variant: column -> value (shares), as summary_table.

    Args:
        cell: Task and variant.
        runs: One per seed.
        base_runs: Those of the task's baseline.
        specs: Spec of one run by (task, variant).
        accuracy_by_seed: Their accuracy by seed.
        difference: The difference to the baseline; None for a baseline.
        noise: The noise of this comparison.
        search: Key of the menu of searches, for the link.
        noise_floor: Half-width of the interval of the wider null arm; NaN without any.
    """
    spec = specs[cell]
    baseline = None if cell[1] == NULL else specs.get((cell[0], BASELINE))
    mean = interval(accuracy_by_seed.values(), RANGE)
    verdict = difference.verdict if difference else ""
    difference = difference or NOTHING
    config, training = read_settings(spec)
    learnt = task[training.task]
    sizes = {kind: match[kind](config, training) for kind in ("parameters", "flops")}
    seconds = [run.seconds for run in runs if run.state in ENDED and not run.known]
    return {
        "task": cell[0],
        "of": training.task,
        "variant": cell[1],
        "accuracy": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "seeds": mean.n,
        "diverged": sum(run.state == DIVERGED for run in runs),
        "missing": sum(run.state not in ENDED for run in runs),
        "difference": difference.mean,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "p": difference.p,
        "p_uncorrected": difference.p_uncorrected,
        "pairs": difference.n,
        "verdict": verdict,
        "margin": difference.margin,
        **noise._asdict(),
        "noise_floor": noise_floor,
        **describe_learnt(accuracy_by_seed.values(), learnt.learnt_from),
        "chance": learnt.chance,
        "best": learnt.best,
        **sizes,
        "steps": training.steps,
        "seconds": sum(seconds) / len(seconds) if seconds else math.nan,
        "mixed": describe_mixed(run for run in (*runs, *base_runs) if run.state in ENDED),
        "link": link(spec, baseline, [run.seed for run in runs], search),
    }


def compare_studies(store: Store, one_study: int, other: int) -> pd.DataFrame:
    """Compare accuracy (share) in two studies: first − other, for each cell that both have.

    For tasks and variants of the same names, on the seeds that both have: task, variant, settings
    ("same" where all runs of both are the same trainings, else "differ"); accuracy (of the first),
    other_accuracy; difference (first − other); low, high (95 % interval), p (paired t-test,
    corrected for all cells, Holm), seeds; verdict and margin (as the first study states it); mixed:
    versions and devices in which these runs of both studies differ.
    """
    sides = []
    for study in (one_study, other):
        last = store.results(study)
        cells: dict[Name, dict[int, tuple[float, StoredRun]]] = {}
        for run in store.runs(study, spec=False):
            cells.setdefault((run.task, run.variant), {})[run.seed] = (
                last.get(run.id, math.nan),
                run,
            )
        sides.append(cells)
    mixed: dict[Name, str] = {}
    facts: dict[Name, tuple[Any, ...]] = {}
    specs = store.specs(one_study)
    source = find_source(store, one_study)
    several: dict[str, dict[Name, tuple[Values, Values]]] = {}  # of each task
    for name, line in sides[0].items():
        theirs = sides[1].get(name)
        if theirs is None:
            continue
        values = [{seed: value for seed, (value, _) in side.items()} for side in (line, theirs)]
        both = values[0].keys() & values[1].keys()
        same = bool(both) and all(line[seed][1].hash == theirs[seed][1].hash for seed in both)
        compared = [side[seed][1] for side in (line, theirs) for seed in both]
        mixed[name] = describe_mixed(run for run in compared if run.state in ENDED)
        ended = [seed for seed in both if not math.isnan(values[0][seed] - values[1][seed])]
        first, second = ({seed: side[seed] for seed in ended} for side in values)
        several.setdefault(name[0], {})[name] = first, second
        means = [interval(side.values(), RANGE).mean for side in (first, second)]
        facts[name] = (*name, "same" if same else "differ", *means)
    pairs: dict[Name, Pair] = {}
    for of_task in several.values():
        _, training = read_settings(specs[next(iter(of_task))])
        margin = margin_of(source, next(iter(of_task))[0])
        pairs |= pair_runs(of_task, facts_of(training, margin))
    rows = [
        (*facts[name], *off[:3], off.p, off.n, off.verdict, off.margin, mixed[name])
        for name, off in compare_runs(pairs).items()
    ]
    names = [
        "task",
        "variant",
        "settings",
        "accuracy",
        "other_accuracy",
        "difference",
        "low",
        "high",
        "p",
        "seeds",
        "verdict",
        "margin",
        "mixed",
    ]
    return pd.DataFrame(rows, columns=names)


TABLES = {"runs": run_table, "rows": row_table, "summary": summary_with_guards}
FILE = "study.toml"  # of the study, beside its tables: says whose they are


def export(store: Store, study: int, folder: str | Path, file_format: str) -> list[Path]:
    """Write tables ("csv" or "parquet") and TOML; return paths; StudyError in another's folder.

    Raises:
        OSError: the folder cannot be written.
        StudyError: the folder has the tables of another study.
    """
    folder = Path(folder)
    study_line = next(line for line in store.studies() if line.id == study)
    folder.mkdir(parents=True, exist_ok=True)
    if any(
        path.stem in TABLES and path.suffix in (".csv", ".parquet") for path in folder.iterdir()
    ):
        try:
            owner = tomllib.loads((folder / FILE).read_text(encoding="utf-8")).get("name")
        except (OSError, ValueError):
            owner = None
        if owner != study_line.name:
            words = (
                f"those of “{owner}”"
                if isinstance(owner, str)
                else "and no file that names their study"
            )
            raise StudyError(
                [
                    f"{folder} already has tables, {words}: choose another folder for"
                    f" “{study_line.name}”, or remove them."
                ]
            )
    paths = [folder / FILE]
    paths[0].write_text(study_line.source, encoding="utf-8")
    for name, table in TABLES.items():
        path = folder / f"{name}.{file_format}"
        rows = table(store, study)
        write_csv(rows, path) if file_format == "csv" else rows.to_parquet(path, index=False)
        paths.append(path)
    return paths


# Curves of runs in the store


@dataclass(frozen=True)
class StoredPlan(Plan):
    """Plan with any list of seeds."""

    chosen: tuple[int, ...] = ()

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs."""
        return list(self.chosen)


@dataclass(frozen=True)
class Stored:
    """Rows of stored runs by (variant, seed).

    Args:
        plan: Their plan.
        runs: The rows.
        notes: Sentences on variants that are left out.
        mixed: Versions and devices in which the runs differ; "" if they do not.
    """

    plan: StoredPlan
    runs: dict[tuple[str, int], list[Row]]
    notes: tuple[str, ...] = ()
    mixed: str = ""
    origin = "Saved runs"

    @property
    def every_run(self) -> dict[tuple[str, int], list[Row]]:
        """Rows of every run by (variant, seed)."""
        return self.runs


def load_stored(store: Store, study: int, task: str, variants: list[str]) -> Stored | None:
    """Load a task's rows; variants of other steps or length are skipped; None if no common seed.

    Rows of unfinished runs are included.

    Seeds are those of which all have rows. A variant that is trained for another number of steps,
    or on sequences of another length, is left out. Raises ConfigError for settings that this
    version does not have.
    """
    names = [BASELINE, *variants]
    lines = {
        (run.variant, pair_seed(run.variant, run.seed)): run
        for run in store.runs(study, spec=False)
        if run.task == task and run.variant in names and run.step
    }
    rows = rows_of(store, study, lines.values())
    specs = store.specs(study)
    with_rows = {variant for variant, seed in lines if lines[variant, seed].id in rows}
    if BASELINE not in with_rows:
        return None
    config, first = read_settings(specs[task, BASELINE])
    arms = [Arm(BASELINE, config, 0, frozenset())]
    notes = []
    for place, name in enumerate(variants, 1):
        if name not in with_rows:
            notes.append(f"{name} has no results yet.")
            continue
        config, training = read_settings(specs[task, name])
        if (training.steps, training.length) != (first.steps, first.length):
            how = f"it is trained for {training.steps:,} steps on length {training.length}."
            notes.append(f"{name} skipped: {how}")
            continue
        arms.append(Arm(name, config, place, frozenset([name])))
    have = {(name, seed) for (name, seed), line in lines.items() if line.id in rows}
    seeds = tuple(
        sorted(
            seed
            for name, seed in have
            if name == BASELINE and all((arm.name, seed) in have for arm in arms)
        )
    )
    if not seeds:
        return None
    runs = {(arm.name, seed): rows[lines[arm.name, seed].id] for arm in arms for seed in seeds}
    trial = Trial(seeds=min(len(seeds), int(Trial.settings()["seeds"].high or 1)))
    plan = StoredPlan(tuple(arms), first, trial, Machine(), seeds)
    mixed = describe_mixed(lines[name] for name in runs)
    return Stored(plan, runs, tuple(notes), mixed)


def load_cell_runs(
    store: Store, study: int, task: str, variant: str
) -> list[tuple[Run, list[Row], Made]]:
    """Load finished runs of a cell and its baseline: (run, rows, what trained it), [] if none.

    For a searched study, runs at every learning rate.

    Raises ConfigError for settings that this version does not have, or a device that no machine
    has.
    """
    near = (
        (BASELINE, variant),
        (
            f"{variant}, ",
            TRAINING["learning_rate"].short,
        ),
    )  # names, and how they begin at a rate
    specs = {}
    for name, spec in store.specs(study).items():
        if name[0] == task and (name[1] in near[0] or name[1].startswith(near[1])):
            run = read_run(*name, spec)
            if {run.variant, without_rate(run.variant, run.training.learning_rate)} & {
                BASELINE,
                variant,
            }:
                specs[name] = run
    lines = [
        run for run in store.runs(study, *ENDED, spec=False) if (run.task, run.variant) in specs
    ]
    rows = rows_of(store, study, lines)
    cell_runs = []
    for line in lines:
        if line.id in rows:
            first = specs[line.task, line.variant]
            run = replace(first, config=first.config.replace(seed=line.seed))
            cell_runs.append((run, rows[line.id], made_of([line])))
    return cell_runs


def rows_of(store: Store, study: int, lines: Collection[StoredRun]) -> dict[int, list[Row]]:
    """Return the rows of runs (lines of Store.runs) by run id; runs without rows are left out."""
    rows: dict[int, list[Row]] = {}
    for run, *row in store.rows(study, [line.id for line in lines]):
        rows.setdefault(run, []).append(Row(*row))
    return rows


def made_of(lines: Collection[StoredRun]) -> Made:
    """Return what trained these runs: name in MADE -> sorted tuple of its known values."""
    return {name: tuple(sorted({getattr(line, name) for line in lines} - {""})) for name in MADE}
