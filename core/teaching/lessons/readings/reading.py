"""What a lesson can measure. A lesson names a reading and its parameters, which are those of a link; it holds no code.

Each gives one number for each seed, or for each sentence that was asked; one number alone is exact: nothing in it is random.
"""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from core.measure.intervals import ANYTHING, Interval, Within, interval
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.setting import ConfigError, Settings

Params = Mapping[str, str]
Curve = Mapping[int, Mapping[int, float]]  # seed -> pass or step -> number
Kind = TypeVar("Kind", bound=Settings)

CPU = Machine(device="cpu")
SEEDS = range(10)  # of random weights
TEXT = "the court held that the defendant , who had signed the contracts , was liable .".split()
EXACT, SEED, SENTENCE = "", "seed", "sentence"


@dataclass(frozen=True)
class Measured:
    """values: one number each of `per` ("seed", "sentence", or "" of what is exact). curve: what led there, where there is one."""

    values: Mapping[int, float]
    found: Interval
    per: str = SEED
    curve: Curve | None = None


class Reading(Protocol):
    """unit: how its numbers are written (core/teaching/lessons/wording.py). curve: what its curve runs over; "" without one.
    takes: the names of its parameters."""

    unit: str
    within: Within
    curve: str
    takes: Collection[str]

    def __call__(self, params: Params, /) -> Measured: ...


reading: Menu[Reading] = Menu("Readings", unit="number", within=ANYTHING, curve="", takes=())


def exact(value: float) -> Measured:
    """Of what is computed, and not drawn."""
    return Measured({0: value}, Interval(value, value, value, 1), EXACT)


def per_seed(values: Mapping[int, float], within: Within = ANYTHING, curve: Curve | None = None) -> Measured:
    """Seed -> number, with the interval of the mean."""
    return Measured(values, interval(values.values(), within), SEED, curve)


def settings_of(params: Params, kind: type[Kind]) -> Kind:
    """The settings of a kind that stand in the parameters. Raises ConfigError for a value that cannot be."""
    made, problems = kind.read(dict(params))
    if problems:
        raise problems[0]
    return made


def names_of(*kinds: type[Settings]) -> tuple[str, ...]:
    """What a reading takes that takes these settings."""
    return tuple(name for kind in kinds for name in kind.settings())


def measured(name: str, params: Params) -> Measured:
    """What a reading gives; kept. Raises ConfigError for a parameter that it does not take, or that cannot be."""
    return _measured(name, tuple(sorted(params.items())))


@functools.lru_cache(maxsize=256)
def _measured(name: str, given: tuple[tuple[str, str], ...]) -> Measured:
    params = dict(given)
    for each in params:
        if each not in reading[name].takes:
            known = ", ".join(sorted(reading[name].takes))
            raise ConfigError(each, f"{each[:40]} is nothing that “{name}” takes; it takes {known}.")
    return reading[name](params)
