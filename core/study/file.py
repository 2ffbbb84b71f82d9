"""Study files: from TOML text to runs, and from the tick boxes of a new study to TOML text."""

import difflib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.experiments.training.plan import BASELINE, Trial
from core.experiments.training.plan import list_guards as guards_of
from core.measure.power import LEAST_SEEDS
from core.measure.verdicts import MARGIN
from core.model.config import Config
from core.model.variants import ablation, decode, encode, name_of
from core.settings.device import Machine
from core.settings.memory import max_mb
from core.settings.setting import ConfigError, Setting
from core.settings.wording import count, replace_unprintable, shorten
from core.study import plan
from core.study.plan import MODEL, SETTINGS, TRAINING, Arms, Run, Study, StudyError, TaskSetup
from core.tasks import task
from core.train import Training, budget, start
from core.train.dial import DIAL, USUAL, model_size, name_at_size, split_size, steps_at
from core.train.match import name_at_rate, search

MAX_CHARACTERS = (
    50_000  # ten times the longest study that ships; tomllib takes 7 s for one key of so many dots
)
MAX_RUNS = 100_000
MAX_NAME = 200  # characters, as in the store's columns
LOOKS = "5, 10, 20"  # seeds of a study that adds some where models are undecided
MAX_LOOKS = 5
MAX_SEEDS_OF_LOOKS = 100
GUARDS = ("equal", "search")
KEYS = (
    "name",
    "question",
    "tasks",
    "seeds",
    "margin",
    "null",
    "sizes",
    "device",
    "dtype",
    "base",
    "training",
    "task",
    "variants",
    "axes",
    *GUARDS,
)

KeyPath = tuple[str, ...]
Changes = dict[str, Any]
Variants = dict[str, Changes]
Rates = Callable[
    [float], Sequence[float]
]  # from a model's own learning rate to the others that it is trained at


