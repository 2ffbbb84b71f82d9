from ui.block.base import views
from ui.shared import steps as shared


@views
def steps(seen, look):
    """Step by step: one head by hand, from queries to output."""
    shared.steps(seen, look)
