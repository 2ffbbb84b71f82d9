"""Context of One block: menu of views, look, and what views receive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.checkpoints import CheckpointError, family
from core.experiments.forward import Pass
from core.experiments.weights import has_weights, list_values, weights
from core.model.config import Config
from core.model.generate import Sampling
from core.model.text import MAX_TOKENS
from core.model.variants import Pins, Variant, encode_baseline, lineup
from core.settings.cache import LazyProperty
from core.settings.menu import Menu
from core.settings.setting import ConfigError, setting, setting_like
from ui.shared.base import Picked

view: Menu[Any] = Menu("Views of one block")
PLAIN = Config()
SEEDS = 5  # that the slider offers for trained models


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

    d_model: int = setting_like(
        Config, "d_model", 64, among=lambda config: config.list_stops("d_model")
    )
    n_heads: int = setting_like(
        Config,
        "n_heads",
        4,
        among=lambda config: (
            config.list_stops("n_heads") or Config.settings()["n_heads"].among(config)
        ),
    )
    n_kv_heads: int = setting_like(
        Config,
        "n_kv_heads",
        None,
        among=lambda config: (
            [config.n_kv_heads]
            if config.weights == "cut"
            else Config.settings()["n_kv_heads"].among(config)
        ),
    )
    d_ff: int = setting_like(Config, "d_ff", None, among=lambda config: config.list_stops("d_ff"))
    n_layers: int = setting_like(
        Config,
        "n_layers",
        None,
        follows=_default_reader("n_layers"),
        among=lambda config: config.list_stops("n_layers"),
    )
    seed: int = setting_like(Config, "seed", 0, among=lambda config: config.list_stops("seed"))
    position: str = setting_like(Config, "position", None, follows=_default_reader("position"))
    mask: str = setting_like(Config, "mask", None, follows=_default_reader("mask"))
    weights: str = setting(
        "trained", "Weights", "Weights of the block.", group="Weights", menu=weights
    )

    FIRST: ClassVar[tuple[str, ...]] = ("weights", *Config.FIRST)

    def _check_together(self) -> None:
        """Raise ConfigError if settings do not fit each other, or their weights cannot exist.

        A model that could be trained need not have them yet; see `config_shown`.
        """
        super()._check_together()
        can_be_trained = self.weights == "trained" and family.list_available()
        why = "" if can_be_trained else weights[self.weights].refused(self.plain)
        if why:
            raise ConfigError("weights", why, "random")

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

    @property
    def config_shown(self) -> Config:
        """The model's settings, or those of the trained model nearest to them if none has them."""
        if self.weights == "trained" and weights["trained"].refused(self.plain):
            return family.find_nearest(self.plain)
        return self.plain

    def list_stops(self, name: str) -> list[Any] | None:
        """Return the values, with weights, that the slider of a size or the seed stops at.

        None where it does not stop: for random weights, or where there is only one value.
        """
        if self.weights == "random":
            return None
        if self.weights == "cut":
            values = list_values("cut", self.plain, name)
        elif name == "seed":
            values = list(range(SEEDS))
        else:
            values = family.values(name)
        stops = sorted({*values, getattr(self, name)})
        if name == "n_heads":
            stops = [heads for heads in stops if self.d_model % heads == 0]
        return stops if len(stops) > 1 else None

    @property
    def fixed_sizes(self) -> list[str]:
        """Names of sizes that cannot be changed: those of the model that something is removed from.

        For other weights none.
        """
        if self.weights != "cut":
            return []
        return [name for name in family.SIZES if not self.list_stops(name)]

    def choices(self, name: str) -> list[str]:
        """Return a setting's menu entries (keys), and its current value.

        For the trained model with something removed, only entries for which it has weights.
        """
        offered = super().choices(name)
        if self.weights != "cut" or name == "weights":
            return offered
        base = family.BASELINE.replace(seed=self.seed)
        return [
            value
            for value in offered
            if value == getattr(self, name) or has_weights("cut", base, {name: value})
        ]

    @property
    def unavailable(self) -> list[str]:
        """Names of settings that have only one value with this kind of weights."""
        if self.weights != "cut":
            return []
        base = family.BASELINE.replace(seed=self.seed)
        switches = [
            name
            for name, definition in Config.settings().items()
            if definition.kind is bool
            and not has_weights("cut", base, {name: not getattr(base, name)})
        ]
        return ["d_model", "n_layers", "d_ff", "d_head", "init", *switches]


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
    base = family.find_nearest(family.BASELINE.replace(**input_settings))
    return Pins(baseline=encode_baseline(base), variants=pins.variants)
