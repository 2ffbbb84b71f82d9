"""Whether a study says what it said before: cell by cell, within the intervals that it had."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.study.summary import lines

CLOSE = 0.01  # of an accuracy: closer than that is the same where all seeds agreed and there is no interval


@dataclass(frozen=True)
class Agreement:
    """Of a summary with an earlier one. cells: how many are in both; same: how many of them to the last digit; off: sentences
    on those that differ; empty: how many have no value in either; new, gone: names of those only in this one, only in that."""

    cells: int
    same: int
    off: list[str]
    empty: int = 0
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether they have the same cells, and none differs."""
        return not (self.off or self.new or self.gone)


def agreement(now: pd.DataFrame, before: pd.DataFrame) -> Agreement:
    """Whether every cell's accuracy, and difference, lies in the interval that it had before, widened by CLOSE."""
    cells = {(line.task, line.variant): line for line in lines(before)}
    same, empty, many = 0, 0, 0
    off, new = [], []
    for line in lines(now):
        name = f"{line.task}, {line.variant}"
        old = cells.pop((line.task, line.variant), None)
        if old is None:
            new.append(name)
            continue
        many += 1
        moved = [_moved(line, old, *columns) for columns in COMPARED]
        words = [each for _, each in moved if each]
        if words:
            off.append(f"{name}: {'; '.join(words)}.")
        elif math.isnan(line.accuracy) and not (line.diverged or old.diverged):
            empty += 1
        else:
            same += all(equal for equal, _ in moved) and line.diverged == old.diverged
    return Agreement(many, same, off, empty, tuple(new), tuple(f"{task}, {variant}" for task, variant in cells))


COMPARED = [("accuracy", "low", "high"), ("difference", "difference_low", "difference_high")]


def _moved(line: Any, old: Any, column: str, lowest: str, highest: str) -> tuple[bool, str]:
    """-> (whether a value is the same to the last digit, how it differs by more than it may)"""
    value, mean, low, high = getattr(line, column), *(getattr(old, name) for name in (column, lowest, highest))
    if math.isnan(value) or math.isnan(mean):
        if math.isnan(value) and math.isnan(mean):
            return True, ""
        return False, f"{column} {_shown(value)} now, {_shown(mean)} before"
    known = not math.isnan(low)
    low, high = (low, high) if known else (mean, mean)
    if low - CLOSE <= value <= high + CLOSE:
        return value == mean, ""
    return False, f"{column} {value:.3f} now, {mean:.3f}{f' [{low:.3f}, {high:.3f}]' * known} before"


def _shown(value: float) -> str:
    return "has no value" if math.isnan(value) else f"{value:.3f}"
