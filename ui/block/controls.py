"""Whose weights the block has: the row of buttons beside the title, and the words that go with each."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from core.checkpoints import family
from core.experiments.block.attention import recut
from core.experiments.weights import weights
from core.export.script import Script
from core.export.scripts import block_script, compare_script
from core.model.config import Config
from core.model.variants import apply, decode
from core.settings.setting import ConfigError
from core.settings.wording import count
from ui.block.context import BlockConfig, BlockContext
from ui.kit.panel.control import Control, tabs
from ui.kit.store import reset, settings_of
from ui.shared.base import unknown_words


def script(context: BlockContext) -> Script:
    """Write the script of the open view."""
    forward_pass, look = context.forward_pass, context.look
    config, kind = forward_pass.config, forward_pass.kind
    tokens = forward_pass.tokens[: forward_pass.n_real]
    how = (tokens, forward_pass.machine, forward_pass.dropout, kind)
    if look.view == "compare":
        return compare_script({each.name: each.config for each in context.variants}, *how)
    if look.view == "heads" and look.compare and config.attention:
        refused = weights[kind].refused
        configs = {
            count(number, "head"): variant
            for number, variant in recut(config).items()
            if variant and not refused(variant)
        }
        return compare_script(configs, *how, baseline=config)
    return block_script(config, *how, view=look.view)


_SIZE = "All trained models have d_model 64, d_ff 256 and 2 layers. Other sizes: choose <b>Random</b>, or train one on the page Training."
NOTES = {"trained": {"Size": _SIZE}, "cut": {"Size": _SIZE}, "random": {}}  # kind of weights -> group -> words, as HTML


def whose() -> list[Control]:
    """The controls of the choice."""
    return [tabs("Weights", weights, "weights", on=_chosen)]


def _chosen(kind: str):
    """Show weights of this kind. Settings of which there are none give way to the usual ones."""
    before = settings_of(BlockConfig)
    own = {name: getattr(before, name) for name in before.settings() if not before.follows(name)}
    try:
        after = BlockConfig(**own | {"weights": kind})
    except ConfigError:
        after = BlockConfig(weights=kind)
    reset(BlockConfig, **after.write())  # what follows others goes on following


def baseline(kind: str, config: Config) -> Config:
    """With what variants are compared: the settings of the sidebar, or the trained model with all its parts."""
    return config if kind == "random" else family.BASELINE.replace(seed=config.seed)


def can_be_had(kind: str) -> Callable[[str, Config], bool] | None:
    """Return whether there are weights for a change, as a link has it, of the baseline; None where there are for all."""
    if kind == "random":
        return None
    there = tuple(family.listed())
    return lambda text, baseline: _had(kind, text, baseline, there)


@lru_cache(maxsize=4096)
def _had(kind: str, text: str, baseline: Config, there: tuple[tuple[str, int], ...]) -> bool:
    """there: the models that ship."""
    try:
        return not weights[kind].refused(apply(decode(text, "variants"), baseline))
    except ConfigError:
        return False


def unknown(kind: str, tokens: Sequence[str]):
    """Say which words the model does not know."""
    _, numbers = weights[kind].numbers(tokens)
    unknown_words(tokens, [at for at, number in enumerate(numbers) if number is None])
