"""Sentences of a lesson: what was said, what was measured, and what follows from it."""

from core.teaching.lessons.entry import Entry
from core.teaching.lessons.language import phrases
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.outcome import Outcome
from core.teaching.lessons.prediction import (
    NOT_AS_PREDICTED,
    Answer,
    clear_pairs,
    interval_of,
    undecided_pairs,
    verdict,
)
from core.teaching.lessons.readings import EXACT
from core.teaching.lessons.wording import Words, filled, guessed, of_what, reach, written

SURE_ENOUGH = 2  # from where on somebody was sure


def answer_in_words(lesson: Lesson, answer: Answer, unit: str) -> str:
    """What was predicted: "grows several times", "40 to 60 %", "pre-norm, then no norm, then post-norm"."""
    asked = lesson.prediction
    assert asked is not None
    if asked.kind == "number":
        assert asked.scale is not None
        low, high = interval_of(answer)
        return guessed(max(low, asked.scale.low), min(high, asked.scale.high), unit, phrases(lesson.language))
    if asked.kind == "rank":
        return " > ".join(lesson.values[name].label for name in answer)
    return asked.options[answer].text


def measured_in_words(lesson: Lesson, out: Outcome, words: Words) -> str:
    """What was measured, with its interval: "83 % (95 % interval 79 to 86 %, 10 seeds)"."""
    asked = lesson.prediction
    assert asked is not None
    if asked.kind == "rank":
        order = sorted(asked.ranked, key=lambda name: -out.values[name].found.mean)
        listed = [
            f"{lesson.values[name].label} {written(out.values[name].found.mean, out.unit, words)}" for name in order
        ]
        return f"{' > '.join(listed)} ({of_what(out.values[order[0]], words)})"
    found = out.number
    if found.per == EXACT:
        return f"{written(found.found.mean, out.unit, words)} ({of_what(found, words)})"
    between = words["interval"].format(reach=reach(found.found, out.unit, words))
    return f"{written(found.found.mean, out.unit, words)} ({between}, {of_what(found, words)})"


def ties(lesson: Lesson, out: Outcome, words: Words) -> str:
    """Say which neighbours of a rank cannot be told apart, and which pairs can; "" where all can."""
    asked = lesson.prediction
    assert asked is not None
    if asked.kind != "rank":
        return ""
    pairs = [
        " / ".join(lesson.values[name].label for name in pair) for pair in undecided_pairs(list(asked.ranked), out)
    ]
    if not pairs:
        return ""
    clear = [" > ".join(lesson.values[name].label for name in pair) for pair in clear_pairs(list(asked.ranked), out)]
    apart = [words["told_apart"].format(pairs=", ".join(clear))] if clear else []
    return " ".join([words["ties"].format(pairs=", ".join(pairs)), *apart])


def follows(lesson: Lesson, entry: Entry, out: Outcome, words: Words) -> str:
    """The explanation: what came out, and what it says of what was predicted."""
    assert lesson.prediction is not None
    found = verdict(lesson.prediction, entry.answer, out)
    lines = [
        words["sure_and_wrong"] if found == NOT_AS_PREDICTED and entry.sure >= SURE_ENOUGH else "",
        filled(lesson.explanation[found], lesson, out),
        instead(lesson, entry.answer, found),
        ties(lesson, out, words),
    ]
    return " ".join(filter(None, lines))


def carried_over(lesson: Lesson, chosen: int, words: Words) -> str:
    """Whether the answer to its last question is right, and why."""
    asked = lesson.transfer
    assert asked is not None
    right = asked.options[asked.right]
    return f"{words['right'] if chosen == asked.right else words['not_right'].format(answer=right)} {asked.because}"


def instead(lesson: Lesson, answer: Answer, verdict: str) -> str:
    """What is said to whoever chose an answer that was not right."""
    asked = lesson.prediction
    assert asked is not None
    return asked.options[answer].instead if verdict == NOT_AS_PREDICTED and asked.options else ""
