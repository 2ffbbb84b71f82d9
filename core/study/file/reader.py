"""From what stands in a file to the study: every table and key, each checked as far as it can be alone."""

import itertools
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from core.experiments.training.plan import BASELINE
from core.model.config import Config
from core.model.variants import decode
from core.settings.device import Machine
from core.settings.setting import ConfigError, Setting
from core.settings.wording import shorten
from core.study import plan
from core.study.file.guards import at_every_rate, read_equal, read_search
from core.study.file.lines import KeyPath, dotted
from core.study.file.mistakes import Mistakes
from core.study.file.names import CALLED, LONGEST_NAME, can_be_called, meant
from core.study.file.sizes import check_count, check_size
from core.study.plan import MODEL, SETTINGS, TRAINING, Arms, Study, TaskSetup
from core.tasks import task
from core.train import Training, start

KEYS = (
    "name",
    "question",
    "tasks",
    "seeds",
    "device",
    "dtype",
    "base",
    "training",
    "task",
    "variants",
    "axes",
    "equal",
    "search",
)
GUARDS = ("equal", "search")


class Reader:
    """A document with its text -> the study that it stands for."""

    def __init__(self, text: str, document: dict[str, Any]) -> None:
        self.text, self.document, self.mistakes = text, document, Mistakes(text)
        self.tasks_told = False  # whether it has been said which tasks there are

    def study(self) -> Study:
        for key in self.document:
            if key not in KEYS:
                self.mistakes.add(
                    (key,), f"{shorten(key)} is no key of a study; there are {', '.join(KEYS)}.{meant(key, KEYS)}"
                )
        name, question = self.words("name", True), self.words("question", False)
        check_count(self.document, self.mistakes)
        machine, seeds = self.machine(), self.seeds()
        base = self.changes(("base",), MODEL) | self.changes(("training",), TRAINING)
        settings, variants = self.settings(base), self.variants()
        equal = read_equal(self.document.get("equal", "nothing"), self.mistakes)
        rates = read_search(self.document.get("search", "none"), self.mistakes)
        arms: dict[str, Arms] = {}
        notes: list[str] = []
        for setting in settings:
            try:
                asked = at_every_rate(setting, setting.among(variants), rates, self.mistakes)
                arms[setting.name], more = plan.arms(setting, asked, equal)
                notes += more
            except ConfigError as error:
                at = [("task", setting.name), ("training",), ("base",)]
                path = next(
                    (each for each in ((*part, error.field) for part in at) if each in self.mistakes.places), at[0]
                )
                self.mistakes.add(path, f"the task {shorten(setting.name)} cannot be so: {error}")
        self.check_different(arms)
        check_size(arms, self.mistakes)
        if self.mistakes.problems:
            raise self.mistakes.error()
        return Study(name, question, self.text, plan.runs(arms, seeds, machine), tuple(notes))

    def words(self, key: str, needed: bool) -> str:
        value = self.document.get(key, "" if not needed else None)
        if value is None:
            self.mistakes.add((key,), f"{key} is missing: the {key} of the study, in quotes.")
        elif not isinstance(value, str) or (needed and (not value.strip() or not value.isprintable())):
            self.mistakes.add((key,), f"{key} is {shorten(value)}; it must be text{', on one line' * needed}.")
        elif needed and len(value) > LONGEST_NAME:
            self.mistakes.add((key,), f"{key} has {len(value)} characters; it must be {LONGEST_NAME} at most.")
        return value if isinstance(value, str) else ""

    def machine(self) -> Machine:
        given = {name: self.document[name] for name in ("device", "dtype") if name in self.document}
        try:
            return start(Config(), Training(), 0, Machine.anywhere(**given)).machine
        except ConfigError as error:
            self.mistakes.add((error.field,), str(error))
            return Machine()

    def seeds(self) -> list[int]:
        value, seed = self.document.get("seeds", 5), Config.settings()["seed"]
        allowed = f"it must be how many (seeds 0, 1, …), or a list of different whole numbers from 0 to {seed.high}"
        number = isinstance(value, int) and not isinstance(value, bool)
        given = list(range(value)) if number else value
        with suppress(ConfigError):
            if isinstance(given, list) and given and len({seed.check("seeds", n) for n in given}) == len(given):
                return given
        self.mistakes.add(("seeds",), f"seeds is {shorten(value)}; {allowed}.")
        return [0]

    def changes(
        self, path: KeyPath, allowed: dict[str, Setting], table: Any = None, besides: Collection[str] = ()
    ) -> dict[str, Any]:
        """A table of settings; those that are wrong are named and left out."""
        table = self.document.get(path[0], {}) if table is None else table
        if not isinstance(table, dict):
            self.mistakes.add(path, f"{dotted(path)} is {shorten(table)}; it must be a table of settings.")
            return {}
        kept = {}
        for name, value in table.items():
            if name in besides:
                continue
            if name not in allowed:
                near = "" if name in SETTINGS else meant(name, allowed)
                there = f"; there are {', '.join(allowed)}" * (name not in GUARDS)
                self.mistakes.add((*path, name), f"{self.unknown(path, name)}{there}.{near * (name not in GUARDS)}")
                continue
            try:
                kept[name] = value_of(allowed[name], dotted((*path, name)), value)
            except ConfigError as error:
                self.mistakes.add((*path, name), str(error))
        return kept

    def unknown(self, path: KeyPath, name: str) -> str:
        if name == "seed":
            return f"{dotted((*path, name))}: the seeds of a study are set by seeds, outside"
        if name in GUARDS:
            return f"{dotted((*path, name))} belongs at the top of the file, before the first table"
        if name in SETTINGS:
            return f"{dotted((*path, name))} belongs under {'training' if name in TRAINING else 'base'}"
        return f"{dotted((*path, name))} is no setting"

    def settings(self, base: dict[str, Any]) -> list[TaskSetup]:
        """The tasks by their names, each with base, training and its own table of changes."""
        names, tables = self.document.get("tasks"), self.document.get("task", {})
        if not isinstance(tables, dict):
            self.mistakes.add(
                ("task",), f"task is {shorten(tables)}; write a table [task.name] for each task to be changed."
            )
            tables = {}
        if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
            said = "is missing" if names is None else f"is {shorten(names)}"
            self.mistakes.add(("tasks",), f"tasks {said}; it must be a list of at least one of {', '.join(task)}.")
            names = []
        for name in tables:
            if names and name not in names:
                self.mistakes.add(("task", name), f"{dotted(('task', name))} is not in the list of tasks.")
        values = [self.setting(name, tables.get(name, {}), base) for name in dict.fromkeys(names)]
        for name in dict.fromkeys(names):
            if not can_be_called(name):
                self.mistakes.add(("tasks",), f"a task cannot be called {shorten(name)}: {CALLED}.")
        for name in (name for name, many in Counter(names).items() if many > 1):
            self.mistakes.add(("tasks",), f"tasks names {shorten(name)} twice.", f'"{name}"')
        return [each for each in values if each]

    def setting(self, name: str, table: Any, base: dict[str, Any]) -> TaskSetup | None:
        own = self.changes(("task", name), SETTINGS, table, ("task", "variants"))
        known = table.get("task", name) if isinstance(table, dict) else name
        if isinstance(known, str) and known in task:
            return TaskSetup(name, known, base | own, table.get("variants") if isinstance(table, dict) else None)
        if known == name:
            words = "which is no task either"
            if not self.tasks_told:
                more = f"or a name for one of them, with a table {dotted(('task', name))} in which task says for which"
                words = f"it must be one of {', '.join(task)}, {more}"
            sign, self.tasks_told = "," if self.tasks_told else ";", True
            self.mistakes.add(("tasks",), f"tasks names {shorten(name)}{sign} {words}.{meant(name, task)}", name)
        else:
            where = dotted(("task", name, "task"))
            self.mistakes.add(
                ("task", name, "task"), f"{where} is {shorten(known)}; it must be one of {', '.join(task)}."
            )
        return None

    def variants(self) -> dict[str, dict[str, Any]]:
        """Name -> changes: those with names, then every combination of the axes."""
        read, tables = {}, self.document.get("variants", {})
        if not isinstance(tables, dict):
            self.mistakes.add(
                ("variants",), f"variants is {shorten(tables)}; it must be a table: a name, and what it changes."
            )
            tables = {}
        for name, table in tables.items():
            read[name] = self.variant(("variants", name), table)
        for changes in self.combinations():
            name = plan.variant_name(changes)
            if name in read:
                self.mistakes.add(("axes",), f"axes: a combination is called {shorten(name)}, and so is a variant.")
            read[name] = changes
        for name in read:
            if name == BASELINE or not can_be_called(name):
                words = f"a variant cannot be called {shorten(name)}: {CALLED}, and not {BASELINE}."
                self.mistakes.add(("variants", name), words)
        return read

    def variant(self, path: KeyPath, table: Any) -> dict[str, Any]:
        if isinstance(table, str) and table:  # as in a link
            try:
                table = decode(table, dotted(path))
            except ConfigError as error:
                self.mistakes.add(path, str(error))
                return {}
        if not table:
            self.mistakes.add(path, f"{dotted(path)} changes nothing; the full model is always there, as “{BASELINE}”.")
        return self.changes(path, SETTINGS, table)

    def combinations(self) -> list[dict[str, Any]]:
        axes, good = self.document.get("axes", {}), {}
        if not isinstance(axes, dict):
            self.mistakes.add(
                ("axes",), f"axes is {shorten(axes)}; it must be a table: settings, and a list of values for each."
            )
            return []
        for name, values in axes.items():
            if not isinstance(values, list) or not values:
                self.mistakes.add(("axes", name), f"axes.{name} is {shorten(values)}; it must be a list of values.")
                continue
            read = [self.changes(("axes",), SETTINGS, {name: value}).get(name) for value in values]
            good[name] = list(dict.fromkeys(value for value in read if value is not None))
        return [dict(zip(good, values)) for values in itertools.product(*good.values())] if good else []

    def check_different(self, arms: dict[str, Arms]) -> None:
        """No training twice under two names of a task: the second would only be the first again."""
        seen: dict[tuple[Config, Training], tuple[str, str]] = {}
        for name, several in arms.items():
            for variant, arm in several.items():
                twin = seen.setdefault(arm, (name, variant))
                if twin != (name, variant):
                    one, other = (f"{variant} of {shorten(name)}" for name, variant in (twin, (name, variant)))
                    self.mistakes.add(("task", name), f"{other} is the same training as {one}: take one of them out.")


def value_of(known: Setting, name: str, value: object) -> Any:
    """A value of the file in the setting's own type, or ConfigError. Text stands for what it does in a link."""
    return known.read(name, value) if isinstance(value, str) and known.kind is not str else known.check(name, value)
