"""Student view: join by code, predict, vote; without a code, join or start a class."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from core.settings.wording import distinct
from core.study.database.connection import StoreError
from core.teaching.classroom import DISCUSSION, OPEN, REVEALED, ClassError, Watched
from core.teaching.lessons import prediction
from core.teaching.lessons.picture import lesson_svg, letter
from core.teaching.lessons.prediction import Entry, measure_outcome
from core.teaching.lessons.wording import fill_in
from core.teaching.questions import (
    CARRY,
    CHECK,
    PREDICTION,
    Question,
    find_question,
    list_check_items,
    question_names,
    write_check,
)
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.kit.store import change, value
from ui.lessons.addresses import listens_here_alone
from ui.lessons.classroom import ClassContext, view
from ui.lessons.classroom.server import (
    KEY,
    Seat,
    classroom,
    describe_error,
    describe_students,
    describe_time_left,
    draw_distribution,
    draw_reasons,
    find_class,
    has_letters,
    join,
    may_start,
    seat,
    store_teacher_key,
    sync_seat,
    vote,
    watch,
)
from ui.lessons.html import COLUMN, draw_answer_styles
from ui.lessons.predict import draw_confidence, draw_prediction_form
from ui.lessons.result import draw_meaning, draw_result, draw_svg

EVERY = 2.0  # seconds between two looks
LONGEST = 60  # characters of a teacher's key, which may be typed in place of a code
TROUBLE = (  # entry of the session: why a class could not be started, or opened by a key
    "class_trouble"
)
USUAL = ("heads", "residuals", "order")  # lessons that a first class begins with


@view.register("student", label="Student", help="join with a code, predict, vote.")
def student(context: ClassContext):
    """Draw a student's seat in the class; without a class, the forms to join or start one."""
    code = context.code
    now = find_class(context) if code else None
    if now is None:
        draw_door(context)
        return
    question = context.find_question(now.question)
    draw_answer_styles(
        f"{code}_{now.question}_{now.round}",
        question.lesson if question and question.kind == PREDICTION else None,
    )
    with st.container(key="seat", width=COLUMN):
        _draw_seat(context, code, now, question)


def _draw_seat(context: ClassContext, code: str, now: Watched, question: Question | None):
    """Draw a seat's content: the form to join, a wait for `question` None, question or result."""
    words = context.words
    own_seat = sync_seat(code)
    if not own_seat.value:
        _ask_to_join(code, own_seat, words)
        return
    fragment(_draw_class_line, run_every=EVERY)(code, _visible_state(now), words)
    if question is None:
        st.info(literal(words["class_wait"]), icon=":material/hourglass_empty:")
        return
    st.markdown(f"## {literal(question.title)}")
    if question.lesson is not None:
        st.markdown(literal(fill_in(question.lesson.question, question.lesson)))
    fragment(_draw_vote)(question, code, now, words)
    if now.phase == OPEN:
        return
    if now.phase != REVEALED:
        st.markdown(literal(words["class_discuss" if now.phase == DISCUSSION else "class_closed"]))
    draw_reasons(now.picked, words)
    if now.distribution is not None:
        draw_distribution(question, now, words, is_revealed=now.phase == REVEALED)
    if now.phase == REVEALED:
        _draw_answer(question, own_seat, now, words)


def draw_door(context: ClassContext):
    """Draw the form to join a class by its code, and that to start one, if allowed."""
    draw_answer_styles()
    words = context.words
    trouble = st.session_state.pop(TROUBLE, "")
    if trouble:
        st.warning(literal(trouble))
    left_side, right_side = st.columns(2, gap="large")
    with left_side, st.container(border=True, height="stretch"):
        st.markdown(f"## {literal(words['class_join_title'])}")
        st.markdown(literal(words["class_join_about"]))
        with st.form(
            "enter_form", border=False
        ):  # Enter goes in, and the press carries what was typed just before
            tip = words["class_key_entry"]
            st.text_input(
                words["class_code"],
                max_chars=LONGEST,
                key="class_code",
                placeholder="e.g. BCDFG",
                help=tip,
            )
            st.form_submit_button(
                words["class_enter"], type="primary", key="enter", on_click=_enter
            )
    with right_side, st.container(border=True, height="stretch"):
        st.markdown(f"## {literal(words['class_start_title'])}")
        st.markdown(literal(words["class_start_about"]))
        if not may_start():
            st.info(words["class_locked"], icon=":material/lock:")
            return
        label = words["class_questions"]
        rendered = label_questions(context, question_names())
        st.multiselect(
            label,
            question_names(),
            default=list(USUAL),
            format_func=rendered.get,
            key="class_questions",
        )
        if listens_here_alone():
            st.info(words["class_here_alone"], icon=":material/wifi_off:")
        st.button(words["class_start"], key="start_class", on_click=_start)


