"""Sources of a pass's weights: trained without a part, ablated after training, or random."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from core.checkpoints import family
from core.checkpoints.tokens import Words
from core.experiments.trained.comparison import CUT, TRAINED, describe_member, describe_opened
from core.model.config import Config
from core.model.text import PAD
from core.model.transformer import Transformer
from core.model.variants import Changes, apply, difference, name_of
from core.settings.menu import Menu
from core.settings.setting import ConfigError

# paired: what baseline and variants share; order: three words that make sense in either order.
weights: Menu[Any] = Menu("Weights")


class Weights:
    """Source of the weights of a pass; base class of the entries of the menu `weights`."""

    @staticmethod
    def refused(config: Config) -> str:
        """Return why there are no such weights for a config, or ""; here always ""."""
        return ""

    @staticmethod
    def look_up_ids(words: Sequence[str]) -> tuple[tuple[str, ...], list[int | None]]:
        """Return the family's own vocabulary, and each word's id in it; None if unknown."""
        family_words = Words(family.vocabulary())
        return family_words.vocabulary, [
            family_words.vocabulary.index(PAD) if word == PAD else family_words.token_id(word)
            for word in words
        ]

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        """Build a config's model (CPU, float32) with weights_config's weights; here, random ones.

        Args:
            config: Settings of the model.
            vocabulary: Words that a model with random weights knows.
            weights_config: Config whose weights are used, if not those of the config itself.

        Raises:
            ConfigError: refused() has a reason.
            CheckpointError: A file is missing or damaged.
        """
        return Transformer(config, vocabulary)

    @staticmethod
    def describe(config: Config) -> str:
        """Describe the weights for a caption; here "Random weights, seed 0" or the like."""
        return f"Random weights, seed {config.seed}"

    @staticmethod
    def measured(config: Config) -> str:
        """Describe how well a model does on held-out sentences; "" if not measured, as here."""
        return ""

    @staticmethod
    def name(config: Config) -> str:
        """Return what names a variant with these weights: "", as its change is enough."""
        return ""


@weights.register(
    "trained",
    label="Trained",
    help="each variant was trained from scratch without the component.",
    paired="All variants share the data order and, where shapes match, the initial weights",
    order=("bank", "suing", "tenant"),
)
class TrainedWeights(Weights):
    """Weights of the family member that was trained with the settings of the config."""

    @staticmethod
    def refused(config: Config) -> str:
        """Return why no member was trained with these settings, or ""."""
        available = family.list_available()
        if not available:
            return "The trained models (models/family) are not included in this copy."
        member = family.member_of(config)
        if (member, config.seed) in available:
            return ""
        if member in family.members() and config.seed in family.SEEDS:
            return f"The model trained {_describe_changes(config)} is missing."
        other_seed = f" from seed {config.seed}" if config.seed != family.SEEDS[0] else ""
        return f"There is no model trained {_describe_changes(config)}{other_seed}."

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        """Build `config` on weights_config's trained weights; ConfigError if none fit."""
        _check_available("trained", weights_config)
        variant_model = family.build_with_weights(
            config, family.open_cached(family.member_of(weights_config), weights_config.seed)
        )
        if variant_model is None:
            raise ConfigError(
                "weights",
                f"The model trained {_describe_changes(weights_config)} has no weights for that.",
            )
        return variant_model

    @staticmethod
    def describe(config: Config) -> str:
        """Return "Trained without norm, seed 0" or the like."""
        return f"Trained {_describe_changes(config)}, seed {config.seed}"

    @staticmethod
    def measured(config: Config) -> str:
        """Describe how well the model that was trained with these settings does."""
        member = family.member_of(config)
        in_table = describe_member(member, TRAINED, config.seed)
        return in_table or describe_opened(family.open_cached(member, config.seed))

    @staticmethod
    def name(config: Config) -> str:
        """Return "trained without norm", "trained with …", or "trained with all components"."""
        return f"trained {_describe_changes(config)}"


