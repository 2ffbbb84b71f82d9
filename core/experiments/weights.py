"""Sources of a pass's weights: trained without a part, ablated after training, or random."""

from collections.abc import Sequence
from typing import Any

from core.checkpoints import family
from core.checkpoints.tokens import Words
from core.model.config import Config
from core.model.text import PAD
from core.model.transformer import Transformer
from core.model.variants import difference, name_of
from core.settings.menu import Menu
from core.settings.setting import ConfigError

# paired: what baseline and variants share; order: three words that make sense in either order.
weights: Menu[Any] = Menu("Weights")


class Weights:
    """Source of a config's weights."""

    @staticmethod
    def refused(config: Config) -> str:
        """Return why there are no such weights, or ""."""
        return ""

    @staticmethod
    def numbers(words: Sequence[str]) -> tuple[tuple[str, ...], list[int | None]]:
        """Return the vocabulary, and each word's index in it (None if unknown).

        The models that ship have their own.
        """
        family_words = Words(family.vocabulary())
        return family_words.vocabulary, [
            family_words.vocabulary.index(PAD) if word == PAD else family_words.number(word)
            for word in words
        ]

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        """Return a model on the CPU, in float32.

        Args:
            weights_config: whose weights they are, where not those of the config itself.

        Raises:
            ConfigError: refused() has a reason.
            CheckpointError: a file is missing or damaged.
        """
        return Transformer(config, vocabulary)

    @staticmethod
    def whose(config: Config) -> str:
        """Say whose weights they are, as it stands at a picture."""
        return f"Random weights, seed {config.seed}"

    @staticmethod
    def name(config: Config) -> str:
        """Name a variant; "" where what it changes is all that there is to say."""
        return ""


@weights.register(
    "trained",
    label="Trained",
    help="each variant was trained from scratch without the component.",
    paired="All variants share the data order and the initial weights",
    order=("bank", "suing", "tenant"),
)
class TrainedWeights(Weights):
    @staticmethod
    def refused(config: Config) -> str:
        members = family.listed()
        if not members:
            return "The trained models (models/family) are not included in this copy."
        if all(seed != config.seed for _, seed in members):
            seeds = sorted({seed for _, seed in members})
            return (
                f"seed is {config.seed}; there are trained models for seeds"
                f" {', '.join(map(str, seeds))}."
            )
        member = family.member_of(config)
        if member is None:
            return f"There is no model trained {_changed(config)}."
        return (
            ""
            if (member, config.seed) in members
            else f"The model trained {_changed(config)} is missing."
        )

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        _check("trained", weights_config)
        variant_model = family.changed(
            config, family.kept(str(family.member_of(weights_config)), weights_config.seed)
        )
        if variant_model is None:
            raise ConfigError(
                "weights", f"The model trained {_changed(weights_config)} has no weights for that."
            )
        return variant_model

    @staticmethod
    def whose(config: Config) -> str:
        return f"Trained {_changed(config)}, seed {config.seed}"

    @staticmethod
    def name(config: Config) -> str:
        return f"trained {_changed(config)}"


@weights.register(
    "cut",
    label="Removed after training",
    help="trained with all components, then run without one, not retrained.",
    paired="All variants share the same trained weights",
    order=TrainedWeights.order,  # type: ignore[attr-defined]
)
class AblatedWeights(Weights):
    @staticmethod
    def refused(config: Config) -> str:
        why = TrainedWeights.refused(family.BASELINE.replace(seed=config.seed))
        return why or (
            ""
            if family.fits(config)
            else f"The trained model has no weights to run it {_changed(config)}."
        )

    @staticmethod
    def model(config: Config, vocabulary: tuple[str, ...], weights_config: Config) -> Transformer:
        _check("cut", config)
        ablated_model = family.changed(config, family.kept(family.WHOLE, config.seed))
        assert ablated_model is not None, "it fits"
        return ablated_model

    @staticmethod
    def whose(config: Config) -> str:
        then = f", then run {_changed(config)} (not retrained)" * (
            family.member_of(config) != family.WHOLE
        )
        return f"Trained with all components{then}, seed {config.seed}"

    @staticmethod
    def name(config: Config) -> str:
        return f"{_changed(config)} (not retrained)"


@weights.register(
    "random",
    label="Random",
    help="untrained. All sizes and components are available.",
    paired="All variants share the input and the random initialisation",
    order=("dog", "bites", "man"),
)
class RandomWeights(Weights):
    @staticmethod
    def numbers(words: Sequence[str]) -> tuple[tuple[str, ...], list[int | None]]:
        return tuple(words), list(range(len(words)))


def _check(kind: str, config: Config) -> None:
    why = weights[kind].refused(config)
    if why:
        raise ConfigError("weights", why, "random")


def _changed(config: Config) -> str:
    """Describe what a config changes in the trained baseline: "without norm"."""
    names = name_of(difference(family.plain(config), family.BASELINE), "\n").splitlines()
    out = [name[2:] for name in names if name.startswith("− ")]
    put = [name for name in names if name[:2] != "− "]
    phrases = ["without " + " and ".join(out)] * bool(out) + ["with " + " and ".join(put)] * bool(
        put
    )
    return " and ".join(phrases) or "with all components"
