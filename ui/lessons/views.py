"""Views of the page "Lessons": all lessons, one lesson, my report, a link for a class."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from core.settings.wording import distinct
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.picture import lesson_svg
from core.teaching.lessons.prediction import Entry, measure_outcome
from core.teaching.lessons.reader import PAGES as EXPERIMENTS
from core.teaching.lessons.reader import lesson, problems, read_lesson
from core.teaching.lessons.wording import explain, fill_in
from core.teaching.report import CONCLUSION, NAME, Report, measure_part, write_report
from ui.kit.limits import LOOK, PARAMETER, Limits
from ui.kit.page import literal
from ui.kit.pages import CLASS, LESSONS, PAGES, START, TRAINING, Page, link_params_of
from ui.kit.server.downloads import download_link
from ui.kit.store import bind, kinds_of, session
from ui.lessons import LessonsContext, view
from ui.lessons.addresses import QR, address_of, own_address, qr_svg, shared_address, with_params
from ui.lessons.html import (
    COLUMN,
    draw_answer_styles,
    draw_html,
    render_path,
    render_setting,
    render_top,
)
from ui.lessons.predict import draw_prediction_form
from ui.lessons.progress import progress
from ui.lessons.result import draw_next_steps, draw_svg, draw_verdict, draw_way, page_of

# Pixels of a lesson's head without its question, of a line of that, and the letters of a line.
HEAD = 88
LINE = 24
LETTERS = 104
FILE = "ablation-lab-report.html"
# Seconds. A click on the link ends what is typed in a field: the browser sends both at once, and
# the file is asked for before the run begins that stores what was typed.
DELAY = 1.0
FREE = ("variants", "out")  # settings that can be moved unless the teacher locks them
NO_CONTROL = ("baseline", "begin", "device", "dtype")  # settings that a class has no use for


@view.register("every", label="All lessons", help="predict, see the result, explain it.")
def every(context: LessonsContext):
    """Draw all lessons as cards, with progress and problems in their files."""
    for problem in problems:
        st.warning(literal(context.words["broken"].format(why=problem)))
    draw_html("path", render_path(progress().entries, context.look.language, context.words))


@view.register(
    "one", label="One lesson", help="question, prediction, result, check of your understanding."
)
def draw_lesson(context: LessonsContext):
    """Draw one lesson: question and form, or result and next steps; links if it asks nothing."""
    words = context.words
    lesson_shown = context.lesson(context.look.lesson)
    entries = progress().entries
    entry = entries.get(lesson_shown.name)
    draw_answer_styles(lesson_shown.name, lesson_shown if entry is None else None)
    with st.container(horizontal_alignment="center"), st.container(key="column", width=COLUMN):
        question = fill_in(lesson_shown.question, lesson_shown)
        top = render_top(lesson_shown, question, entries, context.look.language, words)
        draw_html("top", top, height=HEAD + LINE * -(-len(question) // LETTERS))
        if lesson_shown.prediction is None:
            for way in lesson_shown.ways:
                draw_way(words["free"], way)
        elif entry is None:
            _ask(lesson_shown, words)
        else:
            out = measure_outcome(lesson_shown)
            with st.container(key="card", border=True):
                left, right = st.columns([4, 3], gap="medium")
                with left:
                    _draw_picture(lesson_shown, words, entry.answer, out)
                with right:
                    draw_verdict(lesson_shown, entry, out, words)
            st.markdown(literal(explain(lesson_shown, entry, out, words)))
            draw_next_steps(lesson_shown, entry, out, words)


def _ask(lesson_shown: Lesson, texts: Mapping[str, str]):
    """Draw a lesson's prediction form below its picture; a number is shown on the scale at once."""
    picture = st.container(key="card", border=True)
    answer = draw_prediction_form(lesson_shown, texts)
    with picture:
        if lesson_shown.prediction.kind == "number":
            _draw_picture(lesson_shown, texts, answer)
        else:
            draw_html(
                "setting",
                render_setting(lesson_shown, texts),
                height=24 + 28 * len(lesson_shown.shown),
            )


def _draw_picture(lesson_shown: Lesson, texts: Mapping[str, str], answer, out=None):
    """Draw a lesson's picture: the outcome, or while `out` is None, the answer on the scale."""
    st.markdown(f"**{literal(lesson_shown.picture)}**")
    draw_svg("lesson", lesson_svg(lesson_shown, texts, answer, out))


@view.register(
    "report",
    label="My report",
    help="one HTML file to submit: predictions, results and a script that reproduces them.",
)
def report(context: LessonsContext):
    """Draw the report: list of predictions, name, conclusion, download; a notice without any."""
    words = context.words
    entries = progress().entries
    draw_answer_styles()
    with st.container(key="report", width=COLUMN):
        _draw_report(context, words, entries)


