"""Row that selects a study, with its actions and progress."""

import io
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from core.export.sheets import slug
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.study.conditions import CONDITIONS, conditions_of, find_odd_runs
from core.study.database.connection import BusyError, StoreError
from core.study.database.schema import ENDED
from core.study.database.store import Standing, Store, progress_of
from core.study.file import read
from core.study.plan import Study, StudyError, read_machine
from core.study.report import report_html, shipped_report
from core.study.shipped import shipped, study_of, table_of
from core.study.summary import read_summary
from core.study.tables import row_table
from core.study.verdict import shipped_document, study_document, write_document
from core.train.budget import format_duration
from core.workers.cluster import ClusterError
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.store import bind, change, change_quietly, session
from ui.studies import server
from ui.studies.context import NAMES, StudyContext, StudyLook
from ui.studies.new_study import draw_new_study, request_dialog

WIDTH = 120  # pixels
TURNED = "study_turned"  # kept for a visitor: which study was last stopped or resumed, and when
TWICE = 0.5  # seconds within which two presses are a double click


def draw_study_buttons(store: Store, study, standing: Standing, under_way: bool):
    """Draw the buttons that stop, resume or delete a stored study; nothing without the right."""
    if not can_write(store):
        return
    # One button of one width, whatever it says: what stands beside it does not move under a hand
    # that presses again.
    same: dict[str, Any] = {"key": f"turn_{study.id}", "width": WIDTH, "on_click": _stop_or_resume}
    if under_way:
        st.button("Stop", icon=":material/stop:", args=(store.stop, study.id), **same)
    elif standing.open:
        st.button(
            "Resume", icon=":material/play_arrow:", type="primary", args=(_resume, study.id), **same
        )
    # A key for each study: what was opened for the one that is gone does not stay open for the next
    # one in its place.
    with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{study.id}"):
        n_unwanted = store.count_unwanted(study.id)
        suffix = f"; and {count(n_unwanted, 'run')} of an earlier version of its file" * bool(
            n_unwanted
        )
        words = literal(standing.describe() + suffix)
        st.markdown(
            f"Delete **{literal(study.name)}** and all its results ({words})? This cannot be"
            " undone."
        )
        st.button(
            "Delete study",
            type="primary",
            key=f"delete_it_{study.id}",
            on_click=_change_store,
            args=(_delete, study.id),
        )


def is_under_way(study_id: int, standing: Standing) -> bool:
    """Return whether the study is being trained anywhere, or is queued by this server.

    Between two looks all its runs are complete, and the service is about to queue the next ones.
    """
    is_here = server.service().has(study_id)
    return standing.running or (is_here and (standing.queued or standing.complete))


def can_write(store: Store) -> bool:
    """Return whether this user may change the store, and it is writable or None (not created)."""
    return may_write() and (store is None or store.writable)


def _stop_or_resume(call: Callable[[int], object], study_id: int):
    """Call a function of a study's id, unless in a double click's second press (a callback)."""
    remembered = session().kept
    now = time.monotonic()
    last_study, last_time = remembered.get(TURNED, (0, -TWICE))
    remembered[TURNED] = study_id, now
    if last_study != study_id or now - last_time >= TWICE:
        _change_store(call, study_id)


def _change_store(call: Callable, *args):
    """Call a function that changes the store; without the right or on failure show a toast."""
    if not may_write():
        st.toast(REASON, icon=":material/block:", duration="long")
        return
    try:
        call(*args)
    except StoreError as error:
        st.toast(literal(error.public_message), icon=":material/error:", duration="long")


def _resume(study_id: int):
    """Queue the study's stopped and failed runs again, and start training."""
    server.store().requeue(study_id)
    server.service().start(study_id)


def draw_rerun_button(store: Store, study_id: int):
    """Draw a button to retrain odd runs, or that no worker can; nothing without any, or right."""
    if not can_write(store):
        return
    specs = list(store.specs(study_id).values())
    workers = server.workers()
    try:
        workers.refresh_workers()  # a cluster says its versions some time after it is asked
        here = conditions_of(workers, read_machine(specs[0]))
    except (ClusterError, ConfigError):
        st.caption("No worker of this server can train the odd runs again.")
        return
    runs = store.runs(study_id, *ENDED, spec=False)
    odd = find_odd_runs(runs, here)
    if not odd:
        return
    seconds = sum(run.expected for run in runs if run.id in set(odd))
    n_workers = max(1, workers.count)
    takes = f"About {format_duration(seconds * workers.pace / n_workers)}"
    words = ", ".join(f"{name} {here[name]}" for name in CONDITIONS)
    st.button(
        f"Train {count(len(odd), 'odd run')} again",
        icon=":material/replay:",
        key=f"rerun_{study_id}",
        on_click=_change_store,
        args=(_rerun, study_id, odd),
        help=literal(
            f"Trains all runs whose conditions differ from this server's ({words})."
            f" {takes} on {count(n_workers, 'worker')}."
            " Their old results are removed."
        ),
    )


