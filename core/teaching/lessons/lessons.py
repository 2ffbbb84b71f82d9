"""The menu of lessons: every file in lessons/, in the order of their numbers."""

import functools
from collections.abc import Callable
from typing import Any

from core.settings.menu import Menu
from core.teaching.lessons.language import ENGLISH, is_complete, translated
from core.teaching.lessons.lesson import Lesson, LessonError
from core.teaching.lessons.reader import FOLDER, lesson_of, load

lesson: Menu[Callable[[], None]] = Menu("Lessons")
problems: list[str] = []  # with files that cannot be read: each costs its own lesson
_given: dict[str, dict[str, Any]] = {}


def _enter(made: Lesson) -> None:
    def entry() -> None: ...

    entry.__name__, entry.__doc__ = made.name, f"{made.title}: {made.question}"
    lesson(entry)


def _enter_all() -> None:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        try:
            given = load(path)
            found.append(lesson_of(path.stem, given))
        except LessonError as error:
            problems.append(str(error))
        else:
            _given[path.stem] = given
    for made in sorted(found, key=lambda each: (each.number, each.name)):
        _enter(made)


@functools.cache
def read_lesson(name: str, language: str = ENGLISH) -> Lesson:
    """One of the menu, in a language, or else in English. Raises LessonError where a translation does not fit."""
    own = language if is_complete(language, name) else ENGLISH
    return lesson_of(name, translated(own, name, _given[name]), own)


_enter_all()
