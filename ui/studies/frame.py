"""What stands around the views of the page "Studies": which study, how far it is, start, stop, delete, and a new one."""

from pathlib import Path

import streamlit as st

from core.environment import read_only
from core.study.database import StoreError
from core.study.file import parse
from core.study.plan import NOTHING, StudyError, before, plural, told
from core.study.standing import Standing, standing
from core.train.budget import duration
from ui import takeaway
from ui.page import literal
from ui.studies import base
from ui.studies.base import Opened, StudyLook, views

SHIPPED = Path(__file__).parent.parent.parent / "studies"
DRAFT = "_study_draft"  # what was typed into a new study, kept until it is started: {key of a field: what is in it}
TICK = 1.0  # seconds between two looks at a study that is under way
TEMPLATE = """name = "my study"
question = "What does it cost to take the norm out?"
tasks = ["reverse"]
seeds = 3

[variants]
"− norm" = { norm = "none" }
"""


def choose(look: StudyLook) -> Opened | None:
    """The row in which a study is chosen -> that study as it is now, or None where there is none."""
    store = base.store()
    known = {each.name: each for each in store.studies()} if store else {}
    if st.session_state.study not in known and known:
        if st.session_state.study:
            st.warning(literal(f"There is no study “{look.study}” in {store.name}."), icon=":material/info:")
        st.session_state.study = next(reversed(known))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if known:
            st.selectbox("Study", list(reversed(known)), key="study", label_visibility="collapsed", width="stretch")
        st.button(
            "New study",
            icon=":material/add:",
            type="tertiary" if known else "primary",
            on_click=_ask,
            disabled=read_only(),
        )
        place = st.container(horizontal=True, gap="small", width="content")
    if st.session_state.get("_new_study"):
        _new(store)
    if not known:
        return None
    found = known[st.session_state.study]
    now = standing(store, found.id)
    with place:
        _buttons(store, found, now)
    _how_far(store, found, now)
    summary = base.summary(store, str(store.url), found.id, store.stamp(found.id))
    others = tuple(name for name in reversed(known) if name != found.name)
    return Opened(store, found.id, found.name, found.question, found.source, summary, others)


def _buttons(store, found, now: Standing):
    if read_only():
        return
    if _going(found.id, now):
        st.button("Stop", icon=":material/stop:", on_click=_said, args=(store.stop, found.id))
    elif now.open:
        st.button("Resume", icon=":material/play_arrow:", type="primary", on_click=_said, args=(_resume, found.id))
    # A key for each study: what was opened for the one that is gone does not stay open for the next one in its place.
    with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{found.id}"):
        gone = store.unwanted(found.id)
        more = f"; and {plural(gone, 'run')} of an earlier version of its file" * bool(gone)
        words = literal(now.words() + more)
        st.markdown(f"Delete **{literal(found.name)}** and all its numbers ({words})? This cannot be undone.")
        st.button("Delete it", type="primary", key=f"delete_it_{found.id}", on_click=_said, args=(_delete, found.id))


def _going(study: int, now: Standing) -> bool:
    return now.running or (now.queued and base.service().has(study))


def _said(call, *given):
    """A callback that changes the store; why it could not is said on the page."""
    try:
        call(*given)
    except StoreError as error:
        st.toast(literal(error), icon=":material/error:", duration="long")


def _resume(study: int):
    base.store().requeue(study)
    base.service().start(study)


def _delete(study: int):
    base.store().delete(study)
    st.session_state.study = ""


def _how_far(store, found, now: Standing):
    """How far it is. While it is under way it is looked at again and again, and the page drawn anew when something ended."""
    if _going(found.id, now):
        st.fragment(run_every=TICK)(_progress)(store, found, now)
    else:
        _progress(store, found, now)


