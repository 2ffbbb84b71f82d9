"""Conditions in which runs were trained: versions and device, and which comparisons mix them."""

from collections.abc import Iterable, Mapping
from typing import Any

from core.settings.device import Machine
from core.settings.wording import count
from core.study.curves import Made
from core.workers.job import WorkerPool

StoredRun = Any  # of a run in the store, with its columns as attributes
Conditions = Mapping[str, str]  # by the names below

# Columns of a run that are compared. The device is all that is known of a machine. The commit
# (code) is not among them: it changes with every commit, to a text as well as to the training, and
# what changes the numbers of a run also changes its hash (core.study.plan.FORMAT).
CONDITIONS = ("torch", "numpy", "python", "device")


def describe_mixed(lines: Iterable[StoredRun]) -> str:
    """Describe how runs' conditions differ: "torch 2.12.1 and 2.13.0; device A and B"; "" if not.

    Unknown values, of old runs, do not count. A run that was taken over from the memory of a
    process has the values of that process, which trained it.

    Args:
        lines: Runs of Store.runs that are compared, such as the finished ones of a cell and of its
            baseline. Others have the conditions of an earlier try, or of none.
    """
    return format_mixed(collect_values(lines))


def collect_values(lines: Iterable[StoredRun]) -> dict[str, set[str]]:
    """Return, for each of CONDITIONS, the set of values that these runs have; "" if unknown."""
    lines = list(lines)
    return {name: {getattr(line, name) for line in lines} for name in CONDITIONS}


def collect_known(provenances: Iterable[Made]) -> dict[str, set[str]]:
    """Return, for each of CONDITIONS, the values of the provenances that list exactly one.

    Where one lists several, it is not known which of its runs have which.
    """
    provenances = list(provenances)
    return {
        name: {made[name][0] for made in provenances if len(made[name]) == 1} for name in CONDITIONS
    }


def format_mixed(values: Mapping[str, Iterable[str]]) -> str:
    """Format conditions with several known values: "torch 2.12 and 2.13; device A and B"; or ""."""
    parts = []
    for name in CONDITIONS:
        several = sorted(set(values.get(name, ())) - {""})
        if len(several) > 1:
            parts.append(f"{name} {' and '.join(several)}")
    return "; ".join(parts)


def merge_mixed(texts: Iterable[str]) -> str:
    """Merge texts of format_mixed into one that has all their values; "" if all are ""."""
    values: dict[str, set[str]] = {}
    for text in filter(None, texts):
        for part in text.split("; "):
            name, _, several = part.partition(" ")
            values.setdefault(name, set()).update(several.split(" and "))
    return format_mixed(values)


def describe_mixed_comparisons(texts: Iterable[str]) -> str:
    """Describe how many comparisons mix: "2 of 5 comparisons mix conditions: …"; "" if none.

    Args:
        texts: The column mixed of a table, of one comparison each.
    """
    texts = list(texts)
    mixed = [text for text in texts if text]
    if not mixed:
        return ""
    verb = "mixes" if len(mixed) == 1 else "mix"
    compared = count(len(texts), "comparison")
    return f"{len(mixed)} of {compared} {verb} conditions: {merge_mixed(mixed)}."


def describe_mixed_tasks(lines: Iterable[StoredRun]) -> str:
    """Describe the conditions that a study mixes within any task; "" if none.

    Neither tasks nor variants are named.

    All variants of a task are compared with one baseline: two conditions in a task meet in at
    least one comparison.

    Args:
        lines: Its finished runs.
    """
    by_task: dict[str, list[StoredRun]] = {}
    for line in lines:
        by_task.setdefault(line.task, []).append(line)
    return merge_mixed(describe_mixed(several) for several in by_task.values())


def conditions_of(workers: WorkerPool, machine: Machine) -> Conditions:
    """Return what workers train with now: CONDITIONS -> value; ConfigError without a worker.

    Other versions may be among them.

    Args:
        workers: The workers.
        machine: Device and precision of the runs.

    Raises:
        ConfigError: No worker has this device, or none is there yet.
    """
    return {**workers.versions(), "device": workers.device(machine)[1]}


def find_odd_runs(lines: Iterable[StoredRun], here: Conditions) -> list[int]:
    """Return the ids of these runs that were trained in conditions known to differ from `here`.

    All of them, even where they are the most: no training here could match them.

    Args:
        lines: The finished runs of a study.
        here: Conditions of the workers that would train them.
    """
    return [
        line.id
        for line in lines
        if any(getattr(line, name) not in ("", here[name]) for name in CONDITIONS)
    ]
