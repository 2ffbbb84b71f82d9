"""Teacher view: asks, closes, discusses and reveals questions, and exports the answers."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import streamlit as st

from core.export.sheets import write_csv
from core.settings.environment import is_read_only
from core.study.database.connection import StoreError
from core.teaching.classroom import (
    CLOSED,
    DISCUSSION,
    OPEN,
    PICKED,
    REVEALED,
    ClassError,
    TeacherView,
)
from core.teaching.lessons.prediction import measure_outcome
from core.teaching.lessons.wording import describe_outcome, name_result
from core.teaching.questions import (
    AFTER,
    BEFORE,
    CARRY,
    CHECK,
    PREDICTION,
    Question,
    question_names,
)
from core.teaching.report import add_words, describe_gain, tabulate_changes, write_class_report
from ui.kit import address
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.kit.server.downloads import download_link
from ui.kit.server.scripts import store_script
from ui.kit.store import change, change_quietly
from ui.lessons.addresses import address_of, listens_here_alone, qr_svg, shared_address, with_params
from ui.lessons.classroom import ClassContext, view
from ui.lessons.classroom.server import (
    PAGE,
    Key,
    classroom,
    clear_view_cache,
    describe_error,
    describe_students,
    describe_time_left,
    draw_distribution,
    store_teacher_key,
    sync_teacher_key,
)
from ui.lessons.classroom.student import draw_door, label_questions
from ui.lessons.html import draw_answer_styles
from ui.lessons.result import draw_meaning, draw_svg

EVERY = 1.0  # seconds
SECONDS = 60  # of a question, unless the teacher chooses another time
TIMES = {None: "class_no_limit", 30: "30 s", 60: "60 s", 120: "2 min", 300: "5 min"}
TROUBLE = "class_teacher_trouble"
NAMED = 40  # students who have not answered yet

_space = st.components.v2.component(
    "ablation_space", js=store_script(Path(__file__).with_name("space.js").read_text())
)


@view.register("teacher", label="Teacher", help="start and close voting, reveal the result.")
def teacher(context: ClassContext):
    """Draw the teacher's controls of a class, its votes and exports; needs the teacher's key."""
    words = context.words
    teacher_key = address.pop_secret("teacher")  # of a link that an earlier version made
    if teacher_key or not context.code:
        key = Key(teacher_key or "", has_answered=True)
    else:
        key = sync_teacher_key(context.code)
    if not key.value and not key.has_answered:
        return  # the browser is asked for the key; its answer draws the page again
    token = key.value
    try:
        now = classroom().watch_as_teacher(token)
    except ClassError as error:
        st.warning(literal(error if token else words["class_no_key"]))
        draw_door(context)
        return
    if now.code != context.code or teacher_key:
        store_teacher_key(now.code, token)
        change_quietly(code=now.code)
        st.rerun()
    draw_answer_styles()
    _draw_links(context, now, token)
    fragment(_draw, run_every=EVERY)(context, token)
    _draw_take_home(context, token, now)
    _space(key="space")


def _draw_links(context: ClassContext, now: TeacherView, token: str):
    """Draw code, links for students and projector, the teacher's key, a warning if data may go."""
    words = context.words
    page = address_of(PAGE, shared_address())
    door = with_params(page, **context.link_params(code=now.code))
    if is_read_only():
        st.caption(literal(words["class_disk"]))
    with st.container(horizontal=True, vertical_alignment="center", key="links"):
        st.markdown(f"## {now.code}", width="content")
        with st.popover(words["class_qr"], icon=":material/qr_code:"):
            draw_svg("qr", qr_svg(door))
            st.code(door, language=None)
        with st.popover(words["class_key"], icon=":material/key:"):
            st.markdown(literal(words["class_key_about"]))
            st.code(token, language=None)
        projector = with_params(page, **context.link_params(shown="projector", code=now.code))
        st.link_button(words["class_projector"], projector, icon=":material/present_to_all:")


