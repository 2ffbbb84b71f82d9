"""Train the shipped model: `make legal-model`, or `python -m scripts.legal_model`.

It is a causal language model of two blocks, trained on the legal sentences of core/tasks/legal.py;
every next word counts.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

from core.checkpoints import native
from core.checkpoints.family import BASELINE, TRAINING, vocabulary
from core.checkpoints.opened import Opened
from core.checkpoints.tokens import Words
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import questions
from core.experiments.trained.tables import accuracy_by_distance, attention_to_subject
from core.model.config import Config
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.process import device_name, versions
from core.train import State, chunk, start
from core.train import model as model_of

FOLDER = Path(__file__).parent.parent / "models" / "legal"
CONFIG = BASELINE
NAME = "Legal sentences"


def train(config: Config = CONFIG) -> State:
    """Train a config on legal sentences, which depend on its seed alone; return the last state."""
    state = start(config, TRAINING, config.seed)
    while not state.done:
        state, rows = chunk(state, 20.0)
        for row in rows[-1:] if not state.done else []:
            print(
                f"step {row.step} of {TRAINING.steps}: loss {row.loss:.4f}, {state.seconds:.0f} s",
                flush=True,
            )
    return state


def measure_model(model: Transformer, n_texts: int) -> tuple[Bench, pd.DataFrame]:
    """Measure a model: return its bench of held-out sentences, and accuracy by distance."""
    opened = Opened(NAME, model, Words(vocabulary()), "sentences")
    bench = Bench(opened, questions(opened, n_texts))
    return bench, accuracy_by_distance(bench.baseline, bench.questions)


def compose_readme(bench: Bench, distances: pd.DataFrame, seconds: float, folder: Path) -> str:
    """Return the README text for the model's folder: command, settings, measured numbers."""
    span = lambda share: f"{share.mean:.3f} | {share.low:.3f} to {share.high:.3f}"  # noqa: E731
    of_heads = attention_to_subject(bench)
    heads = "\n".join(
        f"| {reading.layer + 1}.{reading.head + 1} | {span(reading.verb)} |"
        f" {span(reading.before)} |"
        for reading in of_heads
    )
    rows = "\n".join(
        f"| {row.value} | {row.questions} | {row.accuracy:.4f} |"
        for row in distances.sort_values("value").itertuples()
    )
    right = int(bench.baseline.correct.sum())
    every = len(bench.baseline.correct)
    about = versions()
    size = sum(file.stat().st_size for file in folder.iterdir() if file.name != "README.md")
    return f"""# {NAME}

A causal language model of {CONFIG.n_layers} blocks (d_model {CONFIG.d_model}, \
{CONFIG.n_heads} heads, {CONFIG.position}), \
trained on the legal-sentence grammar of
`core/tasks/sentences.py`: every next word counts. Four of five predicates are chosen to go with \
their noun (the defendant was liable, the bank insolvent), the rest by
chance; three of ten sentences are to get a gap of unknown words, so that the model knows what to \
make of such. This file is written by the command that trains the model;
nobody has typed its numbers.

```
make legal-model
```

Seed {CONFIG.seed}, {TRAINING.steps:,} steps of {TRAINING.batch} sentences, learning rate \
{TRAINING.learning_rate} (warm-up {TRAINING.warmup}, then cosine): {seconds:.0f} s on \
{device_name(Machine(device="cpu"))}, one thread,
torch {about["torch"]}. {bench.opened.parameters:,} parameters, \
{size / 1e6:.2f} MB with the vocabulary.

On {every:,} held-out sentences: *was* or *were*, after all that stands before the verb; \
in training it never read a sentence that begins so. {right:,} of {every:,} right.

| words between subject and verb | sentences | accuracy |
|---|---|---|
{rows}

Share of attention that falls on the subject, across a clause and a noun of the other \
number ({of_heads[0].verb.n:,} of these sentences; an even
spread would give the verb {of_heads[0].even:.3f}): of the verb itself, which has \
its predicate to foretell, and of the word before it, where the verb is chosen.

| head | verb | 95 % interval | word before | 95 % interval |
|---|---|---|---|---|
{heads}
"""


def main():
    """Train the model, measure it, and write its files and README."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument(
        "--sentences", type=int, default=4096, help="held-out sentences on which it is examined"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    state = train()
    bench, distances = measure_model(model_of(state), args.sentences)
    best = attention_to_subject(bench)[0]
    about = {
        "steps": TRAINING.steps,
        "batch": TRAINING.batch,
        "seed": CONFIG.seed,
        "reader": [best.layer + 1, best.head + 1],
    }
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, data in native.model_files(bench.opened.model, NAME, "sentences", **about).items():
        (args.folder / name).write_bytes(data)
    text = compose_readme(bench, distances, state.seconds, args.folder)
    (args.folder / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
