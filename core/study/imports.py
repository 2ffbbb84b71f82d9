"""Curves of files as results in a store: to train only what is missing, or to summarise again."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from core.study.conditions import CONDITIONS
from core.study.curves import CurveFiles
from core.study.database.store import Store
from core.study.file import read
from core.study.looks import enrol_needed
from core.study.plan import Study
from core.study.shipped import shipped_curves, study_of

MEMORY = ":memory:"  # a store of this process, which ends with it


@contextmanager
def open_shipped(name: str) -> Iterator[tuple[Store, int]]:
    """Yield a store in memory with a built-in study (key) and its results, and the study's id.

    Raises:
        StudyError: the files are not what they should be.
        OSError: a file is missing or unreadable.
    """
    study = read(study_of(name))
    with closing(Store(MEMORY)) as store:
        import_curves(store, study, shipped_curves(name), certain=False)
        study_id = store.find(study.name)
        assert study_id is not None
        yield store, study_id


def import_curves(store: Store, study: Study, curves: CurveFiles, certain: bool = True) -> int:
    """Store a study and results from files (certain: not mixed ones); return how many results.

    Args:
        store: The store.
        study: The study.
        curves: The files.
        certain: Whether to leave out runs of files that list several versions or devices: it is
            not known which of them trained a run.
    """
    results = {}
    for run in (*study.runs, *study.later):
        file_and_rows = curves.find(run)
        if file_and_rows is None:
            continue
        file, rows = file_and_rows
        if certain and any(len(file.made[name]) > 1 for name in CONDITIONS):
            continue
        results[run.hash] = rows, file.made
    later = [run for run in study.later if run.hash in results]
    enrolled = store.enrol(replace(study, runs=(*study.runs, *later)))
    stored = store.add_results(enrolled.study, results)
    enrol_needed(store, study)  # without those of later looks that other studies trained
    return stored
