"""Projector: the question, how many have answered, and later what they answered. No names."""

from html import escape

import streamlit as st

from core.teaching.classroom import DISCUSSION, OPEN, REVEALED, Watched
from core.teaching.lessons.picture import letter, sketches, svg
from core.teaching.lessons.prediction import outcome
from core.teaching.lessons.wording import fill_in
from core.teaching.questions import CARRY, CHECK, PREDICTION, Question
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.lessons.addresses import address_of, link, qr_svg, shared_address
from ui.lessons.classroom import view
from ui.lessons.classroom.server import PAGE, answered, distribution, find_class, left, reasons, students
from ui.lessons.result import draw, render_meaning

EVERY = 1.0  # seconds
# Nothing but the class: what leads to other pages would only take room.
ALONE = "<style>[data-testid=stSidebar], [data-testid=stExpandSidebarButton] { display: none }</style>"


@view.register(
    "projector", label="Projector", help="the question, how many have answered, and later what they answered. No names."
)
def projector(context):
    st.html(ALONE)
    fragment(_draw, run_every=EVERY)(context, address_of(PAGE, shared_address()))


def _draw(context, address: str):
    words = context.words
    now = find_class(context)
    if now is None:
        return
    of = context.find_question(now.question)
    if of is None:
        _draw_door(context, now, address)
        return
    title, corner = st.columns([4, 1], gap="large")
    with title:
        st.markdown(f"## {literal(of.title)}")
    with corner:
        style = "font-size:30px;letter-spacing:.15em;font-weight:700;text-align:right"
        st.html(f'<div style="{style}">{escape(context.code)}</div>')
    if now.phase == OPEN:
        answered(now, words, left(now, words))
    else:
        answered(now, words, f" · {words['class_discuss' if now.phase == DISCUSSION else 'class_closed']}")
    if now.phase == REVEALED and of.lesson:
        _draw_answer(of, now, words)
        return
    if now.phase == OPEN or not now.distribution:
        _draw_question(of, words)
    else:
        st.markdown(f"### {literal(of.asks)}")
        distribution(of, now, words, is_revealed=False)
    reasons(now.picked, words)


def _draw_door(context, now: Watched, address: str):
    """Say how to come in."""
    words = context.words
    code_side, words_side = st.columns([2, 3], gap="large")
    with code_side:
        draw("qr", qr_svg(link(address, **context.link_params(code=context.code))))
    lines = [
        ("font-size:24px", words["class_go_to"]),
        ("font-size:34px;font-weight:600;overflow-wrap:anywhere", address.split("//", 1)[-1]),
        ("font-size:24px;margin-top:24px", words["class_code"]),
        ("font-size:96px;letter-spacing:.12em;font-weight:700;line-height:1.1", context.code),
        ("font-size:28px;margin-top:16px", students(now.seats, words)),
    ]
    with words_side:
        st.html("".join(f'<div style="{style}">{escape(text)}</div>' for style, text in lines))


def _draw_question(of: Question, words):
    """Show the question and its answers, large."""
    if of.kind == CHECK:
        st.markdown(f"### {literal(words['check_about'])}")
        return
    if of.kind == PREDICTION:
        st.markdown(literal(fill_in(of.lesson.question, of.lesson)))
    st.markdown(f"### {literal(of.asks)}")
    for at, option in enumerate(of.offered):
        st.markdown(f"#### {letter(at)} · {literal(option)}")
    if of.kind == PREDICTION and of.prediction.kind == "curve":
        draw("sketches", sketches(of.lesson))


def _draw_answer(of: Question, now: Watched, words):
    """Show what was answered, and what was measured."""
    said, found = st.columns(2, gap="large")
    with said:
        distribution(of, now, words, is_revealed=True)
        reasons(now.picked, words)
    with found:
        if of.kind == CARRY:
            st.markdown(f"### {literal(of.transfer.because)}")
            return
        out = outcome(of.lesson)
        st.markdown(f"**{literal(of.lesson.picture)}**")
        draw("result", svg(of.lesson, words, None, out))
        render_meaning(of.lesson, out, words)