def _draw(context: ClassContext, token: str):
    """Draw steps, and the current question's votes, answer, late students, reasons (a fragment)."""
    words = context.words
    try:
        now = classroom().watch_as_teacher(token)
    except ClassError:
        st.rerun()
    trouble = st.session_state.pop(TROUBLE, "")
    if trouble:
        st.warning(literal(trouble))
    if not now.seats and listens_here_alone():
        st.info(words["class_here_alone"], icon=":material/wifi_off:")
    question = context.find_question(now.question)
    _draw_steps(context, token, now, question)
    if question is None:
        st.caption(literal(describe_students(now.seats, words)))
        return
    poll, side = st.columns([3, 2], gap="large")
    with poll:
        about = f"{words['class_round'].format(n=now.round)}{describe_time_left(now, words)}"
        votes = words["class_answered"].format(votes=now.votes, seats=now.seats)
        st.markdown(
            f"## {literal(question.title)}\n{literal(question.asks)}  \n**{literal(votes)}** ·"
            f" {literal(about)}"
        )
        # A teacher's screen is often the one on the wall: the answer shows when all see it, or when
        # it is asked for.
        is_shown = now.phase == REVEALED
        if not is_shown and question.kind != CHECK:
            is_shown = st.toggle(words["class_answer"], key=f"answer_{len(now.asked)}")
        draw_distribution(question, now, words, is_revealed=is_shown, key="teacher_distribution")
        if is_shown:
            _draw_answer(question, words, is_revealed=now.phase == REVEALED)
    with side:
        _draw_waiting(now, words)
        _draw_reasons(token, now, words)


def _draw_answer(question: Question, texts: Mapping[str, str], is_revealed: bool):
    """Draw the right answer, and its meaning once all have seen it; nothing for a check."""
    if question.kind == CARRY:
        st.markdown(
            f"**{literal(question.transfer.options[question.transfer.right])}**:"
            f" {literal(question.transfer.because)}"
        )
    if question.kind == PREDICTION:
        out = measure_outcome(question.lesson)
        st.markdown(
            f"{literal(name_result(question.lesson, texts))}:"
            f" **{literal(describe_outcome(question.lesson, out, texts))}**"
        )
        if is_revealed:
            draw_meaning(question.lesson, out, texts)


