"""Page "Lessons": its settings, its context and the list of languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.teaching.lessons.language import ENGLISH, language, phrases
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.reader import lesson, read_lesson
from ui.kit.panel.control import Control, choice

view: Menu[Any] = Menu("Views of lessons")

# Streamlit says English of every page. The menu beside the page stays English, and so do the other
# pages: the language ends
# with this page, unless the next one has set one already.
_language = st.components.v2.component(
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


@dataclass(frozen=True)
class LessonsLook(Settings):
    """Settings of the page "Lessons"."""

    shown: str = setting("every", "View", "View of this page.", group="Look", menu=view)
    lesson: str = setting(
        next(iter(lesson), ""), "Lesson", "The open lesson.", group="Look", menu=lesson
    )
    language: str = setting(
        ENGLISH, "Language", "Language of the lessons.", group="Look", menu=language
    )


@dataclass(frozen=True)
class LessonsContext:
    """Context of the views of Lessons."""

    look: LessonsLook

    @property
    def words(self) -> Mapping[str, str]:
        """Texts around lessons in the selected language, by key."""
        return phrases(self.look.language)

    def lesson(self, name: str) -> Lesson:
        """Return a lesson in the selected language; LessonError for a damaged one."""
        return read_lesson(name, self.look.language)


def language_list(label: str, chosen: str) -> Control:
    """Return the control that selects the language of lessons."""
    names = list(language)
    return choice(label, "language", chosen, names, [language.label(name) for name in names])


def set_language(language_code: str) -> None:
    """Set the document's language in the browser, for screen readers and translators."""
    _language(key="spoken", data=language_code)


from ui.lessons import views  # noqa: E402, F401  (enters the views in the menu)
