"""Page "Class": its settings and the context of its views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.teaching.classroom import parse_code
from core.teaching.lessons.language import ENGLISH, language, phrases
from core.teaching.questions import Question, find_question

view: Menu[Any] = Menu("Views of a class")


@dataclass(frozen=True)
class ClassLook(Settings):
    """Settings of the page "Class"."""

    shown: str = setting(
        "student", "View", "Student, projector or teacher.", group="Look", menu=view
    )
    code: str = setting("", "Code", "Class code.", group="Look", high=12)
    language: str = setting(
        ENGLISH, "Language", "Language of this page.", group="Look", menu=language
    )


@dataclass(frozen=True)
class ClassContext:
    """Context of the views of Class."""

    look: ClassLook

    @property
    def words(self) -> Mapping[str, str]:
        """Texts of the page in the selected language, by key."""
        return phrases(self.look.language)

    @property
    def code(self) -> str:
        """Class code as stored, such as "BCDFG"; an impossible one as typed, in capitals."""
        typed = self.look.code.strip()
        return parse_code(typed) or typed.upper()

    def find_question(self, name: str) -> Question | None:
        """Return a question in the selected language; None for an unknown or empty name."""
        return find_question(name, self.words, self.look.language)

    def link_params(self, **params: str) -> dict[str, str]:
        """Return these link parameters, and the language unless it is English; no others."""
        return (
            params if self.look.language == ENGLISH else {**params, "language": self.look.language}
        )


# They enter the views in the menu, in this order.
from ui.lessons.classroom import student, projector, teacher  # noqa: E402, F401, I001
