"""Positions: the tables themselves, and the same tokens in another order."""

import itertools

import pandas as pd
import torch

from core.experiments.forward import Pass, prepare_model
from core.experiments.weights import weights
from core.model.block import Block
from core.model.cost import run_bytes
from core.model.layers import source_of_weights
from core.model.parts import MENUS
from core.model.parts.position import CONTEXT, sinusoid_table
from core.settings.device import Machine
from core.settings.memory import room_for
from core.settings.setting import ConfigError


def position_tables(p: Pass, rows: int = 100) -> dict[str, torch.Tensor]:
    """Return untrained position vectors as {"sinusoidal": (rows, D), "learned": (rows, D)}."""
    draw = source_of_weights(p.config, "pos_embed")
    return {
        "sinusoidal": sinusoid_table(rows, p.config.d_model),
        "learned": draw.rows(map(str, range(rows)), p.config.d_model),
    }


def compare_word_orders(p: Pass) -> pd.DataFrame:
    """Compare 3 words and their reverse, by position, label, mask: value (largest gap), notices.

    Under every position encoding and mask, with words that the model knows.

    value: the largest difference between a word's output in one order and the same word's output in
    the other, computed in float64. notices: whether it is larger than rounding. If not, the two
    outputs are a permutation of each other: the model cannot know who bit whom.
    """
    config = p.config.replace(padding=0)
    words = weights[p.kind].order
    needed = 3 * run_bytes(config, len(words), CONTEXT)
    with room_for(needed, "Comparing two word orders with this model"), torch.inference_mode():
        model, ids, _ = prepare_model(config, words, Machine("cpu"), p.kind)
        model.double()
        rows = []
        # Only the two parts in question change: all weights stay what they are.
        for position, mask in itertools.product(MENUS["position"], MENUS["mask"]):
            try:
                changed = model.config.replace(position=position)
            except ConfigError:  # an odd width of a head cannot be turned
                continue
            model.mask = MENUS["mask"][mask]
            model.position = changed.part("position")(
                changed, source_of_weights(changed, "pos_embed")
            ).double()
            for layer, block in enumerate(model.blocks):
                if isinstance(block, Block) and block.attn is not None:
                    block.attn.position = changed.position_in(layer)(changed, layer=layer).double()
            first = model.run_blocks(ids)[0]
            second = model.run_blocks(ids.flip(1))[0]
            value = (first - second.flip(0)).abs().max().item()
            notices = value > 1e-9 * max(first.abs().max().item(), 1e-300)
            rows.append((position, MENUS["position"].label(position), mask, value, notices))
    return pd.DataFrame(rows, columns=["position", "label", "mask", "value", "notices"])
