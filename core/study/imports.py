"""Curves of files as results in a store: to train only what is missing, or to summarise again."""

from dataclasses import replace

from core.study.conditions import CONDITIONS
from core.study.curves import CurveFiles
from core.study.database.store import Store
from core.study.looks import enrol_needed
from core.study.plan import Study


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
