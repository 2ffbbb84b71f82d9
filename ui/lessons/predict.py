"""Prediction form: answer, confidence, reason; stored before the result is shown."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from core.teaching.lessons.language import clean
from core.teaching.lessons.lesson import Lesson, Prediction
from core.teaching.lessons.picture import letter
from core.teaching.lessons.prediction import BECAUSE, SURE, Answer, Entry, check_answer
from core.teaching.lessons.readings import reading
from core.teaching.lessons.wording import fill_in
from ui.kit.page import literal
from ui.lessons.progress import store_prediction


def show_refusal(why: str) -> None:
    """Draw a toast that says why nothing was stored."""
    st.toast(literal(why), icon=":material/info:")


def draw_prediction_form(
    lesson: Lesson,
    texts: Mapping[str, str],
    on_submit: Callable[[str, Entry], None] = store_prediction,
    key_suffix: str = "",
    button_label: str = "",
    on_refuse: Callable[[str], None] = show_refusal,
    is_form: bool = False,
) -> Answer | None:
    """Draw the form of a prediction; return the answer it shows, or None while it has none.

    The button's callback is on_submit(lesson name, entry).

    Args:
        lesson: Lesson with a prediction.
        texts: Texts of the page.
        on_submit: Called with the lesson's name and the prediction.
        key_suffix: Key suffix of the controls; "" for the lesson's name.
        button_label: Label of the button; "" for the usual one.
        on_refuse: Called with a message if nothing is chosen.
        is_form: Whether to send nothing to the server before the button is pressed, as for a
            hundred students who answer at the same time; for one of a few options.
    """
    prediction = lesson.prediction
    key_suffix = key_suffix or lesson.name
    button_label = button_label or texts["store"]
    sent: dict[str, Any] = {
        "type": "primary",
        "on_click": _submit,
        "args": (lesson, texts, on_submit, key_suffix, on_refuse),
    }
    with st.form(f"form_{key_suffix}", border=False) if is_form else contextlib.nullcontext():
        st.markdown(f"## {literal(fill_in(prediction.asks, lesson))}")
        answer = ASKED[prediction.kind](lesson, prediction, texts, key_suffix)
        with st.container(horizontal=True):
            sure = draw_confidence(texts, key_suffix)
            hint = texts["because_hint"]
            st.text_input(
                texts["because"], max_chars=BECAUSE, placeholder=hint, key=f"because_{key_suffix}"
            )
        if is_form:
            st.form_submit_button(button_label, key=f"send_{key_suffix}", **sent)
        else:
            is_open = answer is None or sure is None
            tip = texts["store_first"] if is_open else None
            st.button(button_label, key=f"store_{key_suffix}", disabled=is_open, help=tip, **sent)
    return answer


def draw_confidence(texts: Mapping[str, str], key_suffix: str) -> int | None:
    """Draw the control for confidence; return its level, 0 (a guess) to 3, or None before."""
    return st.segmented_control(
        texts["sure"],
        list(SURE),
        format_func=lambda level: texts[f"sure_{level}"],
        key=f"sure_{key_suffix}",
        width="content",
    )


def _submit(
    lesson: Lesson,
    texts: Mapping[str, str],
    on_submit: Callable[[str, Entry], None],
    key_suffix: str,
    on_refuse: Callable[[str], None],
) -> None:
    """Pass the prediction that the controls show to `on_submit`, or refuse it (a callback)."""
    prediction = lesson.prediction
    values = st.session_state
    sure = values.get(f"sure_{key_suffix}")
    answer = values.get(f"answer_{key_suffix}")
    if prediction.kind == "number":
        answer = _as_stored(lesson, answer, values.get(f"within_{key_suffix}"))
    elif prediction.ranked:
        answer = _collect_ranks(prediction, lambda order: values.get(_rank_key(key_suffix, order)))
    try:
        answer = check_answer(prediction, answer)
    except ValueError:
        answer = None
    if answer is None or sure not in SURE:
        on_refuse(texts["store_first"])
    else:
        because = clean(values.get(f"because_{key_suffix}") or "")[:BECAUSE]
        on_submit(lesson.name, Entry(answer, sure, because))


def _as_stored(lesson: Lesson, number: float | None, within: float | None) -> list[float] | None:
    """Return [value, margin]: percent shown as a share, the margin as it is; None without one."""
    return (
        None
        if number is None or within is None
        else [round(number / _shown_unit(lesson)[0], 9), within]
    )


def _shown_unit(lesson: Lesson) -> tuple[float, str]:
    """Return (factor, sign): shown = factor × stored value; (100, " %") for percent, or (1, "")."""
    unit = reading[lesson.values[lesson.prediction.number.of[0]].reading].unit
    return (100, " %") if unit == "percent" else (1, "")


def _draw_choice(
    lesson: Lesson, prediction: Prediction, texts: Mapping[str, str], key_suffix: str
) -> int | None:
    """Draw the options of a prediction as radio buttons; return the index, from 0, or None."""

    def label(index: int) -> str:
        return f"**{letter(index)}** {literal(prediction.options[index].text)}"

    options = range(len(prediction.options))
    key = f"answer_{key_suffix}"
    look: dict[str, Any] = {"label_visibility": "collapsed", "width": "stretch"}
    chosen = st.radio(texts["predict"], options, format_func=label, index=None, key=key, **look)
    return (
        chosen if isinstance(chosen, int) else None
    )  # Streamlit returns a text that is no option any more


def _draw_number(
    lesson: Lesson, prediction: Prediction, texts: Mapping[str, str], key_suffix: str
) -> list[float] | None:
    """Draw a slider and a margin; return [value, margin], shares for percent, or None."""
    scale = prediction.scale
    factor, sign = _shown_unit(lesson)
    middle = (scale.low + scale.high) / 2
    low, high, value, step = (factor * end for end in (scale.low, scale.high, middle, scale.step))
    margin = texts["in_points"] if sign else "{n}"
    left, right = st.columns([3, 2], gap="medium")
    guess = left.slider(
        texts["number"],
        low,
        high,
        value,
        step,
        format=f"%g{sign.replace('%', '%%')}",
        key=f"answer_{key_suffix}",
    )
    within = right.segmented_control(
        texts["within"],
        scale.within,
        format_func=lambda value: f"± {margin.format(n=f'{factor * value:g}')}",
        default=scale.within[-1],
        required=True,
        key=f"within_{key_suffix}",
    )
    return _as_stored(lesson, guess, within)


def _draw_rank(
    lesson: Lesson, prediction: Prediction, texts: Mapping[str, str], key_suffix: str
) -> list[str] | None:
    """Draw a list for each next rank, the last as text; return names in order, None until all."""

    def ask_next(order: list[str]) -> str | None:
        label = texts["rank_next"].format(n=len(order) + 1) if order else texts["rank_first"]
        remaining = [name for name in prediction.ranked if name not in order]
        key = _rank_key(key_suffix, order)
        return st.selectbox(
            label,
            remaining,
            index=None,
            format_func=lambda name: lesson.values[name].label,
            key=key,
        )

    order = _collect_ranks(prediction, ask_next)
    if order:
        st.caption(literal(texts["rank_last"].format(label=lesson.values[order[-1]].label)))
    return order


def _collect_ranks(
    prediction: Prediction, ask_next: Callable[[list[str]], str | None]
) -> list[str] | None:
    """Ask for each rank but the last in turn; return all names in order, or None before.

    Args:
        prediction: Prediction with names to rank.
        ask_next: Returns the next name, given the names above; None if there is none yet.
    """
    order: list[str] = []
    for _ in prediction.ranked[1:]:
        chosen = ask_next(order)
        if chosen is None:
            return None
        order.append(chosen)
    return [*order, *(name for name in prediction.ranked if name not in order)]


def _rank_key(key_suffix: str, order: list[str]) -> str:
    """Return the widget key of the next rank, which depends on the ranks above."""
    return f"answer_{key_suffix}_{len(order)}_{'_'.join(order)}"


ASKED = {"choice": _draw_choice, "curve": _draw_choice, "number": _draw_number, "rank": _draw_rank}