def _draw_steps(context: ClassContext, token: str, now: TeacherView, question: Question):
    """Draw buttons for the possible steps; the next one is filled, and the space bar's."""
    words = context.words
    room = classroom()
    is_closed = now.phase in (CLOSED, DISCUSSION)
    has_second_round = (
        is_closed and now.round == 1 and question.kind != CHECK
    )  # the eight questions are not discussed
    seconds = st.session_state.get("seconds", SECONDS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if now.phase == OPEN:
            _draw_next_step("class_close", "stop_circle", lambda: room.close(token), words)
        elif is_closed:
            _draw_next_step("class_reveal", "visibility", lambda: room.reveal(token), words)
        else:
            _draw_next(context, token, now)
        if has_second_round and now.phase == CLOSED:
            _draw_button("class_discuss_now", "forum", lambda: room.discuss(token), words)
        if has_second_round:
            _draw_button(
                "class_again", "how_to_vote", lambda: room.open_second_round(token, seconds), words
            )
        if is_closed:
            name = "class_hide" if now.shown else "class_show"
            _draw_button(name, "bar_chart", lambda: room.show(token, not now.shown), words)


def _draw_next(context: ClassContext, token: str, now: TeacherView):
    """Draw the choice of the next question and its time limit, and the button that opens it."""
    words = context.words
    offered = list(
        dict.fromkeys(name for name in (*now.planned, *question_names()) if name not in now.asked)
    )
    if not offered:
        return
    labels = label_questions(context, offered)
    number = len(now.asked)
    name = st.selectbox(
        words["class_next"], offered, format_func=labels.get, key=f"next_{number}", width=420
    )
    seconds = st.selectbox(
        words["class_time"],
        list(TIMES),
        index=list(TIMES).index(st.session_state.get("seconds", SECONDS)),
        format_func=lambda n: words.get(TIMES[n], TIMES[n]),
        key=f"time_{number}",
        width=140,
    )
    st.session_state["seconds"] = seconds
    # A button of its own for every question: a second press would open the next one.
    _draw_next_step(
        "class_open",
        "play_arrow",
        lambda: classroom().open(token, name, seconds),
        words,
        key=f"open_{number}",
    )


def _draw_next_step(
    text_key: str, icon: str, step: Callable[[], object], texts: Mapping[str, str], key: str = ""
):
    """Draw the button of the next step, step(), which the space bar presses, too.

    Its label is texts[text_key].
    """
    _draw_button(text_key, icon, step, texts, key=key, type="primary", shortcut="Space")


def _draw_button(
    text_key: str,
    icon: str,
    step: Callable[[], object],
    texts: Mapping[str, str],
    key: str = "",
    **look,
):
    """Draw a button labelled texts[text_key] that calls step(); look: options of st.button."""
    st.button(
        texts[text_key],
        key=key or text_key,
        icon=f":material/{icon}:",
        on_click=_take_step,
        args=(step,),
        **look,
    )


def _draw_waiting(now: TeacherView, texts: Mapping[str, str]):
    """Draw the names of students who have not answered an open question yet."""
    if now.phase != OPEN or not now.waiting:
        return
    # Each by itself (U+2068 … U+2069): a name written from right to left turns no other around.
    named = (
        nickname or f"{texts['class_seat']} {number}" for number, nickname in now.waiting[:NAMED]
    )
    listed = ", ".join(f"\u2068{name}\u2069" for name in named)
    suffix = f" + {len(now.waiting) - NAMED}" if len(now.waiting) > NAMED else ""
    st.caption(literal(f"{texts['class_waiting']}: {listed}{suffix}"))


def _draw_reasons(token: str, now: TeacherView, texts: Mapping[str, str]):
    """Draw checkboxes that pick students' reasons for the projector, without names."""
    if not now.reasons or now.phase == OPEN:
        return
    st.markdown(f"**{literal(texts['class_pick'])}**")
    with st.container(height=260):
        for reason in now.reasons:
            key = f"pick_{reason.id}"
            picked = (token, now, reason.id, key)
            st.checkbox(
                literal(reason.text), value=reason.picked, key=key, on_change=_pick, args=picked
            )


def _pick(token: str, now: TeacherView, reason_id: int, key: str):
    """Pick a reason or unpick it; above PICKED reasons its checkbox is reset (a callback)."""
    picked = [reason.id for reason in now.reasons if reason.picked and reason.id != reason_id]
    if st.session_state[key]:
        picked.append(reason_id)
    if len(picked) > PICKED:
        st.session_state[key] = False
    _take_step(lambda: classroom().pick(token, picked))


def _take_step(step: Callable[[], object]):
    """Call step(), store why it failed for the next run, and return whether it succeeded."""
    try:
        step()
    except (ClassError, StoreError) as error:
        st.session_state[TROUBLE] = describe_error(error)
        return False
    finally:
        clear_view_cache()
    return True


def _draw_take_home(context: ClassContext, token: str, now: TeacherView):
    """Draw the tables and downloads of a class, and the button that ends it."""
    words = context.words
    room = classroom()
    st.divider()
    with st.expander(words["class_home"], icon=":material/download:"):
        if now.phase == REVEALED:
            answers = room.read_answers(token)
            labels = label_questions(context, list(now.asked))
            for name, label in labels.items():
                changes = tabulate_changes(context.find_question(name), answers)
                if len(changes):
                    st.markdown(f"**{literal(label)}**: {literal(words['class_table'])}")
                    st.table(changes)
        if BEFORE in now.asked and AFTER in now.asked:
            st.markdown(literal(describe_gain(room.read_answers(token), words)))

        def write_table() -> str | bytes:
            return write_csv(add_words(room.read_answers(token), words, context.look.language))

        def write_page() -> str:
            return write_class_report(
                room.read_answers(token), now.code, words, context.look.language
            )

        with st.container(horizontal=True):
            download_link(words["class_csv"], f"class_{now.code}.csv", write_table, "text/csv")
            download_link(words["class_html"], f"class_{now.code}.html", write_page, "text/html")
        st.caption(literal(words["class_kept"]))
        is_sure = st.checkbox(words["class_end_sure"], key="end_sure")
        st.button(
            words["class_end"], disabled=not is_sure, key="end_class", on_click=partial(_end, token)
        )


def _end(token: str):
    """Delete the class and open the page without it, unless deleting fails (a callback)."""
    if _take_step(
        lambda: classroom().end(token)
    ):  # else the key would be lost, and with it the way to delete anything
        change(shown="student", code="")
