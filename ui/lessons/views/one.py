import streamlit as st

from core.teaching.lessons.language import is_complete
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.picture import sketches, svg
from core.teaching.lessons.wording import filled
from ui.kit.page import literal
from ui.lessons import predict, result
from ui.lessons.context import view
from ui.lessons.picture import draw
from ui.lessons.progress import progress


@view
def one(context):
    """One lesson: predict, see, explain, change, carry over."""
    words, lesson = context.words, context.lesson(context.look.lesson)
    entry = progress().entries.get(lesson.name)
    level = words[lesson.difficulty.replace(" ", "_")]
    about = f"{words['minutes'].format(n=lesson.minutes)} · {level}"
    if not is_complete(context.look.language, lesson.name):
        about += f" · {words['in_english']}"
    st.markdown(
        f"## {lesson.number} · {literal(lesson.title)} :gray[:small[{literal(about)}]]\n{literal(filled(lesson.question, lesson))}"
    )
    if lesson.prediction is None:
        for to in lesson.ways:
            result.way(words["free"], to)
        return
    left, right = st.columns(2, gap="medium")
    if entry is None:
        with left:
            answer = predict.ask(lesson, words)
        with right:
            _picture(lesson, words, answer)
        return
    out = outcome(lesson)
    with left:
        result.told(lesson, entry, out, words)
    with right:
        _picture(lesson, words, entry.answer, out)
    result.after(lesson, entry, out, words)


def _picture(lesson, words, answer, out=None):
    """Before the prediction is stored: what there is to predict, and the answer as it stands."""
    st.markdown(f"**{literal(lesson.picture)}**")
    if out is None and lesson.prediction.kind == "curve":
        draw("lesson", sketches(lesson))
    else:
        draw("lesson", svg(lesson, words, answer, out))
