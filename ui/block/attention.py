"""Views of attention, which the page "Trained model" has as well (ui/shared/attention.py)."""

from ui.block.context import BlockContext, view
from ui.shared import attention as shared


@view.register("attention", label="Attention", help="which token attends to which, head by head.")
def attention(context: BlockContext):
    """Draw a layer's attention as `look.maps` says: all heads, one, their mean, or lines."""
    shared.attention(context.forward_pass, context.look)


@view.register("steps", label="Step by step", help="one head, from queries to output.")
def steps(context: BlockContext):
    """Draw one step of a head's computation as a matrix, and controls of layer, head and step."""
    shared.steps(context.forward_pass, context.look)


@view.register("heads", label="Heads", help="differences between heads.")
def heads(context: BlockContext):
    """Draw how the heads of a layer differ, or the same model with 1, 4 and 8 heads."""
    shared.heads(context.forward_pass, context.look, can_vary_heads=True)


@view.register("pairs", label="Marked pairs", help="attention on words that depend on each other.")
def pairs(context: BlockContext):
    """Draw marked pairs of words: arcs, a layer's mean pattern, weights by head; and the editor."""
    shared.pairs(context.forward_pass, context.look, context.text)
