"""Reader of lessons/*.toml, and the menu of lessons."""

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

from core.settings.menu import Menu
from core.settings.wording import shorten
from core.teaching.lessons.language import ENGLISH, has_lesson, translate_lesson
from core.teaching.lessons.lesson import (
    FIELD,
    Lesson,
    LessonError,
    Number,
    Option,
    Prediction,
    Scale,
    Transfer,
    Value,
    Way,
)
from core.teaching.lessons.prediction import KINDS, VERDICTS, combine
from core.teaching.lessons.readings import reading

T = TypeVar("T")
FOLDER = Path(__file__).parent.parent.parent.parent / "lessons"
PAGES = (
    "block",
    "depth",
    "training",
    "studies",
    "trained",
    "claims",
)  # to which an experiment may lead


class Table:
    """Table of a lesson's file; entries that are read are removed, the rest is unknown."""

    def __init__(self, lesson: str, place: str, document: Any) -> None:
        if not isinstance(document, dict):
            raise LessonError(lesson, f"{place} is {shorten(document)}; it must be a table.")
        self.lesson = lesson
        self.place = place
        self.rest = dict(document)

    def require(self, condition: object, message: str) -> None:
        """Raise LessonError with this message unless the condition holds."""
        if not condition:
            raise LessonError(self.lesson, message)

    def path_of(self, name: str) -> str:
        """Return the full name of an entry, for a message: "prediction.asks"."""
        return f"{self.place}.{name}" if self.place else name

    def take(self, name: str, value_type: type[T], default: T | None = None) -> T:
        """Remove and return an entry or the default; LessonError for a missing or wrong one.

        A float may be a whole number; text must not be empty.
        """
        value = self.rest.pop(name, default)
        if value_type is float and type(value) is int:
            value = float(value)
        words = {
            str: "text",
            int: "a whole number",
            float: "a number",
            list: "a list",
            dict: "a table",
        }[value_type]
        self.require(
            type(value) is value_type,
            f"{self.path_of(name)} is {shorten(value)}; it must be {words}.",
        )
        self.require(
            value_type is not str or value or default == "", f"{self.path_of(name)} is empty."
        )
        return cast(T, value)

    def take_choice(
        self, name: str, choices: Sequence[str] | Mapping[str, Any], default: str | None = None
    ) -> str:
        """Remove and return an entry or the default; LessonError unless it is one of these."""
        value = self.take(name, str, default)
        self.require(
            value in choices,
            f"{self.path_of(name)} is {shorten(value)}; it must be one of {', '.join(choices)}.",
        )
        return value

    def take_names(self, key: str, choices: Mapping[str, Any], least: int = 1) -> tuple[str, ...]:
        """Remove and return a list of at least `least` names, all different; else LessonError.

        Args:
            key: Name of the entry.
            choices: Names that are allowed.
            least: Number of names at least.
        """
        given_names = self.take(key, list)
        is_good = (
            len(given_names) >= least
            and all(name in choices for name in given_names)
            and len(set(given_names)) == len(given_names)
        )
        self.require(
            is_good,
            f"{self.path_of(key)} must name at least {least} of the values: {', '.join(choices)}.",
        )
        return tuple(given_names)

    def take_params(self, name: str) -> dict[str, str]:
        """Remove and return name -> text, as in a link; {} where it lacks, else LessonError."""
        params = self.take(name, dict, {})
        is_text = all(isinstance(text, str) for text in params.values())
        self.require(is_text, f"{self.path_of(name)}: every parameter must be text, as in a link.")
        return params

    def take_table(self, name: str) -> "Table":
        """Remove and return a nested table; LessonError where it lacks."""
        return Table(self.lesson, self.path_of(name), self.take(name, dict))

    def take_tables(self, name: str) -> "list[Table]":
        """Remove and return a list of nested tables; LessonError where it lacks."""
        return [
            Table(self.lesson, f"{self.path_of(name)} {n}", document)
            for n, document in enumerate(self.take(name, list), 1)
        ]

    def require_all_taken(self) -> None:
        """Raise LessonError if any entry was not taken; nested tables are not looked into."""
        self.require(
            not self.rest, f"{', '.join(map(self.path_of, self.rest))}: there is no such entry."
        )


