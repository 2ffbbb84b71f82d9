from html import escape

import streamlit as st

from core.teaching.asked import CARRY, CHECK, Asked
from core.teaching.classroom import DISCUSSION, OPEN, REVEALED, WAITING, ClassError, Watched
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.picture import letter, sketches, svg
from core.teaching.lessons.wording import filled
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.lessons import picture, result
from ui.lessons.classroom import entrance
from ui.lessons.classroom.context import view
from ui.lessons.classroom.links import base, link, qr_svg
from ui.lessons.classroom.pictures import answered, distribution, left, reasons, students
from ui.lessons.classroom.server import watch

EVERY = 1.0  # seconds
# Nothing but the class: what leads to other pages would only take room.
ALONE = "<style>[data-testid=stSidebar], [data-testid=stExpandSidebarButton] { display: none }</style>"


@view
def projector(context):
    """Projector: the question, how many have answered, and later what they answered. No names."""
    st.html(ALONE)
    fragment(_draw, run_every=EVERY)(context, base())


def _draw(context, address: str):
    code, words = context.code, context.words
    try:
        now = watch(code)
    except ClassError as error:
        entrance.gone(context, code, error)
        return
    entrance.there(code)
    of = context.asked(now.question) if now.question else None
    if now.phase == WAITING or of is None:
        _door(code, now, link(address, code=code, **context.spoken), address, words)
        return
    title, corner = st.columns([4, 1], gap="large")
    with title:
        st.markdown(f"## {literal(of.title)}")
    with corner:
        st.html(
            f'<div style="font-size:30px;letter-spacing:.15em;font-weight:700;text-align:right">{escape(code)}</div>'
        )
    _state(now, words)
    if now.phase == REVEALED and of.lesson and of.kind != CHECK:
        _revealed(of, now, words)
    elif now.phase == OPEN or not now.distribution:
        _question(of, words)
        reasons(now.picked, words)
    else:
        st.markdown(f"### {literal(of.asks())}")
        distribution(of, now, words, revealed=False)
        reasons(now.picked, words)


def _door(code: str, now: Watched, where: str, address: str, words):
    """How to come in."""
    code_side, words_side = st.columns([2, 3], gap="large")
    with code_side:
        picture.draw("qr", qr_svg(where))
    with words_side:
        shown = escape(address.split("//", 1)[-1])
        st.html(
            f'<div style="font-size:24px">{escape(words["class_go_to"])}</div><div style="font-size:34px;font-weight:600;overflow-wrap:anywhere">{shown}</div>'
            f'<div style="font-size:24px;margin-top:24px">{escape(words["class_code"])}</div>'
            f'<div style="font-size:96px;letter-spacing:.12em;font-weight:700;line-height:1.1">{escape(code)}</div>'
            f'<div style="font-size:28px;margin-top:16px">{escape(students(now.seats, words))}</div>'
        )


def _state(now: Watched, words):
    """How many have answered, and for how long they still may."""
    behind = left(now, words) if now.phase == OPEN else f" · {words[_closed(now)]}"
    answered(now, words, behind)


def _closed(now: Watched) -> str:
    """The name of what is said once voting is closed."""
    return "class_discuss" if now.phase == DISCUSSION else "class_closed"


def _question(of: Asked, words):
    """The question and its answers, large."""
    if of.kind == CHECK:
        st.markdown(f"### {literal(words['check_about'])}")
        return
    assert of.lesson is not None
    if of.kind != CARRY:
        st.markdown(literal(filled(of.lesson.question, of.lesson)))
    st.markdown(f"### {literal(of.asks())}")
    for at, option in enumerate(of.offered()):
        st.markdown(f"#### {letter(at)} · {literal(option)}")
    if of.kind != CARRY and of.lesson.prediction.kind == "curve":
        picture.draw("sketches", sketches(of.lesson))


def _revealed(of: Asked, now: Watched, words):
    """What they said, and what was measured."""
    said, found = st.columns(2, gap="large")
    with said:
        distribution(of, now, words, revealed=True)
        reasons(now.picked, words)
    with found:
        if of.kind == CARRY:
            st.markdown(f"### {literal(of.lesson.transfer.because)}")
            return
        out = outcome(of.lesson)
        st.markdown(f"**{literal(of.lesson.picture)}**")
        picture.draw("result", svg(of.lesson, words, None, out))
        result.means(of.lesson, out, words)