def _draw_report(context: LessonsContext, texts: Mapping[str, str], entries: Mapping[str, Entry]):
    """Draw the report view of lesson name -> Entry; a notice if there is no prediction yet."""
    st.markdown(f"**{literal(texts['report_title'])}**  \n{literal(texts['report_hand_in'])}")
    names = [name for name in lesson if name in entries]
    if not names:
        st.info(literal(texts["report_empty"]), icon=":material/edit_note:")
        return
    predicted = sum(read_lesson(name).prediction is not None for name in lesson)
    sentence = texts["report_holds"].format(n=len(names), all=predicted)
    not_carried = sum(entry.carried is None for entry in entries.values())
    if not_carried:
        sentence += " " + texts["report_open_ends"].format(n=not_carried)
    lines = [_describe(context.lesson(name), entries[name], texts) for name in names]
    st.markdown("\n".join([literal(sentence), "", *lines]))
    typed = session().kept.setdefault("report", {"name": "", "conclusion": ""})
    name = bind("report_name", typed["name"], partial(typed.__setitem__, "name"))
    st.text_input(texts["report_name"], max_chars=NAME, **name)
    conclusion = bind(
        "report_conclusion", typed["conclusion"], partial(typed.__setitem__, "conclusion")
    )
    st.text_area(texts["report_conclude"], max_chars=CONCLUSION, **conclusion)
    base = own_address()
    language = context.look.language
    settings = {}
    for key in EXPERIMENTS:
        page = page_of(key)
        params = link_params_of(key)
        if params:
            settings[page.name] = with_params(address_of(page.path, base), **params)

    def link_to_page(key: str, params: Mapping[str, str]) -> str:
        return with_params(address_of(page_of(key).path, base), **params)

    def write() -> str:
        predictions = {name: entries[name] for name in names}
        handed_in = Report(predictions, typed["name"], typed["conclusion"], settings)
        return write_report(handed_in, language, datetime.now(UTC), link_to_page)

    download_link(texts["report_download"], FILE, write, "text/html", delay=DELAY, primary=True)
    st.caption(literal(texts["report_nothing_else"]))


def _describe(lesson_shown: Lesson, entry: Entry, texts: Mapping[str, str]) -> str:
    """Return a Markdown line with a lesson's title and verdict, measured now."""
    verdict = measure_part(lesson_shown, entry).verdict
    sentence = (
        texts.get(f"{verdict}_short", texts[verdict]) if verdict else texts["report_not_measured"]
    )
    return f"- {lesson_shown.number} · {literal(lesson_shown.title)} :gray[{literal(sentence)}]"


@view.register(
    "teacher_link",
    label="Link for a class",
    help="a restricted link: selected pages, views and controls.",
)
def teacher_link(context: LessonsContext):
    """Draw the form in which a teacher builds a restricted link, and the link."""
    words = context.words
    st.markdown(literal(words["link_about"]))
    left, right = st.columns([3, 2], gap="large")
    with left:
        offered = {page.key: page for page in PAGES if page is not START}
        label = words["link_pages"]
        keys = st.multiselect(
            label,
            offered,
            default=["block"],
            format_func=lambda key: offered[key].name,
            key="link_pages",
        )
        if not keys:
            st.info(literal(words["link_none"]))
            return
        limits = _draw_limits(keys, offered[keys[0]], words)
    with right:
        _show_link(offered[keys[0]], limits, words)


def _draw_limits(page_keys: list[str], first_page: Page, texts: Mapping[str, str]) -> Limits:
    """Draw the controls of a link that opens `first_page` of these pages; return its Limits."""
    views = st.multiselect(
        texts["link_views"].format(page=first_page.name),
        list(first_page.views),
        format_func=first_page.views.label,
        placeholder=texts["link_all"],
        key=f"link_views_{first_page.key}",
    )
    definitions = {  # the settings of a page that was opened since the server started
        name: setting.label
        for kind in kinds_of.get(first_page.key, ())
        for name, setting in kind.settings().items()
        if setting.group != LOOK and name not in NO_CONTROL
    }

    def tick(label: str, names: list[str], key: str, default: list[str]) -> list[str]:
        labels = dict(zip(names, distinct(definitions[name] for name in names)))
        return st.multiselect(
            label, names, default=default, format_func=labels.get, key=f"{key}_{first_page.key}"
        )

    moved = []
    locked = []
    if definitions:
        moved = tick(
            texts["link_moved"],
            list(definitions),
            "link_moved",
            [name for name in FREE if name in definitions],
        )
        fixed_names = [name for name in definitions if name not in moved]
        locked = tick(texts["link_locked"], fixed_names, "link_locked", [])
    elif first_page is not LESSONS:
        st.caption(literal(texts["link_visit"].format(page=first_page.name)))
    params = dict(link_params_of(first_page.key))
    if first_page is LESSONS:
        labels = dict(zip(lesson, distinct(map(lesson.label, lesson))))
        name = st.selectbox(
            texts["link_lesson"], list(lesson), format_func=labels.get, key="link_lesson"
        )
        params = {"shown": "one", "lesson": name}
    if first_page is CLASS:  # students come as students
        params = {name: value for name, value in params.items() if name in ("code", "language")}
    large = st.toggle(texts["link_large"], key="link_large")
    if first_page is TRAINING and st.toggle(texts["link_begin"], key="link_begin"):
        params["begin"] = "on"
    shown_names = tuple(f"{first_page.key}.{name}" for name in views)
    return Limits(tuple(page_keys), shown_names, tuple(moved), tuple(locked), large, params)


def _show_link(first_page: Page, limits: Limits, texts: Mapping[str, str]):
    """Draw the restricted link as button, text and QR code, with a switch to embed it."""
    embedded = {"embed": "true"} if st.toggle(texts["link_embed"], key="link_embed") else {}
    params = {**limits.link, PARAMETER: limits.write(), **embedded}
    address = with_params(address_of(first_page.path, shared_address()), **params)
    st.link_button(texts["link_preview"], address, icon=":material/open_in_new:")
    st.code(address, language=None, wrap_lines=True)
    code = qr_svg(address)
    if code:
        draw_svg("link_qr", code)
    else:
        too_long = texts["link_too_long"].format(n=len(address.encode()), most=QR)
        st.info(literal(too_long), icon=":material/qr_code:")
    st.caption(literal(texts["link_holds"]))
