"""The file of a study: TOML, read in one go, so that every mistake in it is named at once, with its line."""

import difflib
import functools
import itertools
import tomllib
from collections import Counter
from contextlib import suppress
from pathlib import Path

from core.experiments.training.plan import BASELINE
from core.model.config import Config
from core.model.variants import decode
from core.settings.device import Machine
from core.settings.memory import max_mb
from core.settings.setting import ConfigError, Dial, dials, printable, shorten
from core.settings.wording import count
from core.study import plan
from core.study.lines import DEEPEST, counted, dotted, places
from core.study.plan import MODEL, SETTINGS, TRAINING, Setting, Study, StudyError
from core.tasks import task
from core.train import budget

KEYS = ("name", "question", "tasks", "seeds", "device", "dtype", "base", "training", "task", "variants", "axes")
MOST_RUNS = 100_000
MOST_TRAININGS = 20_000  # that differ in more than the seed: each is looked at, ten thousand in a second
MOST_KEYS = 50_000
MOST_TOLD = 100  # mistakes of one file
LONGEST = 500_000  # characters of a file
ENDLESS = 10**15
LONGEST_NAME = 200  # characters
CALLED = f"it must be printable, on one line, {LONGEST_NAME} characters at most"


def read(path) -> Study:
    """Raises StudyError with everything that is wrong, and OSError for a file that is not there."""
    try:
        with Path(path).open(encoding="utf-8") as opened:
            text = opened.read(LONGEST + 1)
    except UnicodeDecodeError:
        raise StudyError([f"{path} is no text in UTF-8."]) from None
    return parse(text)


def parse(text: str) -> Study:
    """The study that a text stands for. Raises StudyError with everything that is wrong."""
    check_lengths(text)
    try:
        return _Reader(text, document(text)).study()
    except RecursionError:
        raise StudyError(["This is no study: tables or lists stand in each other hundreds deep."]) from None