def label_questions(context: ClassContext, offered: list[str]) -> dict[str, str]:
    """Return name -> label of these known questions, each label different."""
    labels = []
    for name in offered:
        question = find_question(name, context.words, context.look.language)
        labels.append(
            f"{question.title} ({context.words['class_carry']})"
            if question.kind == CARRY
            else question.title
        )
    return dict(zip(offered, distinct(labels)))


def _enter():
    """Open the class whose code, or whose teacher's key, was typed (a callback)."""
    typed = (st.session_state.get("class_code") or "").strip()
    if not KEY.fullmatch(typed):
        change(shown="student", code=typed.upper()[:12])
        return
    try:
        code = classroom().watch_as_teacher(typed).code
    except (ClassError, StoreError) as error:
        st.session_state[TROUBLE] = describe_error(error)
    else:
        store_teacher_key(code, typed)
        change(shown="teacher", code=code)


def _start():
    """Start a class with the chosen questions, if allowed, and open it as teacher (a callback)."""
    if not may_start():
        return
    try:
        started = classroom().start(st.session_state.get("class_questions") or [])
    except (ClassError, StoreError) as error:
        st.session_state[TROUBLE] = describe_error(error)
    else:
        store_teacher_key(started.code, started.token)
        change(shown="teacher", code=started.code)


def _visible_state(now: Watched) -> tuple:
    """Return what the page depends on: phase, question, round, whether votes show, reasons."""
    return now.phase, now.question, now.round, now.distribution is not None, now.picked


def _draw_class_line(code: str, before: tuple, texts: Mapping[str, str]):
    """Draw code, students and time left (a fragment); rerun the page when the class changes."""
    try:
        now = watch(code)
    except ClassError:
        st.rerun()
    if _visible_state(now) != before:
        st.rerun()
    st.caption(
        literal(
            f"{texts['class_name'].format(code=code)} ·"
            f" {describe_students(now.seats, texts)}{describe_time_left(now, texts)}"
        )
    )


def _ask_to_join(code: str, own_seat: Seat, texts: Mapping[str, str]):
    """Draw the form in which a student takes a seat."""
    st.markdown(f"## {literal(texts['class_name'].format(code=code))}")
    if own_seat.trouble:
        st.warning(literal(own_seat.trouble))

    def sent():
        join(code, st.session_state.get("nickname") or "")

    with st.form("join_form", border=False):  # so that the press carries what was typed just before
        st.text_input(texts["class_nickname"], key="nickname")
        st.form_submit_button(texts["class_join"], type="primary", key="join", on_click=sent)
    st.caption(literal(texts["class_nothing_else"]))


def _draw_vote(question: Question, code: str, now: Watched, texts: Mapping[str, str]):
    """Draw an open question's form, or this student's vote; options while it is discussed."""
    own_seat = seat(code)
    if own_seat.trouble:
        st.warning(literal(own_seat.trouble))
    own_vote = own_seat.votes.get((now.question, now.round))
    if own_vote is not None:
        # A score in the eight questions would tell what is right before anybody may see it.
        sentence = (
            texts["check_in"]
            if question.kind == CHECK
            else texts["class_in"].format(answer=question.format_answer(own_vote.answer))
        )
        st.success(literal(sentence), icon=":material/how_to_vote:")
    if now.phase == DISCUSSION:
        marks = [
            f"- **{letter(index)}**" if has_letters(question) else "-"
            for index in range(len(question.offered))
        ]
        st.markdown(
            "\n".join(f"{mark} {literal(option)}" for mark, option in zip(marks, question.offered))
        )
    if now.phase != OPEN:
        return
    if own_vote is not None:
        st.markdown(literal(texts["class_in_wait"]))
        return
    draw_question = {CHECK: _ask_check, CARRY: _ask_transfer}.get(question.kind, _ask_prediction)
    send = partial(vote, code, now.question, now.round)
    draw_question(
        question,
        send,
        partial(setattr, own_seat, "trouble"),
        texts,
        f"{code}_{now.question}_{now.round}",
    )


