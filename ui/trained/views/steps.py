from ui.shared import steps as shared
from ui.trained.context import view, with_knockout


@view
def steps(context):
    """Step by step: one head by hand."""
    shared.steps(with_knockout(context), context.look)
