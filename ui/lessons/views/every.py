import streamlit as st

from core.teaching.lessons.language import is_complete
from core.teaching.lessons.lessons import lesson, problems
from ui.kit.page import literal
from ui.kit.store import change
from ui.lessons.context import view
from ui.lessons.progress import progress

ACROSS = 3  # cards in a row


@view
def every(context):
    """All lessons: each a question, a prediction, an experiment, and what comes out."""
    words, entries = context.words, progress().entries
    st.markdown(literal(words["why_predict"]))
    for why in problems:
        st.warning(literal(words["broken"].format(why=why)))
    names = list(lesson)
    for first in range(0, len(names), ACROSS):
        columns = st.columns(ACROSS, gap="small")
        for column, name in zip(columns, names[first : first + ACROSS]):
            with column, st.container(border=True, height="stretch", gap="xxsmall"):
                _card(context.lesson(name), entries.get(name), words, context.look.language)


def _card(of, entry, words, language: str):
    level = words[of.difficulty.replace(" ", "_")]
    about = [words["minutes"].format(n=of.minutes), level]
    about += [] if is_complete(language, of.name) else ["EN"]
    state = "" if entry is None else words["predicted" if entry.carried is None else "done"]
    told = f":small[:gray[{literal(' · '.join(about))}]]" + f" :green-badge[:material/check: {literal(state)}]" * bool(
        state
    )
    st.button(
        f"**{of.number} · {literal(of.title)}**",
        key=f"open_{of.name}",
        type="tertiary",
        on_click=change,
        kwargs={"shown": "one", "lesson": of.name},
    )
    st.markdown(told)
