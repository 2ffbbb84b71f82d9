"""Baseline and variants trained on several seeds each: what is run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from core.model.config import Config
from core.model.variants import MOST, Variant, apply, difference, name_of
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import lower_first
from core.train import State, Training, start
from core.train.match import match, match_cost, name_at_rate, search

# The settings of the training that are changed.
otherwise: Menu[dict[str, Any]] = Menu("Optimiser variant")
otherwise.add("nothing", {}, label="None", help="all models are trained with the settings above.")
otherwise.add("muon", {"optimiser": "muon"}, label="Muon", help="baseline with Muon as optimiser.")
otherwise.add(
    "sgd",
    {"optimiser": "sgd", "learning_rate": 0.1},
    label="SGD, rate 0.1",
    help="baseline with SGD and the higher learning rate that it needs.",
)
otherwise.add(
    "no_warmup",
    {"warmup": 0},
    label="no warm-up",
    help="baseline with the full learning rate from the first step.",
)
otherwise.add(
    "no_decay",
    {"decay": "none"},
    label="no decay",
    help="baseline with a constant learning rate after warm-up.",
)
otherwise.add(
    "cosine",
    {"decay": "cosine"},
    label="cosine decay",
    help="baseline with cosine decay to zero.",
)
otherwise.add(
    "clipped",
    {"clip": 1.0},
    label="gradients clipped at 1",
    help="baseline with gradients clipped to a norm of 1.",
)

# The parameters of a link to the page "Training".
showcase: Menu[dict[str, str]] = Menu("Presets")
showcase.add(
    "residual",
    {
        "task": "reverse",
        "n_layers": "12",
        "steps": "120",
        "variants": "residual_attention-off__residual_ffn-off",
    },
    label="No residuals at 12 layers",
    help="can a 12-layer model train without skip connections?",
)
showcase.add(
    "warm_up",
    {
        "task": "reverse",
        "n_layers": "12",
        "steps": "120",
        "warmup": "0",
        "learning_rate": "0.005",
        "variants": "placement-post",
    },
    label="Post-norm without warm-up",
    help="at 12 layers, pre-norm trains without warm-up. Does post-norm?",
)
showcase.add(
    "positions",
    {"task": "reverse", "variants": "position-none"},
    label="Reverse without positions",
    help=(
        "a model without positions should not be able to reverse a sequence. Can it still do so in"
        " part?"
    ),
)
showcase.add(
    "heads",
    {"task": "subtraction", "steps": "600", "seeds": "5", "variants": "n_heads-1"},
    label="Subtraction with one head",
    help="600 training steps on a − b modulo 37, with one wide head instead of four.",
)
showcase.add(
    "facts",
    {"task": "facts", "variants": "ffn-off"},
    label="Fact table without an FFN",
    help="where does a model store 2,000 memorised facts?",
)
showcase.add(
    "norm",
    {"task": "reverse", "n_layers": "6", "learning_rate": "0.02", "variants": "norm-none"},
    label="No norm at a high learning rate",
    help="six layers at learning rate 0.02: which variants train?",
)


trial_setting = partial(setting, group="Comparison")
BASELINE = "baseline"
SEARCHED = "learning rate searched"


@dataclass(frozen=True)
class Trial(Settings):
    """Settings of a comparison: seeds, matching, rates, combinations."""

    seeds: int = trial_setting(
        3,
        "Seeds",
        "Runs of each model, with different initial weights and data. The first run uses the"
        " value of Random seed; each subsequent run adds 1.",
        short="seeds",
        low=1,
        high=50,
        step=1,
        top=10,
    )
    match: str = trial_setting(
        "nothing",
        "Match cost",
        "Adjust each variant's width or number of steps so that all models cost the same.",
        short="matched",
        menu=match,
    )
    search: str = trial_setting(
        "none",
        "Tune learning rate",
        "Train each model at several learning rates; for each seed, keep the run with the lowest"
        " training loss.",
        short="learning rates",
        menu=search,
    )
    otherwise: str = trial_setting(
        "nothing",
        "Optimiser variant",
        "Train the baseline once more with a different optimiser or schedule, on the same seeds and"
        " data.",
        short="training variant",
        menu=otherwise,
    )
    together: bool = trial_setting(
        False,
        "All combinations",
        "Also train all combinations of the variants, to measure how their effects interact.",
        short="combinations",
    )


@dataclass(frozen=True)
class Arm:
    """Model of the comparison: name, settings, and the variants that it combines."""

    name: str
    config: Config
    colour: int | None  # None for a combination of several variants
    members: frozenset[str]
    note: str = ""  # what was changed so that it costs as much as the baseline
    also: tuple[frozenset[str], ...] = ()  # combinations that come out as this very model
    training: Training | None = None  # None: as the plan says


@dataclass(frozen=True)
class Plan:
    """Everything that is trained: equal plans give the same numbers."""

    arms: tuple[Arm, ...]  # the baseline first
    training: Training
    trial: Trial
    machine: Machine

    @property
    def seeds(self) -> list[int]:
        """Seeds of all runs, counting up from the baseline's seed."""
        first = self.arms[0].config.seed
        return list(range(first, first + self.trial.seeds))

    def ways(self, arm: Arm) -> dict[str, Training]:
        """Return a model's trainings by run name: at its own rate, and at each other rate tried."""
        own_training = arm.training or self.training
        rates = search[self.trial.search](own_training.learning_rate)
        return {arm.name: own_training} | {
            name_at_rate(arm.name, rate): replace(own_training, learning_rate=rate)
            for rate in rates
        }

    def trainings(self) -> Iterator[tuple[str, Config, Training, int]]:
        """Yield everything that is trained, seed by seed: run name, model, training, seed."""
        for seed in self.seeds:
            for arm in self.arms:
                for name, training in self.ways(arm).items():
                    yield name, arm.config, training, seed

    def states(self) -> dict[tuple[str, int], State]:
        """Return {(run name, seed): state before the first step}; ConfigError for float16."""
        return {
            (name, seed): start(config, training, seed, self.machine)
            for name, config, training, seed in self.trainings()
        }

    @property
    def one_training(self) -> bool:
        """Whether all models share one training and no learning rates are searched."""
        return self.trial.search == "none" and not any(arm.training for arm in self.arms)

    @property
    def parts(self) -> list[Arm]:
        """Arms of single variants: no baseline, combinations or training variants."""
        return [arm for arm in self.arms if arm.colour and arm.config != self.arms[0].config]

    @property
    def guards(self) -> list[str]:
        """Controls against unfair comparison, in words, such as "equal parameters"."""
        return list_guards(self.trial.match, self.trial.search != "none")


