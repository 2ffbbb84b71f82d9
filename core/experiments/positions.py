"""What positions do: the tables themselves, and the same words in another order."""

import pandas as pd
import torch

from core.experiments.change import cosines
from core.experiments.forward import Pass, forward
from core.parts import MENUS
from core.parts.init import Draw
from core.parts.position import sinusoid

ORDERS = (("dog", "bites", "man"), ("man", "bites", "dog"))


def tables(p: Pass, rows: int = 64) -> dict[str, torch.Tensor]:
    """The vectors that are added to token 1 to `rows`: sinusoidal, and learned (random before training).  -> (rows, D)"""
    draw = Draw(p.config.part("init"), p.config.seed).at("pos_embed")
    return {
        "sinusoidal": sinusoid(rows, p.config.d_model),
        "learned": draw.rows(map(str, range(rows)), p.config.d_model),
    }


def position_similarity(table: torch.Tensor) -> torch.Tensor:
    """Cosine similarity between the vectors of every two positions.  (rows, D) -> (rows, rows)"""
    return cosines(table)


def order(p: Pass) -> pd.DataFrame:
    """The text "dog bites man" against "man bites dog" under every position encoding: position, label, mask, value.

    value: the largest difference between a word's output in the one order and the same word's in the other. Zero (to
    rounding) means that the two outputs are a permutation of each other: the model cannot know who bit whom.
    """
    rows = []
    for name, part in MENUS["position"].items():
        if part.needs_even_head and p.config.d_head % 2:
            continue
        for mask in MENUS["mask"]:
            config = p.config.replace(position=name, mask=mask, padding=0)
            first, second = (forward(config, words, p.machine).output for words in ORDERS)
            back = [ORDERS[1].index(word) for word in ORDERS[0]]
            rows.append((name, MENUS["position"].label(name), mask, (first - second[back]).abs().max().item()))
    return pd.DataFrame(rows, columns=["position", "label", "mask", "value"])
