"""The row in which a study is chosen, with what can be done to it; and what stands there while there is none."""

import streamlit as st

from core.study.database.store import standing
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.store import amend, bind, change, session
from ui.studies import server
from ui.studies.buttons import buttons, can_write
from ui.studies.context import StudyContext, StudyLook
from ui.studies.new_study import ask, new_study
from ui.studies.progress import progress
from ui.studies.shipped import offered, ships

SEEN = "study_seen"  # kept for a visitor: the study that was looked at last
UNWRITABLE = "This store cannot be written: its studies can be looked at, and nothing can be changed here."


def choose(look: StudyLook) -> StudyContext | None:
    """The row in which a study is chosen -> that study as it is now, or None where there is none."""
    store = server.store()
    known = {study.name: study for study in store.studies()} if store else {}
    shipped = offered()
    name = _name(look, known, shipped)
    place = _row(name, store, (*reversed(known), *shipped), known)
    if store and not store.writable:
        st.caption(UNWRITABLE)
    if can_write(store):
        new_study(store)
    if name not in known:
        if not known and name is not None:
            nothing()
        return ships(name, look) if name in shipped else None
    session().kept[SEEN] = name
    return _shown(store, known[name], place, tuple(other for other in reversed(known) if other != name), look)


def _row(name: str | None, store, every: tuple[str, ...], known):
    """The list of studies, and the button that makes another one -> the place behind it. name: None for one that is gone."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if name is None:
            st.selectbox(
                "Study", every, index=None, key="study_instead", placeholder="Choose another study", on_change=_instead,
                label_visibility="collapsed", width="stretch",
            )  # fmt: skip
        elif every:
            st.selectbox("Study", every, **bind("study", name), label_visibility="collapsed", width="stretch")
        st.button(
            "New study",
            icon=":material/add:",
            type="tertiary" if known else "primary",
            on_click=ask,
            disabled=not can_write(store),
            help=None if can_write(store) else UNWRITABLE if may_write() else REASON,
        )
        return st.container(horizontal=True, gap="small", width="content")


def _shown(store, study, place, others: tuple[str, ...], look: StudyLook) -> StudyContext:
    """A study of the store: its buttons, how far it is, and what the views are handed. others: the studies beside it."""
    now = standing(store, study.id)
    with place:
        buttons(store, study, now)
    progress(store, study, now)
    summary = server.summary(store, str(store.url), study.id, store.stamp(study.id))
    return StudyContext(store, study.id, study.name, study.question, study.source, summary, others, look)


def _instead():
    """Another one is chosen (a callback)."""
    if st.session_state.get("study_instead"):
        change(study=st.session_state["study_instead"])


def _name(look: StudyLook, known: dict, shipped: list[str]) -> str | None:
    """The study that is looked at: the one of the link, or else the newest, or else the first that ships; None for one that was
    looked at, and is gone."""
    if look.study in known or look.study in shipped:
        return look.study
    if look.study and look.study == session().kept.get(SEEN):
        # Nothing takes its place by itself: a press on Stop or Delete may be on its way.
        st.warning(literal(f"The study “{look.study}” was deleted, here or in another tab."), icon=":material/info:")
        return None
    if look.study:
        st.warning(literal(f"There is no study “{look.study}” here."), icon=":material/info:")
    if not known:
        amend(study="")
        return shipped[0] if shipped else ""
    newest = next(reversed(known))
    amend(study=newest)  # it stays the one that is looked at when a newer one comes
    return newest


def nothing():
    """What there is to start."""
    here = "start one here, or with" if may_write() else "start one with"
    st.caption(
        f"No study of your own yet. A study trains variants × tasks × seeds unattended, and keeps every number: {here} "
        "“python -m core.study run studies/ablation_matrix.toml”. Those that ship have been run already."
    )