def read(path: str | Path) -> Study:
    """Read the study of a file; StudyError with every mistake, OSError if it is unreadable."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise StudyError([f"{path} is not UTF-8 text."]) from None
    return parse(text)


def parse(text: str) -> Study:
    """Parse the TOML text of a study; StudyError with every mistake."""
    text = text.removeprefix("\ufeff")
    return _Reader(text).read()


def load(text: str) -> dict[str, Any]:
    """Parse a TOML text into a dict; StudyError if it is too long or not TOML."""
    if len(text) > MAX_CHARACTERS:
        raise StudyError([f"The file is too long: the limit is {MAX_CHARACTERS:,} characters."])
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise StudyError(
            ["This is not a study: its lists or tables are nested too deeply."]
        ) from None
    except (
        ValueError
    ) as error:  # also a date that does not exist, or a number with thousands of digits
        hint = ""
        if re.search("[“”„‘’\u00a0\u202f]", text):
            hint = (
                " It contains curly quotes or no-break spaces from a word processor: use plain"
                " ones."
            )
        raise StudyError([f"This is not TOML: {replace_unprintable(error)[:300]}.{hint}"]) from None


class _Reader:
    """Document of a study file, and the mistakes found in it so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.document = load(text)
        self.problems: list[str] = []

    def read(self) -> Study:
        """Return the study; StudyError with every mistake."""
        self.check_count()
        for key in self.document:
            if key not in KEYS:
                self.problems.append(
                    f"{shorten(key)} is not a key of a study{suggest_nearest(key, KEYS)}"
                )
        name = self.read_text("name")
        question = self.read_text("question")
        machine = self.read_machine()
        seeds = self.read_seeds()
        self.check_margin(("margin",), self.document.get("margin"))
        base = self.read_changes(("base",), MODEL) | self.read_changes(("training",), TRAINING)
        setups = self.read_setups(base)
        looks = read_looks(self.document.get("seeds"))
        variants = self.read_variants()
        has_null = self.read_null(seeds)
        equal = self.read_equal()
        rates = self.read_rates()
        arms: dict[str, Arms] = {}
        notes: list[str] = []
        for setup in setups:
            try:
                asked_setups = self.at_every_rate(setup, setup.among(variants), rates)
                arms[setup.name], left_out = plan.plan_arms(setup, asked_setups, equal)
                notes += left_out
            except ConfigError as error:
                self.problems.append(f"the task {shorten(setup.name)} is not possible: {error}")
        self.check_arms(arms)
        if self.problems:
            raise StudyError(list(dict.fromkeys(self.problems)))
        runs = plan.plan_runs(arms, seeds, machine)
        later: tuple[Run, ...] = ()
        if looks:
            later = tuple(run for run in runs if run.seed >= looks[0])
            runs = tuple(run for run in runs if run.seed < looks[0])
            seeds = seeds[: looks[0]]
        if has_null:
            runs += plan.plan_null_runs(arms, seeds, machine)
        return Study(name, question, self.text, runs, tuple(notes), looks, later)

    def check_count(self) -> None:
        """Raise StudyError if the document asks for over 100,000 runs, before any is built."""
        axes, rates, seeds = (
            self.document.get(key, default)
            for key, default in (("axes", {}), ("search", []), ("seeds", 5))
        )
        seeds = max(read_looks(seeds), default=seeds)
        lengths = (
            [_length(values) for values in axes.values() if _length(values)]
            if isinstance(axes, dict)
            else []
        )
        if isinstance(rates, str) and rates in search:
            rates = search[rates](1.0)
        variants = (
            1 + _length(self.document.get("variants")) + (math.prod(lengths) if lengths else 0)
        )
        factors = {
            "task": max(1, _length(self.document.get("tasks"))),
            "size": max(1, _length(self.document.get("sizes"))),
            "variant": variants * (1 + _length(rates)),
            "seed": seeds if isinstance(seeds, int) else _length(seeds),
        }
        if factors["size"] == 1:
            del factors["size"]
        runs = math.prod(factors.values())
        if runs > MAX_RUNS:
            words = "too many runs to count"
            if runs < 10**15:
                words = (
                    f"{runs:,} runs ({', '.join(count(n, name) for name, n in factors.items())})"
                )
            raise StudyError([f"these are {words}; the limit is {MAX_RUNS:,}."])

    def read_text(self, key: str) -> str:
        """Return document[key], "" if no text; note a problem, also for a missing or unfit name.

        Only the key "name" must be a possible name, and present.
        """
        value = self.document.get(key, "")
        is_name = key == "name"
        if is_name and key not in self.document:
            self.problems.append(f'{key} is missing: add {key} = "…".')
        elif not isinstance(value, str):
            self.problems.append(f"{key} is {shorten(value)}; it must be text.")
        elif is_name and not can_be_called(value):
            self.problems.append(f"{key} is {shorten(value)}; {CALLED}.")
        return value if isinstance(value, str) else ""

    def read_machine(self) -> Machine:
        """Read device and dtype; if they are invalid, note a problem and return Machine()."""
        options = {
            name: self.document[name] for name in ("device", "dtype") if name in self.document
        }
        try:
            return start(Config(), Training(), 0, Machine.anywhere(**options)).machine
        except ConfigError as error:
            self.problems.append(str(error))
            return Machine()

    def read_seeds(self) -> list[int]:
        """Read the seeds: a list, n for 0 to n − 1, looks "5, 10" for 0 to 9; else [0], noted."""
        value = self.document.get("seeds", 5)
        looks = read_looks(value)
        if looks:
            return list(range(looks[-1]))
        seed = Config.settings()["seed"]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        numbers = list(range(value)) if is_number else value
        with suppress(ConfigError):
            if (
                isinstance(numbers, list)
                and numbers
                and len({seed.check("seeds", n) for n in numbers}) == len(numbers)
            ):
                return numbers
        allowed = (
            f"how many (seeds 0, 1, …), or a list of different whole numbers from 0 to {seed.high}."
            f" For more seeds where models are undecided, write text such as {LOOKS!r}: 2 to"
            f" {MAX_LOOKS} increasing numbers from {LEAST_SEEDS} to {MAX_SEEDS_OF_LOOKS}"
        )
        self.problems.append(f"seeds is {shorten(value)}; it must be {allowed}.")
        return [0]

    def check_margin(self, path: KeyPath, value: Any) -> None:
        """Note a problem if a margin is given and is no number of points above 0 and below 100."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or (is_number and 0 < value < 100):
            return
        self.problems.append(
            f"{write_key(path)} is {shorten(value)}; it must be a number of percentage points above"
            " 0 and below 100: models that differ by less are equivalent."
        )

    def read_null(self, seeds: list[int]) -> bool:
        """Read whether there are null arms; note a problem for no boolean or too large seeds.

        Return False for anything but true; seeds must be below NULL_SEEDS.
        """
        value = self.document.get("null", False)
        if not isinstance(value, bool):
            self.problems.append(f"null is {shorten(value)}; it must be true or false.")
        elif value and max(seeds) >= plan.NULL_SEEDS:
            self.problems.append(f"null: with it, all seeds must be below {plan.NULL_SEEDS:,}.")
        return value is True

    def read_equal(self) -> str:
        """Read what is equal for all models (core.train.match); "nothing", noted, if invalid."""
        try:
            value: str = Trial.settings()["match"].check(
                "equal", self.document.get("equal", "nothing")
            )
            return value
        except ConfigError as error:
            self.problems.append(str(error))
            return "nothing"

    def read_rates(self) -> Rates:
        """Read `search`: return the function from a model's rate to rates to try; note a problem.

        For "none" and invalid values it returns [].
        """
        rates_given = self.document.get("search", "none")
        try:
            if not isinstance(rates_given, list):
                return search[Trial.settings()["search"].check("search", rates_given)]
            rates = list(
                dict.fromkeys(
                    TRAINING["learning_rate"].check("search", rate) for rate in rates_given
                )
            )
            return lambda changes: rates
        except ConfigError as error:
            hint = "" if isinstance(rates_given, list) else " Or give a list of learning rates."
            self.problems.append(f"{error}{hint}")
            return search["none"]

    def at_every_rate(self, setup: TaskSetup, variants: Variants, rates: Rates) -> Variants:
        """Return the variants, then all models (baseline, too) at other rates; note twins, clashes.

        Note a problem with variants that differ only in the rate, and with equal names.

        Raises:
            ConfigError: the baseline cannot be trained.
        """
        base = setup.training({}).learning_rate
        every: Mapping[str, Changes] = {BASELINE: {}, **variants}
        base_rates = {name: changes.get("learning_rate", base) for name, changes in every.items()}
        searched = {
            name_at(name, rate): changes | {"learning_rate": rate}
            for name, changes in every.items()
            for rate in rates(base_rates[name])
            if rate != base_rates[name]
        }
        first_with: dict[frozenset[tuple[str, Any]], str] = {}
        for name, changes in every.items() if searched else ():
            others = frozenset(
                (key, value) for key, value in changes.items() if key != "learning_rate"
            )
            twin = first_with.setdefault(others, name)
            if twin != name:
                words = "only in the learning rate, which is tuned anyway."
                self.problems.append(
                    f"search: {shorten(name)} differs from {shorten(twin)} {words}"
                )
        for name in variants.keys() & searched.keys():
            self.problems.append(
                "search: a model at one of the rates and a variant are both called"
                f" {shorten(name)}."
            )
        return variants | searched

    def read_changes(
        self,
        path: KeyPath,
        allowed: Mapping[str, Setting],
        table: Any = None,
        skipped: Collection[str] = (),
    ) -> Changes:
        """Read the settings of `table`, else of document[path[0]]; note and leave out invalid ones.

        Args:
            path: Keys that lead to the table, for messages.
            allowed: The settings that it may have.
            table: The table; None for the one at the first key of `path`.
            skipped: Keys that are no settings.
        """
        table = self.document.get(path[0], {}) if table is None else table
        if not isinstance(table, dict):
            self.problems.append(
                f"{write_key(path)} is {shorten(table)}; it must be a table of settings."
            )
            return {}
        values = {}
        for name, value in table.items():
            key = write_key((*path, name))
            if name in skipped:
                continue
            if name == "seed":
                self.problems.append(f"{key}: set the seeds of a study with seeds, at the top.")
            elif name in GUARDS:
                self.problems.append(
                    f"{key} belongs at the top of the file, before the first table."
                )
            elif name in SETTINGS and name not in allowed:
                self.problems.append(
                    f"{key} belongs under {'training' if name in TRAINING else 'base'}."
                )
            elif name not in allowed:
                self.problems.append(f"{key} is not a setting{suggest_nearest(name, allowed)}")
            else:
                try:
                    values[name] = value_of(allowed[name], key, value)
                except ConfigError as error:
                    self.problems.append(str(error))
        return values

    def read_setups(self, base: Changes) -> list[TaskSetup]:
        """Read the tasks, with the settings `base` and those of their own tables; note problems."""
        names = self.document.get("tasks")
        tables = self.document.get("task", {})
        if not isinstance(tables, dict):
            self.problems.append(
                f"task is {shorten(tables)}; write a table [task.name] for each task to be changed."
            )
            tables = {}
        if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
            problem = "is missing" if names is None else f"is {shorten(names)}"
            self.problems.append(
                f"tasks {problem}; it must be a list of at least one of {', '.join(task)}."
            )
            names = []
        for name in tables:
            if names and name not in names:
                self.problems.append(f"{write_key(('task', name))} is not in the list of tasks.")
        if len(set(names)) < len(names):
            twice = next(name for n, name in enumerate(names) if name in names[:n])
            self.problems.append(f"tasks names {shorten(twice)} twice.")
        setups = []
        for name in dict.fromkeys(names):
            table = tables.get(name, {})
            own_keys = ("task", "variants", "margin")
            changes = self.read_changes(("task", name), SETTINGS, table, own_keys)
            table = table if isinstance(table, dict) else {}
            self.check_margin(("task", name, "margin"), table.get("margin"))
            task_name = table.get("task", name)
            if not can_be_called(name):
                self.problems.append(f"a task cannot be called {shorten(name)}: {CALLED}.")
            elif "task" not in table and name not in task:
                hint = (
                    f" To use your own name, set its task in a table [{write_key(('task', name))}]."
                )
                nearest = suggest_nearest(name, task)
                self.problems.append(
                    f"tasks names {shorten(name)}, which is not a task{nearest}{hint}"
                )
            elif not (isinstance(task_name, str) and task_name in task):
                key = write_key(("task", name, "task"))
                self.problems.append(
                    f"{key} is {shorten(task_name)}; it must be one of {', '.join(task)}."
                )
            else:
                setups.append(TaskSetup(name, task_name, base | changes, table.get("variants")))
        sizes = self.read_sizes()
        return [at_size(setup, size) for setup in setups for size in sizes] if sizes else setups

    def read_sizes(self) -> list[int]:
        """Read the sizes of the dial at which every task is trained; [] for none, noted if wrong.

        The settings that a size sets must not be set elsewhere.
        """
        value = self.document.get("sizes", [])
        is_list = isinstance(value, list) and all(type(size) is int for size in value)
        if not is_list or not set(value) <= set(DIAL) or len(set(value)) < len(value):
            self.problems.append(
                f"sizes is {shorten(value)}; it must be a list of different sizes from {DIAL[0]} to"
                f" {DIAL[-1]} (core.train.dial)."
            )
            return []
        tables = self.document.get("task", {})
        tables = list(tables.values()) if isinstance(tables, dict) else []
        for table in [self.document.get("base"), *tables] if value else []:
            for name in model_size(USUAL):
                if isinstance(table, dict) and name in table:
                    self.problems.append(f"{name} follows from sizes: set only one of them.")
        return sorted(value)

    def read_variants(self) -> Variants:
        """Read named variants (not the baseline), then combinations of axes; note problems.

        Of two with one name the combination counts.
        """
        tables = self.document.get("variants", {})
        if not isinstance(tables, dict):
            self.problems.append(
                f"variants is {shorten(tables)}; it must be a table: a name, and what it changes."
            )
            tables = {}
        variants = {
            name: self.read_variant(("variants", name), table) for name, table in tables.items()
        }
        for changes in self.read_combinations():
            name = plan.variant_name(changes)
            if name in variants:
                self.problems.append(
                    f"axes: a combination and a variant are both called {shorten(name)}."
                )
            variants[name] = changes
        for name in variants:
            if name == BASELINE or plan.is_null(name) or not can_be_called(name):
                self.problems.append(
                    f"a variant cannot be called {shorten(name)}: {CALLED}, and not {BASELINE}"
                    f", {plan.NULL} or {plan.REWRITTEN}."
                )
        return variants

    def read_variant(self, path: KeyPath, table: Any) -> Changes:
        """Read a variant's changes: a table, or text as in a link; note problems.

        {} for text that cannot be read.
        """
        if isinstance(table, str) and table:  # as in a link
            try:
                table = decode(table, write_key(path))
            except ConfigError as error:
                self.problems.append(str(error))
                return {}
        if not table:
            self.problems.append(
                f"{write_key(path)} changes nothing; the full model is always included, as"
                f" “{BASELINE}”."
            )
        return self.read_changes(path, SETTINGS, table)

    def read_combinations(self) -> list[Changes]:
        """Read the axes; return the changes of every combination, or []; note problems."""
        axes = self.document.get("axes", {})
        if not isinstance(axes, dict):
            self.problems.append(
                f"axes is {shorten(axes)}; it must be a table: settings, and a list of values for"
                " each."
            )
            return []
        values: dict[str, list[Any]] = {}
        for name, axis_values in axes.items():
            if not isinstance(axis_values, list) or not axis_values:
                self.problems.append(
                    f"axes.{write_key((name,))} is {shorten(axis_values)}; it must be a list of"
                    " values."
                )
                continue
            changes = [
                self.read_changes(("axes",), SETTINGS, {name: value}) for value in axis_values
            ]
            values[name] = list(dict.fromkeys(change[name] for change in changes if change))
        return (
            [dict(zip(values, combination)) for combination in itertools.product(*values.values())]
            if values
            else []
        )

    def check_arms(self, arms: Mapping[str, Arms]) -> None:
        """Note as problems: models that need too much memory, and two that are trained alike."""
        first_with: dict[tuple[Config, Training], str] = {}
        limit = max_mb()
        for name, variants in arms.items():
            for variant, arm in variants.items():
                title = f"{variant} of {shorten(name)}"
                twin = first_with.setdefault(arm, title)
                if twin != title:
                    self.problems.append(
                        f"{title} would be trained exactly like {twin}: remove one of them."
                    )
                needed = budget.estimate_memory(*arm) / 2**20
                if needed > limit:
                    allowed = f"at most {limit:,} MB are allowed (set by ABLATION_MAX_MB)"
                    self.problems.append(f"{title} would need about {needed:,.0f} MB; {allowed}.")


def at_size(setup: TaskSetup, size: int) -> TaskSetup:
    """Return a task's setup at a size of the dial: the size's model, and steps in proportion."""
    steps = setup.changes.get("steps")
    steps = steps_at(setup.task, size) if steps is None else max(1, steps * size // USUAL)
    changes = setup.changes | model_size(size) | {"steps": steps}
    return replace(setup, name=name_at_size(setup.name, size), changes=changes)


CALLED = f"it must be printable, on one line, {MAX_NAME} characters at most"


def _length(value: Any) -> int:
    """Return the length of a list or table; 0 for other values."""
    return len(value) if isinstance(value, list | tuple | dict) else 0


def can_be_called(name: str) -> bool:
    """Return whether a study or variant can be named so: printable, not blank, not too long.

    Reserved names such as the baseline's are not checked here.
    """
    return bool(name.strip()) and name.isprintable() and len(name) <= MAX_NAME


def suggest_nearest(name: str, names: Iterable[str]) -> str:
    """Return how a sentence on an unknown name ends: ". Did you mean x?", "; there are x, y."."""
    names = list(names)
    near = difflib.get_close_matches(name[:MAX_NAME], names, 1)
    return f". Did you mean {near[0]}?" if near else f"; there are {', '.join(names)}."


def write_key(path: KeyPath) -> str:
    """Format a path of keys as in TOML, such as task."reverse, 12 layers".n_layers."""
    parts = [shorten(key)[1:-1] for key in path]
    return ".".join(
        part if re.fullmatch("[A-Za-z0-9_-]+…?", part) else f'"{part}"' for part in parts
    )


def value_of(definition: Setting, name: str, value: object) -> Any:
    """Return a TOML value, text as in a link too, in a setting's type; ConfigError if invalid.

    Args:
        definition: The setting.
        name: Its name in messages.
        value: The value, as TOML has it.
    """
    return (
        definition.read(name, value)
        if isinstance(value, str) and definition.kind is not str
        else definition.check(name, value)
    )


# What makes a comparison fair: equal costs, and for each model the learning rate that suits it.


def name_at(variant: str, rate: float) -> str:
    """Return "QK-norm, learning rate 0.01"; "learning rate 0.01" for a variant named BASELINE."""
    return (
        TRAINING["learning_rate"].describe_change(rate)
        if variant == BASELINE
        else name_at_rate(variant, rate)
    )


def search_of(toml_text: str) -> str:
    """Return how a text searches rates: a menu key, "" for its own list, or "none" by default.

    Args:
        toml_text: The text of the file, in TOML.
    """
    search = tomllib.loads(toml_text).get("search", "none")
    if isinstance(search, str):
        return search
    return "" if search else "none"


def read_looks(value: Any) -> tuple[int, ...]:
    """Return the numbers of seeds in text such as "5, 10, 20", two or more; else ().

    They must be increasing and within bounds.
    """
    number = "[0-9]{1,3}"
    if not isinstance(value, str) or not re.fullmatch(rf"{number}(, *{number})+", value):
        return ()
    looks = [int(part) for part in value.split(",")]
    is_increasing = all(few < more for few, more in itertools.pairwise(looks))
    in_range = looks[0] >= LEAST_SEEDS and looks[-1] <= MAX_SEEDS_OF_LOOKS
    in_range = in_range and len(looks) <= MAX_LOOKS
    return tuple(looks) if is_increasing and in_range else ()


def looks_of(toml_text: str) -> tuple[int, ...]:
    """Return the numbers of seeds at which a study's TOML compares; () unless it states looks."""
    return read_looks(tomllib.loads(toml_text).get("seeds"))


