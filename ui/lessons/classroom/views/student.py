from functools import partial

import streamlit as st

from core.teaching import check
from core.teaching.asked import CARRY, CHECK, Asked
from core.teaching.classroom import DISCUSSION, OPEN, REVEALED, WAITING, ClassError, Watched
from core.teaching.lessons import prediction
from core.teaching.lessons.entry import Entry
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.picture import sketches, svg
from core.teaching.lessons.prediction import SURE
from core.teaching.lessons.wording import filled
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.lessons import picture, predict, result
from ui.lessons.classroom import entrance
from ui.lessons.classroom.context import view
from ui.lessons.classroom.pictures import distribution, left, reasons, students
from ui.lessons.classroom.seat import Seat, keep, refuse, seat, take, vote
from ui.lessons.classroom.server import watch

EVERY = 2.0  # seconds between two looks


@view
def student(context):
    """Student: joins by a code, predicts, votes."""
    code, words = context.code, context.words
    if not code:
        entrance.draw(context)
        return
    try:
        now = watch(code)
    except ClassError as error:
        entrance.gone(context, code, error)
        entrance.draw(context)
        return
    entrance.there(code)
    keep(code)
    held = seat(code)
    if not held.key:
        _join(code, held, words)
        return
    fragment(_wait, run_every=EVERY)(code, sign(now), words)
    _draw(context, code, held, now)


def sign(now: Watched) -> tuple:
    """What the page looks like: it is drawn anew where that changes."""
    return now.phase, now.question, now.round, now.distribution is not None, now.picked


def _wait(code: str, before: tuple, words):
    """Looks again and again, and says how much time is left."""
    try:
        now = watch(code)
    except ClassError:
        st.rerun()
    if sign(now) != before:
        st.rerun()
    st.caption(literal(f"{words['class_name'].format(code=code)} · {students(now.seats, words)}{left(now, words)}"))


def _join(code: str, held: Seat, words):
    st.markdown(f"## {literal(words['class_name'].format(code=code))}")
    if held.trouble:
        st.warning(literal(held.trouble))
    with st.form("join_form", border=False):  # so that the press carries what was typed just before
        st.text_input(words["class_nickname"], key="nickname")
        st.form_submit_button(words["class_join"], type="primary", key="join", on_click=_joined, args=(code,))
    st.caption(literal(words["class_nothing_else"]))


def _joined(code: str):
    take(code, st.session_state.get("nickname") or "")


def _draw(context, code: str, held: Seat, now: Watched):
    words, of = context.words, context.asked(now.question) if now.question else None
    if now.phase == WAITING or of is None:
        st.info(literal(words["class_wait"]), icon=":material/hourglass_empty:")
        return
    st.markdown(f"## {literal(of.title)}")
    if of.lesson is not None:
        st.markdown(literal(filled(of.lesson.question, of.lesson)))
    fragment(_vote)(of, code, now, words)
    if now.phase == OPEN:
        return
    told = "class_discuss" if now.phase == DISCUSSION else "class_closed"
    if now.phase != REVEALED:
        st.markdown(literal(words[told]))
    reasons(now.picked, words)
    if now.distribution is not None:
        distribution(of, now, words, revealed=now.phase == REVEALED)
    if now.phase == REVEALED:
        _revealed(of, held, now, words)


def _vote(of: Asked, code: str, now: Watched, words):
    """The question, or the vote that is in: drawn by itself, so that a hundred votes cost no more than they must."""
    held = seat(code)
    if held.trouble:
        st.warning(literal(held.trouble))
    mine = held.votes.get((now.question, now.round))
    if mine is not None:
        # Of the eight questions a score would tell what is right before anybody may see it.
        told = words["check_in"] if of.kind == CHECK else words["class_in"].format(answer=of.in_words(mine.answer))
        st.success(literal(told), icon=":material/how_to_vote:")
    if now.phase == DISCUSSION:
        _options(of)
    if now.phase != OPEN:
        return
    if mine is not None:
        st.markdown(literal(words["class_in_wait"]))
        return
    place = f"{code}_{now.question}_{now.round}"
    ask = {CHECK: _check, CARRY: _carry}.get(of.kind, _predict)
    ask(of, code, now, words, place)


def _options(of: Asked):
    """What is talked about: the answers that were offered."""
    for line in of.offered():
        st.markdown(f"- {literal(line)}")


def _predict(of: Asked, code: str, now: Watched, words, place: str):
    def then(name: str, entry: Entry):
        vote(code, now.question, now.round, prediction.write(entry.answer), entry.sure, entry.because)

    kind, told = of.lesson.prediction.kind, partial(refuse, code)
    if kind == "curve":
        picture.draw("sketches", sketches(of.lesson))
    if kind in ("choice", "curve"):
        predict.ask_at_once(of.lesson, words, then, place, words["class_send"], told)
        return
    answer = predict.ask(of.lesson, words, then, place, words["class_send"], told)
    if kind == "number":
        picture.draw("sketches", svg(of.lesson, words, answer))


def _carry(of: Asked, code: str, now: Watched, words, place: str):
    asked = of.lesson.transfer
    st.markdown(literal(asked.asks))

    def sent():
        chosen, sure = st.session_state.get(f"carry_{place}"), st.session_state.get(f"sure_{place}")
        if isinstance(chosen, int) and isinstance(sure, int):  # a browser can say anything
            vote(code, now.question, now.round, str(chosen), sure)
        else:
            refuse(code, words["store_first"])

    with st.form(f"form_{place}", border=False):
        options = range(len(asked.options))
        st.radio(
            asked.asks, options, format_func=lambda at: literal(asked.options[at]), index=None, key=f"carry_{place}",
            label_visibility="collapsed",
        )  # fmt: skip
        sure = words["sure"]
        st.segmented_control(sure, list(SURE), format_func=lambda n: words[f"sure_{n}"], key=f"sure_{place}")
        st.form_submit_button(words["class_send"], type="primary", key=f"send_{place}", on_click=sent)


def _check(of: Asked, code: str, now: Watched, words, place: str):
    st.markdown(literal(words["check_about"]))
    keys = [f"check_{place}_{n}" for n in range(len(check.items()))]

    def sent():
        answers = [st.session_state.get(key) for key in keys]
        answers = [each if isinstance(each, int) else None for each in answers]  # a browser can say anything
        vote(code, now.question, now.round, check.write(answers))

    with st.form(f"form_{place}", border=False):
        for n, item in enumerate(check.items()):
            st.markdown(f"**{n + 1}. {literal(item.asks)}**")
            options = range(len(item.options))
            st.radio(
                item.asks, options, format_func=lambda at, item=item: literal(item.options[at]), index=None, key=keys[n],
                label_visibility="collapsed",
            )  # fmt: skip
        st.form_submit_button(words["class_send"], type="primary", key=f"send_{place}", on_click=sent)


def _revealed(of: Asked, held: Seat, now: Watched, words):
    """What was measured, beside what this student has said in the newest round."""
    if of.lesson is None:
        return
    if of.kind == CARRY:
        st.markdown(literal(of.lesson.transfer.because))
        return
    votes = [held.votes[key] for key in sorted(held.votes) if key[0] == now.question]
    out = outcome(of.lesson)
    if votes:
        last = votes[-1]
        entry = Entry(prediction.read(of.lesson.prediction, last.answer), last.sure, last.because)
        result.told(of.lesson, entry, out, words)
    picture.draw("result", svg(of.lesson, words, entry.answer if votes else None, out))
    result.means(of.lesson, out, words)
