from functools import partial

import streamlit as st

from core.export.sheets import write_csv
from core.settings.environment import read_only
from core.study.database.connection import StoreError
from core.teaching.asked import AFTER, BEFORE, CHECK, PREDICTION, names
from core.teaching.classroom import CLOSED, DISCUSSION, OPEN, REVEALED, ClassError, TeacherView
from core.teaching.classroom.limits import PICKED
from core.teaching.handout import gained, handout, readable, votes_table
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.told import measured_in_words
from ui.kit import address
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.kit.server.downloads import download_link
from ui.kit.store import amend, change
from ui.lessons import picture
from ui.lessons.classroom import entrance
from ui.lessons.classroom.context import view
from ui.lessons.classroom.links import base, link, listens_here_alone, qr_svg
from ui.lessons.classroom.pictures import answered, distribution, left, students
from ui.lessons.classroom.server import classroom, look_again
from ui.lessons.classroom.teacher_key import TeacherKey, store_teacher_key, sync_teacher_key

EVERY = 1.0  # seconds
TIMES = {None: "class_no_limit", 30: "30 s", 60: "60 s", 120: "2 min", 300: "5 min"}
TROUBLE = "class_teacher_trouble"


@view
def teacher(context):
    """Teacher: asks, closes, shows, reveals."""
    words = context.words
    given = address.pop_secret("teacher")  # of a link that an earlier version made
    if given or not context.code:
        teacher_key = TeacherKey(given or "", has_answered=True)
    else:
        teacher_key = sync_teacher_key(context.code)
    if not teacher_key.value and not teacher_key.has_answered:
        return  # the browser is asked for the key; its answer draws the page again
    token = teacher_key.value
    try:
        now = classroom().of_teacher(token)
    except ClassError as error:
        st.warning(literal(error if token else words["class_no_key"]))
        entrance.draw(context)
        return
    if now.code != context.code or given:
        store_teacher_key(now.code, token)
        amend(code=now.code)
        st.rerun()
    _links(context, now, base(), token)
    fragment(_draw, run_every=EVERY)(context, token)
    _home(context, token, now, words)


def _links(context, now: TeacherView, page: str, token: str):
    """Two links and a QR code; what may lie between a phone and this computer."""
    words, door = context.words, link(page, code=now.code, **context.spoken)
    if listens_here_alone():
        st.info(words["class_here_alone"], icon=":material/wifi_off:")
    if read_only():
        st.caption(literal(words["class_disk"]))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"## {now.code}", width="content")
        with st.popover(words["class_qr"], icon=":material/qr_code:"):
            picture.draw("qr", qr_svg(door))
            st.code(door, language=None)
        with st.popover(words["class_key"], icon=":material/key:"):
            st.markdown(literal(words["class_key_about"]))
            st.code(token, language=None)
        projector = {"shown": "projector", "code": now.code} | context.spoken
        st.link_button(words["class_projector"], link(page, **projector), icon=":material/present_to_all:")


def _draw(context, token: str):
    """What goes on, looked at every second."""
    words = context.words
    try:
        now = classroom().of_teacher(token)
    except ClassError:
        st.rerun()
    trouble = st.session_state.pop(TROUBLE, "")
    if trouble:
        st.warning(literal(trouble))
    _next(context, token, now)
    of = context.asked(now.question) if now.question else None
    if of is None:
        st.caption(literal(students(now.seats, words)))
        return
    poll, students_say = st.columns([3, 2], gap="large")
    with poll:
        _poll(context, token, now, of)
    with students_say:
        _waiting(now, words)
        _reasons(token, now, words)


def _next(context, token: str, now: TeacherView):
    """Open a question: the next of those that are planned is offered first."""
    words = context.words
    offered = list(dict.fromkeys(name for name in (*now.planned, *names()) if name not in now.asked))
    if not offered:
        return
    first, second, third = st.columns([5, 2, 2], vertical_alignment="bottom")
    with first:
        name = st.selectbox(
            words["class_next"],
            offered,
            format_func=entrance.labels(context, offered).get,
            key=f"next_{len(now.asked)}",
        )
    with second:
        seconds = st.selectbox(
            words["class_time"],
            list(TIMES),
            index=2,
            format_func=lambda n: words.get(TIMES[n], TIMES[n]),
            key="seconds",
        )
    with third:
        # A button of its own for every question, and none while one is open: a second press would open the next, and close it.
        st.button(
            words["class_open"], type="primary", key=f"open_{len(now.asked)}", disabled=now.phase == OPEN,
            help=words["class_close_first"] if now.phase == OPEN else None,
            on_click=_do, args=(lambda: classroom().open(token, name, seconds),), width="stretch",
        )  # fmt: skip


