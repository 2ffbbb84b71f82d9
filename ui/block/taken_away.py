"""What can be taken away from the page "One block" beside its tables and pictures: scripts that print its numbers."""

from collections.abc import Callable
from functools import partial

from core.experiments.block import attention as experiment
from core.export import scripts as export
from core.model.variants import lineup
from core.settings.wording import count
from ui.block.context import BlockContext
from ui.kit import takeaway


def scripts(context: BlockContext) -> dict[str, Callable[[], str]]:
    """Label -> what writes the script of the view that is open."""
    forward_pass, look = context.forward_pass, context.look
    write, what = export.block_script, forward_pass.config
    if look.view == "compare":
        write, what = export.compare_script, lineup(forward_pass.config, context.pins)[0]
    tokens = forward_pass.tokens[: forward_pass.n_real]
    given = what, tokens, forward_pass.machine, forward_pass.dropout
    if look.view == "heads" and look.compare and forward_pass.config.attention:
        recut = experiment.recut(forward_pass.config)
        recut = {count(number, "head"): config for number, config in recut.items() if config}
        write, given = export.heads_script, (forward_pass.config, recut, *given[1:])
    return {label: partial(write, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}
