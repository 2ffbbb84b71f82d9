"""What of a study can be ticked: name, question, tasks, seeds, parts and axes; as the text of its file, and back."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from core.model.config import Config
from core.model.variants import ablation, decode, encode, name_of
from core.settings.setting import ConfigError
from core.study.file.reader import value_of
from core.study.file.text import NO_BREAK, check_lengths, document, plain
from core.study.plan import SETTINGS, StudyError
from core.tasks import task

MOST_SEEDS = 20
PARTS = list(
    dict.fromkeys([encode(part()) for part in ablation.values()])
)  # in sight; the others are found by their names
CHANGES = list(dict.fromkeys([*PARTS, *(encode({name: value}) for name, value in Config().others())]))
# What can be combined with each other: a setting -> values, as a link has them.
AXES = {name: tuple(SETTINGS[name].menu or ()) for name in ("norm", "placement", "activation", "position")} | {
    "n_heads": ("1", "2", "4", "8"),
    "n_layers": ("1", "2", "4", "6", "12"),
    "learning_rate": ("0.001", "0.003", "0.01", "0.03"),
}


@dataclass(frozen=True)
class Ticks:
    """A study that has nothing but this."""

    name: str
    question: str
    tasks: tuple[str, ...]
    seeds: int
    changes: tuple[str, ...]  # of CHANGES
    axes: dict[str, tuple[str, ...]]  # of AXES

    def write(self) -> str:
        """The text of the file."""
        lines = [f"name = {_quoted(self.name)}"]
        lines += [f"question = {_quoted(self.question)}"] if self.question else []
        lines += [f"tasks = {_quoted(self.tasks)}", f"seeds = {self.seeds}"]
        if self.changes:
            named = [f"{_quoted(name_of(decode(text, 'variants')))} = {_quoted(text)}" for text in self.changes]
            lines += ["", "[variants]", *named]
        chosen = {name: values for name, values in self.axes.items() if values}
        if chosen:
            lines += ["", "[axes]", *(f"{name} = {_quoted(values)}" for name, values in chosen.items())]
        return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    """Write a value as TOML has it: as JSON, but for a few characters, which plain() would not keep either."""
    text = json.dumps(value, ensure_ascii=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in ("\x7f", *NO_BREAK)})


def ticks(text: str) -> Ticks | None:
    """The ticks that a text stands for; None for one that says more than can be ticked, or nothing that can be read."""
    with suppress(StudyError, ConfigError, RecursionError, _More):
        text = plain(text)
        check_lengths(text)
        return _ticks(document(text))
    return None


class _More(Exception):
    """There is more than can be ticked."""


def _ticks(given: dict[str, Any]) -> Ticks:
    name, question, tasks = given.pop("name", ""), given.pop("question", ""), given.pop("tasks", [])
    seeds, variants, axes = given.pop("seeds", 5), given.pop("variants", {}), given.pop("axes", {})
    _only(not given and isinstance(name, str) and isinstance(question, str))
    _only(isinstance(tasks, list) and all(isinstance(each, str) and each in task for each in tasks))
    _only(len(set(tasks)) == len(tasks) and isinstance(variants, dict) and isinstance(axes, dict))
    _only(type(seeds) is int and 1 <= seeds <= MOST_SEEDS)
    changes = tuple(_change(*each) for each in variants.items())
    _only(len(set(changes)) == len(changes))
    return Ticks(name, question, tuple(tasks), seeds, changes, {axis: _axis(axis, axes[axis]) for axis in axes})


def _change(name: str, given: Any) -> str:
    if isinstance(given, str):
        changes = decode(given, "variants")
    else:
        known = Config.settings()
        _only(isinstance(given, dict) and given.keys() <= known.keys())
        changes = {each: value_of(known[each], each, value) for each, value in given.items()}
    text = encode(changes)
    _only(text in CHANGES and name == name_of(changes))
    return text


def _axis(name: str, given: Any) -> tuple[str, ...]:
    _only(name in AXES and isinstance(given, list))
    values = tuple(SETTINGS[name].write(value_of(SETTINGS[name], name, value)) for value in given)
    _only(set(values) <= set(AXES[name]) and len(set(values)) == len(values) > 0)
    return values


def _only(is_so: bool) -> None:
    if not is_so:
        raise _More
