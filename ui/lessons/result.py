"""What came out, beside what was predicted; the explanation; and what to do with it."""

from functools import partial

import streamlit as st

from core.teaching.lessons.entry import Entry
from core.teaching.lessons.language import ENGLISH
from core.teaching.lessons.lesson import Lesson, Way
from core.teaching.lessons.lessons import lesson as every
from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.outcome import Outcome
from core.teaching.lessons.prediction import AS_PREDICTED, NOT_AS_PREDICTED, verdict
from core.teaching.lessons.told import answer_in_words, carried_over, follows, measured_in_words
from core.teaching.lessons.wording import filled
from ui.kit.page import literal
from ui.kit.pages import LESSONS, PAGES
from ui.kit.store import value
from ui.lessons.progress import carry, forget

ICONS = {AS_PREDICTED: ":green[:material/check_circle:]", NOT_AS_PREDICTED: ":orange[:material/lightbulb:]"}
OPEN = ":blue[:material/help:]"


def told(lesson: Lesson, entry: Entry, out: Outcome, words):
    """The verdict, what was said, what was measured, and the explanation."""
    assert lesson.prediction is not None
    found = verdict(lesson.prediction, entry.answer, out)
    said = answer_in_words(lesson, entry.answer, out.unit)
    sure = words[f"was_sure_{entry.sure}"]
    about = f" ({literal(lesson.prediction.number.label)})" if lesson.prediction.number.label else ""
    because = f" “{literal(entry.because)}”" if entry.because else ""
    st.markdown(
        f"### {ICONS.get(found, OPEN)} {literal(words[found])}\n"
        f"{literal(words['you_said'])}: {literal(said)} :gray[({literal(sure)})]{because}  \n"
        f"{literal(words['measured'])}{about}: **{literal(measured_in_words(lesson, out, words))}**"
    )
    st.markdown(literal(follows(lesson, entry, out, words)))


def means(lesson: Lesson, out: Outcome, words):
    st.markdown(f"**{literal(words['what_it_means'])}**  \n{literal(filled(lesson.means, lesson, out))}")


def after(lesson: Lesson, entry: Entry, out: Outcome, words):
    """What it means; the experiment, something to change, the question that carries it over, the next lesson."""
    assert lesson.experiment and lesson.challenge
    means(lesson, out, words)
    left, right = st.columns(2, gap="medium")
    with left:
        way(words["run_it"], lesson.experiment)
        way(words["change_it"], lesson.challenge)
        with st.container(horizontal=True):
            _following(lesson, words)
            st.button(words["again"], type="tertiary", icon=":material/replay:", on_click=partial(forget, lesson.name))
    with right:
        _transfer(lesson, entry, words)


def _following(lesson: Lesson, words):
    """The link to the next lesson, in the language of the page: a link says all that is not as it is at first."""
    names, language = list(every), value("language")
    following = names[(names.index(lesson.name) + 1) % len(names)]
    title = read_lesson(following, language).title
    st.page_link(
        LESSONS.path,
        label=literal(words["next_lesson"].format(title=title)),
        icon=":material/arrow_forward:",
        query_params={"shown": "one", "lesson": following} | ({} if language == ENGLISH else {"language": language}),
    )


def way(title: str, to: Way):
    """A link to another page, and what to do there."""
    page = next(each for each in PAGES if each.key == to.page)
    with st.container(gap=None):
        st.page_link(
            page.path,
            label=f"**{literal(title)}** · {literal(page.name)}",
            icon=page.icon,
            query_params=dict(to.params),
        )
        st.caption(literal(to.text))


def _transfer(lesson: Lesson, entry: Entry, words):
    asked = lesson.transfer
    assert asked is not None
    st.markdown(f"**{literal(words['carry_over'])}**  \n{literal(asked.asks)}")
    key = f"carried_{lesson.name}"
    chosen = st.radio(
        words["carry_over"],
        range(len(asked.options)),
        format_func=lambda at: literal(asked.options[at]),
        index=entry.carried,
        key=key,
        label_visibility="collapsed",
        on_change=_carried,
        args=(lesson.name, key),
    )
    if isinstance(chosen, int):  # a browser can say anything
        st.markdown(literal(carried_over(lesson, chosen, words)))


def _carried(name: str, key: str):
    if isinstance(st.session_state[key], int):
        carry(name, st.session_state[key])
