"""Views of a pass, of a trained model."""

from ui.shared import heads as one_block_heads
from ui.shared import pairs as one_block_pairs
from ui.shared import steps as one_block_steps
from ui.trained.base import views, with_knockout


@views
def steps(looked, look):
    """Step by step: one head by hand."""
    one_block_steps.steps(with_knockout(looked), look)


@views
def heads(looked, look):
    """Heads: what each head does differently."""
    one_block_heads.heads(with_knockout(looked), look)


@views
def pairs(looked, look):
    """Marked pairs: how much attention falls on words that belong together."""
    one_block_pairs.pairs(with_knockout(looked), look, looked.look.prompt)