def margin_of(toml_text: str, task_name: str) -> float:
    """Return a study text's margin (share) for a task, else that for all, else MARGIN."""
    document = tomllib.loads(toml_text)
    if document.get("sizes"):
        task_name, _ = split_size(task_name)
    table = document.get("task", {}).get(task_name, {})
    points: float = table.get("margin", document.get("margin", 100 * MARGIN))
    return points / 100


def describe_guards(toml_text: str) -> list[str]:
    """Describe in phrases what a study's text keeps fair: equal costs, searched rates; or []."""
    return guards_of(
        tomllib.loads(toml_text).get("equal", "nothing"), search_of(toml_text) != "none"
    )


# What of a study can be ticked: name, question, tasks, seeds, parts and axes.

LEAST_MARGIN, MOST_MARGIN = 0.1, 50.0  # percentage points
SEEDS: tuple[int | str, ...] = (*range(1, 21), LOOKS)
PARTS = list(
    dict.fromkeys([encode(part) for part in ablation.values()])
)  # shown; the others are searched by name
CHANGES = list(
    dict.fromkeys([*PARTS, *(encode({name: value}) for name, value in Config().list_changes())])
)
# What can be combined with each other: a setting -> values, as a link has them.
AXES = {
    name: tuple(SETTINGS[name].menu or ())
    for name in ("norm", "placement", "activation", "position")
} | {
    "n_heads": ("1", "2", "4", "8"),
    "n_layers": ("1", "2", "4", "6", "12"),
    "learning_rate": ("0.001", "0.003", "0.01", "0.03"),
}


