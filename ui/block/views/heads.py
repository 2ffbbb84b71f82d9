from ui.block.context import view
from ui.shared import heads as shared


@view
def heads(context):
    """Heads: what each head does differently."""
    shared.heads(context.forward_pass, context.look, recut=True)
