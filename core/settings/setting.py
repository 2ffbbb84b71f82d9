"""Settings: dataclasses whose fields have bounds, labels and a form in a link."""

import dataclasses
import difflib
import functools
import numbers
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from core.settings.menu import Menu
from core.settings.wording import lower_first, number, shorten

LONGEST = 20_000  # characters of a text, where its setting says nothing else
ANY = 1_000_000  # of one that is cut, and not refused, where it is too long
LISTED = 12  # entries of a menu that are all named where another was given
YES = ("on", "true", "yes", "1")
NO = ("off", "false", "no", "0")


class ConfigError(ValueError):
    """Invalid setting: field, given value, allowed values, and a valid value instead."""

    def __init__(self, field: str, message: str, instead: Any = None):
        super().__init__(message)
        self.field = field
        self.instead = instead


@dataclass(frozen=True)
class Setting:
    """Bounds, label and form of a setting; its slider extends to `high` when pushed to `top`.

    `follows` computes the value from the other settings for as long as none is given (the default
    is then None). `among` gives the values that a slider stops at, where they are not evenly
    spaced; `stride` its step, where others say so. `once`: it acts when a link is opened, and is
    over then. A text has at most `high` characters. `offers`: values that one click can bring, of a
    number that has no list. `acts`: whether it does anything beside the other settings; it is shown
    and offered only then. `read_by`: which parts of what it belongs to read it. `short` is the word
    for it in the name of a variant; a plural ("heads") is counted, anything else is named.
    """

    kind: type
    label: str
    help: str
    group: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    stride: Callable[[Any], float] | None = None
    top: float | None = None
    menu: Menu[Any] | None = None
    follows: Callable[[Any], Any] | None = None
    among: Callable[[Any], list[Any]] | None = None
    short: str = ""
    once: bool = False
    offers: tuple[Any, ...] = ()
    acts: Callable[[Any], bool] | None = None
    read_by: tuple[str, ...] = ()

    def allowed(self) -> str:
        """Describe the allowed values, as "one of a, b", "on or off", "a number from 0 to 1"."""
        if self.menu:
            return "one of " + ", ".join(self.menu)
        if self.kind is bool:
            return "on or off"
        if self.kind is str:
            return f"text of at most {self.high or LONGEST:,} characters"
        return (
            f"a {'whole ' if self.kind is int else ''}number from {self.show(self.low)} to"
            f" {self.show(self.high)}"
        )

    def _allowed_near(self, value: Any) -> str:
        """Describe the allowed values; of a long menu, the entries nearest to a value."""
        entries = list(self.menu or ())
        if len(entries) <= LISTED:
            return self.allowed()
        nearest = difflib.get_close_matches(str(value), entries, 3, 0.3) or entries[:3]
        return f"one of {len(entries)} entries, such as {', '.join(nearest)}"

    def check(self, name: str, value: Any) -> Any:
        """Check a value; return it in the setting's type, or raise ConfigError about `name`."""
        kind: Any = self.kind
        if kind in (int, float):
            any_number: Any = numbers.Integral if kind is int else numbers.Real
            good = (
                type(value) is kind or isinstance(value, any_number) and not isinstance(value, bool)
            )
            good = good and self.low <= value <= self.high
        else:
            good = isinstance(value, kind)
            if good and kind is str:
                good = value in self.menu if self.menu else len(value) <= (self.high or LONGEST)
        if not good:
            raise ConfigError(
                name, f"{name} is {shorten(value)}; it must be {self._allowed_near(value)}."
            )
        return kind(value) + 0.0 if kind is float else kind(value)  # -0.0 is 0

    def read(self, name: str, text: str) -> Any:
        """Parse and check a value from a link's text; ConfigError about the link if invalid."""
        value: Any = text
        try:
            if self.kind is bool:
                return {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}[
                    text.strip().lower()
                ]
            if self.menu:
                return {key.lower(): key for key in self.menu}[text.strip().lower()]
            value = self.kind(text)
            return self.check(name, value)
        except (KeyError, ValueError):
            words = (
                f"The link sets {name} to {shorten(value)}, but it must be"
                f" {self._allowed_near(text)}."
            )
            raise ConfigError(name, words) from None

    def describe_change(self, value: Any) -> str:
        """Describe a change to this value: "− norm" if none or off, "8 heads", "d_model 128"."""
        if self.kind is bool:
            return f"{'+' if value else '−'} {self.short}"
        if self.menu:
            label = lower_first(self.menu.label(value))
            if value == "none":
                return f"− {self.short}"
            return label if self.short.rstrip("s") in label.lower() else f"{label} {self.short}"
        if self.offers and not value:
            return f"− {self.short}"
        if self.kind is float:
            return f"{self.short} {number(value, 6)}"
        if " N " in self.short:
            return self.short.replace("N layers", "layer" if value == 1 else f"{value} layers")
        if self.short.endswith("s"):
            return f"{value} {self.short[:-1] if value == 1 else self.short}"
        return f"{self.short} {self.write(value)}"

    def show(self, value: Any) -> str:
        """Format a value for the screen, without a unit: a label, "on", "1,600" or "0.0003"."""
        if self.menu:
            return self.menu.label(value)
        if self.kind is int:
            return f"{value:,}"
        return number(value, 6) if self.kind is float else self.write(value)

    def write(self, value: Any) -> str:
        """Return a value as text in a link: "on", "off", a key, a number or the text itself."""
        if self.kind is bool:
            return "on" if value else "off"
        return str(value)


