"""What can be taken away from the page "Depth" besides its tables and pictures: a script."""

from core.export.script import Script
from core.export.scripts import depth_script, grid_script
from ui.depth.context import DepthContext


def script(context: DepthContext) -> Script:
    """Write the script of the open view."""
    how = (context.tokens, context.machine, context.depth)
    if context.look.show == "grid":
        return grid_script(context.baseline, context.axes, *how)
    return depth_script(context.variants, *how)
