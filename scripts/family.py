"""Train and measure the family of models (core/checkpoints/family.py): `make family`.

    python -m scripts.family [--seeds 0] [--members baseline] [--workers 2] [--folder models/family]
        [--table results/family.csv]

Each member is trained as scripts/legal_model.py trains the shipped model. That one is the baseline
with seed 0, to the last bit on the same machine. Members whose files exist are not trained again: a
run that was cut short goes on with what is missing. Weights of other sizes are stored in float16;
what the table says of a member is measured on its stored weights.
"""

import argparse
import hashlib
import math
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F

from core.checkpoints.family import (
    FOLDER,
    SEEDS,
    SUMS,
    WHOLE,
    ablate_after_training,
    config_of,
    file_of,
    models,
    open_member,
    read_shipped,
    sizes,
    write_member,
)
from core.checkpoints.opened import Opened
from core.experiments.trained.comparison import CUT, TABLE, TRAINED
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import SEED, pad_texts, questions
from core.experiments.trained.sentences import sentences
from core.experiments.trained.tables import LEAST, attention_to_subject
from core.model.text import PAD
from core.tasks import IGNORE
from scripts.legal_model import train

SENTENCES = 1024
BINS = ((0, 0), (1, 5), (6, 8), (9, 11), (12, 14), (15, 28))  # words between subject and verb
SLICE = 256  # sentences at once


def measure_model(opened: Opened, n_texts: int = SENTENCES) -> pd.DataFrame:
    """Measure a model; return a table: meter (accuracy, …), at (distance, head), value, n.

    Accuracy (share) at the main verb, over all sentences and by distance; perplexity; each head's
    attention to the subject across a distractor.
    """
    bench = Bench(opened, questions(opened, n_texts))
    right = bench.baseline.correct
    between = bench.questions.value
    rows = [("accuracy", "", right.double().mean().item(), len(right))]
    for low, high in BINS:
        inside = right[(between >= low) & (between <= high)]
        if len(inside) >= LEAST:
            rows.append(
                (
                    "accuracy",
                    f"{low}" if low == high else f"{low}–{high}",
                    inside.double().mean().item(),
                    len(inside),
                )
            )
    rows.append(("perplexity", "", perplexity(opened, n_texts), n_texts))
    rows += [
        (
            "subject",
            f"{reading.layer + 1}.{reading.head + 1}",
            reading.before.mean,
            reading.before.n,
        )
        for reading in attention_to_subject(bench)
    ]
    return pd.DataFrame(rows, columns=["meter", "at", "value", "n"])


@torch.inference_mode()
def perplexity(opened: Opened, n_texts: int) -> float:
    """Return the perplexity over every word but the first of held-out sentences."""
    number = {word: index for index, word in enumerate(opened.model.vocabulary)}
    rows, lengths = pad_texts(
        [[number[word] for word in words] for words in sentences(n_texts, SEED)], number[PAD]
    )
    total = 0.0
    for first in range(0, n_texts, SLICE):
        tokens = rows[first : first + SLICE]
        real = torch.arange(tokens.shape[1]) < lengths[first : first + SLICE, None]
        targets = tokens[:, 1:].masked_fill(~real[:, 1:], IGNORE)
        logits = opened.model(tokens[:, :-1]).double()
        total += F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum"
        ).item()
    return math.exp(total / int((lengths - 1).sum()))


def train_member(member: str, seed: int) -> bytes:
    """Train one member of the family; return the content of its safetensors file."""
    state = train(config_of(member, seed))
    return write_member(state, torch.float16 if member in sizes() else torch.float32)


def train_into(folder: Path, member: str, seed: int):
    """Train one member on one thread and write its file."""
    torch.set_num_threads(1)
    print(f"{member}, seed {seed}", flush=True)
    file = folder / file_of(member, seed)
    begun = file.with_suffix(".part")
    begun.write_bytes(train_member(member, seed))
    begun.rename(file)


def train_what_is_missing(folder: Path, chosen: list[tuple[str, int]], workers: int):
    """Train each chosen (member, seed) without a file, then write all checksums to SHA256SUMS."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [model for model in chosen if not (folder / file_of(*model)).exists()]
    if workers == 1:
        for model in missing:
            train_into(folder, *model)
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            for training in [pool.submit(train_into, folder, *model) for model in missing]:
                training.result()
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"
        for file in sorted(folder.glob("*.safetensors"))
    ]
    (folder / SUMS).write_text("\n".join(sums) + "\n", encoding="utf-8")


def measure_members(folder: Path) -> pd.DataFrame:
    """Measure each stored member, and the baseline ablated like it; return one table.

    Columns: member, how, seed, steps, meter, at, value, n.
    """
    parts = []
    for member, seed in read_shipped(folder):
        model = open_member(member, seed, folder)
        parts.append((member, TRAINED, seed, model.about["steps"], measure_model(model)))
        cut = (
            None
            if member == WHOLE
            else ablate_after_training(member, open_member(WHOLE, seed, folder))
        )
        if cut:
            parts.append((member, CUT, seed, 0, measure_model(cut)))
        print(f"{member}, seed {seed}: examined", flush=True)
    rows = [
        frame.assign(member=member, how=how, seed=seed, steps=steps)
        for member, how, seed, steps, frame in parts
    ]
    return pd.concat(rows)[["member", "how", "seed", "steps", "meter", "at", "value", "n"]]


def main():
    """Train missing members and write the table of measurements, as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--members", nargs="*", help="as in links, such as d_model-32; default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--table", type=Path, default=TABLE)
    args = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [model for model in models(args.seeds) if not args.members or model[0] in args.members]
    train_what_is_missing(args.folder, chosen, args.workers)
    measure_members(args.folder).to_csv(args.table, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
