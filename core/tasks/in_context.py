"""Tasks whose answer is in the sequence itself: the model has to find it."""

import math
import string

import torch

from core.tasks.task import IGNORE, Drawn, Words, register_task, uniform

LETTERS = tuple(string.ascii_lowercase[:16])
KEYS = tuple(string.ascii_lowercase[:8])
VALUES = tuple(map(str, range(8)))


def draw_shuffles(generator: torch.Generator, batch: int, count: int) -> torch.Tensor:
    """Draw a random order of `count` things per row: int64 (batch, count)."""
    return torch.rand(batch, count, generator=generator).argsort(1)


def draw_letters(
    generator: torch.Generator, batch: int, length: int, vocabulary: Words
) -> torch.Tensor:
    """Draw independent, equally likely token ids: int64 (batch, length)."""
    return torch.randint(len(vocabulary), (batch, length), generator=generator)


def letter_variety(length: int, vocabulary: Words) -> list[tuple[float, int]]:
    """Return [(1.0, number of different sequences)] for independent letters: one kind of draw."""
    return [(1.0, len(vocabulary) ** length)]


def period_variety(length: int, vocabulary: Words) -> list[tuple[float, int]]:
    """Return (share of draws, number of different sequences) for each period of a repetition."""
    periods = range(length // 4, length // 2 + 1)
    return [(1 / len(periods), math.perm(len(vocabulary), period)) for period in periods]


def recall_variety(length: int, vocabulary: Words) -> list[tuple[float, int]]:
    """Return [(1.0, number of different sequences)] for recall.

    Orders of keys, values and orders of questions.
    """
    pairs = length // 3
    half = len(vocabulary) // 2
    return [(1.0, math.perm(half, pairs) * half**pairs * math.factorial(pairs))]


@register_task(
    label="Copy",
    skill="Move tokens",
    help=(
        "output the input token at each position. Requires neither attention nor positions (control"
        " task)."
    ),
    mask="none",
    length=12,
    lengths=range(1, 129),
    vocabulary=LETTERS,
    marginal=uniform(),
    variety=letter_variety,
    needs=(
        "only a path from the embedding to the answer: the control task, which needs neither"
        " attention nor positions"
    ),
    without={"attention": False},
    model={"d_model": 32, "n_heads": 4, "n_layers": 2, "position": "learned"},
    training={"steps": 100, "batch": 32, "learning_rate": 3e-3, "warmup": 10},
)
def copy(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw random letters; the targets are the same letters: int64 (batch, length) each.

    Example (seed 0): h k f o c i f j e n j k → h k f o c i f j e n j k
    """
    tokens = draw_letters(generator, batch, length, vocabulary)
    return tokens, tokens.clone()


@register_task(
    label="Reverse",
    skill="Move tokens",
    help=(
        "reverse the sequence. This needs attention and positions; a four-layer model also"
        " needs residuals."
    ),
    mask="none",
    length=12,
    lengths=range(2, 129),
    vocabulary=LETTERS,
    marginal=uniform(),
    variety=letter_variety,
    needs=(
        "attention, positions and residuals: the answer is at another position, and without"
        " residuals four layers do not train"
    ),
    without={"position": "none"},
    remains=(
        "without positions a model still knows which symbols occur and how often, and answering"
        " with one of them beats chance."
    ),
    model={"d_model": 32, "n_heads": 4, "n_layers": 4, "position": "learned"},
    training={"steps": 250, "batch": 32, "learning_rate": 3e-3, "warmup": 20},
)
def reverse(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw random letters; the targets are the same reversed: int64 (batch, length) each.

    Example (seed 0): h k f o c i f j e n j k → k j n e j f i c o f k h
    """
    tokens = draw_letters(generator, batch, length, vocabulary)
    return tokens, tokens.flip(1)


@register_task(
    label="Induction",
    skill="Look up in context",
    help=(
        "a random sequence that repeats; the period differs between sequences. Predict the next"
        " symbol. Requires attention in two layers (Olsson et al., 2022)."
    ),
    mask="causal",
    length=24,
    lengths=range(8, 33),
    vocabulary=LETTERS,
    marginal=uniform(),
    variety=period_variety,
    needs="attention in two layers: a previous-token head feeds an induction head; positions help",
    without={"n_layers": 1},
    remains=(
        "with one layer a model still knows which symbols occur, and answering with one of them"
        " beats chance."
    ),
    why="no symbol occurs twice before the repetition starts, so its successor is known",
    model={"d_model": 64, "n_heads": 4, "n_layers": 2, "position": "rope"},
    training={"steps": 300, "batch": 32, "learning_rate": 3e-3, "warmup": 20},
)
def induction(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw repeating sequences, (batch, length); targets: next letters, IGNORE until it repeats.

    Example (seed 0): h d l j a f h d l j a f h d l j a f h d l j a f → · · · · · · d l j a f h d l
    j a f h d l j a f h
    """
    period = torch.randint(length // 4, length // 2 + 1, (batch, 1), generator=generator)
    positions = torch.arange(length + 1)
    sequences = draw_shuffles(generator, batch, len(vocabulary)).gather(1, positions % period)
    return sequences[:, :-1], sequences[:, 1:].where(positions[:-1] >= period, IGNORE)


@register_task(
    label="Associative recall",
    skill="Look up in context",
    help=(
        "given key–value pairs, return the value of each key. "
        "Requires attention in two layers (multi-query associative recall, Arora et "
        "al., 2023)."
    ),
    mask="causal",
    length=18,
    lengths=range(3, 25, 3),
    vocabulary=KEYS + VALUES,
    marginal=uniform(lambda vocabulary: len(vocabulary) // 2),
    variety=recall_variety,
    needs=(
        "attention in two layers: the first attaches each key to its value, the second looks it up"
    ),
    without={"n_layers": 1},
    remains=(
        "with one layer a model still knows which symbols occur, and answering with one of them"
        " beats chance."
    ),
    model={"d_model": 64, "n_heads": 4, "n_layers": 2, "position": "rope"},
    training={"steps": 400, "batch": 32, "learning_rate": 3e-3, "warmup": 20},
)
def recall(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw length // 3 pairs, then all keys shuffled; targets: IGNORE for pairs, then values.

    Example (seed 0): e 4 b 5 g 1 d 2 a 6 c 2 c e b d a g → · · · · · · · · · · · · 2 4 5 2 6 1
    """
    pairs = length // 3
    half = len(vocabulary) // 2
    keys = draw_shuffles(generator, batch, half)[:, :pairs]
    values = half + torch.randint(half, (batch, pairs), generator=generator)
    order = draw_shuffles(generator, batch, pairs)
    tokens = torch.cat([torch.stack([keys, values], 2).flatten(1), keys.gather(1, order)], 1)
    targets = torch.full_like(tokens, IGNORE)
    targets[:, 2 * pairs :] = values.gather(1, order)
    return tokens, targets
