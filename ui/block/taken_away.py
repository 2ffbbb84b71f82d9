"""What can be taken away from the page "One block" beside its tables and pictures: scripts that print its numbers."""

from collections.abc import Callable
from functools import partial

from core.experiments.block import attention as experiment
from core.experiments.weights import weights
from core.export import scripts as export
from core.settings.wording import count
from ui.block.context import BlockContext
from ui.kit import takeaway


def scripts(context: BlockContext) -> dict[str, Callable[[], str]]:
    """Label -> what writes the script of the view that is open."""
    forward_pass, look = context.forward_pass, context.look
    write, what = export.block_script, forward_pass.config
    if look.view == "compare":
        write, what = export.compare_script, context.variants
    tokens = forward_pass.tokens[: forward_pass.n_real]
    given = what, tokens, forward_pass.machine, forward_pass.dropout, forward_pass.kind
    if look.view == "heads" and look.compare and forward_pass.config.attention:
        recut = experiment.recut(forward_pass.config)
        refused = weights[forward_pass.kind].refused
        recut = {count(number, "head"): config for number, config in recut.items() if config and not refused(config)}
        write, given = export.heads_script, (forward_pass.config, recut, *given[1:])
    flavours = {
        label: flavour
        for label, flavour in takeaway.FLAVOURS.items()
        if flavour == "core" or forward_pass.kind == "random"
    }  # torch alone opens none of the trained models
    return {label: partial(write, flavour, *given) for label, flavour in flavours.items()}
