from ui.block.context import view
from ui.shared import pairs as shared


@view
def pairs(context):
    """Marked pairs: how much attention falls on words that belong together."""
    shared.pairs(context.forward_pass, context.look, context.text)