def _poll(context, token: str, now: TeacherView, of):
    words = context.words
    about = words["class_round"].format(n=now.round) + left(now, words)
    st.markdown(f"### {literal(of.title)} :gray[:small[{literal(about)}]]")
    answered(now, words)
    _steps(token, now, of, words)
    # A teacher's screen is often the one on the wall.
    distribution(of, now, words, revealed=now.phase == REVEALED, key="teacher_distribution")
    if of.kind == PREDICTION and now.phase == REVEALED:
        told = measured_in_words(of.lesson, outcome(of.lesson), words)
        st.markdown(f"{literal(words['measured'])}: **{literal(told)}**")


def _steps(token: str, now: TeacherView, of, words):
    """What can be done now."""
    room = classroom()
    steps = []
    if now.phase == OPEN:
        steps.append(("class_close", "stop_circle", lambda: room.close(token)))
    once = of.kind == CHECK  # is not talked about
    if now.phase == CLOSED and now.round == 1 and not once:
        steps.append(("class_discuss_now", "forum", lambda: room.discuss(token)))
    if now.phase in (CLOSED, DISCUSSION) and now.round == 1 and not once:
        seconds = st.session_state.get("seconds")
        steps.append(("class_again", "how_to_vote", lambda: room.again(token, seconds)))
    if now.phase in (CLOSED, DISCUSSION):
        shown = now.shown
        steps.append(("class_hide" if shown else "class_show", "bar_chart", lambda: room.show(token, not shown)))
        steps.append(("class_reveal", "visibility", lambda: room.reveal(token)))
    with st.container(horizontal=True):
        for name, icon, step in steps:
            st.button(words[name], key=name, icon=f":material/{icon}:", on_click=_do, args=(step,))


def _waiting(now: TeacherView, words):
    """Who has not answered yet."""
    if now.phase == OPEN and now.waiting:
        # Each by itself (U+2068 … U+2069): one that is written from right to left turns no other around.
        named = (nickname or f"{words['class_seat']} {number}" for number, nickname in now.waiting[:40])
        names = ", ".join(f"\u2068{each}\u2069" for each in named)
        more = f" + {len(now.waiting) - 40}" if len(now.waiting) > 40 else ""
        st.caption(literal(f"{words['class_waiting']}: {names}{more}"))


def _reasons(token: str, now: TeacherView, words):
    """Lines to choose from, shown without names."""
    told = [reason for reason in now.reasons if reason.text]
    if not told or now.phase == OPEN:
        return
    st.markdown(f"**{literal(words['class_pick'])}**")
    with st.container(height=260):
        for reason in told:
            key = f"pick_{reason.id}"
            st.checkbox(
                literal(reason.text), value=reason.picked, key=key, on_change=_pick, args=(token, now, reason.id, key)
            )


def _pick(token: str, now: TeacherView, changed: int, key: str):
    picked = [reason.id for reason in now.reasons if reason.picked and reason.id != changed]
    if st.session_state[key]:
        picked.append(changed)
    if len(picked) > PICKED:
        st.session_state[key] = False
    _do(lambda: classroom().pick(token, picked))


def _do(step) -> bool:
    """One step of the class (a callback) -> whether it was done."""
    try:
        step()
    except (ClassError, StoreError) as error:
        st.session_state[TROUBLE] = getattr(error, "told", "") or str(error)
        return False
    finally:
        look_again()
    return True


def _home(context, token: str, now: TeacherView, words):
    """What can be taken home, and the end of the class."""
    st.divider()
    with st.expander(words["class_home"], icon=":material/download:"):
        room = classroom()
        for name in now.asked if now.phase == REVEALED else ():
            _changes(context, name, room.crosstab(token, name), words)
        if BEFORE in now.asked and AFTER in now.asked:
            st.markdown(literal(gained(room.answers(token), words)))
        with st.container(horizontal=True):
            download_link(
                words["class_csv"],
                f"class_{now.code}.csv",
                lambda: write_csv(readable(room.answers(token), words, context.look.language)),
                "text/csv",
            )
            download_link(
                words["class_html"],
                f"class_{now.code}.html",
                lambda: handout(room.answers(token), now.code, words, context.look.language),
                "text/html",
            )
        st.caption(literal(words["class_kept"]))
        sure = st.checkbox(words["class_end_sure"], key="end_sure")
        st.button(words["class_end"], disabled=not sure, key="end_class", on_click=partial(_end, token))


def _changes(context, name: str, crosstab, words):
    """Who changed their minds, where anybody voted twice."""
    of = context.asked(name)
    table = votes_table(of, crosstab) if of else ()
    if len(table):
        st.markdown(f"**{literal(entrance.label(context, name))}**: {literal(words['class_table'])}")
        st.table(table)


def _end(token: str):
    if _do(lambda: classroom().end(token)):  # else the token would be lost, and with it the way to delete anything
        change(shown="student", code="")
