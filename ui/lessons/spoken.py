"""The language in which lessons and classes are read: the list to choose from, and what tells the browser which it is.

Screen readers and translators go by it. Streamlit says English of every page.
"""

import streamlit as st

from core.teaching.lessons.language import language
from ui.kit.panel.control import Control, choice

# The menu beside the page stays English (ui/kit/panel/menu.html), and so do the other pages: what is said here ends with this one,
# unless the next page has said something already.
_spoken = st.components.v2.component(
    "ablation_spoken",
    js="""
export default ({ data }) => {
  const root = document.documentElement
  const said = root.ablationLanguage = {}
  root.lang = data
  return () => { if (root.ablationLanguage === said) root.lang = "en" }
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
