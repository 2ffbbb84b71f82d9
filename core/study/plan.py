"""Plan of a study: deterministic runs, each with a reproducible hash."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from core.experiments.training.plan import BASELINE
from core.model.config import Config
from core.model.variants import apply, name_of
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.settings.wording import count, shorten
from core.tasks import task
from core.train import State, Training, budget, start
from core.train.match import match_cost, name_at_rate

# Settings of a model that every run has had since this format. A later one stands in a run only
# where it differs from what models were before, so that earlier runs keep their hashes.
FIRST_SETTINGS = {
    "d_model",
    "n_heads",
    "d_ff",
    "n_layers",
    "seed",
    "attention",
    "residual_attention",
    "ffn",
    "residual_ffn",
    "norm",
    "placement",
    "activation",
    "position",
    "mask",
    "d_head",
    "scale",
    "bias",
    "tied",
    "padding",
    "init",
    "dropout",
}
LATER_TRAINING = {"initial_order"}  # likewise of a training
# of what is hashed and stored; to be raised when the same settings come to mean other numbers
FORMAT = 1
MODEL = {
    name: definition
    for name, definition in Config.settings().items()
    if name not in ("seed", "padding")
}  # tasks need no padding
TRAINING = {name: definition for name, definition in Training.settings().items() if name != "task"}
SETTINGS = MODEL | TRAINING  # what a study can change: no name is in both

# Null arms: the baseline once more, with other seeds, and with the same seeds and its heads and
# hidden units in reverse order. Their distance from the baseline is noise.
NULL = "baseline, other seeds"
NULL_SEEDS = 1_000_000  # by which its seeds are larger
REWRITTEN = "baseline, rewritten"
NULL_ARMS = (NULL, REWRITTEN)

Arms = dict[str, tuple[Config, Training]]  # of one task: variant -> how it is trained


class StudyError(ValueError):
    """Mistakes in a study, one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Run:
    """Training of a study. Runs with equal hashes give equal rows, whatever their names."""

    task: str  # the name in the study, which may be that of a task with other settings than its own
    variant: str
    config: Config  # with the seed of this run
    training: Training
    machine: Machine

    @property
    def seed(self) -> int:
        """Random seed of the run."""
        return self.config.seed

    @cached_property
    def spec(self) -> str:
        """Settings that determine the results, as sorted JSON; later ones only if not as before.

        Later settings appear only where they differ from earlier models, so that hashes stay.
        """
        parts = {"config": self.config, "training": self.training, "machine": self.machine}
        later = (Config.settings().keys() - FIRST_SETTINGS) | LATER_TRAINING
        since = later - self.config.write().keys() - self.training.write().keys()
        values = {
            part: {
                field.name: _without_negative_zero(getattr(settings, field.name))
                for field in dataclasses.fields(settings)
                if field.name not in since
            }
            for part, settings in parts.items()
        }
        revision = task[self.training.task].revision
        data = {"revision": revision} if revision > 1 else {}
        return json.dumps({"format": FORMAT} | data | values, sort_keys=True, separators=(",", ":"))

    @cached_property
    def hash(self) -> str:
        """Hash of the spec; runs with equal hashes give equal rows."""
        return hashlib.blake2b(self.spec.encode(), digest_size=16).hexdigest()

    @cached_property
    def expected(self) -> float:
        """Estimated seconds of training on one core."""
        return _seconds(self.config.with_seed(0), self.training)

    def start(self) -> State:
        """Return the training state before the first step; ConfigError if it cannot be trained."""
        return start(self.config, self.training, self.seed, self.machine)


_seconds = lru_cache(maxsize=4096)(
    budget.estimate_seconds
)  # the same for every seed: studies may have ten thousands of them


@lru_cache(maxsize=4096)
def read_settings(spec: str) -> tuple[Config, Training]:
    """Read config and training from a spec (JSON); ConfigError for a newer format or setting."""
    values = json.loads(spec)
    if values["format"] != FORMAT:
        raise ConfigError(
            "format",
            f"this run was written in format {values['format']}; this version supports {FORMAT}.",
        )
    try:
        return Config(**values["config"]), Training(**values["training"])
    except TypeError as error:  # a field that is gone
        raise ConfigError(
            "format", f"this run has a setting that this version does not know: {error}."
        ) from None


def machine_of(spec: str) -> dict[str, str]:
    """Return {"device": …, "dtype": …} of a stored run, as in its spec (JSON)."""
    machine: dict[str, str] = json.loads(spec)["machine"]
    return machine


def read_run(name: str, variant: str, spec: str) -> Run:
    """Read a run from its task (name in the study), variant and spec; ConfigError if unknown.

    Args:
        name: Name of the task in the study.
        variant: Name of the variant.
        spec: Its settings, as JSON.
    """
    return Run(name, variant, *read_settings(spec), read_machine(spec))