def build_lesson(name: str, document: Mapping[str, Any], language: str = ENGLISH) -> Lesson:
    """Build a lesson from its file's content (unchanged, not translated); else LessonError.

    Args:
        name: Name of the lesson.
        document: Content of its file.
        language: Language of its texts.
    """
    table = Table(name, "", document)
    values = {
        key: _read_value(Table(name, f"values.{key}", value))
        for key, value in table.take("values", dict, {}).items()
    }
    prediction = (
        _read_prediction(table.take_table("prediction"), values)
        if "prediction" in table.rest
        else None
    )
    explanation = _read_explanation(table, values) if prediction else {}
    result = Lesson(
        name=name,
        number=table.take("number", int),
        title=table.take("title", str),
        minutes=table.take("minutes", int),
        difficulty=table.take_choice("difficulty", ("first steps", "goes deeper")),
        question=table.take("question", str),
        values=values,
        shown=table.take_names("shown", values) if "shown" in table.rest else tuple(values),
        picture=table.take("picture", str) if prediction else "",
        prediction=prediction,
        experiment=_read_way(table.take_table("experiment")) if prediction else None,
        explanation=explanation,
        means=table.take("means", str) if prediction else "",
        challenge=_read_way(table.take_table("challenge")) if prediction else None,
        transfer=_read_transfer(table.take_table("transfer")) if prediction else None,
        ways=tuple(map(_read_way, table.take_tables("ways"))) if not prediction else (),
        language=language,
    )
    table.require_all_taken()
    names = (
        {*result.prediction.number.of, *result.prediction.ranked} if result.prediction else set()
    )
    is_fair = not result.given_values & names and result.given_values <= set(values)
    table.require(is_fair, "question and prediction must not use {values} that are predicted.")
    return result


def _read_value(table: Table) -> Value:
    """Read a measured value: label, reading and parameters; LessonError for mistakes."""
    params = table.take_params("of")
    value = Value(table.take("label", str), table.take_choice("reading", reading), params)
    unknown = [name for name in params if name not in reading[value.reading].takes]
    names = ", ".join(map(shorten, unknown))
    table.require(not unknown, f"{table.place}.of: “{value.reading}” does not take {names}.")
    table.require_all_taken()
    return value


def _read_prediction(table: Table, values: Mapping[str, Value]) -> Prediction:
    """Read a prediction: question, kind of answer, what it needs; LessonError for mistakes."""
    kind_of = table.take_choice("kind", KINDS)
    ranked = table.take_names("ranked", values, 2) if kind_of == "rank" else ()
    number = (
        Number("value", ranked[:1], "")
        if ranked
        else _read_number(table.take_table("number"), values)
    )
    options = (
        tuple(map(_read_option, table.take_tables("options")))
        if kind_of in ("choice", "curve")
        else ()
    )
    prediction = Prediction(
        kind_of,
        table.take("asks", str),
        number,
        options,
        _read_scale(table.take_table("scale")) if kind_of == "number" else None,
        ranked,
    )
    is_few = kind_of not in ("choice", "curve") or 2 <= len(options) <= 5
    table.require(is_few, "prediction.options: there must be two to five of them.")
    ordered = sorted(options, key=lambda option: option.low)
    are_apart = all(a.high <= other.low for a, other in pairwise(ordered))
    table.require(are_apart, "prediction.options: two of them overlap, so both could be correct.")
    if kind_of == "curve":
        is_drawn = (
            all(option.sketch for option in options) and reading[values[number.of[0]].reading].curve
        )
        table.require(
            is_drawn,
            "prediction: a curve needs a sketch for every option, and a reading with a curve.",
        )
    texts = {option.text for option in options}
    labels = {values[name].label for name in ranked}
    table.require(len(texts) == len(options), "prediction.options: two of them have the same text.")
    table.require(
        len(labels) == len(ranked), "prediction.ranked: two of the values have one label."
    )
    table.require_all_taken()
    return prediction


def _read_number(table: Table, values: Mapping[str, Value]) -> Number:
    """Read how the number follows: a key of `combine`, and of which values; LessonError if not."""
    number = Number(
        table.take_choice("kind", combine), table.take_names("of", values), table.take("label", str)
    )
    needed = 2 if number.kind in ("ratio", "difference") else 1
    problem = f"{table.place}.of must name {needed} of the values for a {number.kind}."
    table.require(len(number.of) == needed, problem)
    is_share = (
        number.kind != "difference" or reading[values[number.of[0]].reading].unit == "percent"
    )
    table.require(
        is_share,
        f"{table.place}: a difference is for shares only; compare other values by their ratio.",
    )
    table.require_all_taken()
    return number