@weights.register(
    "cut",
    label="Removed after training",
    help="trained with all components, then run without one, not retrained.",
    paired="All variants share the same trained weights",
    order=TrainedWeights.order,  # type: ignore[attr-defined]
)
class AblatedWeights(Weights):
    """Weights of the trained baseline, run without a part and not retrained."""

    @staticmethod
    def refused(config: Config) -> str:
        """Return why the trained baseline cannot be run with these settings, or ""."""
        why = TrainedWeights.refused(family.BASELINE.replace(seed=config.seed))
        return why or (
            ""
            if family.can_use_weights_of(config)
            else f"The trained model has no weights to run it {_describe_changes(config)}."
        )

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        """Build a model of `config` only on the trained baseline's weights; or ConfigError."""
        _check_available("cut", config)
        ablated_model = family.build_with_weights(
            config, family.open_cached(family.WHOLE, config.seed)
        )
        assert ablated_model is not None, "it fits"
        return ablated_model

    @staticmethod
    def describe(config: Config) -> str:
        """Return "Trained with all components[, then run without norm (not retrained)], seed 0"."""
        then = ""
        if family.member_of(config) != family.WHOLE:
            then = f", then run {_describe_changes(config)} (not retrained)"
        return f"Trained with all components{then}, seed {config.seed}"

    @staticmethod
    def measured(config: Config) -> str:
        """Describe how well the trained baseline does, run with these settings."""
        member = family.member_of(config)
        return describe_member(member, TRAINED if member == family.WHOLE else CUT, config.seed)

    @staticmethod
    def name(config: Config) -> str:
        """Return "without norm (not retrained)" or the like."""
        return f"{_describe_changes(config)} (not retrained)"


@weights.register(
    "random",
    label="Random",
    help="untrained. All sizes and components are available.",
    paired="All variants share the input and the random initialisation",
    order=("dog", "bites", "man"),
)
class RandomWeights(Weights):
    """Random weights, drawn from the seed of the config."""

    @staticmethod
    def look_up_ids(words: Sequence[str]) -> tuple[tuple[str, ...], list[int | None]]:
        """Return the words as vocabulary, with ids 0, 1, …; repeated words get several ids."""
        return tuple(words), list(range(len(words)))


def list_values(kind: str, config: Config, name: str) -> list[Any]:
    """List the values of a size, or of the seed, for which weights exist if all else stays.

    Args:
        kind: Kind of weights, a key of the menu.
        config: Settings that stay, except `name`.
        name: A size, or "seed".
    """
    seeds = {seed for _, seed in family.list_available()}
    offered = sorted(seeds) if name == "seed" else family.values(name)
    return [value for value in offered if has_weights(kind, config, {name: value})]


def has_weights(kind: str, config: Config, changes: Changes) -> bool:
    """Return whether weights exist for a config with changes; False if they do not fit it."""
    available = tuple(family.list_available())
    return _has_weights(kind, config, tuple(changes.items()), available)


@lru_cache(maxsize=8192)
def _has_weights(
    kind: str,
    config: Config,
    changes: tuple[tuple[str, Any], ...],
    available: tuple[tuple[str, int], ...],
) -> bool:
    """Return has_weights(), cached; `available`, all trained models, is part of the key only."""
    try:
        return not weights[kind].refused(apply(dict(changes), config))
    except ConfigError:
        return False


def _check_available(kind: str, config: Config) -> None:
    """Raise ConfigError if there are no weights of this kind for a config."""
    why = weights[kind].refused(config)
    if why:
        raise ConfigError("weights", why, "random")


def _describe_changes(config: Config) -> str:
    """Describe a config's difference from the baseline: "without norm", "with all components"."""
    names = name_of(difference(family.strip_config(config), family.BASELINE), "\n").splitlines()
    out = [name[2:] for name in names if name.startswith("− ")]
    put = [name.removeprefix("+ ") for name in names if name[:2] != "− "]
    phrases = []
    if out:
        phrases.append("without " + " and ".join(out))
    if put:
        phrases.append("with " + " and ".join(put))
    return " and ".join(phrases) or "with all components"
