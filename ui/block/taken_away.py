"""What can be taken away from the page "One block" besides its tables and pictures: a script."""

from core.experiments.block.attention import recut
from core.experiments.weights import weights
from core.export.script import Script
from core.export.scripts import block_script, compare_script, heads_script
from core.settings.wording import count
from ui.block.context import BlockContext


def script(context: BlockContext) -> Script:
    """Write the script of the open view."""
    forward_pass, look = context.forward_pass, context.look
    config, kind = forward_pass.config, forward_pass.kind
    tokens = forward_pass.tokens[: forward_pass.n_real]
    how = (tokens, forward_pass.machine, forward_pass.dropout, kind)
    if look.view == "compare":
        return compare_script(context.variants, *how)
    if look.view == "heads" and look.compare and config.attention:
        refused = weights[kind].refused
        configs = {
            count(number, "head"): variant
            for number, variant in recut(config).items()
            if variant and not refused(variant)
        }
        return heads_script(config, configs, *how)
    return block_script(config, *how, view=look.view)