@dataclass(frozen=True)
class Ticks:
    """Study that consists only of settings with tick boxes."""

    name: str
    question: str
    tasks: tuple[str, ...]
    seeds: int | str  # a number, or LOOKS
    changes: tuple[str, ...]  # of CHANGES
    axes: dict[str, tuple[str, ...]]  # of AXES
    margin: float = 100 * MARGIN  # percentage points
    sizes: tuple[int, ...] = ()  # of the dial
    search: str = "none"  # of core.train.match

    def write(self) -> str:
        """Return the TOML text of the study; it is not checked."""
        lines = [f"name = {quote(self.name)}"]
        lines += [f"question = {quote(self.question)}"] if self.question else []
        lines += [f"tasks = {quote(self.tasks)}", f"seeds = {quote(self.seeds)}"]
        lines += [f"margin = {self.margin:g}"] if self.margin != 100 * MARGIN else []
        lines += [f"sizes = {quote(self.sizes)}"] if self.sizes else []
        lines += [f"search = {quote(self.search)}"] if self.search != "none" else []
        if self.changes:
            named = [
                f"{quote(name_of(decode(text, 'variants')))} = {quote(text)}"
                for text in self.changes
            ]
            lines += ["", "[variants]", *named]
        chosen = {name: values for name, values in self.axes.items() if values}
        if chosen:
            lines += [
                "",
                "[axes]",
                *(f"{name} = {quote(values)}" for name, values in chosen.items()),
            ]
        return "\n".join(lines) + "\n"


