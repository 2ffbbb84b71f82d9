"""Lesson: question, prediction, experiment, explanation, variation, transfer.

All of it is data, read from a file in lessons/ (reader.py); docs/pages/lessons.md says how to
write one.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.setting import ConfigError
from core.teaching.lessons.language import ENGLISH

FIELD = re.compile(
    r"\{(\w+)(:range)?\}"
)  # in a text: a value's name, and whether its interval is meant


class LessonError(ConfigError):
    """Lesson's file that cannot be used: its name, the mistake, and what is allowed."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, f"Lesson “{name}”: {message}")


@dataclass(frozen=True)
class Value:
    """Measured value: its label in pictures, its reading and the reading's parameters."""

    label: str
    reading: str
    params: Mapping[str, str]


@dataclass(frozen=True)
class Number:
    """Predicted quantity.

    Args:
        kind: Key of prediction.combine.
        of: Names of values.
    """

    kind: str
    of: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Option:
    """Answer to a prediction; right if the number is from `low` up to, but below, `high`.

    Args:
        instead: Explanation for a student who chose it and was wrong.
        sketch: Heights of a curve, from 0 to 1.
    """

    text: str
    low: float = -math.inf
    high: float = math.inf
    instead: str = ""
    sketch: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scale:
    """Scale of a number, and the ranges around it that can be chosen."""

    low: float
    high: float
    step: float
    within: tuple[float, ...]


@dataclass(frozen=True)
class Prediction:
    """Prediction. kind: one of prediction.KINDS; ranked: names of the values to order."""

    kind: str
    asks: str
    number: Number
    options: tuple[Option, ...] = ()
    scale: Scale | None = None
    ranked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """Link to a page of the app: what to do there, the page's key, and its parameters."""

    text: str
    page: str
    params: Mapping[str, str]


@dataclass(frozen=True)
class Transfer:
    """Question about another case. right: index of the right option, from 0."""

    asks: str
    options: tuple[str, ...]
    right: int
    because: str


@dataclass(frozen=True)
class Lesson:
    """Lesson, as read from its file.

    Args:
        shown: Names of the values in its picture.
        explanation: Verdict to text.
        ways: Links of a lesson without a prediction.
        language: Of its texts.
    """

    name: str
    number: int
    title: str
    minutes: int
    difficulty: str
    question: str
    values: Mapping[str, Value]
    shown: tuple[str, ...]
    picture: str
    prediction: Prediction | None
    experiment: Way | None
    explanation: Mapping[str, str]
    means: str
    challenge: Way | None
    transfer: Transfer | None
    ways: tuple[Way, ...] = ()
    language: str = ENGLISH

    @property
    def given_values(self) -> set[str]:
        """Names of the values that are shown before the prediction."""
        asks = self.prediction.asks if self.prediction else ""
        return {name for text in (self.question, asks) for name, _ in FIELD.findall(text)}
