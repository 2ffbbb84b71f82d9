"""In which language lessons, and the words around them, are read.

English stands in the lessons themselves; languages/en.toml holds the words around them. Another language is one more file in
languages/: the same words, and of each lesson the texts that it translates. What it lacks stays English.
"""

import functools
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.settings.menu import Menu

FOLDER = Path(__file__).parent.parent.parent.parent / "languages"
ENGLISH = "en"

language: Menu[Callable[[], None]] = Menu("Languages")


def _enter(path: Path) -> None:
    """One file, one entry: its label is what the language calls itself."""

    def entry() -> None: ...

    entry.__name__, entry.__doc__ = path.stem, f"{_read(path.stem)['name']}: lessons in this language."
    language(entry)


@functools.cache
def _read(name: str) -> dict[str, Any]:
    held: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8-sig"))
    return held


@functools.cache
def phrases(name: str) -> Mapping[str, str]:
    """The words around lessons, by their keys."""
    return {**_read(ENGLISH)["words"], **_read(name)["words"]}


def translated(name: str, lesson: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a lesson's file holds, its texts in this language."""
    return {**given, **_over(given, _read(name).get("lessons", {}).get(lesson, {}))}


def is_complete(name: str, lesson: str) -> bool:
    """Whether this language has texts of the lesson."""
    return name == ENGLISH or lesson in _read(name).get("lessons", {})


def _over(given: Any, texts: Any) -> Any:
    """Texts in the places of those that are given; of lists one after the other."""
    if isinstance(given, dict) and isinstance(texts, dict):
        return {key: _over(value, texts[key]) if key in texts else value for key, value in given.items()}
    if isinstance(given, list) and isinstance(texts, list):
        return [_over(*both) for both in zip(given, texts)] + given[len(texts) :]
    return texts


for each in sorted(FOLDER.glob("*.toml"), key=lambda path: (path.stem != ENGLISH, path.stem)):
    _enter(each)
