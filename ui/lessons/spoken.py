"""The language in which lessons are read: the list to choose from, and, for screen readers, which it is. Streamlit says English of
all of a page."""

import streamlit as st

from core.teaching.lessons.language import language
from ui.kit.panel.control import Control, choice

# The menu beside the page stays English, and so do the other pages: what is said here ends with this one.
_spoken = st.components.v2.component(
    "ablation_spoken",
    js="""
export default ({ data }) => {
  const main = document.querySelector("[data-testid=stMain]")
  main?.setAttribute("lang", data)
  return () => main?.removeAttribute("lang")
}
""",
)


def languages(label: str, now: str) -> Control:
    """The list of languages."""
    names = list(language)
    return choice(label, "language", now, names, [language.label(each) for each in names])


def spoken(name: str):
    """Tell the browser."""
    _spoken(key="spoken", data=name)
