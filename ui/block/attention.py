"""Views of attention, which the page "Trained model" has as well (ui/shared/attention.py)."""

from ui.block.context import view
from ui.shared import attention as shared


@view
def attention(context):
    """Attention: who reads from whom, head by head."""
    shared.attention(context.forward_pass, context.look)


@view
def steps(context):
    """Step by step: one head by hand, from queries to output."""
    shared.steps(context.forward_pass, context.look)


@view
def heads(context):
    """Heads: what each head does differently."""
    shared.heads(context.forward_pass, context.look, recut=True)


@view
def pairs(context):
    """Marked pairs: how much attention falls on words that belong together."""
    shared.pairs(context.forward_pass, context.look, context.text)
