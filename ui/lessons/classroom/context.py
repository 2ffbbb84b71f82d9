"""What the views of the page "Class" share: their menu, what the address says, and the words."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.teaching.asked import Asked, asked
from core.teaching.classroom.given import code_of
from core.teaching.lessons.language import ENGLISH, language, phrases

view = Menu("Views of a class")


@dataclass(frozen=True)
class ClassLook(Settings):
    """What is looked at on the page "Class"."""

    shown: str = setting("student", "View", "Who looks.", group="Look", menu=view)
    code: str = setting("", "Code", "The five letters of a class.", group="Look", high=12)
    language: str = setting(ENGLISH, "Language", "In which language it is read.", group="Look", menu=language)


@dataclass(frozen=True)
class ClassContext:
    """What the views are handed. words: of the page, in the language that is chosen."""

    look: ClassLook

    @property
    def words(self) -> Mapping[str, str]:
        return phrases(self.look.language)

    @property
    def code(self) -> str:
        """The code, however it was spelled: one class, one seat."""
        typed = self.look.code.strip()
        return code_of(typed) or typed.upper()

    @property
    def spoken(self) -> dict[str, str]:
        """What a link of this class says of its language."""
        return {} if self.look.language == ENGLISH else {"language": self.look.language}

    def asked(self, name: str) -> Asked | None:
        return asked(name, self.words, self.look.language)
