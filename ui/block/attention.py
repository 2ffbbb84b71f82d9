from ui.block.base import views
from ui.shared import attention as shared


@views
def attention(seen, look):
    """Attention: who reads from whom, head by head."""
    shared.attention(seen, look)
