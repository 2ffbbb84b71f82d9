"""The menus of a block: every part is one decorated definition in the file of its menu."""

from typing import Any

from core.model.parts.activation import activation
from core.model.parts.init import init
from core.model.parts.mask import mask
from core.model.parts.norm import norm
from core.model.parts.placement import placement
from core.model.parts.position import position
from core.model.parts.residual import residual_scale
from core.model.parts.softmax import softmax
from core.settings.menu import Menu

MENUS: "dict[str, Menu[Any]]" = {
    "norm": norm,
    "placement": placement,
    "activation": activation,
    "mask": mask,
    "position": position,
    "init": init,
    "softmax": softmax,
    "residual_scale": residual_scale,
}
