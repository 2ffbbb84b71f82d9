"""The dialog in which a new study is written and started."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import streamlit as st

from core.study.database.connection import StoreError
from core.study.file.ticks import Ticks, ticks
from core.study.plan import NOTHING, Study, StudyError, before, told
from ui.kit.guard import guarded
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.session.values import put
from ui.kit.session.visitor import at, calm_visitor, now, one_of, state, visitor
from ui.studies import server
from ui.studies import ticks as boxes

SHIPPED = Path(__file__).parent.parent.parent / "studies"
# Kept for a visitor: the how-manieth that is being made, 0 for none, and that is drawn; what was typed into it, until it is started.
NEW, DRAWN, OPENED, DRAFT = "new_study", "new_study_drawn", "new_studies", "study_draft"
TICKED = "ticked"  # of a draft: the file as the ticks have just made it
BOXES = ("new_", "tick_")  # how the names of what stands in it begin
TEMPLATE = """name = "my study"
question = "What does it cost to take the norm out?"
tasks = ["reverse"]
seeds = 3

[variants]
"− norm" = { norm = "none" }
"""


def ask():
    """Open the dialog in the next run (a callback), with all its boxes made anew: where it was closed a moment ago, the browser
    knows nothing more of them, and the server may still hold what stood there, of which the draft has not heard."""
    _keep()
    held = calm_visitor()
    for name in [name for name in held.shown if name.startswith(BOXES)]:
        held.shown[name].clear()
    held.kept[NEW] = held.kept[OPENED] = held.kept.get(OPENED, 0) + 1


def new_study(store):
    """The dialog, where it was asked for."""
    if visitor().kept.get(NEW):
        _new(store)


def _keep():
    """Put what is typed, as the server holds it at the beginning of a run, into the draft: the run that was to write it there
    may have been ended by the next, and what a run does not draw the server forgets."""
    held, seen = calm_visitor(), state()
    draft, written = held.kept.setdefault(DRAFT, {}), held.shown.get("new_text")
    if written and written[-1].key in seen and written[-1].offers == draft.get("begin"):
        draft.setdefault(TICKED, seen[written[-1].key])


def _dismissed():
    _keep()
    held = calm_visitor().kept
    if held.get(NEW) == held.get(DRAWN):  # or it was asked for once more, and both are told to one run, that first
        _forget()


def _forget():
    calm_visitor().kept[NEW] = 0


@st.dialog("New study", width="large", on_dismiss=_dismissed)
@guarded
def _new(store):
    visitor().kept[DRAWN] = visitor().kept.get(NEW)
    given, begun = _written()
    try:
        study = server.parsed(given)
    except StudyError as error:
        for problem in error.problems[:10]:
            st.error(literal(problem))
        return
    _in_words(study, store)
    for doubt in _doubts(study, begun):
        st.warning(doubt, icon=":material/info:")
    if st.button("Start", type="primary", icon=":material/play_arrow:"):
        _start(study)


def _written() -> tuple[str, str]:
    """The text of the study, and that of the one with which it was begun."""
    shipped = {path.stem.replace("_", " "): path for path in sorted(SHIPPED.glob("*.toml"))}
    offered, draft = ["a small example", *shipped], visitor().kept.setdefault(DRAFT, {})
    chosen = now("new_from", draft.get("begin", offered[0]), (tuple(offered), None))
    begin = st.selectbox("Begin with", offered, **one_of("new_from", chosen, offered))
    text = shipped[begin].read_text(encoding="utf-8") if begin in shipped else TEMPLATE
    typed = draft.get(TICKED) or now("new_text", draft.get(("text", begin), text), begin)
    ticked = ticks(typed)
    if ticked:
        boxes.draw(ticked, partial(_ticked, draft, ticked, ticks(text)))
    else:
        st.caption("This file says more than can be ticked, or cannot be read: change it below.")
    with st.expander("Advanced: the file", expanded=not ticked):
        given = st.text_area("The study, as a TOML file", height=300, **at("new_text", typed, begin))
    draft.pop(TICKED, None)
    draft |= {"begin": begin, ("text", begin): given}
    return given, text


def _doubts(study: Study, begun: str) -> list[str]:
    """Say why a study may not be what was meant. begun: the text with which it was begun."""
    doubts, cells = [], _cells(study)
    if len(cells) == len({task for task, _ in cells}):
        doubts.append(
            "There is nothing to compare: only the baseline would be trained. Tick a part, a change or an axis."
        )
    with suppress(StudyError):
        first = server.parsed(begun)
        compared = [{variant for _, variant in _cells(each)} for each in (study, first)]
        if study.question and study.question == first.question and compared[0] != compared[1]:
            doubts.append("The question is still that of the study you began with. Change it to what is compared now.")
    return doubts


def _cells(study: Study) -> set[tuple[str, str]]:
    """Every task and variant of a study."""
    return {(run.task, run.variant) for run in study.runs}


def _ticked(draft: dict, drawn: Ticks, begun: Ticks | None, change: Callable[[Ticks], Ticks]):
    """A change of the ticks, which may have been changed since they were drawn (a callback). begun: what they began with, whose
    question is asked no more when something else is taken out."""
    new = change(ticks(draft.get(TICKED) or drawn.write()) or drawn)
    if begun and new.question == begun.question and (new.changes, new.axes) != (begun.changes, begun.axes):
        new = replace(new, question="")
    draft[TICKED] = new.write()


def _in_words(study: Study, store):
    """What would be trained, and what of it is there already."""
    stored = store.stored(study) if store else NOTHING
    first, *rest = told(study, max(1, server.workers().count), stored).split("\n")
    st.markdown(f"**{literal(first)}** {literal(next(line for line in rest if line.startswith(('About', 'Nothing'))))}")
    with st.expander("In detail"):
        st.text("\n".join(rest))
    if store and store.find(study.name):
        words = (
            "A study of this name is in the store: what it has already is kept, and only what is missing is trained."
        )
        st.info(literal(" ".join([words, *before(len(stored.ended), stored.unwanted)])))


def _start(study: Study):
    if not may_write():
        st.error(REASON)
        return
    try:
        service = server.service()
        number = service.store.enrol(study).study
        service.store.requeue(number)
        service.start(number)
    except StoreError as error:
        st.error(literal(error.told))
        return
    put(study=study.name)
    del visitor().kept[DRAFT]
    _forget()
    st.rerun()
