"""What stands around the views of the page "Studies": which study, how far it is, start, stop, delete, and a new one."""

from pathlib import Path

import streamlit as st

from core.export.slug import slug
from core.settings.wording import count
from core.study.database.connection import Busy, StoreError
from core.study.database.standing import Standing, standing
from core.study.plan import NOTHING, StudyError, before, told
from core.train.budget import duration
from ui.kit.controls import amend, buttons, put, value
from ui.kit.guard import fragment, guarded
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.visitor import at, calm_visitor, now, one_of, visitor
from ui.studies import base
from ui.studies.base import Opened, StudyLook, views

SHIPPED = Path(__file__).parent.parent.parent / "studies"
NEW, DRAFT = (
    "new_study",
    "study_draft",
)  # kept for a visitor: whether one is being made; what was typed into it, until it is started
UNWRITABLE = "This store cannot be written: its studies can be looked at, and nothing can be changed here."
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
    name = look.study
    if name not in known and known:
        if name:
            st.warning(literal(f"There is no study “{look.study}” here."), icon=":material/info:")
        name = next(reversed(known))
        amend(look, study=name)  # it stays the one that is looked at when a newer one comes
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if known:
            offered = tuple(reversed(known))
            shown = one_of("study", name, offered)
            st.selectbox("Study", offered, **shown, label_visibility="collapsed", width="stretch")
        st.button(
            "New study",
            icon=":material/add:",
            type="tertiary" if known else "primary",
            on_click=_ask,
            disabled=not _can_write(store),
            help=None if _can_write(store) else UNWRITABLE if may_write() else REASON,
        )
        place = st.container(horizontal=True, gap="small", width="content")
    if store and not store.writable:
        st.caption(UNWRITABLE)
    if visitor().kept.get(NEW) and _can_write(store):
        _new(store)
    if not known:
        return None
    found = known[name]
    now = standing(store, found.id)
    with place:
        _buttons(store, found, now)
    _how_far(store, found, now)
    summary = base.summary(store, str(store.url), found.id, store.stamp(found.id))
    others = tuple(name for name in reversed(known) if name != found.name)
    return Opened(store, found.id, found.name, found.question, found.source, summary, others)


def _buttons(store, found, now: Standing):
    if not _can_write(store):
        return
    if _going(found.id, now):
        st.button("Stop", icon=":material/stop:", on_click=_said, args=(store.stop, found.id))
    elif now.open:
        st.button("Resume", icon=":material/play_arrow:", type="primary", on_click=_said, args=(_resume, found.id))
    # A key for each study: what was opened for the one that is gone does not stay open for the next one in its place.
    with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{found.id}"):
        gone = store.unwanted(found.id)
        more = f"; and {count(gone, 'run')} of an earlier version of its file" * bool(gone)
        words = literal(now.words() + more)
        st.markdown(f"Delete **{literal(found.name)}** and all its numbers ({words})? This cannot be undone.")
        st.button("Delete it", type="primary", key=f"delete_it_{found.id}", on_click=_said, args=(_delete, found.id))


def _going(study: int, now: Standing) -> bool:
    return now.running or (now.queued and base.service().has(study))


def _can_write(store) -> bool:
    """Whether this visitor may change the store, and whether it can be changed at all."""
    return may_write() and (store is None or store.writable)


def _said(call, *given):
    """A callback that changes the store; why it could not is said on the page."""
    if not may_write():
        st.toast(REASON, icon=":material/block:", duration="long")
        return
    try:
        call(*given)
    except StoreError as error:
        st.toast(literal(error.told), icon=":material/error:", duration="long")


def _resume(study: int):
    base.store().requeue(study)
    base.service().start(study)


def _delete(study: int):
    base.store().delete(study)
    put(study="")


def _how_far(store, found, now: Standing):
    """How far it is. While it is under way it is looked at again and again, and the page drawn anew when something ended."""
    if _going(found.id, now):
        fragment(_progress, run_every=TICK)(store, found, now)
    else:
        _progress(store, found, now)


def _progress(store, found, before: Standing):
    try:
        _show(store, found, before)
    except Busy as error:  # it is drawn by itself, again and again: the next time it may be there
        st.warning(literal(error.told), icon=":material/database:")


def _show(store, found, before: Standing):
    now = standing(store, found.id)
    going = _going(found.id, now)
    if going:
        st.progress(min(1.0, now.share), text=literal(f"{now.words()}. {_left(found.id, now)}"))
    else:
        lost = (
            f" {now.lost} were in the hands of a process that has died{'; Resume runs them again' if _can_write(store) else ''}."
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
    if workers.silence:
        return workers.silence
    if absent:
        return f"Nothing is trained at the moment: {absent}."
    if base.service().has(study) and not workers.pace.measured:
        return "The workers are starting."
    many = max(1, workers.count)
    return f"About {duration(now.left * workers.pace.median / many)} of work left for {count(many, 'worker')} here."


# A new study


def _ask():
    calm_visitor().kept[NEW] = True


def _forget():
    calm_visitor().kept[NEW] = False


@st.dialog("New study", width="large", on_dismiss=_forget)
@guarded
def _new(store):
    shipped = {path.stem.replace("_", " "): path for path in sorted(SHIPPED.glob("*.toml"))}
    offered, draft = ["a small example", *shipped], visitor().kept.setdefault(DRAFT, {})
    chosen = now("new_from", draft.get("begin", offered[0]), (tuple(offered), None))
    begin = st.selectbox("Begin with", offered, **one_of("new_from", chosen, offered))
    text = shipped[begin].read_text(encoding="utf-8") if begin in shipped else TEMPLATE
    typed = now("new_text", draft.get(("text", begin), text), begin)
    given = st.text_area("The study, as a TOML file", height=300, **at("new_text", typed, begin))
    draft |= {"begin": begin, ("text", begin): given}
    try:
        study = base.parsed(given)
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
        if not may_write():
            st.error(REASON)
            return
        try:
            service = base.service()
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
    buttons("View", views, "shown", wrap=True)
    if opened.summary.empty:
        st.caption("Nothing of this study is asked for any more.")
        return
    views[value("shown")](opened)


def files(opened: Opened | None) -> dict:
    """What can be taken away beside the tables: label -> (name of the file, what makes its bytes)"""
    if opened is None:
        return {}
    name = slug(opened.name, opened.number)
    return {
        "The study's file (TOML)": (f"{name}.toml", lambda: opened.source.encode()),
        "Every number (Parquet)": (f"{name}_rows.parquet", lambda: base.parquet(opened)),
    }
