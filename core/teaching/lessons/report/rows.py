"""Every value that the lessons of a report measured, and the script that prints the same numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from core.export.script import Script, Table, enclose, quoted
from core.settings.device import Machine
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.outcome import Outcome, combine
from core.teaching.lessons.readings import Measured, reading
from core.teaching.lessons.readings.reading import SEED

MEASURED = Table(
    "values",
    "every value with its 95 % interval; n: of how many seeds or texts it is the mean",
    """\
torch.set_num_threads(1)
rows = []
for lesson, value, reading, params in VALUES:  # one without a reading is made of those above it
    result = measured(reading, params) if reading else outcome(read_lesson(lesson)).number
    mean, low, high, n = result.found
    numbers = [f"{number:.6g}" for number in (mean, low, high)]
    rows.append((lesson, value, *numbers, n, result.per))
columns = ["lesson", "value", "mean", "low", "high", "n", "per"]
values_table = pd.DataFrame(rows, columns=columns)
""",
)


class Row(NamedTuple):
    """reading: "" of the number that a prediction is about, where it is made of several values. label: its name on screen;
    by: what measures it, in words."""

    lesson: str
    value: str
    label: str
    by: str
    reading: str
    params: Mapping[str, str]
    measured: Measured

    @property
    def numbers(self) -> tuple[str, str, str]:
        """Mean, low and high, as table and script write them."""
        mean, low, high = (f"{each:.6g}" for each in self.measured.found[:3])
        return mean, low, high

    @property
    def seeds(self) -> str:
        """ "0–9", or "" where no seeds stand behind it, or it is not known which."""
        at = sorted(self.measured.values) if self.measured.per == SEED else []
        whole = at == list(range(at[0], at[-1] + 1)) if at else False
        return f"{at[0]}–{at[-1]}" if whole else ", ".join(map(str, at))


def rows_of(lesson: Lesson, out: Outcome) -> list[Row]:
    """The values of a lesson, and the number that is made of them."""
    assert lesson.prediction is not None
    rows = [
        Row(lesson.name, name, each.label, reading.label(each.reading), each.reading, each.params, out.values[name])
        for name, each in lesson.values.items()
    ]
    number = lesson.prediction.number
    if combine[number.kind] is not combine["value"]:
        called = f"{number.kind}({', '.join(number.of)})"
        rows.append(Row(lesson.name, called, number.label, combine.label(number.kind), "", {}, out.number))
    return rows


def as_data(row: Row) -> dict[str, Any]:
    """As JSON has it, without what is no number there."""
    mean, low, high, n = row.measured.found
    return {
        "lesson": row.lesson,
        "value": row.value,
        "reading": row.reading,
        "params": dict(row.params),
        **{name: each if each - each == 0 else None for name, each in (("mean", mean), ("low", low), ("high", high))},
        "n": n,
        "per": row.measured.per,
        "seeds": sorted(row.measured.values) if row.measured.per == SEED else [],
    }


def script(rows: Sequence[Row]) -> str:
    """Write Python with `core` that prints the same numbers."""
    values = []
    for row in rows:
        params = f"{{{', '.join(f'{quoted(name)}: {quoted(text)}' for name, text in row.params.items())}}}"
        values.append(f"({', '.join([*map(quoted, (row.lesson, row.value, row.reading)), params])})")
    return Script(
        "What the lessons of a lab report measured.",
        Machine("cpu"),
        "from core.teaching.lessons.lessons import read_lesson\n"
        "from core.teaching.lessons.outcome import outcome\n"
        "from core.teaching.lessons.readings import measured\n",
        {"VALUES": enclose(values)},
        [MEASURED],
        libraries=("pandas as pd", "torch"),
    ).python()
