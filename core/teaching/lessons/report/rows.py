"""Every value that the lessons of a report measured, and the script that prints the same numbers."""

import json
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, NamedTuple

from core.export.forms import guarded
from core.settings.process import versions
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.outcome import Outcome, combine
from core.teaching.lessons.readings import Measured, reading
from core.teaching.lessons.readings.reading import SEED

SCRIPT = '''\
"""Prints, as CSV, what the lessons of a lab report measured.

Save this file in the folder of the repository of Ablation Lab and run it there: `python script.py`.
The numbers of the report were made with PyTorch $TORCH on a CPU. Elsewhere they agree up to rounding.
"""

import csv
import sys

import torch

from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.readings import measured

VALUES = [  # lesson, value, what measures it, its parameters; measured by "": made of those above it
$VALUES
]

torch.set_num_threads(1)
if hasattr(sys.stdout, "reconfigure"):  # a notebook's output takes every character as it is
    sys.stdout.reconfigure(encoding="utf-8")
table = csv.writer(sys.stdout, lineterminator="\\n")
table.writerow(["lesson", "value", "mean", "low", "high", "n", "per"])
for lesson, value, reading, params in VALUES:
    found = measured(reading, params) if reading else outcome(read_lesson(lesson)).number
    mean, low, high, n = found.found
    table.writerow([lesson, value, *(f"{each:.6g}" for each in (mean, low, high)), n, found.per])
'''


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
    """Python with `core` that prints the same numbers."""
    listed = [
        f"    ({', '.join(json.dumps(each, ensure_ascii=False) for each in (row.lesson, row.value, row.reading, dict(row.params)))}),"
        for row in rows
    ]
    return guarded(Template(SCRIPT).substitute(TORCH=versions()["torch"], VALUES="\n".join(listed)))
