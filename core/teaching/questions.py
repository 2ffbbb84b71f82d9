"""Questions of a class: predictions, transfer questions, a check before and after.

Each has a name, by which it is stored. An answer is one line of text, by which equal answers are
counted.
"""

import functools
import json
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from core.figures.small_pictures import Count
from core.measure.intervals import Interval, half_width
from core.teaching.classroom import Distribution
from core.teaching.lessons import prediction
from core.teaching.lessons.language import ENGLISH, phrases, translate_check
from core.teaching.lessons.lesson import Lesson, Prediction, Transfer
from core.teaching.lessons.prediction import Outcome, unit_of
from core.teaching.lessons.reader import lesson, read_lesson
from core.teaching.lessons.wording import describe_answer, fill_in, format_range

# kinds
PREDICTION = "prediction"
CARRY = "carry"
CHECK = "check"
BEFORE = "check/before"
AFTER = "check/after"
FILE = Path(__file__).parent.parent.parent / "lessons" / "check" / "eight.toml"
Label = TypeVar("Label", str, int)
SHOWN = 8  # different answers that are drawn; the others are counted together
PARTS = 10  # of the scale of a number, by which guesses are counted


@dataclass(frozen=True)
class Item:
    """Multiple-choice question.

    Args:
        right: Index of the right option, from 0.
    """

    asks: str
    options: tuple[str, ...]
    right: int


@functools.cache
def list_check_items(language: str = ENGLISH) -> tuple[Item, ...]:
    """Return the Items of the check (asked before and after a class) in a language."""
    items = translate_check(
        language, tomllib.loads(FILE.read_text(encoding="utf-8-sig"))["questions"]
    )
    return tuple(Item(item["asks"], tuple(item["options"]), item["right"] - 1) for item in items)


def write_check(answers: Sequence[int | None]) -> str:
    """Return the answers to the check as one line of JSON; None: not answered."""
    return json.dumps(list(answers), separators=(",", ":"))


def read_check(text: str) -> list[int | None]:
    """Parse answers of write_check(): an option's index or None each; ValueError for others."""
    answers = json.loads(text)
    if not isinstance(answers, list) or len(answers) != len(list_check_items()):
        raise ValueError(f"there must be {len(list_check_items())} answers")
    for item, answer in zip(list_check_items(), answers):
        if answer is not None and (type(answer) is not int or not 0 <= answer < len(item.options)):
            raise ValueError("an answer must be one of those that are offered")
    return answers


def score(text: str) -> float:
    """Return the share right in a line of write_check(), blanks being wrong; else ValueError."""
    return fmean(answer == item.right for item, answer in zip(list_check_items(), read_check(text)))


def gain(before: Mapping[int, float], after: Mapping[int, float]) -> Interval:
    """Return the normalised gain (Hake, 1998): (after − before) / (1 − before) of class means.

    Over seats in both, with a 95 % interval by the jackknife (Tukey, 1958). NaN where nothing could
    be gained, or nobody answered both.

    Args:
        before: Seat to score() before the class.
        after: Seat to score() after it.
    """
    pairs = [(before[seat], after[seat]) for seat in sorted(before.keys() & after.keys())]
    total = _gain(pairs)
    n = len(pairs)
    if n < 2 or math.isnan(total):
        return Interval(total, math.nan, math.nan, n)
    parts = [_gain(pairs[:index] + pairs[index + 1 :]) for index in range(n)]
    middle = fmean(parts)
    error = math.sqrt((n - 1) / n * sum((part - middle) ** 2 for part in parts))
    half = half_width(error, n)
    return Interval(total, total - half, min(1.0, total + half), n)


