"""Dial of One block and Training that sets width, layers and heads together."""

from collections.abc import Callable

from core.model.config import Config
from core.train.dial import DIAL, find_size, model_size
from ui.kit.panel.control import Control, stops_control
from ui.kit.store import is_movable

OWN = "own"  # the stop for settings that are no size of the dial
HELP = (
    "Sets width, layers and heads together: size n has n layers of width 32 n and 2 n heads. On"
    " Training the steps follow, too: n / 2 times the usual number."
)


def dial_controls(config: Config, open_size: Callable[[int], None]) -> list[Control]:
    """Return the dial, which shows the size of the current settings; [] if a setting is locked.

    Args:
        config: Current settings.
        open_size: Called with the size that is chosen.
    """
    if not all(map(is_movable, model_size(DIAL[0]))):
        return []
    now = find_size(config)
    options = [(str(size), str(size)) for size in DIAL]
    if now is None:
        options.insert(0, (OWN, "other"))
    return [
        stops_control(
            "Size",
            "size",
            str(now or OWN),
            options,
            HELP,
            lambda text: open_size(int(text)) if text != OWN else None,
        )
    ]
