"""The prediction: an answer, how sure, and because of what; stored before any result is computed for this visitor."""

from collections.abc import Callable

import streamlit as st

from core.teaching.lessons.entry import Entry, clean
from core.teaching.lessons.lesson import Lesson, Prediction
from core.teaching.lessons.picture import letter
from core.teaching.lessons.prediction import BECAUSE, SURE, Answer, check
from core.teaching.lessons.readings import reading
from core.teaching.lessons.wording import filled
from ui.kit.page import literal
from ui.lessons.progress import store


def _told(why: str):
    st.toast(literal(why), icon=":material/info:")


def ask(
    lesson: Lesson, words, then=store, place: str = "", button: str = "", refused: Callable[[str], None] = _told
) -> Answer | None:
    """The controls -> the answer as it stands in them, None while there is none. then: called with what is to be stored; place: by
    which its controls are told from those of another question; button: what it says; refused: as of ask_at_once()."""
    place = place or lesson.name
    answer = _answer(lesson, words, place)
    sure, because = _reason(words, place)
    st.button(
        button or words["store"],
        type="primary",
        key=f"store_{place}",
        disabled=answer is None or sure is None,
        help=words["store_first"] if answer is None or sure is None else None,
        on_click=_sent,
        args=(lesson, words, then, place, refused),
    )
    return answer


def ask_at_once(lesson: Lesson, words, then, place: str, button: str, refused):
    """The same in one go: nothing is asked of the server before the button is pressed, as where a hundred answer at the same time.
    For one of a few; refused: called with what is said where nothing is chosen."""
    with st.form(f"form_{place}", border=False):
        _answer(lesson, words, place)
        _reason(words, place)
        st.form_submit_button(
            button, type="primary", key=f"send_{place}", on_click=_sent,
            args=(lesson, words, then, place, refused),
        )  # fmt: skip


def _answer(lesson: Lesson, words, place: str) -> Answer | None:
    asked = lesson.prediction
    assert asked is not None
    st.markdown(f"**{words['predict']}**  \n{literal(filled(asked.asks, lesson))}")
    return ASKED[asked.kind](lesson, asked, words, place)


def _reason(words, place: str) -> tuple[int | None, str]:
    """How sure, and because of what."""
    # Nothing is chosen beforehand: what nobody has said would be taken down as said.
    sure = st.segmented_control(
        words["sure"], list(SURE), format_func=lambda n: words[f"sure_{n}"], key=f"sure_{place}"
    )
    because = st.text_input(
        words["because"], max_chars=BECAUSE, placeholder=words["because_hint"], key=f"because_{place}"
    )
    return sure, because


def _sent(lesson: Lesson, words, then, place: str, refused: Callable[[str], None]):
    """What stands in the controls by now: a press may come together with what was moved, or taken back, just before."""
    asked, seen = lesson.prediction, st.session_state
    assert asked is not None
    sure, because = seen.get(f"sure_{place}"), seen.get(f"because_{place}")
    if asked.kind == "number":
        answer = _guessed(lesson, seen.get(f"answer_{place}"), seen.get(f"within_{place}"))
    elif asked.ranked:
        answer = _ordered(asked, lambda order: seen.get(_key_of_rank(place, order)))
    else:
        answer = seen.get(f"answer_{place}")
    try:
        answer = check(asked, answer)
    except ValueError:
        answer = None
    if answer is None or sure not in SURE:
        refused(words["store_first"])
    else:
        then(lesson.name, Entry(answer, sure, clean(because or "")))


def _guessed(lesson: Lesson, guess, within) -> list[float] | None:
    """The answer that a slider and a range stand for."""
    return None if guess is None or within is None else [round(guess / _factor(lesson)[0], 9), within]


def _factor(lesson: Lesson) -> tuple[float, str]:
    """By which a number is shown, and what stands behind it."""
    assert lesson.prediction is not None
    unit = reading[lesson.values[lesson.prediction.number.of[0]].reading].unit
    return (100, " %") if unit == "percent" else (1, "")


def _choice(lesson: Lesson, asked: Prediction, words, place: str) -> int | None:
    curves = asked.kind == "curve"

    def label(at: int) -> str:
        return (f"{letter(at)}: " if curves else "") + literal(asked.options[at].text)

    key = f"answer_{place}"
    chosen = st.radio(words["predict"], range(len(asked.options)), format_func=label, index=None, key=key, label_visibility="collapsed")  # fmt: skip
    return chosen if isinstance(chosen, int) else None  # a browser can say anything


def _number(lesson: Lesson, asked: Prediction, words, place: str) -> list[float] | None:
    scale = asked.scale
    assert scale is not None
    factor, sign = _factor(lesson)
    guess = st.slider(
        words["number"],
        scale.low * factor,
        scale.high * factor,
        (scale.low + scale.high) / 2 * factor,
        scale.step * factor,
        format=f"%g{sign.replace('%', '%%')}",
        key=f"answer_{place}",
    )
    within = st.segmented_control(
        words["within"],
        scale.within,
        format_func=lambda value: f"± {factor * value:g}{sign}",
        default=scale.within[-1],
        required=True,
        key=f"within_{place}",
    )
    return _guessed(lesson, guess, within)


def _rank(lesson: Lesson, asked: Prediction, words, place: str) -> list[str] | None:
    def ask_for(order: list[str]):
        return st.selectbox(
            words["rank_next"].format(n=len(order) + 1) if order else words["rank_first"],
            [name for name in asked.ranked if name not in order],
            index=None,
            format_func=lambda name: lesson.values[name].label,
            key=_key_of_rank(place, order),
        )

    order = _ordered(asked, ask_for)
    if order:
        st.caption(literal(words["rank_last"].format(label=lesson.values[order[-1]].label)))
    return order


def _ordered(asked: Prediction, chosen_after: Callable[[list[str]], str | None]) -> list[str] | None:
    """What is chosen after what has been chosen, and the last one, which is left; None while one of them is not chosen."""
    order: list[str] = []
    for _ in asked.ranked[1:]:
        chosen = chosen_after(order)
        if chosen is None:
            return None
        order.append(chosen)
    return [*order, *(name for name in asked.ranked if name not in order)]


def _key_of_rank(place: str, order: list[str]) -> str:
    return f"answer_{place}_{len(order)}_{'_'.join(order)}"


ASKED = {"choice": _choice, "curve": _choice, "number": _number, "rank": _rank}
