"""Finished trainings that need no start: cached on this server, or shipped."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from core.experiments.training.judged import Compared, Judge
from core.experiments.training.plan import Plan
from core.settings.wording import count
from core.study.conditions import collect_known, format_mixed
from core.study.curves import MADE, CurveFiles, Curves, Made, made_by, read_curves
from core.study.plan import Run, StudyError
from core.study.shipped import ALONE, curves_of
from core.study.shipped import shipped as studies
from core.study.verdict import training_document, write_document
from core.train import State
from ui.kit import jobs
from ui.kit.jobs import StartedTrainings
from ui.kit.page import literal
from ui.shared.trainings import FromStudy, find_cached_rows

FILES = [curves_of(name) for name in (*studies, *ALONE)]
DAMAGED = (
    "Precomputed curves in results/curves are missing or damaged; make matrix and make claims"
    " recreate them."
)


@dataclass(frozen=True)
class FinishedTrainings(Compared):
    """Finished trainings as views receive them.

    Args:
        plan: Plan of the trainings.
        judge: Comparison of their results.
        origin: Source, for legends.
        source: Source, as sentences below the picture.
        anew: Whether they can be trained again here.
        every_state: Models by (name, seed); empty if weights were not stored.
        provenances: Versions and devices that trained the runs; empty if this server did.
    """

    plan: Plan
    judge: Judge
    origin: str
    source: str
    anew: bool = False
    every_state: dict[tuple[str, int], State] = field(default_factory=dict)
    provenances: Sequence[Made] = ()
    going = False


def select_trainings(planned: Plan) -> StartedTrainings | FinishedTrainings | None:
    """Return the user's training of this plan, else its stored results, else the last training.

    None without any of them.
    """
    own_trainings = jobs.last_trainings()
    return (
        own_trainings
        if own_trainings and own_trainings.plan == planned
        else find_finished(planned) or own_trainings
    )


def find_finished(planned: Plan) -> FinishedTrainings | None:
    """Return all trainings of a plan: cached here, else shipped, else of one study; else None."""
    return (
        _find_cached(planned)
        or _find_shipped(tuple(filter(None, read_shipped_curves())), planned)
        or _find_in_study(planned)
    )


def _runs(planned: Plan) -> Iterator[tuple[tuple[str, int], Run]]:
    """Yield ((model's name, seed), run) for each training of a plan, lazily."""
    for name, config, training, seed in planned.trainings():
        yield (name, seed), Run("", name, config.replace(seed=seed), training, planned.machine)


def _find_cached(planned: Plan) -> FinishedTrainings | None:
    """Return the trainings that this server has cached; None if one is missing."""
    pool = jobs.workers()
    runs = {}
    states: dict[tuple[str, int], State] = {}
    for name, run in _runs(planned):
        finished_states = pool.find_finished((run.config, run.training, run.machine))
        if finished_states is None:
            return None
        runs[name], state = finished_states
        states |= {name: state} if state else {}
    sentence = f"Cached on this server: {_describe_runs(planned)}."
    complete = (
        states if len(states) == len(runs) else {}
    )  # views compare models: all of them or none
    return FinishedTrainings(
        planned, Judge(planned, runs), "Previously trained here", sentence, every_state=complete
    )


@lru_cache(maxsize=16)
def _find_shipped(files: Sequence[Curves], planned: Plan) -> FinishedTrainings | None:
    """Return the trainings of a plan from shipped curves, of any files; None if one is missing."""
    together = CurveFiles(tuple(files))
    runs = {}
    used: list[Curves] = []
    for name, run in _runs(planned):
        stored = together.find(run)
        if stored is None:
            return None
        file, runs[name] = stored
        if file not in used:
            used.append(file)
    provenances = [file.made for file in used]
    sentence = (
        f"Precomputed: {_describe_runs(planned)}. {_describe_provenance(made_by(used))}"
        f"{_describe_mixed(provenances)}"
    )
    return FinishedTrainings(
        planned,
        Judge(planned, runs),
        "Precomputed results",
        sentence,
        anew=True,
        provenances=provenances,
    )


def _find_in_study(planned: Plan) -> FinishedTrainings | None:
    """Return the trainings of a plan from the cached rows of a single study; None if one lacks."""
    runs = {}
    sources: list[FromStudy] = []
    for name, run in _runs(planned):
        stored_run = find_cached_rows(run)
        if stored_run is None or any(stored_run.study != source.study for source in sources):
            return None
        runs[name] = stored_run.rows
        sources.append(stored_run)
    provenance = {
        name: sorted({value for source in sources for value in source.provenance[name]})
        for name in MADE
    }
    sentence = (
        f"From the study “{literal(sources[0].study)}”: {_describe_runs(planned)}."
        f" {_describe_provenance(provenance)}"
        f"{_describe_mixed([source.provenance for source in sources])}"
    )
    return FinishedTrainings(
        planned,
        Judge(planned, runs),
        "Results of a study",
        sentence,
        anew=True,
        provenances=[source.provenance for source in sources],
    )


def verdict_files(
    trainings: StartedTrainings | FinishedTrainings | None,
) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return the verdicts: label -> (name, function returning JSON bytes); {} for one model."""
    if trainings is None or len(trainings.plan.arms) < 2:
        return {}
    return {"Verdicts (JSON)": ("training_verdicts.json", partial(_write_verdicts, trainings))}


def _write_verdicts(trainings: StartedTrainings | FinishedTrainings) -> bytes:
    """Return the verdicts of the comparison that is shown as the bytes of a JSON document."""
    plan = trainings.plan
    provenances: Sequence[Made] = ()
    if isinstance(trainings, FinishedTrainings):
        provenances = trainings.provenances
    if not provenances:
        pool = jobs.workers()
        here = {**pool.versions(), "device": pool.device(plan.machine)[1]}
        provenances = [{name: (here[name],) for name in MADE}]
    return write_document(training_document(trainings.runs, plan, provenances)).encode()


def _describe_runs(planned: Plan) -> str:
    """Return a phrase on the number of runs and their seeds."""
    first = planned.seeds[0]
    last = planned.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    return f"{count(len(list(planned.trainings())), 'run')}, {seeds}"


def _describe_provenance(provenance: Made) -> str:
    """Return a sentence on device, versions and commit of the trainings."""
    device, torch, numpy, python, code = (
        literal(" and ".join(provenance[name])) or "unknown" for name in MADE
    )
    return (
        f"Trained on {device} with PyTorch {torch}, NumPy {numpy}, Python {python}, commit"
        f" {code[:7]}."
    )


def _describe_mixed(provenances: Sequence[Made]) -> str:
    """Return a sentence on conditions that provenances mix, with a space before it, or "".

    A file that lists several versions does not say which run has which: it adds nothing.
    """
    mixed = format_mixed(collect_known(provenances))
    return f" These runs mix conditions: {literal(mixed)}." if mixed else ""


def read_shipped_curves() -> list[Curves | None]:
    """Return the shipped curves of each study; None for a missing or damaged file."""
    return [_read_file(path) for path in FILES]


def _read_file(path: Path) -> Curves | None:
    """Return the curves in a file; None if it is missing or damaged."""
    try:
        stamp = path.stat()
        return _read_cached(path, stamp.st_mtime_ns, stamp.st_size)
    except OSError:
        return None


@lru_cache(maxsize=32)
def _read_cached(path: Path, *stamp: int) -> Curves | None:
    """Return the curves in a file, None if damaged; `stamp` is part of the cache key."""
    try:
        return read_curves(path)
    except StudyError:
        return None
