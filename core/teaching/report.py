"""Reports to read or print: a student's lab report, a class's answers; no scripts in them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from core.export.script import Code, Script, enclose, quoted, read_tables
from core.export.templates import open_templates
from core.figures.small_pictures import tally_svg
from core.settings.device import Machine
from core.settings.process import device_name, versions
from core.settings.setting import ConfigError
from core.settings.wording import fixed
from core.teaching.lessons import wording
from core.teaching.lessons.language import ENGLISH, clean, phrases
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.picture import lesson_svg
from core.teaching.lessons.prediction import (
    VERDICTS,
    Entry,
    Outcome,
    combine,
    measure_outcome,
    verdict,
)
from core.teaching.lessons.reader import read_lesson
from core.teaching.lessons.readings import CPU, SEED, Measured, reading
from core.teaching.questions import (
    AFTER,
    BEFORE,
    CHECK,
    PREDICTION,
    Question,
    describe_counts,
    find_question,
    gain,
    score,
)

# characters
NAME = 80
CONCLUSION = 2_000
TEMPLATES = open_templates(Path(__file__).parent / "templates")
VALUES = read_tables("""
# %% values: every value with its 95 % interval; n: of how many seeds or texts it is the mean
from core.teaching.lessons.prediction import measure_outcome
from core.teaching.lessons.reader import read_lesson
from core.teaching.lessons.readings import measure_reading

torch.set_num_threads(1)
rows = []
for lesson, value, reading, params in VALUES:  # a value without a reading is computed \
from those above
    found = measure_reading(reading, params) if reading else None
    result = found or measure_outcome(read_lesson(lesson)).number
    mean, low, high, n = result.found
    numbers = [f"{number:.6g}" for number in (mean, low, high)]
    rows.append((lesson, value, *numbers, n, result.per))
columns = ["lesson", "value", "mean", "low", "high", "n", "per"]
values_table = pd.DataFrame(rows, columns=columns)
""")


@dataclass(frozen=True)
class Report:
    """Student's lab report.

    Args:
        entries: Lesson to stored prediction.
        settings: Page name to the link that opens it as it was set.
    """

    entries: Mapping[str, Entry]
    name: str = ""
    conclusion: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Row of the table of measured values in a report.

    Args:
        by: Label of the reading.
        reading: "" for a number combined from several values.
    """

    lesson: str
    value: str
    label: str
    by: str
    reading: str
    params: Mapping[str, str]
    measured: Measured

    @property
    def numbers(self) -> list[str]:
        """Mean, low and high, as table and script write them."""
        return [f"{number:.6g}" for number in self.measured.found[:3]]

    @property
    def seeds(self) -> str:
        """Seeds of the values, such as "0–9"; "" where there are none."""
        seeds = sorted(self.measured.values) if self.measured.per == SEED else []
        if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1)):
            return f"{seeds[0]}–{seeds[-1]}"
        return ", ".join(map(str, seeds))


@dataclass(frozen=True)
class Part:
    """Lesson in a report. out: None where it cannot be measured here."""

    lesson: Lesson
    entry: Entry
    out: Outcome | None

    @property
    def verdict(self) -> str:
        """Verdict on the prediction, one of VERDICTS; "" where nothing could be measured."""
        assert self.lesson.prediction is not None
        return verdict(self.lesson.prediction, self.entry.answer, self.out) if self.out else ""

    @property
    def rows(self) -> list[Row]:
        """Values of the lesson, then the number computed from them, if any; [] if not measured."""
        lesson_shown = self.lesson
        if self.out is None or lesson_shown.prediction is None:
            return []
        rows = [
            Row(
                lesson_shown.name,
                name,
                value.label,
                reading.label(value.reading),
                value.reading,
                value.params,
                measured,
            )
            for (name, value), measured in zip(
                lesson_shown.values.items(), self.out.values.values()
            )
        ]
        number = lesson_shown.prediction.number
        if number.kind != "value":
            name = f"{number.kind}({', '.join(number.of)})"
            rows.append(
                Row(
                    lesson_shown.name,
                    name,
                    number.label,
                    combine.label(number.kind),
                    "",
                    {},
                    self.out.number,
                )
            )
        return rows


def measure_part(lesson: Lesson, entry: Entry) -> Part:
    """Measure a lesson for a report; its `out` is None where a ConfigError says data lacks."""
    try:
        return Part(lesson, entry, measure_outcome(lesson))
    except ConfigError:
        return Part(lesson, entry, None)


def write_report(
    report: Report, language: str, date: datetime, link: Callable[[str, Mapping[str, str]], str]
) -> str:
    """Return a lab report as an HTML page, measuring its lessons; link(page, params) -> address.

    Args:
        report: The student's report.
        language: Language of its words.
        date: Time at which it is written.
        link: Turns a page's key and settings into the address that opens it so.
    """
    words = phrases(language)
    parts = [
        measure_part(read_lesson(name, language), entry) for name, entry in report.entries.items()
    ]
    counts = Counter(part.verdict for part in parts)
    rows = [row for part in parts for row in part.rows]
    name = clean(report.name)[:NAME]
    return TEMPLATES.get_template("report.html").render(
        language=language,
        words=words,
        title=" · ".join(filter(None, (words["report_title"], name))),
        name=name,
        conclusion="\n".join(map(clean, report.conclusion[:CONCLUSION].splitlines())).strip(),
        made=f"{date.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        counts={name: counts[name] for name in VERDICTS if counts[name]},
        parts=parts,
        settings=report.settings,
        versions=versions(),
        device=device_name(CPU),
        script=write_script(rows) if rows else "",
        link=link,
        svg=lesson_svg,
        wording=wording,
    )


