from ui.block.context import view
from ui.shared import attention as shared


@view
def attention(context):
    """Attention: who reads from whom, head by head."""
    shared.attention(context.forward_pass, context.look)