def _read_option(table: Table) -> Option:
    """Read an option of a choice, with its sketch and its range; LessonError for mistakes."""
    sketch = tuple(table.take("sketch", list, []))
    is_drawn = (
        all(type(height) in (int, float) and 0 <= height <= 1 for height in sketch)
        and len(sketch) != 1
    )
    table.require(is_drawn, f"{table.place}.sketch must have at least two heights from 0 to 1.")
    low = table.take("from", float, -math.inf)
    high = table.take("to", float, math.inf)
    table.require(low < high, f"{table.place}: “from” must be less than “to”.")
    option = Option(
        table.take("text", str),
        low,
        high,
        table.take("instead", str, ""),
        tuple(map(float, sketch)),
    )
    table.require_all_taken()
    return option


def _read_scale(table: Table) -> Scale:
    """Read a numeric answer's scale: ends, step, ± margins to choose from; LessonError."""
    within = table.take("within", list)
    scale = Scale(
        table.take("low", float),
        table.take("high", float),
        table.take("step", float),
        tuple(float(width) for width in within if type(width) in (int, float)),
    )
    is_good = (
        scale.low < scale.high
        and scale.step > 0
        and scale.within
        and len(scale.within) == len(within)
    )
    table.require(
        is_good,
        f"{table.place}: low must be less than high, step above 0, and within a list of numbers.",
    )
    table.require_all_taken()
    return scale


def _read_explanation(table: Table, values: Mapping[str, Value]) -> dict[str, str]:
    """Read the explanations by verdict; LessonError if one lacks or has unknown {names}."""
    explanation = table.take_table("explanation")
    texts = {name: explanation.take(name, str) for name in VERDICTS}
    explanation.require_all_taken()
    names = [*values, "outcome"]
    for text in (*texts.values(), str(table.rest.get("means", ""))):
        for name, _ in FIELD.findall(text):
            table.require(
                name in names, f"an explanation names {{{name}}}; there are {', '.join(names)}."
            )
    return texts


def _read_way(table: Table) -> Way:
    """Read a link: text, page, and parameters (checked only to be text); else LessonError."""
    way = Way(table.take("text", str), table.take_choice("page", PAGES), table.take_params("link"))
    table.require_all_taken()
    return way


def _read_transfer(table: Table) -> Transfer:
    """Read the transfer question, the right index from 1 (in the Transfer: 0); LessonError."""
    options = tuple(map(str, table.take("options", list)))
    transfer = Transfer(
        table.take("asks", str), options, table.take("right", int) - 1, table.take("because", str)
    )
    table.require(
        len(set(options)) == len(options), "transfer.options: two of them have the same text."
    )
    is_good = 2 <= len(options) <= 5 and 0 <= transfer.right < len(options)
    table.require(
        is_good, "transfer: two to five options, and “right” the number of one of them, from 1."
    )
    table.require_all_taken()
    return transfer


def load(path: Path) -> dict[str, Any]:
    """Read the file of a lesson as a dict; LessonError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LessonError(path.stem, f"its file cannot be read: {error}.") from None


lesson: Menu[str] = Menu("Lessons")
problems: list[str] = []  # of files that cannot be read: their lessons are left out
_given: dict[str, dict[str, Any]] = {}


@functools.cache
def read_lesson(name: str, language: str = ENGLISH) -> Lesson:
    """Return a lesson of the menu in a language, else in English; LessonError if it is damaged."""
    own_language = language if has_lesson(language, name) else ENGLISH
    return build_lesson(name, translate_lesson(own_language, name, _given[name]), own_language)


# Every file of lessons/ is an entry of the menu, in the order of their numbers.
questions = []
for path in sorted(FOLDER.glob("*.toml")):
    try:
        _given[path.stem] = load(path)
        questions.append(read_lesson(path.stem))
    except LessonError as error:
        problems.append(str(error))
for question in sorted(
    questions, key=lambda asked_question: (asked_question.number, asked_question.name)
):
    lesson.add(question.name, label=question.title, help=question.question)
