"""Rows that a page hands to the page Training: those of a study, when one of its cells is opened. For all visitors, within a limit."""

from contextlib import suppress
from typing import NamedTuple

from core.settings.cache import LRUCache
from core.settings.setting import ConfigError
from core.study.curves import Made
from core.study.plan import Run
from core.train import Row
from core.workers.job import ROW

_kept = LRUCache(megabytes=8)  # hash of a run -> FromStudy


class FromStudy(NamedTuple):
    """What a study has of a run."""

    rows: list[Row]
    study: str
    made: Made


def from_study(run: Run) -> FromStudy | None:
    kept: FromStudy | None = _kept.peek(run.hash)
    return kept


def hand_over(store, number: int, study: str, task: str, variant: str):
    """Take down what a study has of a cell and of its baseline. A store that cannot be read costs the curves alone."""
    from core.study.database.connection import StoreError  # loaded by whoever has a store
    from core.study.tables import cell

    with suppress(StoreError, ConfigError):
        for run, rows, made in cell(store, number, task, variant):
            _kept.put(run.hash, FromStudy(rows, study, made), ROW * len(rows))