def document(text: str) -> dict:
    """What stands in a TOML text. Raises StudyError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).replace("at end of document", f"at the end, line {max(1, len(text.splitlines()))}")
        raise StudyError([f"This is not TOML: {printable(words)[:300]}."]) from None
    except ValueError:
        raise StudyError(
            ["This is no study: it has a number of thousands of digits, or a date that there is not."]
        ) from None


def check_lengths(text: str):
    """Raises StudyError for a text that would take too long to read, before it is read."""
    if len(text) > LONGEST:
        raise StudyError([f"This is too long: a study may have {LONGEST:,} characters."])
    keys, deepest, line = counted(text)
    if deepest > DEEPEST:
        raise StudyError(
            [f"Line {line}: a key has {deepest:,} parts joined by dots; in a study it may have {DEEPEST}."]
        )
    if keys > MOST_KEYS:
        raise StudyError([f"This is too long: it has {keys:,} keys; a study may have {MOST_KEYS:,}."])


class _Reader:
    def __init__(self, text: str, document: dict):
        self.text, self.document, self.places, self.lines = text, document, places(text), text.splitlines()
        self.problems: dict[tuple[int, str], None] = {}  # line (0: none), words; each once
        self.tasks_told = False  # whether it has been said which tasks there are

    def study(self) -> Study:
        for key in self.document:
            if key not in KEYS:
                self.wrong(
                    (key,), f"{shorten(key)} is no key of a study; there are {', '.join(KEYS)}.{meant(key, KEYS)}"
                )
        name, question = self.words("name", True), self.words("question", False)
        self.check_count()
        machine, seeds = self.machine(), self.seeds()
        base = self.changes(("base",), MODEL) | self.changes(("training",), TRAINING)
        settings, variants = self.settings(base), self.variants()
        arms, notes = {}, []
        for setting in settings:
            try:
                arms[setting.name], more = plan.arms(setting, variants)
                notes += more
            except ConfigError as error:
                at = [("task", setting.name), ("training",), ("base",)]
                path = next((each for each in ((*part, error.field) for part in at) if each in self.places), at[0])
                self.wrong(path, f"the task {shorten(setting.name)} cannot be so: {error}")
        self.check_different(arms)
        self.check_size(arms)
        if self.problems:
            raise self.told()
        return Study(name, question, self.text, plan.runs(arms, seeds, machine), tuple(notes))

    def told(self) -> StudyError:
        """All mistakes, in the order of their lines."""
        return StudyError([words for _, words in sorted(self.problems, key=lambda each: each[0])])

    def wrong(self, path: tuple, words: str, near: str = ""):
        """Take note of a mistake, with the line of the key or of the nearest table around it."""
        path = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.places), None)
        line = self.places[path] if path else 0
        if near and line:  # an element of a list that goes over several lines
            line = next((n for n in range(line, len(self.lines) + 1) if near in self.lines[n - 1]), line)
        self.problems[line, f"Line {line}: {words}" if line else words[0].upper() + words[1:]] = None
        if len(self.problems) > MOST_TOLD:
            raise self.told()

    def words(self, key: str, needed: bool) -> str:
        value = self.document.get(key, "" if not needed else None)
        if value is None:
            self.wrong((key,), f"{key} is missing: the {key} of the study, in quotes.")
        elif not isinstance(value, str) or (needed and (not value.strip() or not value.isprintable())):
            self.wrong((key,), f"{key} is {shorten(value)}; it must be text{', on one line' * needed}.")
        elif needed and len(value) > LONGEST_NAME:
            self.wrong((key,), f"{key} has {len(value)} characters; it must be {LONGEST_NAME} at most.")
        return value if isinstance(value, str) else ""

    def check_count(self):
        """Raises StudyError for more runs than a study may have: by multiplication, before any is made."""
        axes, seeds = self.document.get("axes"), self.document.get("seeds", 5)
        values = [each for each in axes.values() if isinstance(each, list)] if isinstance(axes, dict) else []
        variants = self.length("variants", dict) + (_product(map(len, values)) if values else 0)
        many = {
            "task": max(1, self.length("tasks", list)),
            "variant": 1 + variants,  # the baseline, too
            "seed": seeds if isinstance(seeds, int) else self.length("seeds", list),
        }
        self.check_many("run", many, MOST_RUNS)
        del many["seed"]
        self.check_many("training", many, MOST_TRAININGS, " that differ in more than the seed")

    def check_many(self, what: str, many: dict[str, int], most: int, how: str = ""):
        whole = _product(many.values())
        if whole > most:
            parts = ", ".join(_plural(each, name) for name, each in many.items())
            words = f"these are {_plural(whole, what)}{how} ({parts}); a study may have {most:,}."
            self.wrong(("seeds",) if "seed" in many else ("axes",), words)
            raise self.told()

    def length(self, key: str, kind: type) -> int:
        """How much stands in a list or a table; 0 for what is none."""
        value = self.document.get(key)
        return len(value) if isinstance(value, kind) else 0

    def machine(self) -> Machine:
        given = {name: self.document[name] for name in ("device", "dtype") if name in self.document}
        try:
            return plan.start(Config(), plan.Training(), 0, Machine.anywhere(**given)).machine
        except ConfigError as error:
            self.wrong((error.field,), str(error))
            return Machine()

    def seeds(self) -> list[int]:
        value, seed = self.document.get("seeds", 5), dials(Config)["seed"]
        allowed = f"it must be how many (seeds 0, 1, …), or a list of different whole numbers from 0 to {seed.high}"
        number = isinstance(value, int) and not isinstance(value, bool)
        given = list(range(value)) if number else value
        with suppress(ConfigError):
            if isinstance(given, list) and given and len({seed.check("seeds", n) for n in given}) == len(given):
                return given
        self.wrong(("seeds",), f"seeds is {shorten(value)}; {allowed}.")
        return [0]

    def changes(self, path: tuple, allowed: dict[str, Dial], table=None, besides=()) -> dict:
        """A table of settings; those that are wrong are named and left out."""
        table = self.document.get(path[0], {}) if table is None else table
        if not isinstance(table, dict):
            self.wrong(path, f"{dotted(path)} is {shorten(table)}; it must be a table of settings.")
            return {}
        kept = {}
        for name, value in table.items():
            if name in besides:
                continue
            if name not in allowed:
                near = "" if name in SETTINGS else meant(name, allowed)
                self.wrong((*path, name), f"{self.unknown(path, name)}; there are {', '.join(allowed)}.{near}")
                continue
            try:
                kept[name] = value_of(allowed[name], dotted((*path, name)), value)
            except ConfigError as error:
                self.wrong((*path, name), str(error))
        return kept

    def unknown(self, path: tuple, name: str) -> str:
        if name == "seed":
            return f"{dotted((*path, name))}: the seeds of a study are set by seeds, outside"
        if name in SETTINGS:
            return f"{dotted((*path, name))} belongs under {'training' if name in TRAINING else 'base'}"
        return f"{dotted((*path, name))} is no setting"

    def settings(self, base: dict) -> list[Setting]:
        """The tasks by their names, each with base, training and its own table of changes."""
        names, tables = self.document.get("tasks"), self.document.get("task", {})
        if not isinstance(tables, dict):
            self.wrong(("task",), f"task is {shorten(tables)}; write a table [task.name] for each task to be changed.")
            tables = {}
        if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
            said = "is missing" if names is None else f"is {shorten(names)}"
            self.wrong(("tasks",), f"tasks {said}; it must be a list of at least one of {', '.join(task)}.")
            names = []
        for name in tables:
            if names and name not in names:
                self.wrong(("task", name), f"{dotted(('task', name))} is not in the list of tasks.")
        made = [self.setting(name, tables.get(name, {}), base) for name in dict.fromkeys(names)]
        for name in dict.fromkeys(names):
            if not can_be_called(name):
                self.wrong(("tasks",), f"a task cannot be called {shorten(name)}: {CALLED}.")
        for name in (name for name, many in Counter(names).items() if many > 1):
            self.wrong(("tasks",), f"tasks names {shorten(name)} twice.", f'"{name}"')
        return [each for each in made if each]

    def setting(self, name: str, table, base: dict) -> Setting | None:
        own = self.changes(("task", name), SETTINGS, table, ("task",))
        known = table.get("task", name) if isinstance(table, dict) else name
        if isinstance(known, str) and known in task:
            return Setting(name, known, base | own)
        if known == name:
            words = "which is no task either"
            if not self.tasks_told:
                more = f"or a name for one of them, with a table {dotted(('task', name))} in which task says for which"
                words = f"it must be one of {', '.join(task)}, {more}"
            sign, self.tasks_told = "," if self.tasks_told else ";", True
            self.wrong(("tasks",), f"tasks names {shorten(name)}{sign} {words}.{meant(name, task)}", name)
        else:
            where = dotted(("task", name, "task"))
            self.wrong(("task", name, "task"), f"{where} is {shorten(known)}; it must be one of {', '.join(task)}.")
        return None

    def variants(self) -> dict[str, dict]:
        """Name -> changes: those with names, then every combination of the axes."""
        made, tables = {}, self.document.get("variants", {})
        if not isinstance(tables, dict):
            self.wrong(
                ("variants",), f"variants is {shorten(tables)}; it must be a table: a name, and what it changes."
            )
            tables = {}
        for name, table in tables.items():
            made[name] = self.variant(("variants", name), table)
        for changes in self.combinations():
            name = plan.variant_name(changes)
            if name in made:
                self.wrong(("axes",), f"axes: a combination is called {shorten(name)}, and so is a variant.")
            made[name] = changes
        for name in made:
            if name == BASELINE or not can_be_called(name):
                words = f"a variant cannot be called {shorten(name)}: {CALLED}, and not {BASELINE}."
                self.wrong(("variants", name), words)
        return made

    def variant(self, path: tuple, table) -> dict:
        if isinstance(table, str) and table:  # as in a link
            try:
                table = decode(table, dotted(path))
            except ConfigError as error:
                self.wrong(path, str(error))
                return {}
        if not table:
            self.wrong(path, f"{dotted(path)} changes nothing; the full model is always there, as “{BASELINE}”.")
        return self.changes(path, SETTINGS, table)

    def combinations(self) -> list[dict]:
        axes, good = self.document.get("axes", {}), {}
        if not isinstance(axes, dict):
            self.wrong(
                ("axes",), f"axes is {shorten(axes)}; it must be a table: settings, and a list of values for each."
            )
            return []
        for name, values in axes.items():
            if not isinstance(values, list) or not values:
                self.wrong(("axes", name), f"axes.{name} is {shorten(values)}; it must be a list of values.")
                continue
            read = [self.changes(("axes",), SETTINGS, {name: value}).get(name) for value in values]
            good[name] = list(dict.fromkeys(value for value in read if value is not None))
        return [dict(zip(good, values)) for values in itertools.product(*good.values())] if good else []

    def check_different(self, arms):
        """No training twice under two names of a task: the second would only be the first again."""
        seen = {}
        for name, several in arms.items():
            for variant, arm in several.items():
                twin = seen.setdefault(arm, (name, variant))
                if twin != (name, variant):
                    one, other = (f"{variant} of {shorten(name)}" for name, variant in (twin, (name, variant)))
                    self.wrong(("task", name), f"{other} is the same training as {one}: take one of them out.")

    def check_size(self, arms):
        """That no run needs more memory than it may have."""
        for name, several in arms.items():
            for variant, arm in several.items():
                needed = budget.memory(*arm)
                if needed > max_mb() << 20:
                    words = (
                        f"{variant} of {shorten(name)} would need about {needed / 2**20:,.0f} MB; a run here may use "
                    )
                    self.wrong(("task", name), f"{words}{max_mb():,} MB (set by ABLATION_MAX_MB).")


def _product(numbers) -> int:
    """Of whole numbers; ENDLESS where it is larger than anybody can want."""
    made = 1
    for each in numbers:
        made = min(made * each, ENDLESS)
    return made


def _plural(many: int, word: str) -> str:
    return count(many, word) if many < ENDLESS else f"endlessly many {word}s"


def meant(name: str, known) -> str:
    """What may have been meant by a name that is not known, as a question; or nothing."""
    return _meant(name[:LONGEST_NAME], tuple(known))


@functools.lru_cache(maxsize=1024)
def _meant(name: str, known: tuple) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {near[0]}?" if near else ""


def can_be_called(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and len(name) <= LONGEST_NAME


def value_of(made: Dial, name: str, value):
    """A value of the file in the setting's own type, or ConfigError. Text stands for what it does in a link."""
    return made.read(name, value) if isinstance(value, str) and made.kind is not str else made.check(name, value)
