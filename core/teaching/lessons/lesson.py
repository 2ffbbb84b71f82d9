"""What a lesson is: a question, a prediction, an experiment, an explanation, something to change, something to carry over.

All of it is data, read from a file of its own in lessons/ (core/teaching/lessons/reader.py); how to write one stands in docs/pages/lessons.md.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.setting import ConfigError
from core.teaching.lessons.language import ENGLISH

FIELD = re.compile(r"\{(\w+)(:range)?\}")  # in a text: a value's name, and whether its interval is meant


class LessonError(ConfigError):
    """A lesson's file that cannot be used: which, what is wrong there, and what is allowed."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, f"Lesson “{name}”: {message}")


@dataclass(frozen=True)
class Value:
    """Something that is measured: what it is called in pictures, by which reading, of what."""

    label: str
    reading: str
    params: Mapping[str, str]


@dataclass(frozen=True)
class Number:
    """What a prediction is about. kind: an entry of core.teaching.lessons.outcome.combine; of: names of values, in its order."""

    kind: str
    of: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Option:
    """One answer on offer: right where the number is from `low` up to, but not including, `high`.

    instead: what is said to whoever chose it and was wrong. sketch: of a curve, its heights from 0 to 1.
    """

    text: str
    low: float = -math.inf
    high: float = math.inf
    instead: str = ""
    sketch: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scale:
    """From where to where a number is asked for, in what steps, and the ranges around it that can be chosen."""

    low: float
    high: float
    step: float
    within: tuple[float, ...]


@dataclass(frozen=True)
class Prediction:
    """kind: an entry of core.teaching.lessons.prediction.kind. ranked: the names of what is put in order, the largest first."""

    kind: str
    asks: str
    number: Number
    options: tuple[Option, ...] = ()
    scale: Scale | None = None
    ranked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """A link of ours: what to do there, the key of the page, and its parameters."""

    text: str
    page: str
    params: Mapping[str, str]


@dataclass(frozen=True)
class Transfer:
    """A question that carries what was learnt over to something else. right: the number of the right option, from 0."""

    asks: str
    options: tuple[str, ...]
    right: int
    because: str


@dataclass(frozen=True)
class Lesson:
    """shown: names of the values in its picture. explanation: for each verdict, a text. ways: of the lesson without a prediction.
    language: of its texts.
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
    def given(self) -> set[str]:
        """Names of the values that are told before anybody predicts."""
        asks = self.prediction.asks if self.prediction else ""
        return {name for text in (self.question, asks) for name, _ in FIELD.findall(text)}
