"""Train the shipped model: `make legal-model`, or `python -m scripts.legal_model`.

It is a causal language model of two blocks, trained on the legal sentences of
core/tasks/sentences.py; every next word counts. Its training text differs from them in two ways.
Predicates mostly go with their noun (the defendant was liable, the bank insolvent), so that a verb
has a reason to attend to its subject. Some sentences get a gap of unknown words, so that the model
can read words that the grammar does not have.
"""

import argparse
import time
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F

from core.checkpoints import native
from core.checkpoints.family import BASELINE, vocabulary
from core.checkpoints.opened import Opened
from core.checkpoints.tokens import Words
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import questions
from core.experiments.trained.tables import accuracy_by_distance, attention_to_subject
from core.model.config import Config
from core.model.parts.init import generator
from core.model.text import PAD, UNKNOWN
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.process import device_name, versions
from core.tasks import IGNORE, task
from core.tasks.sentences import ADJECTIVES, BE, CLAUSES, LONGEST, NOUNS, find_anatomy, is_kept_back
from core.train.settings import decay

FOLDER = Path(__file__).parent.parent / "models" / "legal"
CONFIG = BASELINE
SINGULAR = {form: pair[0] for pairs in NOUNS.values() for pair in pairs for form in pair}
STEPS = 4000
BATCH = 64
RATE = 3e-3
WARMUP = 50
# share of sentences with a gap; words of one at most
GAPS = 0.3
GAP = 6
GOES = 0.8  # share of predicates that go with their noun; the others are any
GOES_WITH = dict(
    court="wrong",
    judge="right",
    defendant="liable",
    plaintiff="present",
    tenant="bound",
    lawyer="late",
    witness="absent",
    bank="insolvent",
    landlord="bound",
    clerk="late",
    attorney="ready",
    expert="honest",
    guard="asleep",
    officer="angry",
    driver="tired",
    doctor="busy",
    nurse="careful",
    teacher="right",
    student="late",
    neighbour="angry",
    manager="absent",
    worker="tired",
    buyer="ready",
    seller="honest",
    broker="guilty",
    heir="rich",
    debtor="poor",
    creditor="silent",
    insurer="liable",
    editor="careful",
    builder="busy",
    farmer="poor",
    customer="sad",
    prisoner="guilty",
    child="happy",
    man="afraid",
    woman="innocent",
)
NAME = "Legal sentences"


def draw_batch(stream: torch.Generator, n_texts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw sentences whose beginnings are not held out, some with a gap: tokens and targets.

    Returns:
        Tokens and targets, int64 (n_texts, 28). Unknown words are read but never asked for.
    """
    learnt = task["sentences"]
    words_known = vocabulary()
    number = {word: index for index, word in enumerate(words_known)}
    pad = words_known.index(PAD)
    sentences: list[list[str]] = []
    while (
        len(sentences) < n_texts
    ):  # those that are kept back for the examination, as they would be read, are drawn again
        lines = learnt.draw(stream, n_texts, LONGEST, learnt.vocabulary)[0].tolist()
        for line, goes in zip(lines, torch.rand(n_texts, CLAUSES + 1, generator=stream).tolist()):
            words = with_fitting_predicates(
                [words_known[token] for token in line if token != pad], goes
            )
            if not is_kept_back(words):
                sentences.append(words)
    rows = torch.full((n_texts, LONGEST + 1), pad)
    for row, (words, (gap, where, removed, inserted)) in enumerate(
        zip(sentences, torch.rand(n_texts, 4, generator=stream).tolist())
    ):
        if gap < GAPS:
            words = with_gap(words, where, removed, inserted)
        rows[row, : len(words)] = torch.tensor([number[word] for word in words])
    targets = rows[:, 1:].masked_fill(
        (rows[:, 1:] == pad) | (rows[:, 1:] == number[UNKNOWN]), IGNORE
    )
    return rows[:, :-1], targets


def with_fitting_predicates(words: list[str], draws: list[float]) -> list[str]:
    """Replace each predicate by its noun's where its draw, in order, is below GOES; in a copy.

    Args:
        words: One sentence.
        draws: Number from 0 to 1 for each predicate; below GOES it is replaced.
    """
    changed = list(words)
    subject, verb = find_anatomy(words)[:2]
    for index, draw in zip(
        [n for n, word in enumerate(words) if word in BE and words[n + 1] in ADJECTIVES], draws
    ):
        noun = words[subject] if index == verb else words[index - 3]  # "the judge , who was late"
        if draw < GOES and SINGULAR.get(noun) in GOES_WITH:
            changed[index + 1] = GOES_WITH[SINGULAR[noun]]
    return changed


def with_gap(words: list[str], where: float, removed: float, inserted: float) -> list[str]:
    """Return a sentence with adjacent words replaced by unknown ones, by draws from 0 to 1.

    Subject, verb and marks are spared. A sentence that would be too long stays as it is.

    Args:
        words: One sentence.
        where: Number from 0 to 1 that chooses where the gap begins.
        removed: Number from 0 to 1 that chooses how many words are replaced, up to GAP.
        inserted: Number from 0 to 1 that chooses how many unknown words stand there, up to GAP.
    """
    subject, verb = find_anatomy(words)[:2]
    free = [
        index
        for index, word in enumerate(words)
        if index not in (subject, verb) and word not in (",", ".", *BE)
    ]
    start = free[int(where * len(free))]
    end = start + 1
    while end in free and end - start <= GAP * removed:
        end += 1
    gapped = [*words[:start], *[UNKNOWN] * (1 + int(inserted * GAP)), *words[end:]]
    return gapped if len(gapped) <= LONGEST else words


def train(config: Config = CONFIG) -> tuple[Transformer, int, float]:
    """Train a config on legal sentences; return model, steps (fewer if it diverged), seconds.

    The sentences depend on the seed alone. Ends before a step with numbers out of range.
    """
    model = Transformer(config, vocabulary())
    data = generator(config.seed, "legal.training")
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1, fused=True)
    begun = time.monotonic()
    for step in range(1, STEPS + 1):
        tokens, targets = draw_batch(data, BATCH)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not (loss.isfinite() and norm.isfinite()):
            return model, step - 1, time.monotonic() - begun
        for group in optimiser.param_groups:
            warm = min(1.0, step / WARMUP)
            group["lr"] = RATE * warm * decay["cosine"](max(0, step - WARMUP) / (STEPS - WARMUP))
        optimiser.step()
        if step % 500 == 0:
            print(
                f"step {step} of {STEPS}: loss {loss.item():.4f}, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    return model, STEPS, time.monotonic() - begun


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

Seed {CONFIG.seed}, {STEPS:,} steps of {BATCH} sentences, learning rate {RATE} (warm-up \
{WARMUP}, then cosine): {seconds:.0f} s on {device_name(Machine(device="cpu"))}, one thread,
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
    model, _, seconds = train()
    bench, distances = measure_model(model, args.sentences)
    best = attention_to_subject(bench)[0]
    about = {
        "steps": STEPS,
        "batch": BATCH,
        "seed": CONFIG.seed,
        "reader": [best.layer + 1, best.head + 1],
    }
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, data in native.model_files(model, NAME, "sentences", **about).items():
        (args.folder / name).write_bytes(data)
    text = compose_readme(bench, distances, seconds, args.folder)
    (args.folder / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
