"""Projector view: question, number of answers, later their distribution. No names."""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from core.figures.small_pictures import Count
from core.teaching.classroom import DISCUSSION, OPEN, REVEALED, Watched
from core.teaching.lessons.picture import render_rows
from core.teaching.lessons.prediction import measure_outcome
from core.teaching.lessons.wording import describe_outcome, fill_in, name_result
from core.teaching.questions import CARRY, CHECK, PREDICTION, Question
from ui.kit.guard import fragment
from ui.lessons.addresses import address_of, listens_here_alone, qr_svg, shared_address, with_params
from ui.lessons.classroom import ClassContext, view
from ui.lessons.classroom.server import (
    PAGE,
    count_votes,
    describe_students,
    find_class,
    has_letters,
)
from ui.lessons.html import draw_html, render_bars, render_legend

EVERY = 1.0  # seconds
# Nothing but the class: what leads to other pages would only take room.
ALONE = """<style>
:root :is([data-testid=stSidebar], [data-testid=stExpandSidebarButton], [data-testid=stHeader]) {
  display: none; }
:root [data-testid=stMainBlockContainer][class] { padding: 0; max-width: none; }
:root [data-testid=stMain] [data-testid=stVerticalBlock][class] { gap: 0; }
@media (min-width: 900px) { :root [data-testid=stMain][class] { overflow: hidden; } }
</style>"""
LARGE = 72  # pixels of an answer where there are few
FEW = 6  # answers that are drawn with a wide gap
ROOM = 348  # for all answers
HEAD = 132
HEAD_WITH_PREMISE = 188
MEANING = 290  # characters that fit below the answers
SHORT = 90  # characters of a question that fit two lines of 36 px


@view.register(
    "projector",
    label="Projector",
    help="the question, the number of answers, then their distribution. No names.",
)
def projector(context: ClassContext):
    """Draw the projector's slide full-screen, and redraw it every second."""
    st.html(ALONE)
    fragment(_draw, run_every=EVERY)(context, address_of(PAGE, shared_address()))


def _draw(context: ClassContext, address: str):
    """Draw the current question's slide, or how to join; a message if there is no class."""
    now = find_class(context)
    if now is None:
        return
    question = context.find_question(now.question)
    code = qr_svg(with_params(address, **context.link_params(code=context.code)))
    address = address.split("//", 1)[-1]
    if listens_here_alone():
        code = ""  # which leads nobody here
    slide = (
        render_door(context, now, address, code)
        if question is None
        else render_slide(question, context, now, address, code)
    )
    draw_html("slide", slide)


def render_door(context: ClassContext, now: Watched, address: str, qr_html: str) -> str:
    """Return the slide that shows how to join, as HTML."""
    words = context.words
    lines = [
        f"<h1>{escape(words['class_go_to'])}</h1>",
        f'<div class="where">{escape(address)}</div>',
        f'<div class="soft">{escape(words["class_code"])}</div>',
        f'<div class="code">{escape(context.code)}</div>',
        f'<div class="count">{escape(describe_students(now.seats, words))}</div>',
    ]
    if not qr_html and not now.seats:
        lines.append(
            f'<div class="soft">{escape(words["class_here_alone"]).replace("`", "")}</div>'
        )
    return (
        f'<div class="slide door"><div class="qr">{qr_html}</div><div>{"".join(lines)}</div></div>'
    )


