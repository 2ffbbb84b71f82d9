"""Views of attention, which the page "Trained model" has as well (ui/shared/attention.py)."""

from ui.block.context import view
from ui.shared import attention as shared


@view.register("attention", label="Attention", help="which token attends to which, head by head.")
def attention(context):
    shared.attention(context.forward_pass, context.look)


@view.register("steps", label="Step by step", help="one head, from queries to output.")
def steps(context):
    shared.steps(context.forward_pass, context.look)


@view.register("heads", label="Heads", help="differences between heads.")
def heads(context):
    shared.heads(context.forward_pass, context.look, recut=True)


@view.register("pairs", label="Marked pairs", help="attention on words that depend on each other.")
def pairs(context):
    shared.pairs(context.forward_pass, context.look, context.text)
