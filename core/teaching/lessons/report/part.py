"""One lesson in a report: the question, the prediction, what was measured, the verdict, the explanation, the picture."""

from dataclasses import dataclass
from html import escape

from core.figures.predicted import bare
from core.settings.setting import ConfigError
from core.teaching.lessons.entry import Entry
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.outcome import Outcome, outcome, unit_of
from core.teaching.lessons.picture import svg
from core.teaching.lessons.prediction import verdict
from core.teaching.lessons.told import answer_in_words, carried_over, follows, measured_in_words
from core.teaching.lessons.wording import Words, filled


@dataclass(frozen=True)
class Done:
    """A lesson with its prediction. out: None where it cannot be measured here."""

    lesson: Lesson
    entry: Entry
    out: Outcome | None

    @property
    def verdict(self) -> str:
        """One of VERDICTS; "" where nothing is measured."""
        assert self.lesson.prediction is not None
        return verdict(self.lesson.prediction, self.entry.answer, self.out) if self.out else ""


def done(lesson: Lesson, entry: Entry) -> Done:
    """Measured. What is missing here costs its own lesson."""
    try:
        return Done(lesson, entry, outcome(lesson))
    except ConfigError:
        return Done(lesson, entry, None)


def element(kind: str, text: str, of: str = "") -> str:
    """Text in an element of HTML: every mark in it shows as itself. of: the class of the element."""
    named = f' class="{of}"' if of else ""
    return f"<{kind}{named}>{escape(text)}</{kind}>"


def typed(text: str) -> str:
    """What somebody typed, which may run from right to left."""
    return element("bdi", text)


def part(done: Done, words: Words) -> str:
    """The lesson as HTML."""
    lesson = done.lesson
    return "".join(
        [
            '<section class="lesson">',
            element("h2", f"{lesson.number} · {lesson.title}"),
            element("p", _question(done), "question"),
            _told(done, words),
            _found(done, words) if done.out else element("p", words["report_not_measured"], "note"),
            _carried(done, words),
            "</section>",
        ]
    )


def _question(done: Done) -> str:
    """With what it tells beforehand, which can be measured only where the rest can."""
    return filled(done.lesson.question, done.lesson) if done.out else done.lesson.question


def _told(done: Done, words: Words) -> str:
    """What was asked and said, and what was measured."""
    lesson, entry, asked = done.lesson, done.entry, done.lesson.prediction
    assert asked is not None
    said = answer_in_words(lesson, entry.answer, unit_of(lesson))
    pairs = [
        (words["report_asked"], escape(filled(asked.asks, lesson) if done.out else asked.asks)),
        (words["you_said"], f"<strong>{escape(said)}</strong> ({escape(words[f'was_sure_{entry.sure}'])})"),
    ]
    if entry.because:
        pairs.append((words["report_because"], f"“{typed(entry.because)}”"))
    if done.out:
        pairs.append((words["measured"], f"<strong>{escape(measured_in_words(lesson, done.out, words))}</strong>"))
    return "<dl>" + "".join(f"{element('dt', name)}<dd>{what}</dd>" for name, what in pairs) + "</dl>"


def _found(done: Done, words: Words) -> str:
    """The verdict, the explanation, the picture, and what it means."""
    lesson, out = done.lesson, done.out
    assert out is not None
    drawn = bare(svg(lesson, words, done.entry.answer, out))
    return "".join(
        [
            f'<p class="verdict {done.verdict}">{escape(words[done.verdict])}</p>',
            element("p", follows(lesson, done.entry, out, words)),
            f'<figure class="picture">{element("figcaption", lesson.picture)}{drawn}</figure>',
            element("h3", words["what_it_means"]),
            element("p", filled(lesson.means, lesson, out)),
        ]
    )


def _carried(done: Done, words: Words) -> str:
    """The question that carries it over, and what was said to it."""
    asked, chosen = done.lesson.transfer, done.entry.carried
    assert asked is not None
    told = [element("h3", words["carry_over"]), element("p", asked.asks)]
    if chosen is None:
        return "".join([*told, element("p", words["report_not_carried"], "note")])
    said = f"{escape(words['you_said'])}: <strong>{escape(asked.options[chosen])}</strong>"
    return "".join([*told, f"<p>{said}</p>", element("p", carried_over(done.lesson, chosen, words))])
