"""Languages of lessons and of the words around them.

The lessons are in English; languages/en.toml holds the words around them. Another language is one
more file: the same words, and the texts of the lessons that it translates. Texts that it lacks stay
English.
"""

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.settings.menu import Menu

FOLDER = Path(__file__).parent.parent.parent.parent / "languages"
ENGLISH = "en"
# Control characters, halves of characters, and marks that turn the direction of the writing behind
# them.
UNFIT = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

language: Menu[str] = Menu("Languages")


@functools.cache
def _read(language_name: str) -> dict[str, Any]:
    """Read the TOML file of one language, such as "en"."""
    content: dict[str, Any] = tomllib.loads(
        (FOLDER / f"{language_name}.toml").read_text(encoding="utf-8-sig")
    )
    return content


@functools.cache
def phrases(language_name: str) -> Mapping[str, str]:
    """Return key -> words around lessons in a language; in English where it has none."""
    return {**_read(ENGLISH)["words"], **_read(language_name)["words"]}


def translate_lesson(language_name: str, lesson: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a lesson's content in this language; texts that it lacks stay."""
    return {
        **document,
        **_replace(document, _read(language_name).get("lessons", {}).get(lesson, {})),
    }


def translate_check(language_name: str, document: list[Any]) -> list[Any]:
    """Return the questions of the check in this language; texts that it lacks stay."""
    questions: list[Any] = _replace(document, _read(language_name).get("check", []))
    return questions


def has_lesson(language_name: str, lesson: str) -> bool:
    """Return whether this language has any texts of the lesson; English has all."""
    return language_name == ENGLISH or lesson in _read(language_name).get("lessons", {})


def _replace(document: Any, texts: Any) -> Any:
    """Return a copy of a nested document, with the texts that `texts` has at the same place."""
    if isinstance(document, dict) and isinstance(texts, dict):
        return {
            key: _replace(value, texts[key]) if key in texts else value
            for key, value in document.items()
        }
    if isinstance(document, list) and isinstance(texts, list):
        return [_replace(*both) for both in zip(document, texts)] + document[len(texts) :]
    return texts


def clean(text: str) -> str:
    """Return typed text as one line, without characters that cannot be stored or shown."""
    return " ".join(UNFIT.sub("", " ".join(text.split())).split())


# Every file is an entry of the menu, English first; its label is the name that the language has for
# itself.
for path in sorted(FOLDER.glob("*.toml"), key=lambda path: (path.stem != ENGLISH, path.stem)):
    language.add(path.stem, label=_read(path.stem)["name"], help="lessons in this language.")
