"""The prediction: an answer, how sure, and because of what; stored before any result is computed for this visitor."""

import streamlit as st

from core.teaching.lessons.entry import Entry, clean
from core.teaching.lessons.lesson import Lesson, Prediction
from core.teaching.lessons.picture import letter
from core.teaching.lessons.prediction import BECAUSE, SURE, Answer, check
from core.teaching.lessons.readings import reading
from core.teaching.lessons.wording import filled
from ui.kit.page import literal
from ui.lessons.progress import store


def ask(lesson: Lesson, words, then=store) -> Answer | None:
    """The controls -> the answer as it stands in them, None while there is none. then: called with what is to be stored."""
    asked = lesson.prediction
    assert asked is not None
    st.markdown(f"**{words['predict']}**  \n{literal(filled(asked.asks, lesson))}")
    answer = ASKED[asked.kind](lesson, asked, words)
    sure = st.segmented_control(
        words["sure"], list(SURE), format_func=lambda n: words[f"sure_{n}"], default=1, key=f"sure_{lesson.name}"
    )
    because = st.text_input(
        words["because"], max_chars=BECAUSE, placeholder=words["because_hint"], key=f"because_{lesson.name}"
    )
    st.button(
        words["store"],
        type="primary",
        key=f"store_{lesson.name}",
        disabled=answer is None,
        help=words["store_first"] if answer is None else None,
        on_click=_store,
        args=(lesson, answer, sure, because, then),
    )
    return answer


def _store(lesson: Lesson, answer, sure, because, then):
    assert lesson.prediction is not None
    then(lesson.name, Entry(check(lesson.prediction, answer), 1 if sure is None else sure, clean(because or "")))


def _choice(lesson: Lesson, asked: Prediction, words) -> int | None:
    curves = asked.kind == "curve"

    def label(at: int) -> str:
        return (f"{letter(at)}: " if curves else "") + literal(asked.options[at].text)

    key = f"answer_{lesson.name}"
    return st.radio(words["predict"], range(len(asked.options)), format_func=label, index=None, key=key, label_visibility="collapsed")  # fmt: skip


def _number(lesson: Lesson, asked: Prediction, words) -> list[float] | None:
    scale = asked.scale
    assert scale is not None
    unit = reading[lesson.values[asked.number.of[0]].reading].unit
    factor, sign = (100, " %") if unit == "percent" else (1, "")
    guess = st.slider(
        words["number"],
        scale.low * factor,
        scale.high * factor,
        (scale.low + scale.high) / 2 * factor,
        scale.step * factor,
        format=f"%g{sign.replace('%', '%%')}",
        key=f"answer_{lesson.name}",
    )
    within = st.segmented_control(
        words["within"],
        scale.within,
        format_func=lambda value: f"± {factor * value:g}{sign}",
        default=scale.within[-1],
        required=True,
        key=f"within_{lesson.name}",
    )
    return [round(guess / factor, 9), within]


def _rank(lesson: Lesson, asked: Prediction, words) -> list[str] | None:
    order: list[str] = []
    for place in range(len(asked.ranked) - 1):
        left = [name for name in asked.ranked if name not in order]
        chosen = st.selectbox(
            words["rank_first"] if place == 0 else words["rank_next"].format(n=place + 1),
            left,
            index=None,
            format_func=lambda name: lesson.values[name].label,
            key=f"answer_{lesson.name}_{place}_{'_'.join(order)}",
        )
        if chosen is None:
            return None
        order.append(chosen)
    (last,) = [name for name in asked.ranked if name not in order]
    st.caption(literal(words["rank_last"].format(label=lesson.values[last].label)))
    return [*order, last]


ASKED = {"choice": _choice, "curve": _choice, "number": _number, "rank": _rank}