def _gain(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the normalised gain of means: (after − before) / (1 − before); NaN if not defined."""
    if not pairs:
        return math.nan
    before = fmean(pair[0] for pair in pairs)
    after = fmean(pair[1] for pair in pairs)
    return (after - before) / (1 - before) if before < 1 else math.nan


@dataclass(frozen=True)
class Question:
    """Question of a class. name: in the store; lesson: None for the eight questions."""

    name: str
    kind: str
    title: str
    lesson: Lesson | None = None

    @property
    def prediction(self) -> Prediction:
        """Prediction of its lesson; only for a question on a lesson."""
        assert self.lesson is not None and self.lesson.prediction is not None
        return self.lesson.prediction

    @property
    def transfer(self) -> Transfer:
        """Transfer question of its lesson; only for a question on a lesson."""
        assert self.lesson is not None and self.lesson.transfer is not None
        return self.lesson.transfer

    @property
    def is_number(self) -> bool:
        """Whether the answer is a number with a range."""
        return self.kind == PREDICTION and self.prediction.scale is not None

    @property
    def asks(self) -> str:
        """Text of the question; "" for the eight questions of the check."""
        if self.kind == PREDICTION and self.lesson:
            return fill_in(self.prediction.asks, self.lesson)
        return self.transfer.asks if self.kind == CARRY else ""

    @property
    def offered(self) -> tuple[str, ...]:
        """Answers to choose from or to rank; empty for a number and for the eight questions."""
        if self.kind == CARRY:
            return self.transfer.options
        if self.lesson is None:
            return ()
        if self.prediction.ranked:
            return tuple(self.lesson.values[name].label for name in self.prediction.ranked)
        return tuple(option.text for option in self.prediction.options)

    def format_answer(self, text: str) -> str:
        """Format a stored answer (Vote.answer) for the screen; for a check, "5 / 8" right ones."""
        if self.kind == CHECK:
            return f"{round(score(text) * len(list_check_items()))} / {len(list_check_items())}"
        if self.kind == CARRY:
            return self.transfer.options[int(text)]
        assert self.lesson is not None
        return describe_answer(self.lesson, prediction.read_answer(self.prediction, text))

    def count_answers(self, votes: Distribution, out: Outcome | None = None) -> list[Count]:
        """Count each round's answers, one Count per bar: label, counts, right?; "…" for the rest.

        Options without votes count 0.

        Args:
            votes: Number of votes by round and answer.
            out: The result, once it may be seen: then the right answers are marked.
        """
        rounds = sorted(votes)
        if self.kind == CHECK:  # by score: hardly any two seats answer all eight alike
            by_score = [_count_labels(votes[n], self.format_answer) for n in rounds]
            scores = sorted({label for counts in by_score for label in counts})
            return [Count(label, [counts.get(label, 0) for counts in by_score]) for label in scores]
        if self.is_number:
            return self._count_guesses(votes, out)
        totals = Counter(text for n in rounds for text in Counter(votes[n]).elements())
        if self.kind == CARRY or self.prediction.options:
            listed = [str(index) for index in range(len(self.offered))]
        else:
            listed = sorted(totals, key=lambda text: (-totals[text], text))
        right = {text for text in listed if out is not None and self._is_right(text, out)}
        drawn = [text for index, text in enumerate(listed) if index < SHOWN or text in right]
        counts = [
            Count(self.format_answer(text), [votes[n].get(text, 0) for n in rounds], text in right)
            for text in drawn
        ]
        others = [
            sum(number for text, number in votes[n].items() if text not in drawn) for n in rounds
        ]
        return counts + ([Count("…", others)] if any(others) else [])

    def _count_guesses(self, votes: Distribution, out: Outcome | None) -> list[Count]:
        """Count numeric guesses of each round in ten parts of the scale; the ends take the rest."""
        scale = self.prediction.scale
        lesson_shown = self.lesson
        assert scale is not None and lesson_shown is not None
        ends = [scale.low + (scale.high - scale.low) * index / PARTS for index in range(PARTS + 1)]

        def part(value: float) -> int:
            return max(
                0,
                min(
                    PARTS - 1, int(round((value - scale.low) / (scale.high - scale.low) * PARTS, 6))
                ),
            )

        groups = [
            _count_labels(
                votes[n], lambda text: part(prediction.read_answer(self.prediction, text)[0])
            )
            for n in sorted(votes)
        ]
        right = None
        if out is not None and out.number.found.low <= out.number.found.high:
            right = part(out.number.found.mean)
        labels = [
            format_range(
                ends[index], ends[index + 1], unit_of(lesson_shown), phrases(lesson_shown.language)
            )
            for index in range(PARTS)
        ]
        return [
            Count(label, [counts.get(index, 0) for counts in groups], index == right)
            for index, label in enumerate(labels)
        ]

    def _is_right(self, text: str, out: Outcome) -> bool:
        """Return whether an answer is right; False if the lesson's outcome is undecided."""
        if self.kind == CARRY:
            return int(text) == self.transfer.right
        answer = prediction.read_answer(self.prediction, text)
        return prediction.verdict(self.prediction, answer, out) == prediction.AS_PREDICTED


def _count_labels(votes: Mapping[str, int], label_of: Callable[[str], Label]) -> Counter[Label]:
    """Return label -> number of votes, from answer -> number of votes."""
    counts: Counter[Label] = Counter()
    for text, number in votes.items():
        counts[label_of(text)] += number
    return counts


def find_question(name: str, words: Mapping[str, str], language: str = ENGLISH) -> Question | None:
    """Return the question "heads", its transfer "heads/carry" or a check; None if unknown.

    Args:
        name: Name of the question.
        words: Words of the language, by key.
        language: Language of its text.
    """
    if name in (BEFORE, AFTER):
        return Question(name, CHECK, words["check_before" if name == BEFORE else "check_after"])
    lesson_name, _, kind = name.partition("/")
    if (
        lesson_name not in lesson
        or kind not in ("", CARRY)
        or read_lesson(lesson_name).prediction is None
    ):
        return None
    in_language = read_lesson(lesson_name, language)
    return Question(name, CARRY if kind else PREDICTION, in_language.title, in_language)


def question_names() -> list[str]:
    """Return all questions' names in a class's order: BEFORE, lessons with transfer, AFTER."""
    predictions = [name for name in lesson if read_lesson(name).prediction]
    return [
        BEFORE,
        *(question for name in predictions for question in (name, f"{name}/{CARRY}")),
        AFTER,
    ]


def describe_counts(question: Question, counts: Sequence[Count], words: Mapping[str, str]) -> str:
    """Describe how to read a picture of answers; "" for one round of options before the result."""
    notes = []
    if question.is_number:
        notes.append(words["class_guesses"])
    if len(counts[0].rounds) > 1:
        notes.append(words["class_rounds"])
    if any(count.right for count in counts):
        notes.append(words["class_green"])
    return " ".join(notes)
