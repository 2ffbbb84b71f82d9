"""What each of the family can do, on the same held-out sentences: a row per number, as `make family` writes them."""

import math

import pandas as pd
import torch
import torch.nn.functional as F

from core.checkpoints.opened import Opened
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import SEED, padded, questions
from core.experiments.trained.sentences import sentences
from core.experiments.trained.tables import LEAST, readings
from core.model.text import PAD
from core.tasks import IGNORE

SENTENCES = 1024
BINS = ((0, 0), (1, 5), (6, 8), (9, 11), (12, 14), (15, 28))  # words between subject and verb
SLICE = 256  # sentences at once


def examined(opened: Opened, many: int = SENTENCES) -> pd.DataFrame:
    """meter, at, value, n. Accuracy (was or were, after all that stands before the verb), over all sentences and by the words
    between subject and verb; perplexity of whole sentences; of each head, the share of its attention that falls on the subject
    where the verb is chosen, across a clause with a noun of the other number."""
    bench = Bench(opened, questions(opened, many))
    right, between = bench.baseline.correct, bench.questions.value
    rows = [("accuracy", "", right.double().mean().item(), len(right))]
    for low, high in BINS:
        inside = right[(between >= low) & (between <= high)]
        if len(inside) >= LEAST:
            rows.append(
                ("accuracy", f"{low}" if low == high else f"{low}–{high}", inside.double().mean().item(), len(inside))
            )
    rows.append(("perplexity", "", perplexity(opened, many), many))
    rows += [
        ("subject", f"{each.layer + 1}.{each.head + 1}", each.before.mean, each.before.n) for each in readings(bench)
    ]
    return pd.DataFrame(rows, columns=["meter", "at", "value", "n"])


@torch.inference_mode()
def perplexity(opened: Opened, many: int) -> float:
    """exp of the mean of −ln(probability of the next word), over every word but the first of so many held-out sentences."""
    number = {word: at for at, word in enumerate(opened.model.vocabulary)}
    rows, lengths = padded([[number[word] for word in words] for words in sentences(many, SEED)], number[PAD])
    total = 0.0
    for first in range(0, many, SLICE):
        tokens = rows[first : first + SLICE]
        real = torch.arange(tokens.shape[1]) < lengths[first : first + SLICE, None]
        targets = tokens[:, 1:].masked_fill(~real[:, 1:], IGNORE)
        logits = opened.model(tokens[:, :-1]).double()
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum").item()
    return math.exp(total / int((lengths - 1).sum()))
