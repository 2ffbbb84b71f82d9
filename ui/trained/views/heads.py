from ui.shared import heads as shared
from ui.trained.context import view, with_knockout


@view
def heads(context):
    """Heads: what each head does differently."""
    shared.heads(with_knockout(context), context.look)