def read_machine(spec: str) -> Machine:
    """Read the machine, here or not, from a stored run's spec; ConfigError if it is in no menu."""
    return Machine.anywhere(**machine_of(spec))


def _without_negative_zero(value: Any) -> Any:
    """Return 0.0 for −0.0, and any other value as it is."""
    return (
        value + 0.0 if isinstance(value, float) else value
    )  # −0.0 is 0.0, as it is when configs are compared


@dataclass(frozen=True)
class TaskSetup:
    """Task as a study sets it up: its name in the study, the task, changed settings."""

    name: str
    task: str
    changes: dict[str, Any]
    # the variants that are trained on it, as the file names them; all of them where it names none
    only: Any = None

    def among(self, variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return this task's variants, all if it names none, no baseline; ConfigError if wrong."""
        names = list(variants) if self.only is None else self.only
        if not isinstance(names, list):
            raise ConfigError(
                "variants", f"variants is {shorten(names)}; it must be a list of names of variants."
            )
        unknown = [name for name in names if not isinstance(name, str) or name not in variants]
        if unknown:
            offered = (
                f"there are {shorten(', '.join(variants), 200)}" if variants else "there are none"
            )
            raise ConfigError(
                "variants",
                f"variants names {shorten(unknown[0])}, which is not a variant; {offered}.",
            )
        return {name: variants[name] for name in names}

    def baseline(self) -> Config:
        """Return the config of the baseline on this task; ConfigError if it is not possible."""
        return task[self.task].config(
            **{name: self.changes[name] for name in MODEL if name in self.changes}
        )

    def training(self, changes: dict[str, Any]) -> Training:
        """Return the training on this task with changes (the model's are ignored); ConfigError."""
        merged = self.changes | changes
        return Training(
            task=self.task, **{name: merged[name] for name in TRAINING if name in merged}
        )


@dataclass(frozen=True)
class Study:
    """Runs with a name and a question. source: the text of the study's file.

    looks: numbers of seeds after which models are compared; () for one comparison at the end.
    runs: those of the first look. later: those of later looks, trained where it is undecided.
    """

    name: str
    question: str
    source: str
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()  # why something is left out
    looks: tuple[int, ...] = ()
    later: tuple[Run, ...] = ()

    def seconds(self, workers: int) -> float:
        """Estimate the seconds of the first look's runs, stored too; at least the longest run's."""
        alone = [run.expected for run in self.runs]
        return max(sum(alone) / workers, max(alone, default=0.0))


@dataclass(frozen=True)
class Stored:
    """State of a study in the store: hashes of finished runs, number of unwanted ones, pace."""

    ended: frozenset[str] = frozenset()
    unwanted: int = 0
    pace: float = 1.0  # seconds that the store's latest runs took, over those expected of them


NOTHING = Stored()


def variant_name(changes: dict[str, Any]) -> str:
    """Name a variant after its changed settings: "− norm, learning rate 0.01"; "" for none."""
    words = [
        name_of(changes),
        *(TRAINING[name].describe_change(changes[name]) for name in TRAINING if name in changes),
    ]
    return ", ".join(word for word in words if word)


def plan_arms(
    setup: TaskSetup, variants: dict[str, dict[str, Any]], equal: str = "nothing"
) -> tuple[Arms, list[str]]:
    """Return variant -> (config, training), baseline first, and sentences on those left out.

    Left out are variants that cannot be trained, and those equal to another one or the baseline.

    Args:
        setup: The task as the study sets it up.
        variants: Name to changed settings.
        equal: Quantity that every model has as much of as the baseline (core.train.match).

    Raises:
        ConfigError: The baseline cannot be trained.
    """
    first = setup.baseline()
    training = setup.training({})
    planned = {BASELINE: (first, training)}
    notes = []
    names = {arm: name for name, arm in planned.items()}
    for name, changes in variants.items():
        try:
            model = {field: value for field, value in changes.items() if field in MODEL}
            arm = match_cost(
                equal, (apply(model, first), setup.training(changes)), (first, training)
            )[:2]
        except ConfigError as error:
            notes.append(f"{setup.name}: {name} skipped: {error}")
            continue
        twin = names.setdefault(arm, name)
        if twin == name:
            planned[name] = arm
        elif twin == BASELINE:
            notes.append(
                f"In “{setup.name}”, the variant “{name}” is skipped because it equals the"
                " baseline."
            )
        else:
            notes.append(
                f"In “{setup.name}”, the variant “{name}” is skipped because it equals “{twin}”."
            )
    return planned, notes


def is_null(variant: str) -> bool:
    """Return whether a variant is a null arm, at any learning rate."""
    return variant in NULL_ARMS or variant.startswith(tuple(f"{arm}, " for arm in NULL_ARMS))


def pair_seed(variant: str, seed: int) -> int:
    """Return the seed of the baseline's run with which a run is compared."""
    return seed - NULL_SEEDS if is_null(variant) and seed >= NULL_SEEDS else seed


def plan_null_runs(arms: dict[str, Arms], seeds: list[int], machine: Machine) -> tuple[Run, ...]:
    """Return the runs of the null arms of every task, at each learning rate of its baseline.

    `arms` is task -> variant -> (config, training). The arm NULL has these seeds + NULL_SEEDS.
    """
    runs = []
    for seed in seeds:
        for name, several in arms.items():
            _, first = several[BASELINE]
            for variant, (config, training) in several.items():
                rate = training.learning_rate
                at_rate = TRAINING["learning_rate"].describe_change(rate)
                if variant not in (BASELINE, at_rate):
                    continue
                reversed_order = dataclasses.replace(training, initial_order="reversed")
                for arm, other_seed, other_training in (
                    (NULL, seed + NULL_SEEDS, training),
                    (REWRITTEN, seed, reversed_order),
                ):
                    null = arm if rate == first.learning_rate else name_at_rate(arm, rate)
                    other = config.with_seed(other_seed)
                    runs.append(Run(name, null, other, other_training, machine))
    return tuple(runs)


def plan_runs(arms: dict[str, Arms], seeds: list[int], machine: Machine) -> tuple[Run, ...]:
    """Return a run for every task, variant and seed, ordered by seed.

    So every cell has a first value early.

    Args:
        arms: Name of a task -> its models.
        seeds: Random seeds.
        machine: Device and precision of all.
    """
    return tuple(
        Run(name, variant, config.with_seed(seed), training, machine)
        for seed in seeds
        for name, several in arms.items()
        for variant, (config, training) in several.items()
    )


def without_rate(name: str, rate: float) -> str:
    """Return a model's name without its learning rate; BASELINE for the baseline at a rate."""
    words = TRAINING["learning_rate"].describe_change(rate)
    return BASELINE if name == words else name.removesuffix(f", {words}")


def describe_plan(study: Study, workers: int, stored: Stored = NOTHING) -> str:
    """Describe a study's plan in lines of text, with times for the runs not stored yet."""
    tasks = list(dict.fromkeys(run.task for run in study.runs))
    seeds = len({pair_seed(run.variant, run.seed) for run in study.runs})
    left = study
    if stored.ended:
        left = dataclasses.replace(
            study, runs=tuple(run for run in study.runs if run.hash not in stored.ended)
        )
    lines = [f"{study.name}: {count(len(study.runs), 'run')}, {count(seeds, 'seed')} per model."]
    if study.later:
        lines.append(f"  {describe_looks(study, workers, stored.pace)}")
    for name in tasks:
        runs = [run for run in study.runs if run.task == name]
        models = {without_rate(run.variant, run.training.learning_rate) for run in runs}
        variants = count(sum(not is_null(model) for model in models) - 1, "variant")
        searched = len({run.variant for run in runs}) > len(models)
        rates = ", each at several learning rates" if searched else ""
        alone = stored.pace * sum(run.expected for run in left.runs if run.task == name)
        takes = f"{budget.format_duration(alone)} on one core" if alone else "all done"
        lines.append(f"  {name}: the baseline and {variants}{rates}; {takes}.")
    lines += [f"  {line}" for line in describe_stored(len(stored.ended), stored.unwanted)]
    seconds = stored.pace * left.seconds(workers)
    takes = f"About {budget.format_duration(seconds)} on {count(workers, 'worker')}."
    lines.append(takes if left.runs else "Nothing to train.")
    try:
        study.runs[0].machine.check_here()
    except ConfigError as error:
        lines.append(f"This machine cannot train it, but a cluster may: {error}")
    return "\n".join([*lines, *study.notes])


def describe_looks(study: Study, workers: int, pace: float = 1.0) -> str:
    """Describe in sentences what later looks would train at most; "" if there are none.

    Args:
        study: A study.
        workers: Worker processes that train it.
        pace: Seconds that trainings take here, over those expected of them.
    """
    if not study.later:
        return ""
    first, *later_looks = study.looks
    most = len(study.runs) + len(study.later)
    seconds = pace * sum(run.expected for run in study.later) / workers
    return (
        f"Where a comparison is undecided after {first} seeds, its models get"
        f" {' then '.join(map(str, later_looks))}: at most {most:,} runs,"
        f" {budget.format_duration(seconds)} more on {count(workers, 'worker')}."
    )


def describe_stored(ended: int, unwanted: int) -> list[str]:
    """Describe in sentences how many runs have a result, and how many are ignored; [] for 0."""
    lines = []
    if ended:
        lines.append(f"{count(ended, 'run')} already done.")
    if unwanted:
        verbs = ("remains", "is") if unwanted == 1 else ("remain", "are")
        lines.append(
            f"{count(unwanted, 'run')} of an earlier version of the file {verbs[0]} in the store"
            f" and {verbs[1]} ignored."
        )
    return lines
