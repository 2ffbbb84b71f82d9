"""What a class can be asked: the prediction of a lesson, its last question, the eight questions before and after.

Each has a name, by which the store of classes knows it; an answer is one line of text, by which equal ones are counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from core.figures.tally import Count
from core.teaching import check
from core.teaching.classroom.seen import Distribution
from core.teaching.lessons import prediction
from core.teaching.lessons.language import ENGLISH, phrases
from core.teaching.lessons.lesson import Lesson, Prediction
from core.teaching.lessons.lessons import lesson, read_lesson
from core.teaching.lessons.outcome import Outcome, unit_of
from core.teaching.lessons.told import answer_in_words
from core.teaching.lessons.wording import filled, guessed

Label = TypeVar("Label", str, int)
PREDICTION, CARRY, CHECK = "prediction", "carry", "check"  # kinds
BEFORE, AFTER = "check/before", "check/after"
SHOWN = 8  # different answers that are drawn, and those that are right; the others together
PARTS = 10  # of the scale of a number, by which guesses are counted


@dataclass(frozen=True)
class Asked:
    """name: in the store. lesson: None of the eight questions."""

    name: str
    kind: str
    title: str
    lesson: Lesson | None = None

    def asks(self) -> str:
        """The question, in words; "" of the eight."""
        if self.kind == CHECK or self.lesson is None:
            return ""
        assert self.lesson.prediction and self.lesson.transfer
        return self.lesson.transfer.asks if self.kind == CARRY else filled(self.lesson.prediction.asks, self.lesson)

    def offered(self) -> tuple[str, ...]:
        """The answers to choose from; empty where a number is asked for."""
        if self.kind == CHECK or self.lesson is None:
            return ()
        assert self.lesson.prediction and self.lesson.transfer
        if self.kind == CARRY:
            return self.lesson.transfer.options
        asked = self.lesson.prediction
        ranked = tuple(self.lesson.values[name].label for name in asked.ranked)
        return ranked or tuple(option.text for option in asked.options)

    def check(self, text: str) -> str:
        """An answer, as it is stored. Raises ValueError for what is none."""
        if self.kind == CHECK:
            return check.write(check.read(text))
        assert self.lesson is not None and self.lesson.prediction and self.lesson.transfer
        if self.kind == PREDICTION:
            return prediction.write(prediction.read(self.lesson.prediction, text))
        if text in map(str, range(len(self.lesson.transfer.options))):
            return text
        raise ValueError("the answer must be one of those that are offered")

    def counts(self, votes: Distribution, out: Outcome | None = None) -> list[Count]:
        """How many answered what. out: what was measured, once that may be seen: then the right answers are marked."""
        rounds = sorted(votes)
        given = {text for each in votes.values() for text in each}
        if self.kind == CHECK:  # by scores: hardly any two have answered all eight alike
            votes = {
                n: _summed((self.in_words(text), many) for text, many in each.items()) for n, each in votes.items()
            }
            scores = sorted({label for each in votes.values() for label in each})
            return [Count(label, [votes[n].get(label, 0) for n in rounds]) for label in scores]
        if self.is_number:
            return self._guesses(votes, out)
        listed = self._in_order(given, votes)
        right = {text for text in listed if out is not None and self._right(text, out)}
        drawn = [text for n, text in enumerate(listed) if n < SHOWN or text in right]
        counts = [Count(self.in_words(text), [votes[n].get(text, 0) for n in rounds], text in right) for text in drawn]
        rest = [sum(many for text, many in votes[n].items() if text not in drawn) for n in rounds]
        return counts + ([Count("…", rest)] if any(rest) else [])

    @property
    def is_number(self) -> bool:
        """Whether a number is asked for, with how far off it may be."""
        return self.kind == PREDICTION and bool(self.lesson and self.lesson.prediction and self.lesson.prediction.scale)

    def _guesses(self, votes: Distribution, out: Outcome | None) -> list[Count]:
        """How many guesses lie in each part of the scale, from its lower end up to below its upper end; the last has both."""
        assert self.lesson is not None and self.lesson.prediction and self.lesson.prediction.scale
        asked, scale = self.lesson.prediction, self.lesson.prediction.scale
        unit, words = unit_of(self.lesson), phrases(self.lesson.language)

        def part(value: float) -> int:
            return max(0, min(PARTS - 1, int(round((value - scale.low) / (scale.high - scale.low) * PARTS, 6))))

        def label(at: int) -> str:
            low, high = (scale.low + (scale.high - scale.low) * end / PARTS for end in (at, at + 1))
            return guessed(low, high, unit, words)

        found = {
            n: _summed((part(_guess(asked, text)), many) for text, many in votes[n].items()) for n in sorted(votes)
        }
        measured = (
            None if out is None or not out.number.found.low <= out.number.found.high else part(out.number.found.mean)
        )
        return [Count(label(at), [each.get(at, 0) for each in found.values()], at == measured) for at in range(PARTS)]

    def in_words(self, text: str) -> str:
        """An answer as somebody reads it."""
        if self.kind == CHECK:
            many = len(check.items())
            return f"{round(check.score(text) * many)} / {many}"
        assert self.lesson is not None and self.lesson.prediction and self.lesson.transfer
        if self.kind == CARRY:
            return self.lesson.transfer.options[int(text)]
        asked = self.lesson.prediction
        return answer_in_words(self.lesson, prediction.read(asked, text), unit_of(self.lesson))

    def _in_order(self, given: set[str], votes: Distribution) -> list[str]:
        """Options in their own order, whether chosen or not; orders by how many chose them."""
        of = self.lesson
        if self.kind == CARRY and of and of.transfer:
            return list(map(str, range(len(of.transfer.options))))
        if self.kind == PREDICTION and of and of.prediction and of.prediction.options:
            return list(map(str, range(len(of.prediction.options))))
        return sorted(given, key=lambda text: (-sum(each.get(text, 0) for each in votes.values()), text))

    def _right(self, text: str, out: Outcome) -> bool:
        assert self.lesson is not None and self.lesson.prediction and self.lesson.transfer
        if self.kind == CARRY:
            return int(text) == self.lesson.transfer.right
        asked = self.lesson.prediction
        return prediction.verdict(asked, prediction.read(asked, text), out) == prediction.AS_PREDICTED


def _guess(asked: Prediction, text: str) -> float:
    """The number of an answer, without how far off it may be."""
    answer = prediction.read(asked, text)
    assert isinstance(answer, list) and isinstance(answer[0], float)
    return answer[0]


def _summed(pairs: Iterable[tuple[Label, int]]) -> dict[Label, int]:
    found: Counter[Label] = Counter()
    for label, many in pairs:
        found[label] += many
    return dict(found)


def asked(name: str, words: Mapping[str, str], language: str = ENGLISH) -> Asked | None:
    """What goes by this name; None where nothing does. words: of the language."""
    if name in (BEFORE, AFTER):
        return Asked(name, CHECK, words["check_before" if name == BEFORE else "check_after"])
    of, _, rest = name.partition("/")
    if of not in lesson or rest not in ("", CARRY) or read_lesson(of).prediction is None:
        return None
    made = read_lesson(of, language)
    return Asked(name, CARRY if rest else PREDICTION, made.title, made)


def names() -> list[str]:
    """All that can be asked, in the order of a class."""
    predictions = [name for name in lesson if read_lesson(name).prediction]
    return [BEFORE, *(each for name in predictions for each in (name, f"{name}/{CARRY}")), AFTER]
