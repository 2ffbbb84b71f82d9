"""How far a study is, looked at again and again while it is under way."""

import streamlit as st

from core.settings.wording import count
from core.study.database.connection import Busy
from core.study.database.store import Standing, standing
from core.train.budget import duration
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.studies import server
from ui.studies.buttons import can_write, under_way

TICK = 1.0  # seconds between two looks at a study that is under way
REST = 5.0  # at one that is not, and not at its end either: somebody may have it go on in another tab


def progress(store, study, now: Standing):
    """How far it is. As long as it is not at its end it is looked at again and again, and the page drawn anew when something has
    ended, or was stopped or resumed elsewhere."""
    going = under_way(study.id, now)
    if going or now.open:
        fragment(_progress, run_every=TICK if going else REST)(store, study, now)
    else:
        _progress(store, study, now)


def _progress(store, study, before: Standing):
    try:
        _show(store, study, before)
    except Busy as error:  # it is drawn by itself, again and again: the next time it may be there
        st.warning(literal(error.told), icon=":material/database:")


def _show(store, study, before: Standing):
    now = standing(store, study.id)
    going = under_way(study.id, now)
    if going:
        st.progress(min(1.0, now.share), text=literal(f"{now.words()}. {_left(study.id, now)}"))
    else:
        again = "; Resume runs them again" if can_write(store) else ""
        lost = (
            f" {count(now.lost, 'run')} {'was' if now.lost == 1 else 'were'} in the hands of a process that has died{again}."
            if now.lost
            else ""
        )
        question = " ".join(study.question.split())  # the mark :small ends with its paragraph
        st.markdown(f":small[{literal(question)} {literal(now.words())}.{literal(lost)}]")
    trouble = server.service().trouble
    if trouble:
        st.error(literal(f"The studies on this server have stopped: {trouble}"), icon=":material/error:")
    if going != under_way(study.id, before) or now.ended != before.ended:
        st.rerun()


def _left(number: int, now: Standing) -> str:
    workers, service = server.workers(), server.service()
    absent = service.seen.absent
    if absent:
        return f"Nothing is trained at the moment: {absent}."
    many = max(1, workers.count)
    is_starting = service.has(number) and not workers.has_trained
    starting = "The workers are starting. " if is_starting else ""
    left = duration(now.left * workers.pace / many)
    return f"{starting}About {left} of work left for {count(many, 'worker')} here."
