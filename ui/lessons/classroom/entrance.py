"""The door: join a class by its code, or start one."""

from collections.abc import Sequence

import streamlit as st

from core.settings.wording import distinct
from core.study.database.connection import StoreError
from core.teaching.asked import asked, names
from core.teaching.classroom import ClassError
from ui.kit.page import literal
from ui.kit.store import change, session
from ui.lessons.classroom.browser_key import KEY
from ui.lessons.classroom.server import REASON, classroom, may_start, start
from ui.lessons.classroom.teacher_key import store_teacher_key

LONGEST = 60  # characters of a teacher's key, which may be typed in place of a code
SEEN = "classes_seen"  # for a visitor: codes of classes that were there
TROUBLE = "class_trouble"  # the entry in the session: why a class could not be started, or opened by a key
USUAL = ("heads", "residuals", "order")  # lessons that a first class begins with


def draw(context):
    words = context.words
    trouble = st.session_state.pop(TROUBLE, "")
    if trouble:
        st.warning(literal(trouble))
    left, right = st.columns(2, gap="large")
    with left, st.container(border=True):
        st.markdown(f"## {literal(words['class_join_title'])}")
        with st.form("enter_form", border=False):  # Enter goes in, and the press carries what was typed just before
            st.text_input(
                words["class_code"],
                max_chars=LONGEST,
                key="class_code",
                placeholder="BCDFG",
                help=words["class_key_entry"],
            )
            st.form_submit_button(words["class_enter"], type="primary", key="enter", on_click=_enter)
    with right, st.container(border=True):
        st.markdown(f"## {literal(words['class_start_title'])}")
        st.markdown(literal(words["class_start_about"]))
        if not may_start():
            st.info(literal(REASON), icon=":material/lock:")
            return
        st.multiselect(
            words["class_questions"],
            names(),
            default=list(USUAL),
            format_func=labels(context, names()).get,
            key="class_questions",
        )
        st.button(words["class_start"], type="primary", key="start_class", on_click=_start)


def label(context, name: str) -> str:
    """Of something that can be asked."""
    of = asked(name, context.words, context.look.language)
    assert of is not None
    return f"{of.title} ({context.words['class_carry']})" if name.endswith("/carry") else of.title


def labels(context, offered: Sequence[str]) -> dict[str, str]:
    """Label what can be asked: two lessons may have one title."""
    return dict(zip(offered, distinct(label(context, name) for name in offered)))


def _enter():
    """Open the class whose code was typed, or as its teacher where it is a teacher's key."""
    typed = (st.session_state.get("class_code") or "").strip()
    if KEY.fullmatch(typed):
        _enter_as_teacher(typed)
        return
    change(shown="student", code=typed.upper()[:12])


def _enter_as_teacher(key: str):
    try:
        code = classroom().of_teacher(key).code
    except ClassError as error:
        st.session_state[TROUBLE] = str(error)
    except StoreError as error:
        st.session_state[TROUBLE] = error.told
    else:
        store_teacher_key(code, key)
        change(shown="teacher", code=code)


def there(code: str):
    """Take note that a class is, or was, there."""
    session().kept.setdefault(SEEN, set()).add(code)


def gone(context, code: str, error: ClassError):
    """What is said where a class is not there: that it has ended, if it was."""
    if error.field == "code" and code in session().kept.get(SEEN, ()):
        st.info(literal(context.words["class_over"]), icon=":material/done_all:")
    else:
        st.warning(literal(error))


def _start():
    if not may_start():
        return
    questions = [name for name in st.session_state.get("class_questions") or [] if name in names()]
    try:
        started = start(questions)
    except ClassError as error:
        st.session_state[TROUBLE] = str(error)
    except StoreError as error:
        st.session_state[TROUBLE] = error.told
    else:
        store_teacher_key(started.code, started.token)
        change(shown="teacher", code=started.code)