def _rerun(study_id: int, run_ids: list[int]):
    """Queue these finished runs of a study again, and start training."""
    server.store().rerun(study_id, run_ids)
    server.service().start(study_id)


def _delete(study_id: int):
    """Delete a study from the store, and select no other."""
    server.store().delete(study_id)
    change(study="")


def _study_label(name: str) -> str:
    """Return a study's name in the list; links keep the long form."""
    return f"{shipped.label(NAMES[name])} (built-in)" if name in NAMES else name


def built_in_names() -> list[str]:
    """Return the names (in links) of built-in studies whose files exist."""
    return [
        name
        for name, study_name in NAMES.items()
        if study_of(study_name).exists() and table_of(study_name).exists()
    ]


def open_built_in(name: str, look: StudyLook) -> StudyContext | None:
    """Open a built-in study by its name in links, draw its question; None and a warning if not.

    It fails where a file is missing or damaged.
    """
    study_name = NAMES[name]
    try:
        study, summary = _read_built_in(
            study_name,
            study_of(study_name).stat().st_mtime_ns,
            table_of(study_name).stat().st_mtime_ns,
        )
    except (OSError, StudyError):
        st.warning(
            f"The precomputed results of {name} are missing or damaged; make matrix recreates"
            " them.",
            icon=":material/info:",
        )
        return None
    st.markdown(literal(study.question))
    return StudyContext(None, 0, name, study.question, study.source, summary, (), look)


@st.cache_data
def _read_built_in(name, *stamps) -> tuple[Study, pd.DataFrame]:
    """Return (Study, summary table) of a built-in study; `stamps` are part of the cache key."""
    return read(study_of(name)), read_summary(table_of(name))


TICK = 1.0  # seconds between two looks at a study that is under way
REST = (
    5.0  # at one that is not, and not at its end either: somebody may have it go on in another tab
)


def _draw_progress(store: Store, study, before: Standing, was_under_way: bool):
    """Draw a study's progress; redraw the page when it advances, stops or ends.

    `before` and `was_under_way` are its state when the page was drawn.

    Args:
        store: The store.
        study: Line of the study in the store.
        before: Its progress when the page was drawn.
        was_under_way: Whether it was under way then.
    """
    try:
        now = progress_of(store, study.id)
        going = is_under_way(study.id, now)
        look = _describe_look(store, study)
        if going:
            st.progress(
                min(1.0, now.share),
                text=literal(f"{now.describe()}. {_describe_time_left(study.id, now)} {look}"),
            )
        else:
            lost = ""
            if now.lost:
                hint = ". Resume to rerun them" if can_write(store) else ""
                were = "was" if now.lost == 1 else "were"
                lost = f" {count(now.lost, 'run')} {were} interrupted{hint}."
            question = " ".join(study.question.split())  # the mark :small ends with its paragraph
            st.markdown(f"{literal(question)} {literal(now.describe())}. {literal(look + lost)}")
        trouble = server.service().trouble
        if trouble:
            st.error(
                literal(f"The studies on this server have stopped: {trouble}"),
                icon=":material/error:",
            )
        if going != was_under_way or now.n_ended != before.n_ended:
            st.rerun()
    except BusyError as error:
        # This fragment is redrawn again and again: the next time the store may be free.
        st.warning(literal(error.public_message), icon=":material/database:")


def _describe_look(store: Store, study) -> str:
    """Return a sentence on a study's looks at more seeds; "" for a study without."""
    look = server.look(store, str(store.url), study.id, store.stamp(study.id))
    return look.describe(server.workers().count) if look else ""


def _describe_time_left(study_id: int, standing: Standing) -> str:
    """Return sentences on the remaining time and the workers, or on why training is paused."""
    workers = server.workers()
    service = server.service()
    absent = service.seen.absent
    if absent:
        return f"Training is paused: {absent}."
    n_workers = max(1, workers.count)
    is_starting = service.has(study_id) and not workers.has_trained
    starting = "The workers are starting. " if is_starting else ""
    left = format_duration(standing.left * workers.pace / n_workers)
    return f"{starting}About {left} left on {count(n_workers, 'worker')}."


