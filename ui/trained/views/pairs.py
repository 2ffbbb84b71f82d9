from ui.shared import pairs as shared
from ui.trained.context import view, with_knockout


@view
def pairs(context):
    """Marked pairs: how much attention falls on words that belong together."""
    shared.pairs(with_knockout(context), context.look, context.look.prompt)
