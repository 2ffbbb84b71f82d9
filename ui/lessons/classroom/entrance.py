"""The door: join a class by its code, or start one."""

import streamlit as st

from core.study.database.connection import StoreError
from core.teaching.asked import asked, names
from core.teaching.classroom import ClassError
from ui.kit.page import literal
from ui.kit.session import values
from ui.lessons.classroom.server import REASON, classroom, may_start

TROUBLE = "class_trouble"  # the key in the session: why a class could not be started
USUAL = ("heads", "residuals", "order")  # lessons that a first class begins with


def draw(context):
    words = context.words
    left, right = st.columns(2, gap="large")
    with left, st.container(border=True):
        st.markdown(f"## {literal(words['class_join_title'])}")
        code = st.text_input(words["class_code"], max_chars=8, key="class_code", placeholder="BCDFG")
        st.button(words["class_enter"], type="primary", key="enter", on_click=_enter, args=(code,))
    with right, st.container(border=True):
        st.markdown(f"## {literal(words['class_start_title'])}")
        st.markdown(literal(words["class_start_about"]))
        if not may_start():
            st.info(literal(REASON), icon=":material/lock:")
            return
        chosen = st.multiselect(
            words["class_questions"],
            names(),
            default=list(USUAL),
            format_func=lambda name: label(context, name),
            key="class_questions",
        )
        st.button(words["class_start"], type="primary", key="start_class", on_click=_start, args=(chosen,))
        trouble = st.session_state.pop(TROUBLE, "")
        if trouble:
            st.warning(literal(trouble))


def label(context, name: str) -> str:
    """Of something that can be asked."""
    of = asked(name, context.words, context.look.language)
    assert of is not None
    return f"{of.title}: {context.words['carry_over']}" if name.endswith("/carry") else of.title


def _enter(code: str):
    values.put(shown="student", code=code.strip().upper()[:12])


def _start(questions: list[str]):
    if not may_start():
        return
    try:
        started = classroom().start(questions)
    except ClassError as error:
        st.session_state[TROUBLE] = str(error)
    except StoreError as error:
        st.session_state[TROUBLE] = error.told
    else:
        values.put(shown="teacher", teacher=started.token, code="")