def _progress(store, found, before: Standing):
    now = standing(store, found.id)
    going = _going(found.id, now)
    if going:
        st.progress(min(1.0, now.share), text=literal(f"{now.words()}. {_left(found.id, now)}"))
    else:
        lost = (
            f" {now.lost} were in the hands of a process that has died{'' if read_only() else '; Resume runs them again'}."
            if now.lost
            else ""
        )
        question = " ".join(found.question.split())  # the mark :small ends with its paragraph
        st.markdown(f":small[{literal(question)} {literal(now.words())}.{literal(lost)}]")
    trouble = base.service().trouble
    if trouble:
        st.error(literal(f"The studies on this server have stopped: {trouble}"), icon=":material/error:")
    if going != _going(found.id, before) or now.ended != before.ended:
        st.rerun()


def _left(study: int, now: Standing) -> str:
    workers, absent = base.workers(), base.service().seen.absent
    if absent:
        return f"Nothing is trained at the moment: {absent}."
    if base.service().has(study) and not workers.ready:
        return "The workers are starting."
    count = max(1, workers.count)
    return f"About {duration(now.left * workers.pace / count)} of work left for {plural(count, 'worker')} here."


# A new study


def _ask():
    st.session_state["_new_study"] = True
    st.session_state.update(st.session_state.get(DRAFT, {}))


def _forget():
    st.session_state["_new_study"] = False


@st.dialog("New study", width="large", on_dismiss=_forget)
def _new(store):
    shipped = {path.stem.replace("_", " "): path for path in sorted(SHIPPED.glob("*.toml"))}
    begin = st.selectbox("Begin with", ["a small example", *shipped], key="new_from")
    text = shipped[begin].read_text(encoding="utf-8") if begin in shipped else TEMPLATE
    key = f"new_text_{begin}"
    st.session_state.setdefault(key, text)
    given = st.text_area("The study, as a TOML file", height=300, key=key)
    st.session_state[DRAFT] = {"new_from": begin, key: given}
    try:
        study = parse(given)
    except StudyError as error:
        for problem in error.problems[:10]:
            st.error(literal(problem))
        return
    stored = store.stored(study) if store else NOTHING
    first, *rest = told(study, max(1, base.workers().count), stored).split("\n")
    st.markdown(f"**{literal(first)}** {literal(next(line for line in rest if line.startswith(('About', 'Nothing'))))}")
    with st.expander("In detail"):
        st.text("\n".join(rest))
    if store and store.find(study.name):
        words = (
            "A study of this name is in the store: what it has already is kept, and only what is missing is trained."
        )
        st.info(literal(" ".join([words, *before(len(stored.ended), stored.unwanted)])))
    if st.button("Start", type="primary", icon=":material/play_arrow:"):
        try:
            service = base.service()
            number = service.store.enrol(study).study
            service.store.requeue(number)
            service.start(number)
        except StoreError as error:
            st.error(literal(error))
            return
        st.session_state["_start_study"] = study.name
        del st.session_state[DRAFT]
        _forget()
        st.rerun()


# Before there is any study


def empty():
    """What there is to start."""
    st.markdown("**No studies yet**")
    st.markdown(
        "A study trains variants × tasks × seeds unattended, and keeps every number: start one here, or with "
        "`python -m core.study run studies/ablation_matrix.toml`. The one that ships, the ablation matrix, has been run already: "
        "its result stands on the start page."
    )


def body(opened: Opened):
    st.segmented_control(
        "View",
        list(views),
        format_func=views.label,
        key="shown",
        label_visibility="collapsed",
        required=True,
        wrap=True,
    )
    if opened.summary.empty:
        st.caption("Nothing of this study is asked for any more.")
        return
    views[st.session_state.shown](opened)


def files(opened: Opened | None) -> dict:
    """What can be taken away beside the tables: label -> (name of the file, what makes its bytes)"""
    if opened is None:
        return {}
    slug = takeaway.slug(opened.name)
    return {
        "The study's file (TOML)": (f"{slug}.toml", lambda: opened.source.encode()),
        "Every number (Parquet)": (f"{slug}_rows.parquet", lambda: base.parquet(opened)),
    }