def _ask_prediction(
    question: Question,
    send: Callable[..., None],
    refuse: Callable[[str], None],
    texts: Mapping[str, str],
    key_suffix: str,
):
    """Draw a prediction's controls, calling send(answer, confidence, reason) or refuse(message)."""

    def then(name: str, entry: Entry):
        send(prediction.write_answer(entry.answer), entry.sure, entry.because)

    kind = question.prediction.kind
    is_form = kind in ("choice", "curve")
    answer = draw_prediction_form(
        question.lesson, texts, then, key_suffix, texts["class_send"], refuse, is_form
    )
    if kind == "number":
        draw_svg("sketches", lesson_svg(question.lesson, texts, answer))


def _ask_options(asks: str, options: Sequence[str], key: str, is_lettered: bool = False):
    """Draw radio buttons for options, labelled A, B, … if `is_lettered`; the index is at `key`.

    The state has None before a choice; nothing is returned.
    """
    st.radio(
        asks,
        range(len(options)),
        format_func=lambda index: f"**{letter(index)}** " * is_lettered + literal(options[index]),
        index=None,
        key=key,
        label_visibility="collapsed",
        width="stretch",
    )


def _ask_transfer(
    question: Question,
    send: Callable[..., None],
    refuse: Callable[[str], None],
    texts: Mapping[str, str],
    key_suffix: str,
):
    """Draw a transfer question's form, calling send(index as text, confidence) or refuse(text)."""
    st.markdown(literal(question.asks))

    def sent():
        chosen = st.session_state.get(f"carry_{key_suffix}")
        sure = st.session_state.get(f"sure_{key_suffix}")
        if isinstance(chosen, int) and isinstance(
            sure, int
        ):  # Streamlit returns a text that is no option any more
            send(str(chosen), sure)
        else:
            refuse(texts["store_first"])

    with st.form(f"form_{key_suffix}", border=False):
        _ask_options(question.asks, question.offered, f"carry_{key_suffix}", is_lettered=True)
        draw_confidence(texts, key_suffix)
        st.form_submit_button(
            texts["class_send"], type="primary", key=f"send_{key_suffix}", on_click=sent
        )


def _ask_check(
    question: Question,
    send: Callable[..., None],
    refuse: Callable[[str], None],
    texts: Mapping[str, str],
    key_suffix: str,
):
    """Draw the form of the eight check questions; it calls send(JSON), None for a blank answer."""
    st.markdown(literal(texts["check_about"]))
    items = list_check_items(value("language"))

    def sent():
        answers = [st.session_state.get(f"check_{key_suffix}_{n}") for n in range(len(items))]
        send(write_check([answer if isinstance(answer, int) else None for answer in answers]))

    with st.form(f"form_{key_suffix}", border=False):
        for n, item in enumerate(items):
            st.markdown(f"**{n + 1}. {literal(item.asks)}**")
            _ask_options(item.asks, item.options, f"check_{key_suffix}_{n}")
        st.form_submit_button(
            texts["class_send"], type="primary", key=f"send_{key_suffix}", on_click=sent
        )


def _draw_answer(question: Question, own_seat: Seat, now: Watched, texts: Mapping[str, str]):
    """Draw the result and newest vote, or a transfer question's explanation; none for a check."""
    if question.lesson is None:
        return
    if question.kind == CARRY:
        st.markdown(literal(question.transfer.because))
        return
    out = measure_outcome(question.lesson)
    answer = None
    votes = [own_seat.votes[key] for key in sorted(own_seat.votes) if key[0] == now.question]
    if votes:
        answer = prediction.read_answer(question.prediction, votes[-1].answer)
        draw_result(question.lesson, Entry(answer, votes[-1].sure, votes[-1].because), out, texts)
    draw_svg("result", lesson_svg(question.lesson, texts, answer, out))
    draw_meaning(question.lesson, out, texts)