def render_slide(
    question: Question, context: ClassContext, now: Watched, address: str, qr_html: str
) -> str:
    """Return a question's slide as HTML: no votes while it is open, the result once revealed."""
    words = context.words
    is_revealed = now.phase == REVEALED
    counts = [] if now.phase == OPEN else count_votes(question, now, is_revealed)
    bars = counts or [Count(option, []) for option in question.offered]
    gap = 12 if len(bars) <= FEW else 4
    head = HEAD_WITH_PREMISE if question.kind == PREDICTION else HEAD
    height = min(LARGE, (ROOM + HEAD - head - gap * (len(bars) - 1)) // max(1, len(bars)))
    size = 28 if height >= 40 else 20
    asks = words["check_about"] if question.kind == CHECK else question.asks
    corner = (
        f'<div><div class="code">{escape(context.code)}</div><div'
        f' class="soft">{escape(address)}</div></div>'
    )
    key = render_legend(counts, words) if is_revealed else ""
    top = (
        f'<div><div class="line"><span class="soft">{escape(question.title)}</span>{key}</div>'
        f"{_render_premise(question)}<h1>{escape(asks)}</h1></div>"
    )
    top += f'<div class="corner">{corner}<div class="qr">{qr_html}</div></div>'
    answers = render_bars(bars, words, has_letters(question)) if bars else "<div></div>"
    left = render_reasons(now.picked, words) or _render_setting(question, words, is_revealed)
    right = _render_result(question, words) if is_revealed else _render_state(now, words)
    ask = 36 if len(asks) <= SHORT and question.kind != PREDICTION else 28
    style = (
        f"--head: {head}px; --height: {height}px; --gap: {gap}px; --size: {size}px; --ask: {ask}px"
    )
    return (
        f'<div class="slide" style="{style}"><header>{top}</header>{answers}<footer><div'
        f' class="{"reasons" if now.picked else ""}">{left}</div><div>{right}</div></footer></div>'
    )


def _render_premise(question: Question) -> str:
    """Return the text before a prediction's question as HTML; "" for others."""
    if question.kind != PREDICTION:
        return ""
    return f'<p class="premise">{escape(fill_in(question.lesson.question, question.lesson))}</p>'


def render_reasons(reasons: Sequence[str], texts: Mapping[str, str]) -> str:
    """Return the reasons that the teacher has picked as HTML; "" without any."""
    title = f'<div class="soft">{escape(texts["class_reasons"])}</div>' if reasons else ""
    return title + "".join(f'<div class="reason">{escape(reason)}</div>' for reason in reasons)


def _render_setting(question: Question, texts: Mapping[str, str], is_revealed: bool) -> str:
    """Return what a lesson compares as HTML, with results once revealed; "" for other questions."""
    if question.kind != PREDICTION:
        return ""
    result = measure_outcome(question.lesson) if is_revealed else None
    rows = render_rows(question.lesson, texts, result)
    return f'<div class="soft">{escape(question.lesson.picture)}</div>{rows}'


def _render_state(now: Watched, texts: Mapping[str, str]) -> str:
    """Return the number of votes, the round and the remaining time as HTML."""
    votes = texts["class_answered"].format(votes=now.votes, seats=now.seats)
    phase = texts["class_round"].format(n=now.round)
    if now.phase != OPEN:
        phase = texts["class_discuss" if now.phase == DISCUSSION else "class_closed"]
    ring = ""
    if now.left is not None and now.time:
        share = f"{100 * min(1.0, now.left / now.time):.1f}%"
        sentence = texts["class_left"].format(n=int(now.left))
        ring = (
            f'<div class="ring" role="timer" aria-label="{escape(sentence)}"'
            f' style="--share:{share}">{int(now.left)}</div>'
        )
    return (
        f'<div class="state"><div><b>{escape(votes)}</b><span'
        f' class="soft">{escape(phase)}</span></div>{ring}</div>'
    )


def _render_result(question: Question, texts: Mapping[str, str]) -> str:
    """Return result and meaning of a lesson as HTML, cut to fit; "" for a question without one.

    It does not check whether they are revealed.
    """
    if question.kind == CHECK or question.lesson is None:
        return ""
    if question.kind == CARRY:
        return escape(question.transfer.because)
    out = measure_outcome(question.lesson)
    result = (
        f"{name_result(question.lesson, texts)}: {describe_outcome(question.lesson, out, texts)}"
    )
    meaning = ""
    for sentence in fill_in(question.lesson.means, question.lesson, out).split(". "):
        if len(result) + len(meaning) + len(sentence) < MEANING:
            meaning += f"{sentence.removesuffix('.')}. "
        else:
            break
    return f"<div><b>{escape(result)}</b></div><div>{escape(meaning)}</div>"
