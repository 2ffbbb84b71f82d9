"""The menus of a block: every part is one decorated definition in the file of its menu."""

from core.parts.activation import activation
from core.parts.init import init
from core.parts.mask import mask
from core.parts.norm import norm
from core.parts.placement import placement
from core.parts.position import position

MENUS = {
    "norm": norm,
    "placement": placement,
    "activation": activation,
    "mask": mask,
    "position": position,
    "init": init,
}
