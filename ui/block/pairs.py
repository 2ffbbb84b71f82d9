from ui.block.base import views
from ui.shared import pairs as shared


@views
def pairs(seen, look):
    """Marked pairs: how much attention falls on words that belong together."""
    shared.pairs(seen, look)
