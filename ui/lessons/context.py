"""What the views of the page "Lessons" share: their menu, what is looked at, and what they are handed."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.teaching.lessons.language import ENGLISH, language, phrases
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.lessons import lesson, read_lesson

view = Menu("Views of lessons")


@dataclass(frozen=True)
class LessonsLook(Settings):
    """What is looked at on the page "Lessons"."""

    shown: str = setting("every", "View", "What to look at.", group="Look", menu=view)
    lesson: str = setting(next(iter(lesson), ""), "Lesson", "Which lesson is open.", group="Look", menu=lesson)
    language: str = setting(ENGLISH, "Language", "In which language lessons are read.", group="Look", menu=language)


@dataclass(frozen=True)
class LessonsContext:
    """What the views are handed. words: of the page, in the language that is chosen."""

    look: LessonsLook

    @property
    def words(self) -> Mapping[str, str]:
        return phrases(self.look.language)

    def lesson(self, name: str) -> Lesson:
        return read_lesson(name, self.look.language)