def setting(
    default: Any, label: str, help: str, *, group: str, kind: type | None = None, **bounds: Any
) -> Any:
    """Return a dataclass field with a Setting; bounds: its other fields, such as low and high.

    Args:
        default: Default value.
        label: Name on screen.
        help: Help text.
        group: Group of settings in which it is shown.
        kind: Type; needed only where the default does not have it.
        **bounds: Further fields of Setting.
    """
    described = Setting(kind or type(default), label, help, group, **bounds)
    return dataclasses.field(default=default, metadata={"setting": described})


@dataclass(frozen=True)
class Settings:
    """Base class of settings: a frozen dataclass whose fields are made by setting().

    Every value is checked and brought into its own type; what is None follows other settings where
    the field says how. Raises ConfigError, in words, for a value that cannot be: which field, why,
    and what is allowed.
    """

    FIRST: ClassVar[
        tuple[str, ...]
    ] = ()  # fields that others follow, where those stand before them

    @classmethod
    @functools.cache
    def settings(cls) -> dict[str, Setting]:
        """Return the Setting of every field by name."""
        return {field.name: field.metadata["setting"] for field in dataclasses.fields(cls)}

    def __post_init__(self) -> None:
        self._check_each()
        self._check_together()

    def _check_each(self) -> None:
        """Replace None, in self, by values that follow others; check each value (ConfigError)."""
        values = self.__dict__
        for name, definition in self._in_order():
            if values[name] is None and definition.follows:
                values[name] = definition.follows(self)
            values[name] = definition.check(name, values[name])

    @classmethod
    @functools.cache
    def _in_order(cls) -> list[tuple[str, Setting]]:
        """Return name and setting of every field, those that others follow first."""
        definitions = cls.settings()
        return [(name, definitions[name]) for name in dict.fromkeys([*cls.FIRST, *definitions])]

    def _check_together(self) -> None:
        """Check values that depend on each other (ConfigError); here nothing, for subclasses."""

    def follows(self, name: str) -> bool:
        """Return whether a value equals that derived from others; False if it is not derived."""
        follows = self.settings()[name].follows
        return follows is not None and bool(getattr(self, name) == follows(self))

    def choices(self, name: str) -> list[str]:
        """Return the keys of a setting's menu, in order; [] without one.

        Subclasses leave out entries that their other settings rule out.
        """
        return list(self.settings()[name].menu or ())

    @classmethod
    def repair(cls, values: dict[str, Any]) -> tuple[Self, list[ConfigError]]:
        """Return settings and errors; invalid values become their error's `instead`, or default."""
        values = dict(values)
        problems: list[ConfigError] = []
        while True:
            try:
                return cls(**values), problems
            except ConfigError as error:
                problems.append(error)
                if error.instead is not None:
                    values[error.field] = error.instead
                else:
                    del values[error.field]

    @classmethod
    def read(cls, params: dict[str, str]) -> tuple[Self, list[ConfigError]]:
        """Return settings from a link, and ConfigErrors; `instead` or the default for invalid ones.

        Unknown names are ignored.
        """
        values, problems = cls.values(params)
        settings, notes = cls.repair(values)
        return settings, problems + notes

    @classmethod
    def values(cls, params: Mapping[str, str]) -> tuple[dict[str, Any], list[ConfigError]]:
        """Parse a link's known values; return the valid by name, and ConfigErrors for the rest."""
        values: dict[str, Any] = {}
        problems: list[ConfigError] = []
        for name, definition in cls.settings().items():
            if name in params:
                try:
                    values[name] = definition.read(name, params[name])
                except ConfigError as error:
                    problems.append(error)
        return values, problems

    def write(self, names: Collection[str] = ()) -> dict[str, str]:
        """Return link parameters: values that are not default or derived, and those in `names`.

        Args:
            names: Names that are written in any case.
        """
        params = {}
        for field in dataclasses.fields(self):
            definition = self.settings()[field.name]
            value = getattr(self, field.name)
            if field.name in names or (
                not self.follows(field.name) if definition.follows else value != field.default
            ):
                params[field.name] = definition.write(value)
        return params


def setting_like(kind: type[Settings], name: str, default: Any, **changes: Any) -> Any:
    """Return a field like one of another settings class; `changes` are fields of Setting."""
    return dataclasses.field(
        default=default, metadata={"setting": dataclasses.replace(kind.settings()[name], **changes)}
    )
