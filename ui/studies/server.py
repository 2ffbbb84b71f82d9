"""This server's store of studies, its workers, and the service that trains in it."""

import functools
import os

import pandas as pd
import streamlit as st

from core.settings.cache import make_once
from core.settings.memory import max_mb
from core.study.database.connection import NoStoreError
from core.study.database.store import Store
from core.study.file import parse
from core.study.ladder import Ladder, shipped_ladders, stored_ladders
from core.study.looks import LookStanding, find_look
from core.study.plan import Study, StudyError
from core.study.rates import RateLine, measure_rates, shipped_rates
from core.study.runner import Service
from core.study.tables import summary_with_guards
from core.workers import cluster
from core.workers.job import WorkerPool
from ui.kit import jobs
from ui.studies.context import StudyContext

READING = "Reading the curves of every seed …"


@make_once
def _store(create: bool) -> Store:
    """Return the store, cached, made if `create`, else NoStoreError; fail after 2 s if locked.

    An error is not cached.
    """
    return Store(create=create, seconds=2.0)  # then the page says so, and the next look tries again


def store() -> Store | None:
    """Return the server's store of studies; None if there is none, StoreError if unusable."""
    try:
        return _store(False)
    except NoStoreError:
        return None


@make_once
def _cluster() -> WorkerPool:
    """Return the cluster's workers, cached."""
    return cluster.create_pool()


def workers() -> WorkerPool:
    """Return the workers: local processes, or a cluster; ClusterError if it does not answer."""
    return _cluster() if os.environ.get(cluster.VARIABLE) else jobs.workers()


@make_once
def service() -> Service:
    """Return the service that trains studies here; create the store if there is none."""
    return Service(store() or _store(True), workers())


@st.cache_data(max_entries=20, show_spinner=False)
def summary(_store: Store, url: str, study_id: int, stamp: str) -> pd.DataFrame:
    """Return a copy of a study's summary_with_guards, cached by `stamp` of its results."""
    return summary_with_guards(_store, study_id)


@st.cache_data(max_entries=20, show_spinner=False)
def look(_store: Store, url: str, study_id: int, stamp: str) -> LookStanding | None:
    """Return a study's LookStanding, cached by `stamp`; None for a single look or if unreadable."""
    return find_look(_store, study_id)


@st.cache_data(max_entries=20, show_spinner=READING)
def ladders(_context: StudyContext, *version: str | int) -> list[Ladder]:
    """Return a study's ladders, cached by its version; StudyError or OSError."""
    if _context.store is None:
        return shipped_ladders(_context.key)
    return stored_ladders(_context.store, _context.number, _context.source)


@st.cache_data(max_entries=20, show_spinner=READING)
def rates(_context: StudyContext, *version: str | int) -> list[RateLine]:
    """Return how a study's effects split into rate and part, cached by its version."""
    if _context.store is None:
        return shipped_rates(_context.key)
    return measure_rates(_context.store, _context.number)


def parse_study(text: str) -> Study:
    """Parse the study in a TOML text, or return it from a cache; StudyError, cached too."""
    read = _parse_or_error(text, max_mb())
    if isinstance(read, StudyError):
        raise read
    return read


@functools.lru_cache(maxsize=4)
def _parse_or_error(text: str, memory_limit_mb: int) -> Study | StudyError:
    """Return the study in a TOML text, or its error; cached by text and memory limit."""
    try:
        return parse(text)
    except StudyError as error:
        return error
