"""Context of One block: menu of views, look, and what views receive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from core.checkpoints import CheckpointError, family
from core.experiments.forward import Pass
from core.experiments.weights import weights
from core.model.config import Config
from core.model.generate import Sampling
from core.model.text import MAX_TOKENS
from core.model.variants import Pins, Variant, apply, encode_baseline, lineup
from core.settings.cache import LazyProperty
from core.settings.menu import Menu
from core.settings.setting import ConfigError, setting, setting_like
from ui.shared.base import Picked

view: Menu[Any] = Menu("Views of one block")
PLAIN = Config()


def default_config(weights_kind: str) -> Config:
    """Return the unchanged config: for "random", or for "trained" and "cut" (ablated later)."""
    return PLAIN if weights_kind == "random" else family.BASELINE


def _default_reader(name: str) -> Callable[["BlockConfig"], Any]:
    """Return a function of a config that reads this setting from its unchanged config."""
    return lambda config: getattr(default_config(config.weights), name)


@dataclass(frozen=True)
class BlockConfig(Config):
    """Config with a source of weights; its defaults are the trained model's.

    Raises:
        ConfigError: As Config does, or there are no such weights.
    """

    n_heads: int = setting_like(
        Config,
        "n_heads",
        4,
        among=lambda config: (
            config.trained_values("n_heads") or Config.settings()["n_heads"].among(config)
        ),
    )
    n_kv_heads: int = setting_like(
        Config,
        "n_kv_heads",
        None,
        among=lambda config: (
            [config.n_kv_heads]
            if config.weights != "random"
            else Config.settings()["n_kv_heads"].among(config)
        ),
    )
    n_layers: int = setting_like(Config, "n_layers", None, follows=_default_reader("n_layers"))
    seed: int = setting_like(Config, "seed", 0, among=lambda config: config.trained_values("seed"))
    position: str = setting_like(Config, "position", None, follows=_default_reader("position"))
    mask: str = setting_like(Config, "mask", None, follows=_default_reader("mask"))
    weights: str = setting(
        "trained", "Weights", "Weights of the block.", group="Weights", menu=weights
    )

    FIRST: ClassVar[tuple[str, ...]] = ("weights", *Config.FIRST)

    def _check_together(self) -> None:
        """Raise ConfigError if settings do not fit each other, or their weights do not exist."""
        super()._check_together()
        why = weights[self.weights].refused(self.plain)
        if why:
            with_cut = self.weights == "trained" and not weights["cut"].refused(self.plain)
            raise ConfigError(
                "weights",
                why,
                "cut" if with_cut else "random",
            )

    @classmethod
    def scope(cls, name: str, choices: Mapping[str, str]) -> str:
        """Return the prefix of a setting's key in the store: "Config", shared with Depth, or own.

        Shared are settings of the model while choices have random weights.
        """
        if choices.get("BlockConfig.weights") == "random" and name in Config.settings():
            return "Config"
        return "BlockConfig"

    @property
    def plain(self) -> Config:
        """The model's settings alone, without the source of weights."""
        return Config(**{name: getattr(self, name) for name in Config.settings()})

    def trained_values(self, name: str) -> list[Any] | None:
        """Return a setting's values in trained models, and its own; None for random weights."""
        if self.weights == "random":
            return None
        if name == "seed":
            return sorted({seed for _, seed in family.list_shipped()} | {self.seed})
        return sorted({*family.values(name), getattr(self, name)})

    def choices(self, name: str) -> list[str]:
        """Return a setting's menu entries (keys) for which weights exist, and its current value.

        All for random weights.
        """
        offered = super().choices(name)
        if self.weights == "random" or name == "weights":
            return offered
        could = _possible_values(self.weights, self.seed, name, tuple(family.list_shipped()))
        return [value for value in offered if value in could or value == getattr(self, name)]

    @property
    def unavailable(self) -> list[str]:
        """Names of settings that have only one value with this kind of weights."""
        if self.weights == "random":
            return []
        if self.weights == "cut":
            switches = _without_weights(self.seed, tuple(family.list_shipped()))
            return ["d_model", "n_layers", "d_ff", "d_head", "init", *switches]
        # a head's width follows how many there are
        same = [
            name for name in Config.settings() if name == "d_head" or len(family.values(name)) < 2
        ]
        return [name for name in same if name not in ("seed", "padding", "dropout", "ffn_dropout")]


