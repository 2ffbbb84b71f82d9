"""Result of a lesson: prediction and outcome, explanation, next steps, picture."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import streamlit as st

from core.teaching.lessons.lesson import Lesson, Way
from core.teaching.lessons.prediction import AS_PREDICTED, NOT_AS_PREDICTED, Entry, Outcome, verdict
from core.teaching.lessons.reader import read_lesson
from core.teaching.lessons.wording import (
    describe_answer,
    describe_outcome,
    explain,
    explain_transfer,
    fill_in,
    name_result,
)
from ui.kit.page import literal
from ui.kit.pages import LESSONS, PAGES, Page
from ui.kit.server.scripts import store_script
from ui.kit.store import value
from ui.lessons.html import lesson_params, order_lessons
from ui.lessons.progress import forget_prediction, store_transfer_answer

ICONS = {
    AS_PREDICTED: ":green[:material/check_circle:]",
    NOT_AS_PREDICTED: ":orange[:material/lightbulb:]",
}
OPEN = ":blue[:material/help:]"
CSS = """
.root { font-family: var(--st-font); color: var(--st-text-color); position: relative; }
.picture svg { width: 100%; max-width: 460px; height: auto; display: block; }
"""
_picture = st.components.v2.component(
    "ablation_lesson",
    html='<div class="root"><div class="picture"></div><div hidden></div></div>',
    css=CSS,
    js=store_script((Path(__file__).parent.parent / "pictures" / "drawing.js").read_text()),
)


def draw_svg(key: str, svg: str) -> None:
    """Draw an SVG picture in the component of lessons."""
    _picture(key=key, data={"picture": svg, "clicked": False})


def page_of(key: str) -> Page:
    """Return the page of this key, such as "block"."""
    return next(page for page in PAGES if page.key == key)


def draw_verdict(lesson: Lesson, entry: Entry, out: Outcome, texts: Mapping[str, str]) -> None:
    """Draw the verdict, the prediction, and the measured result."""
    result = verdict(lesson.prediction, entry.answer, out)
    sentence = describe_answer(lesson, entry.answer)
    sure = texts[f"was_sure_{entry.sure}"]
    because = f" “{literal(entry.because)}”" if entry.because else ""
    st.markdown(
        f"## {ICONS.get(result, OPEN)} {literal(texts[result])}\n{literal(texts['you_said'])}:"
        f" {literal(sentence)}"
        f" :gray[({literal(sure)})]{because}\n\n{literal(name_result(lesson, texts))}:"
        f" **{literal(describe_outcome(lesson, out, texts))}**"
    )


def draw_result(lesson: Lesson, entry: Entry, out: Outcome, texts: Mapping[str, str]) -> None:
    """Draw the verdict with its numbers, and the explanation."""
    draw_verdict(lesson, entry, out, texts)
    st.markdown(literal(explain(lesson, entry, out, texts)))


def draw_meaning(lesson: Lesson, out: Outcome, texts: Mapping[str, str]) -> None:
    """Draw the paragraph on what the outcome means."""
    st.markdown(
        f"**{literal(texts['what_it_means'])}**  \n{literal(fill_in(lesson.means, lesson, out))}"
    )


def draw_next_steps(lesson: Lesson, entry: Entry, out: Outcome, texts: Mapping[str, str]) -> None:
    """Draw meaning, links, transfer question (stores answers), next lesson and “again” button."""
    draw_meaning(lesson, out, texts)
    left, right = st.columns(2, gap="medium")
    with left:
        draw_way(texts["run_it"], lesson.experiment)
    with right:
        draw_way(texts["change_it"], lesson.challenge)
    _ask_transfer(lesson, entry, texts)
    with st.container(horizontal=True, vertical_alignment="center"):
        names = order_lessons()
        language = value("language")
        following = names[(names.index(lesson.name) + 1) % len(names)]
        label = texts["next_lesson"].format(title=read_lesson(following, language).title)
        with st.container(key="next", width="content"):
            icon = ":material/arrow_forward:"
            st.page_link(
                LESSONS.path,
                label=literal(label),
                icon=icon,
                query_params=lesson_params(following, language),
            )
        st.button(
            texts["again"],
            type="tertiary",
            icon=":material/replay:",
            on_click=partial(forget_prediction, lesson.name),
        )


def draw_way(title: str, way: Way) -> None:
    """Draw a link to another page, and what to do there."""
    page = page_of(way.page)
    label = f"**{literal(title)}** · {literal(page.name)}"
    with st.container(gap=None):
        st.page_link(page.path, label=label, icon=page.icon, query_params=dict(way.params))
        st.caption(literal(way.text))


def _ask_transfer(lesson: Lesson, entry: Entry, texts: Mapping[str, str]) -> None:
    """Draw the transfer question, storing the answer, and once answered its explanation."""
    transfer = lesson.transfer
    key = f"carried_{lesson.name}"
    st.markdown(f"**{literal(texts['carry_over'])}**  \n{literal(transfer.asks)}")

    def store_answer() -> None:
        if isinstance(
            st.session_state[key], int
        ):  # Streamlit returns a text that is no option any more
            store_transfer_answer(lesson.name, st.session_state[key])

    chosen = st.radio(
        texts["carry_over"],
        range(len(transfer.options)),
        format_func=lambda index: literal(transfer.options[index]),
        index=entry.carried,
        key=key,
        label_visibility="collapsed",
        width="stretch",
        on_change=store_answer,
    )
    if isinstance(chosen, int):
        st.markdown(literal(explain_transfer(lesson, chosen, texts)))
