from ui.block.context import view
from ui.shared import steps as shared


@view
def steps(context):
    """Step by step: one head by hand, from queries to output."""
    shared.steps(context.forward_pass, context.look)
