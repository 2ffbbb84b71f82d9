"""What positions do: the tables themselves, and the same words in another order."""

import itertools

import pandas as pd
import torch

from core.experiments.forward import Pass, prepared
from core.experiments.weights import weights
from core.model.block import Block
from core.model.cost import run_bytes
from core.model.layers import drawing
from core.model.parts import MENUS
from core.model.parts.position import CONTEXT, sinusoid
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.memory import room_for
from core.settings.setting import ConfigError

ROWS = 100  # as in the usual picture of sinusoidal positions


def tables(p: Pass, rows: int = ROWS) -> dict[str, torch.Tensor]:
    """The vectors that are added to token 1 to `rows`: sinusoidal, and learned (random before training).  -> (rows, D)"""
    draw = drawing(p.config, "pos_embed")
    return {
        "sinusoidal": sinusoid(rows, p.config.d_model),
        "learned": draw.rows(map(str, range(rows)), p.config.d_model),
    }


def order(p: Pass) -> pd.DataFrame:
    """The text "dog bites man" against "man bites dog" (or words that the model knows) under every position encoding: position,
    label, mask, value, notices.

    value: the largest difference between a word's output in the one order and the same word's in the other. Computed in
    float64, so that a difference of 0 can be told from rounding; notices: whether it is larger than rounding. If not,
    the two outputs are a permutation of each other: the model cannot know who bit whom.
    """
    config, words = p.config.replace(padding=0), weights[p.kind].order
    needed = 3 * run_bytes(config, len(words), CONTEXT)
    with room_for(needed, "Comparing two word orders with this model"), torch.inference_mode():
        model, ids, _ = prepared(config, words, Machine("cpu"), p.kind)
        model.double()
        rows = [_compared(model, ids, *names) for names in itertools.product(MENUS["position"], MENUS["mask"])]
    return pd.DataFrame(filter(None, rows), columns=["position", "label", "mask", "value", "notices"])


def _compared(
    model: Transformer, ids: torch.Tensor, position: str, mask: str
) -> tuple[str, str, str, float, bool] | None:
    """One row of the table. Only the two parts in question change: all weights stay what they are."""
    try:
        config = model.config.replace(position=position)
    except ConfigError:  # an odd width of a head cannot be turned
        return None
    model.mask = MENUS["mask"][mask]
    model.position = config.part("position")(config, drawing(config, "pos_embed")).double()
    for layer, block in enumerate(model.blocks):
        if isinstance(block, Block) and block.attn is not None:
            block.attn.position = config.position_in(layer)(config).double()
    first, second = (model.stream(one)[0] for one in (ids, ids.flip(1)))
    value = (first - second.flip(0)).abs().max().item()
    notices = value > 1e-9 * max(first.abs().max().item(), 1e-300)
    return position, MENUS["position"].label(position), mask, value, notices
