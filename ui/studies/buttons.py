"""What changes a study: stop, resume, delete; and who may."""

import time

import streamlit as st

from core.settings.wording import count
from core.study.database.connection import StoreError
from core.study.database.store import Standing
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.store import change, session
from ui.studies import server

WIDTH = 120  # pixels
TURNED = "study_turned"  # kept for a visitor: which study was last stopped or resumed, and when
TWICE = 0.5  # seconds within which two presses are a double click


def buttons(store, study, now: Standing):
    """For a study of the store, as it is now."""
    if not can_write(store):
        return
    # One button of one width, whatever it says: what stands beside it does not move under a hand that presses again.
    same = {"key": f"turn_{study.id}", "width": WIDTH, "on_click": _turn}
    if under_way(study.id, now):
        st.button("Stop", icon=":material/stop:", args=(store.stop, study.id), **same)
    elif now.open:
        st.button("Resume", icon=":material/play_arrow:", type="primary", args=(_resume, study.id), **same)
    # A key for each study: what was opened for the one that is gone does not stay open for the next one in its place.
    with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{study.id}"):
        gone = store.unwanted(study.id)
        more = f"; and {count(gone, 'run')} of an earlier version of its file" * bool(gone)
        words = literal(now.words() + more)
        st.markdown(f"Delete **{literal(study.name)}** and all its numbers ({words})? This cannot be undone.")
        st.button("Delete it", type="primary", key=f"delete_it_{study.id}", on_click=_change, args=(_delete, study.id))


def under_way(number: int, now: Standing) -> bool:
    """Whether somebody trains it, or is about to."""
    return now.running or (now.queued and server.service().has(number))


def can_write(store) -> bool:
    """Whether this visitor may change the store, and whether it can be changed at all."""
    return may_write() and (store is None or store.writable)


def _turn(call, number: int):
    """Stop or resume (a callback). The second press of a double click meets what the first has made of the button: it is none."""
    kept, now = session().kept, time.monotonic()
    last, kept[TURNED] = kept.get(TURNED, (0, -TWICE)), (number, now)
    if last[0] != number or now - last[1] >= TWICE:
        _change(call, number)


def _change(call, *given):
    """A callback that changes the store; why it could not is said on the page."""
    if not may_write():
        st.toast(REASON, icon=":material/block:", duration="long")
        return
    try:
        call(*given)
    except StoreError as error:
        st.toast(literal(error.told), icon=":material/error:", duration="long")


def _resume(number: int):
    server.store().requeue(number)
    server.service().start(number)


def _delete(number: int):
    server.store().delete(number)
    change(study="")
