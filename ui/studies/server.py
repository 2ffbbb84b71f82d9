"""The store of this server, and who trains in it."""

import functools
import os

import pandas as pd
import streamlit as st

from core.settings.cache import once
from core.settings.memory import max_mb
from core.study.database.connection import NoStoreError
from core.study.database.store import Store
from core.study.file import parse
from core.study.plan import Study, StudyError
from core.study.runner import Service
from core.study.tables import judged_table
from core.workers import cluster
from core.workers.job import WorkerPool
from ui.kit import jobs


@once
def _store(create: bool) -> Store:
    return Store(create=create, seconds=2.0)  # then the page says so, and the next look tries again


def store() -> Store | None:
    """The store, or None while there is none. Raises StoreError for one that cannot be used."""
    try:
        return _store(False)
    except NoStoreError:
        return None


@once
def _cluster() -> WorkerPool:
    return cluster.pool()


def workers() -> WorkerPool:
    """Return the workers: local processes, or a cluster.

    Raises ClusterError if it cannot be reached.
    """
    return _cluster() if os.environ.get(cluster.VARIABLE) else jobs.workers()


@once
def service() -> Service:
    """Return the server's study service; creates the store if there is none."""
    return Service(store() or _store(True), workers())


@st.cache_data(max_entries=20, show_spinner=False)
def summary(_store: Store, url: str, study: int, stamp: str) -> pd.DataFrame:
    """The summary of a study; computed anew when what is in the store is (stamp)."""
    return judged_table(_store, study)


def parsed(text: str) -> Study:
    """The study of a text, read once: a page is drawn again and again. Raises StudyError."""
    read = _parsed(text, max_mb())
    if isinstance(read, StudyError):
        raise read
    return read


@functools.lru_cache(maxsize=4)
def _parsed(text: str, limit: int) -> Study | StudyError:
    """Read a study. Keep the error of one that is refused, too: it takes as long to read."""
    try:
        return parse(text)
    except StudyError as error:
        return error