def list_guards(match_key: str, searched: bool) -> list[str]:
    """Return the chosen controls against unfair comparison, in words; [] if there are none.

    Args:
        match_key: What is equal for all models: a key of the menu match, such as "nothing".
        searched: Whether each model's learning rate is searched.
    """
    phrases = []
    if match_key != "nothing":
        phrases.append(f"equal {lower_first(match.label(match_key))}")
    if searched:
        phrases.append(SEARCHED)
    return phrases


def plan(
    variants: list[Variant], training: Training, trial: Trial, machine: Machine
) -> tuple[Plan, list[str]]:
    """Plan a comparison, with the baseline first; also return why variants are left out.

    Sentences. No model is in it twice: the seed of a variant does not count. A variant whose width
    is matched to the baseline's cost may become the baseline.

    Args:
        variants: The baseline first (core.model.variants.lineup).
        training: Settings of the training.
        trial: Settings of the comparison.
        machine: Device and precision.
    """
    first, *others = variants
    arms = [Arm(BASELINE, first.config, 0, frozenset())]
    notes = []
    models = []
    for variant in others:
        config = variant.config.replace(seed=first.config.seed)
        arm = _match_arm(
            Arm(variant.name, config, variant.colour, frozenset({variant.name})),
            arms[0],
            training,
            trial,
        )
        twin = _find_twin(arms, arm)
        if twin is None:
            arms.append(arm)
            models.append(replace(variant, config=config))
        else:
            other = arms[twin].name if twin else "the baseline"
            notes.append(f"{variant.name} skipped: it would be trained exactly like {other}.")
    changed = replace(training, **otherwise[trial.otherwise])
    name = otherwise.label(trial.otherwise)
    if changed != training:
        colour = next(
            (n for n in range(1, MOST + 1) if n not in [arm.colour for arm in arms]), None
        )
        arms.append(
            _match_arm(
                Arm(name, first.config, colour, frozenset({name}), training=changed),
                arms[0],
                training,
                trial,
            )
        )
    elif trial.otherwise != "nothing":
        notes.append(f"{name} skipped: the baseline is already trained this way.")
    combined, refused = _combine_variants(first.config, models) if trial.together else ([], [])
    for name, config, members in combined:
        arm = _match_arm(Arm(name, config, None, frozenset(members)), arms[0], training, trial)
        twin = _find_twin(arms, arm)
        if twin is None:
            arms.append(arm)
        else:
            arms[twin] = replace(arms[twin], also=(*arms[twin].also, arm.members))
    return Plan(tuple(arms), training, trial, machine), notes + refused


def _find_twin(arms: list[Arm], arm: Arm) -> int | None:
    """Return the index of the first arm with the same config, trainings aside, or None."""
    return next((n for n, other in enumerate(arms) if other.config == arm.config), None)


def _combine_variants(
    baseline: Config, variants: list[Variant]
) -> tuple[list[tuple[str, Config, set[str]]], list[str]]:
    """Return each combination of two or more as (name, config, members), and why others are not.

    Two variants that change the same setting cannot be combined.
    """
    combined = []
    notes = []
    refused: list[set[str]] = []
    for size in range(2, len(variants) + 1):
        for several in combinations(variants, size):
            members = {variant.name for variant in several}
            if any(few <= members for few in refused):
                continue  # which was said already
            changes = [difference(variant.config, baseline) for variant in several]
            together = {field: value for change in changes for field, value in change.items()}
            try:
                a, other = changes[:2]
                both = sorted(a.keys() & other.keys())
                if both and all(a[name] == other[name] for name in both):
                    raise ConfigError("variants", f"both set {', '.join(both)}.")
                if both:
                    raise ConfigError(
                        "variants", f"they set {', '.join(both)} to different values."
                    )
                combined.append((name_of(together), apply(together, baseline), members))
            except ConfigError as error:
                refused.append(members)
                notes.append(
                    f"{' and '.join(variant.name for variant in several)} cannot be combined:"
                    f" {error}"
                )
    return combined, notes


def _match_arm(arm: Arm, baseline: Arm, training: Training, trial: Trial) -> Arm:
    """Return an arm, its config or training changed to match the baseline's cost (trial.match)."""
    config, how, note = match_cost(
        trial.match, (arm.config, arm.training or training), (baseline.config, training)
    )
    return replace(arm, config=config, training=how if how != training else None, note=note)
