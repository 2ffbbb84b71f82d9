"""Dials: the fields of a settings dataclass, each with its bounds, its words on screen and its form in a link."""

import dataclasses
import functools
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.settings.menu import Menu

YES, NO = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


class ConfigError(ValueError):
    """A setting that cannot be: which field, what was given, what is allowed. `instead` is the nearest that can."""

    def __init__(self, field: str, message: str, instead: Any = None):
        super().__init__(message)
        self.field, self.instead = field, instead


@dataclass(frozen=True)
class Dial:
    """One setting. A slider first ends at `top` and opens up to `high` when it is pushed there.

    `follows` computes the value from the other settings for as long as none is given (the default is then None).
    `among` gives the values that a slider stops at, where they are not evenly spaced.
    `short` is the word for it in the name of a variant; a plural ("heads") is counted, anything else is named.
    """

    kind: type
    label: str
    help: str
    group: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    top: float | None = None
    menu: Menu | None = None
    follows: Callable | None = None
    among: Callable | None = None
    short: str = ""

    def allowed(self) -> str:
        if self.menu:
            return "one of " + ", ".join(self.menu)
        if self.kind is bool:
            return "on or off"
        if self.kind is str:
            return "text"
        return f"a {'whole ' if self.kind is int else ''}number from {self.low} to {self.high}"

    def check(self, name: str, value):
        """The value in its own type, or ConfigError."""
        if self.kind is bool:
            good = isinstance(value, bool)
        elif self.kind is str:
            good = isinstance(value, str) and (self.menu is None or value in self.menu)
        else:
            number = numbers.Integral if self.kind is int else numbers.Real
            good = isinstance(value, number) and not isinstance(value, bool) and self.low <= value <= self.high
        if not good:
            raise ConfigError(name, f"{name} is {shorten(value)}; it must be {self.allowed()}.")
        return self.kind(value)

    def read(self, name: str, text: str):
        """The value that a link's text stands for, or ConfigError."""
        try:
            if self.kind is bool:
                return {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}[text.strip().lower()]
            if self.menu:
                return {key.lower(): key for key in self.menu}[text.strip().lower()]
            return self.check(name, self.kind(text))
        except ConfigError:
            raise
        except (KeyError, ValueError):
            raise ConfigError(name, f"{name} is {shorten(text)}; it must be {self.allowed()}.") from None

    def change(self, value) -> str:
        """A change to this value in few words: "− norm", "8 heads", "identity activation", "d_model 128"."""
        if self.kind is bool:
            return f"{'+' if value else '−'} {self.short}"
        if self.menu:
            label = self.menu.label(value)
            label = label.lower() if label[1:].islower() else label
            if value == "none":
                return f"− {self.short}"
            return label if self.short.rstrip("s") in label.lower() else f"{label} {self.short}"
        if self.short.endswith("s"):
            return f"{value} {self.short[:-1] if value == 1 else self.short}"
        return f"{self.short} {self.write(value)}"

    def write(self, value) -> str:
        """The text of a value in a link."""
        if self.kind is bool:
            return "on" if value else "off"
        return str(value)


def dial(default, label, help, *, group, kind=None, **bounds):
    """A dataclass field with a Dial; `kind` is needed only where the default does not tell it."""
    made = Dial(kind or type(default), label, help, group, **bounds)
    return dataclasses.field(default=default, metadata={"dial": made})


def dials(settings) -> dict[str, Dial]:
    """Name -> Dial for every setting of a dataclass (or an instance of one)."""
    return _dials(settings if isinstance(settings, type) else type(settings))


@functools.cache
def _dials(kind) -> dict[str, Dial]:
    return {field.name: field.metadata["dial"] for field in dataclasses.fields(kind)}


def fill(settings, first: tuple[str, ...] = ()):
    """Gives every field of a frozen dataclass its value, checked and in its own type: what was given, or what it follows.
    first: the fields that others follow. Raises ConfigError as Dial.check does."""
    made = dials(settings)
    for name in [*first, *(name for name in made if name not in first)]:
        value = getattr(settings, name)
        if value is None and made[name].follows:
            value = made[name].follows(settings)
        object.__setattr__(settings, name, made[name].check(name, value))


def shorten(value, width: int = 40) -> str:
    """A given value as it may be shown in a sentence: quoted if text, one line, printable, not too long."""
    if isinstance(value, int) and abs(value) >= 10**width:
        return f"a number of more than {width} digits"
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # it holds a number of thousands of digits, or lists in lists in lists
        return "something too large to be shown"
    cut = printable(text[:width]) + ("…" if len(text) > width else "")
    return f"“{cut}”" if isinstance(value, str) else cut


def printable(text) -> str:
    """Text that can be shown and written anywhere: what is no printable character, or half of one, stands as �."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def settle(kind, values: dict):
    """-> (settings of that dataclass, list of ConfigError): every value that can be kept is kept.

    A value that cannot be gives way to `instead` where the error names one, else to the default.
    """
    values, problems = dict(values), []
    while True:
        try:
            return kind(**values), problems
        except ConfigError as error:
            problems.append(error)
            if error.instead is not None:
                values[error.field] = error.instead
            else:
                del values[error.field]


def read(kind, params: dict[str, str]):
    """Settings from a link's parameters -> (settings, list of ConfigError). Names it does not know are left alone."""
    values, problems = {}, []
    for name, made in dials(kind).items():
        if name in params:
            try:
                values[name] = made.read(name, params[name])
            except ConfigError as error:
                problems.append(error)
    settings, more = settle(kind, values)
    return settings, problems + more


def write(settings) -> dict[str, str]:
    """The link's parameters: only what differs from the defaults (a followed setting: from what it would follow)."""
    made = {}
    for field in dataclasses.fields(settings):
        each, value = field.metadata["dial"], getattr(settings, field.name)
        if value != (each.follows(settings) if each.follows else field.default):
            made[field.name] = each.write(value)
    return made