def write_script(rows: Sequence[Row]) -> str:
    """Return the Python script that prints the numbers of these rows, with the package core."""
    values = []
    for row in rows:
        params = ", ".join(f"{quoted(name)}: {quoted(text)}" for name, text in row.params.items())
        names = ", ".join(map(quoted, (row.lesson, row.value, row.reading)))
        values.append(f"({names}, {{{params}}})")
    return Script(
        "What the lessons of a lab report measured.",
        Machine("cpu"),
        {"VALUES": Code(enclose(values))},
        list(VALUES.values()),
    ).python()


def write_class_report(
    answers: pd.DataFrame, code: str, words: Mapping[str, str], language: str = ENGLISH
) -> str:
    """Return a class's questions, answers, reasons and gain as an HTML page; no nicknames.

    Args:
        answers: One row per vote, of Classroom.read_answers.
        code: Code of the class.
        words: Words of the language, by key.
        language: Language of the questions.
    """
    questions = []
    for name, rows in answers.groupby("question", sort=False):
        question_asked = find_question(str(name), words, language)
        if question_asked is None:
            continue
        rounds = sorted(set(rows["round"].tolist()))
        votes = {n: dict(Counter(rows.answer[rows["round"] == n].tolist())) for n in rounds}
        out = measure_outcome(question_asked.lesson) if question_asked.lesson else None
        counts = question_asked.count_answers(votes, out)
        question: dict[str, object] = {
            "asked": question_asked,
            "out": out if question_asked.kind == PREDICTION else None,
            "picture": tally_svg(counts, words["class_votes"]),
            "notes": describe_counts(question_asked, counts, words),
            "reasons": [text for text in rows.because.tolist() if text],
        }
        questions.append(question)
    has_both = {BEFORE, AFTER} <= set(answers.question)
    return TEMPLATES.get_template("class.html").render(
        language=language,
        words=words,
        title=words["class_name"].format(code=code),
        questions=questions,
        gained=describe_gain(answers, words) if has_both else "",
        wording=wording,
    )


def describe_gain(answers: pd.DataFrame, words: Mapping[str, str]) -> str:
    """Describe the class's normalised gain from the check before to the one after.

    Without an interval the text says so.
    """
    gained = gain(read_scores(answers, BEFORE), read_scores(answers, AFTER))
    if not gained.low <= gained.high:
        return words["class_gain_none"].format(n=gained.n)
    sentence = words["class_gain"].format(
        gain=fixed(gained.mean), low=fixed(gained.low), high=fixed(gained.high), n=gained.n
    )
    return (
        f"{sentence} {words['class_gain_undecided']}"
        if gained.low <= 0 <= gained.high
        else sentence
    )


def read_scores(answers: pd.DataFrame, name: str) -> dict[int, float]:
    """Return seat -> share right of the check BEFORE or AFTER, round 1; seats that answered."""
    rows = answers[(answers.question == name) & (answers["round"] == 1)]
    return {
        int(seat): score(str(answer))
        for seat, answer in zip(rows.seat.tolist(), rows.answer.tolist())
    }


def tabulate_changes(question: Question, answers: pd.DataFrame) -> pd.DataFrame:
    """Count answers of round 1 (rows) by round 2 (columns), of seats with both; empty if none.

    Rows and columns have the same answers in the same order: unchanged answers are on the diagonal.
    """
    rounds = (
        answers[answers.question == question.name]
        .pivot(index="seat", columns="round", values="answer")
        .dropna()
    )
    if len(rounds.columns) < 2 or rounds.empty:
        return pd.DataFrame()
    first = rounds[1].map(question.format_answer)
    second = rounds[2].map(question.format_answer)
    labels = list(dict.fromkeys(map(question.format_answer, sorted({*rounds[1], *rounds[2]}))))
    table = pd.crosstab(first, second).reindex(index=labels, columns=labels, fill_value=0)
    table.index.name = "1 ↓ 2 →"
    table.columns.name = None
    return table


def add_words(
    answers: pd.DataFrame, words: Mapping[str, str], language: str = ENGLISH
) -> pd.DataFrame:
    """Return a copy of answers with texts added (says, sure_text) and seconds rounded.

    Seconds are rounded to 2 decimals.
    """
    table = answers.assign(seconds=answers.seconds.round(2))
    says = []
    sure = []
    for name, text, level in zip(
        answers.question.tolist(), answers.answer.tolist(), answers.sure.tolist()
    ):
        question = find_question(str(name), words, language)
        says.append(question.format_answer(str(text)) if question else "")
        is_asked = (
            question is not None and question.kind != CHECK
        )  # the eight questions do not ask it
        sure.append(words[f"was_sure_{level}"] if is_asked else "")
    table.insert(list(table.columns).index("answer") + 1, "says", says)
    table.insert(list(table.columns).index("sure") + 1, "sure_text", sure)
    return table