def quote(value: Any) -> str:
    """Return a value as TOML text: its JSON, with the character DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_ticks(text: str) -> Ticks | None:
    """Parse a study's text into ticked boxes; None if it is no TOML or has no such boxes."""
    try:
        document = load(text.removeprefix("\ufeff"))
        result = Ticks(
            name=document.pop("name", ""),
            question=document.pop("question", ""),
            tasks=tuple(document.pop("tasks", [])),
            seeds=document.pop("seeds", 5),
            changes=tuple(_read_change(*pair) for pair in document.pop("variants", {}).items()),
            axes={
                name: _read_axis(name, values) for name, values in document.pop("axes", {}).items()
            },
            margin=document.pop("margin", 100 * MARGIN),
            sizes=tuple(document.pop("sizes", [])),
            search=document.pop("search", "none"),
        )
        can_be_ticked = (
            not document
            and isinstance(result.name, str)
            and isinstance(result.question, str)
            and _are_ticks(result.tasks, task)
            and result.seeds in SEEDS
            and type(result.seeds) in (int, str)
            and type(result.margin) in (int, float)
            and LEAST_MARGIN <= result.margin <= MOST_MARGIN
            and _are_ticks(result.sizes, DIAL)
            and result.search in search
            and _are_ticks(result.changes, CHANGES)
            and all(
                values and _are_ticks(values, AXES[name]) for name, values in result.axes.items()
            )
        )
    except (
        StudyError,
        ConfigError,
        AttributeError,
        KeyError,
        TypeError,
    ):  # or a value of another type
        return None
    return result if can_be_ticked else None


def _read_change(name: str, change: Any) -> str:
    """Return a variant's table or text as a link has it; "" if boxes would name it otherwise."""
    definitions = Config.settings()
    if isinstance(change, str):
        changes = decode(change, "variants")
    else:
        changes = {key: value_of(definitions[key], key, value) for key, value in change.items()}
    return encode(changes) if name == name_of(changes) else ""


def _read_axis(name: str, axis: list[Any]) -> tuple[str, ...]:
    """Return the values of the axis of a setting as a link has them; () if it has no boxes."""
    definition = SETTINGS[name]
    values = axis if name in AXES and isinstance(axis, list) else []
    return tuple(definition.write(value_of(definition, name, value)) for value in values)


def _are_ticks(values: Sequence[Any], offered: Collection[Any]) -> bool:
    """Return whether all values are on offer and none is repeated."""
    return all(value in offered for value in values) and len(set(values)) == len(values)