@lru_cache(maxsize=16)
def _without_weights(seed: int, shipped: tuple[tuple[str, int], ...]) -> list[str]:
    """Return switches (names) whose other value has no trained weights, as removal after training.

    Args:
        seed: Seed of the trained model.
        shipped: Models that ship, part of the cache key only.
    """
    base = family.BASELINE.replace(seed=seed)
    switches = [name for name, definition in Config.settings().items() if definition.kind is bool]
    return [
        name
        for name in switches
        if weights["cut"].refused(apply({name: not getattr(base, name)}, base))
    ]


@lru_cache(maxsize=256)
def _possible_values(
    weights_kind: str, seed: int, name: str, shipped: tuple[tuple[str, int], ...]
) -> set[str]:
    """Return a menu's values with weights if it alone changes; `shipped` only keys the cache.

    Args:
        weights_kind: Kind of weights, a key of the menu `weights`.
        seed: Seed of the trained model.
        name: Setting with a menu.
        shipped: Models that ship, part of the cache key only.
    """
    base = family.BASELINE.replace(seed=seed)
    return {
        value
        for value in Config.settings()[name].menu or ()
        if not weights[weights_kind].refused(apply({name: value}, base))
    }


@dataclass(frozen=True)
class BlockLook(Picked):
    """View settings of One block."""

    view: str = setting("attention", "View", "What to look at.", group="Look", menu=view)
    layer: int = setting_like(
        Picked, "layer", 2
    )  # of the trained models, where the verb reads its subject
    beside: str = setting(
        "", "Beside", "Variant shown with the baseline, as in variants.", group="Look"
    )
    difference: bool = setting(
        False,
        "Difference",
        "Show variant minus baseline.",
        group="Look",
    )
    compare: bool = setting(
        False,
        "Compare 1, 4 and 8 heads",
        "The same sentence and width with 1, 4 and 8 heads.",
        group="Look",
    )
    vector: str = setting(
        "", "Vector", "Your own numbers for the norm, such as 3.2, −1.5, 0.8.", group="Look"
    )
    context: int = setting(
        32,
        "Context",
        "Maximum context length in tokens. Once the context is full, the oldest token drops out.",
        group="Next token",
        low=1,
        high=MAX_TOKENS,
        step=1,
        top=64,
    )
    apply_dropout: bool = setting(
        False,
        "Apply dropout in this pass",
        "Off: as at inference. On: as in training.",
        group="More components",
    )


@dataclass(frozen=True)
class BlockContext:
    """Context of One block's views: the pass, its comparison, the look."""

    text: str
    forward_pass: Pass
    pins: Pins
    look: BlockLook
    sampling: Sampling = Sampling()

    @property
    def kind(self) -> str:
        """Kind of weights, a key of the menu `weights`."""
        return self.forward_pass.kind

    @property
    def variants(self) -> list[Variant]:
        """Variants to compare, the baseline first."""
        return self._lineup[0]

    @property
    def left_out(self) -> list[str]:
        """Sentences on which variants are left out, and why."""
        return self._lineup[1]

    @LazyProperty
    def _lineup(self) -> tuple[list[Variant], list[str]]:
        """Return the variants that can be drawn, and sentences on those that cannot."""
        config = self.forward_pass.config
        available = []
        left_out = []
        variants, notes = lineup(
            config, self.pins if self.kind == "random" else pin_whole_model(config, self.pins)
        )
        for variant in variants:
            why = weights[self.kind].refused(variant.config) or self._why_broken(variant)
            available += [] if why else [variant]
            left_out += [f"{variant.name} skipped: {why}"] if why else []
        return available, [*notes, *left_out]

    def _why_broken(self, variant: Variant) -> str:
        """Return why a variant's checkpoint cannot be opened, or ""; raise it for the baseline."""
        if self.kind == "random":
            return ""  # there is no file
        try:
            self.forward_pass.run_with(variant.config)
        except CheckpointError as error:
            if variant.colour:
                return str(error)
            raise
        return ""


def pin_whole_model(config: Config, pins: Pins) -> Pins:
    """Return the pins with the full trained model, at this config's seed, as the baseline.

    Pinned variants stay.
    """
    input_settings = {
        name: getattr(config, name) for name in ("seed", "padding", "dropout", "ffn_dropout")
    }
    base = family.BASELINE.replace(**input_settings)
    return Pins(baseline=encode_baseline(base), variants=pins.variants)
