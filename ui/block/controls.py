"""Controls of One block beside its title: the source of weights and what follows from it."""

from collections.abc import Callable, Sequence

from core.checkpoints import family
from core.experiments.block.attention import vary_head_count
from core.experiments.weights import has_weights, weights
from core.export.script import Script
from core.export.scripts import make_block_script, make_compare_script
from core.model.config import Config
from core.model.variants import decode
from core.settings.setting import ConfigError
from core.settings.wording import count
from ui.block.context import BlockConfig, BlockContext
from ui.kit.panel.control import FOLDS, Control, tabs
from ui.kit.store import reset, session, settings_of
from ui.shared.base import draw_unknown_words


def script(context: BlockContext) -> Script:
    """Return the Python script that reproduces the open view."""
    forward_pass = context.forward_pass
    look = context.look
    config = forward_pass.config
    kind = forward_pass.kind
    tokens = forward_pass.tokens[: forward_pass.n_real]
    how = (tokens, forward_pass.machine, forward_pass.dropout, kind)
    if look.view == "compare":
        return make_compare_script(
            {variant.name: variant.config for variant in context.variants}, *how
        )
    if look.view == "heads" and look.compare and config.attention:
        refused = weights[kind].refused
        configs = {
            count(number, "head"): variant
            for number, variant in vary_head_count(config).items()
            if variant and not refused(variant)
        }
        return make_compare_script(configs, *how, baseline=config)
    return make_block_script(config, *how, view=look.view)


NOTES = {
    "trained": {"Size": "Each stop alone is trained; other sizes can be trained."},
    "cut": {
        "Size": (
            "The trained model has width 64, FFN width 256 and 2 layers. For other sizes switch to"
            " <b>Trained</b> or <b>Random</b>."
        )
    },
    "random": {},
}  # kind of weights -> group -> words, as HTML

FOLLOWING = (
    "n_layers",
    "position",
    "mask",
)  # settings whose defaults differ between kinds of weights
CARRIED = (  # in a session's `kept`: setting -> its value with the weights chosen before
    "carried_settings"
)


def weights_controls() -> list[Control]:
    """Return the controls that choose the source of weights."""
    return [tabs("Weights", weights, "weights", on_select=_switch_weights) | FOLDS]


def _switch_weights(weights_kind: str):
    """Switch to this kind of weights (a callback); reset all settings if it lacks such a model.

    It does so without a message.
    """
    before = settings_of(BlockConfig)
    settings = {
        name: getattr(before, name) for name in before.settings() if not before.follows(name)
    }
    for name in FOLLOWING:  # only the weights change
        settings[name] = getattr(before, name)
    session().kept[CARRIED] = {name: settings[name] for name in FOLLOWING if before.follows(name)}
    try:
        after = BlockConfig(**settings | {"weights": weights_kind})
    except ConfigError:
        after = BlockConfig(weights=weights_kind)
    if weights[weights_kind].refused(after.plain):
        after = BlockConfig(weights=weights_kind)
    reset(BlockConfig, **after.write())  # what follows others goes on following


def open_block(settings: dict[str, str]):
    """Open a published block with random weights, given its settings as texts (a callback)."""
    reset(BlockConfig, weights="random", **settings)


def carried_settings(config: BlockConfig) -> list[str]:
    """Return the names of settings that still have a value brought from other weights."""
    return [
        name
        for name, value in session().kept.get(CARRIED, {}).items()
        if getattr(config, name) == value
    ]


def baseline(weights_kind: str, config: Config) -> Config:
    """Return the baseline's config: `config` for random weights, else the trained model's.

    The trained one has the seed of `config`.
    """
    if weights_kind == "random":
        return config
    return family.find_nearest(family.BASELINE.replace(seed=config.seed))


def availability_check(weights_kind: str) -> Callable[[str, Config], bool] | None:
    """Return a function (change as text, baseline) -> whether weights exist; None if all do."""
    if weights_kind == "random":
        return None

    def is_available(text: str, baseline: Config) -> bool:
        try:
            return has_weights(weights_kind, baseline, decode(text, "variants"))
        except ConfigError:
            return False

    return is_available


def draw_unknown_tokens(weights_kind: str, tokens: Sequence[str]):
    """Draw a notice on those of a text's tokens that weights of this kind do not know, if any."""
    _, numbers = weights[weights_kind].look_up_ids(tokens)
    draw_unknown_words(tokens, [index for index, number in enumerate(numbers) if number is None])