def study_files(context: StudyContext | None) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return a study's files: label -> (file name, function that returns bytes); {} for None.

    A built-in study has no rows (Parquet).
    """
    if context is None:
        return {}
    name = slug(context.name, context.number)
    offered = {"The study's file (TOML)": (f"{name}.toml", lambda: context.source.encode())}
    if context.store is not None:
        offered["All logged steps (Parquet)"] = (f"{name}_rows.parquet", lambda: parquet(context))
    offered["Verdicts (JSON)"] = (f"{name}_verdicts.json", lambda: write_verdicts(context))
    offered["Report (HTML)"] = (f"{name}_report.html", lambda: write_report(context))
    return offered


def write_verdicts(context: StudyContext) -> bytes:
    """Return the verdicts of a study as the bytes of a JSON document."""
    if context.store is None:
        document = shipped_document(context.key)
    else:
        document = study_document(context.store, context.number)
    return write_document(document).encode()


def write_report(context: StudyContext) -> bytes:
    """Return the report of a study as the bytes of an HTML page."""
    if context.store is None:
        return shipped_report(context.key).encode()
    return report_html(context.store, context.number).encode()


def parquet(context: StudyContext) -> bytes:
    """Return every row of every run of a stored study as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    row_table(context.store, context.number).to_parquet(buffer, index=False)
    return buffer.getvalue()


SEEN = "study_seen"  # kept for a session: the study that was looked at last
ABOUT = (
    "A study trains models with one component removed or replaced (rows) on several tasks"
    " (columns), to see how much accuracy is lost. This one is built in."
)
UNWRITABLE = "Read-only storage: studies can be viewed, not changed."


def draw_chooser(look: StudyLook) -> StudyContext | None:
    """Draw the study list, actions and progress; return the chosen study's context, or None."""
    store = server.store()
    studies = {study.name: study for study in store.studies()} if store else {}
    shipped = built_in_names()
    name = _find_shown_study(look, studies, shipped)
    every = (*reversed(studies), *shipped)
    is_writable = can_write(store)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if name is None:
            st.selectbox(
                "Study",
                every,
                index=None,
                key="study_instead",
                placeholder="Choose another study",
                on_change=_select_other_study,
                format_func=_study_label,
                label_visibility="collapsed",
                width="stretch",
            )
        elif every:
            st.selectbox(
                "Study",
                every,
                **bind("study", name),
                format_func=_study_label,
                label_visibility="collapsed",
                width="stretch",
            )
        why = None
        if not is_writable:
            why = UNWRITABLE if may_write() else REASON
        st.button(
            "New study",
            icon=":material/add:",
            type="tertiary" if studies else "secondary",
            on_click=request_dialog,
            disabled=not is_writable,
            help=why,
        )
        beside = st.container(horizontal=True, gap="small", width="content")
    if store and not store.writable:
        st.caption(UNWRITABLE)
    if is_writable:
        draw_new_study(store)
    if name not in studies:
        if not studies and name is not None:
            st.caption(f"{ABOUT} Press New study to create your own." if may_write() else ABOUT)
        return open_built_in(name, look) if name in shipped else None
    session().kept[SEEN] = name
    study = studies[name]
    now = progress_of(store, study.id)
    under_way = is_under_way(study.id, now)
    with beside:
        draw_study_buttons(store, study, now, under_way)
    if under_way:
        fragment(_draw_progress, run_every=TICK)(store, study, now, under_way)
    elif now.open:
        fragment(_draw_progress, run_every=REST)(store, study, now, under_way)
    else:
        _draw_progress(store, study, now, under_way)
    summary = server.summary(store, str(store.url), study.id, store.stamp(study.id))
    others = tuple(other for other in reversed(studies) if other != name)
    return StudyContext(store, study.id, name, study.question, study.source, summary, others, look)


def _select_other_study():
    """Select the study chosen in the list that stands for a deleted one (a callback)."""
    if st.session_state.get("study_instead"):
        change(study=st.session_state["study_instead"])


def _find_shown_study(look: StudyLook, studies: dict, shipped: list[str]) -> str | None:
    """Return look's study, else the newest (then set), else a built-in; None if it was deleted.

    None if the one that was shown is gone, "" if there is no study. `studies` and `shipped` have
    the names.
    """
    if look.study in studies or look.study in shipped:
        return look.study
    if look.study and look.study == session().kept.get(SEEN):
        # Nothing takes its place by itself: a press on Stop or Delete may be on its way.
        st.warning(
            literal(f"The study “{look.study}” was deleted, here or in another tab."),
            icon=":material/info:",
        )
        return None
    if look.study:
        st.warning(literal(f"There is no study “{look.study}”."), icon=":material/info:")
    if not studies:
        change_quietly(study="")
        return shipped[0] if shipped else ""
    newest = next(reversed(studies))
    change_quietly(study=newest)  # it stays the one that is looked at when a newer one comes
    return newest
