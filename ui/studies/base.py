"""What the views of the page "Studies" share: their menu, what is looked at, the store, and who trains in it."""

import functools
import io
import os
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.settings.memory import max_mb
from core.settings.menu import Menu
from core.settings.setting import dial
from core.study.database.connection import NoStore
from core.study.database.store import Store
from core.study.file import parse
from core.study.plan import Study
from core.study.service import Service
from core.study.tables import row_table, summary_table
from core.workers import cluster
from core.workers.protocol import WorkerPool
from ui.kit import jobs

views = Menu("Views of a study")


@dataclass(frozen=True)
class StudyLook:
    """What is looked at on the page "Studies"."""

    study: str = dial("", "Study", "Its name; empty: the newest.", group="Look")
    shown: str = dial("matrix", "View", "What to look at.", group="Look", menu=views)
    of_task: str = dial("", "Task", "The task of the curves; empty: the first.", group="Look")
    against: str = dial("", "Against", "The study to compare with; empty: the newest other one.", group="Look")


@dataclass(frozen=True)
class Opened:
    """A study that is looked at."""

    store: Store
    number: int
    name: str
    question: str
    source: str
    summary: pd.DataFrame  # core.study.tables.summary_table
    others: tuple[str, ...]  # names of the other studies


@st.cache_resource
def _store(create: bool) -> Store:
    return Store(create=create, seconds=2.0)  # then the page says so, and the next look tries again


def store() -> Store | None:
    """The store, or None while there is none. Raises StoreError for one that cannot be used."""
    try:
        return _store(False)
    except NoStore:
        return None


@st.cache_resource
def _cluster() -> WorkerPool:
    return cluster.pool()


def workers() -> WorkerPool:
    """Who trains: the processes that train for visitors, or a cluster. Raises ClusterError for one that cannot be reached."""
    return _cluster() if os.environ.get(cluster.VARIABLE) else jobs.workers()


@st.cache_resource
def service() -> Service:
    """Who sees to the studies of this server, for all visitors. Makes the store if there is none."""
    return Service(store() or _store(True), workers())


@st.cache_data(max_entries=20, show_spinner=False)
def summary(_store: Store, url: str, study: int, stamp: str) -> pd.DataFrame:
    """The summary of a study; computed anew when what is in the store is (stamp)."""
    return summary_table(_store, study)


def parsed(text: str) -> Study:
    """The study of a text, read once: a page is drawn again and again. Raises StudyError."""
    return _parsed(text, max_mb())


@functools.lru_cache(maxsize=4)
def _parsed(text: str, limit: int) -> Study:
    return parse(text)


def cells(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The lines of a table whose task and variant are chosen; nothing chosen is everything."""
    left, right = st.columns(2)
    with left:
        tasks = st.multiselect(
            "Tasks",
            list(dict.fromkeys(table.task)),
            key=f"{key}_tasks",
            placeholder="all tasks",
            label_visibility="collapsed",
        )
    with right:
        variants = st.multiselect(
            "Variants", list(dict.fromkeys(table.variant)), key=f"{key}_variants", placeholder="all variants",
            label_visibility="collapsed",
        )  # fmt: skip
    kept = table.task.isin(tasks) | (not tasks)
    return table[kept & (table.variant.isin(variants) | (not variants))]


def parquet(opened: Opened) -> bytes:
    """Every row of every run."""
    made = io.BytesIO()
    row_table(opened.store, opened.number).to_parquet(made, index=False)
    return made.getvalue()
