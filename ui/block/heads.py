from ui.block.base import views
from ui.shared import heads as shared


@views
def heads(seen, look):
    """Heads: what each head does differently."""
    shared.heads(seen, look, recut=True)
