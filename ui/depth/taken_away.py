"""What can be taken away from the page "Depth" beside its tables and pictures: scripts that print its numbers."""

from collections.abc import Callable
from functools import partial

from core.export import scripts as export
from ui.depth.context import DepthContext
from ui.kit import takeaway


def scripts(context: DepthContext) -> dict[str, Callable[[], str]]:
    """Label -> what writes the script of the view that is open."""
    write, given = export.depth_script, (context.variants, context.tokens, context.machine, context.depth)
    if context.look.show == "grid":
        given = context.baseline, context.axes, context.tokens, context.machine, context.depth
        write = export.grid_script
    return {label: partial(write, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}
