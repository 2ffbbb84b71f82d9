"""Tasks whose answer is not in the sequence: it is memorised, or learnt as a rule."""

import functools
from itertools import product

import torch

from core.model.parts.init import generator as stream_of
from core.tasks.task import IGNORE, Drawn, Words, register_task, uniform

PRIME = 37

SUBJECTS = tuple(
    map(
        "".join,
        product(
            "Ab Bel Cor Dan Ed Fan Gil Han Iv Jor Kar Len Mar Nor Os Pet".split(),
            "a an el en er i ia ik il in ine o on or us y".split(),
        ),
    )
)
RELATIONS = tuple("judge lawyer landlord tenant insurer bank employer witness".split())
OBJECTS = tuple(
    map(
        "".join,
        product(
            "Al Black Cole Fair Green Har North Stan".split(),
            "dale field ford ham ley man ton wood".split(),
        ),
    )
)


@register_task(
    label="Modular subtraction",
    skill="Compute",
    help=(
        'given a, b and "=", compute (a − b) mod 37. Requires the feed-forward network and '
        "its activation; several heads help."
    ),
    mask="causal",
    length=3,
    lengths=range(3, 4),
    vocabulary=(*map(str, range(PRIME)), "="),
    marginal=uniform(lambda vocabulary: len(vocabulary) - 1),
    needs=(
        "the feed-forward network and its activation: the answer is not additive in the two numbers"
    ),
    without={"n_heads": 1},
    memorised=True,
    remains="one wide head learns it too, but more slowly.",
    why="each pair of numbers is drawn again and again, so the whole table can be learnt",
    test=512,
    model={"d_model": 64, "n_heads": 4, "n_layers": 1, "position": "learned"},
    training={"steps": 1000, "batch": 128, "learning_rate": 3e-3, "warmup": 20},
)
def subtraction(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw a, b and "=": (batch, 3); targets: IGNORE, IGNORE, (a − b) modulo the prime.

    `length` is not used.

    Example (seed 0): 13 7 = → · · 6
    """
    numbers = torch.randint(len(vocabulary) - 1, (batch, 2), generator=generator)
    tokens = torch.cat([numbers, torch.full((batch, 1), len(vocabulary) - 1)], 1)
    targets = torch.full_like(tokens, IGNORE)
    targets[:, 2] = (numbers[:, 0] - numbers[:, 1]) % (len(vocabulary) - 1)
    return tokens, targets


@functools.lru_cache(maxsize=16)
def fact_table(
    n_subjects: int, n_relations: int = len(RELATIONS), n_objects: int = len(OBJECTS)
) -> torch.Tensor:
    """Return each fact's object index, the same in every run: int64 (subjects, relations).

    Every object occurs equally often, ± 1.
    """
    count = n_subjects * n_relations
    order = torch.randperm(count, generator=stream_of(0, "facts"))
    return (torch.arange(count) % n_objects)[order].view(n_subjects, n_relations)


def _count_subjects(vocabulary: Words) -> int:
    """Return the number of subjects: words that are neither relations nor objects."""
    return len(vocabulary) - len(RELATIONS) - len(OBJECTS)


def _guessing_accuracy(vocabulary: Words) -> float:
    """Return the accuracy (share) of always answering with the fixed table's commonest object."""
    objects = fact_table(_count_subjects(vocabulary)).flatten()
    return (objects.bincount().max() / len(objects)).item()


@register_task(
    label="Fact table",
    skill="Memorise",
    help=(
        "given a name and a relation, return the person, from a fixed random table. "
        "Requires the feed-forward network and its activation as memory, and "
        "attention to combine the two."
    ),
    mask="causal",
    length=2,
    lengths=range(2, 3),
    vocabulary=SUBJECTS + RELATIONS + OBJECTS,
    marginal=_guessing_accuracy,
    needs=(
        "the feed-forward network and its activation, which store the facts, and attention, which"
        " combines name and relation"
    ),
    without={"ffn": False},
    memorised=True,
    remains=(
        "embeddings and attention store facts too. Without the FFN the model also has fewer"
        " parameters; set Match cost to Parameters to control for that."
    ),
    why="the table is fixed and every fact recurs in training",
    test=512,
    model={"d_model": 48, "n_heads": 4, "n_layers": 1, "position": "learned"},
    training={"steps": 800, "batch": 256, "learning_rate": 5e-3, "warmup": 20, "decay": "linear"},
)
def facts(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw a subject and a relation, (batch, 2); target: IGNORE, their object in the table.

    `length` is not used.

    Example (seed 0): Ivik landlord → · Blackman
    """
    count = _count_subjects(vocabulary)
    subject = torch.randint(count, (batch,), generator=generator)
    relation = torch.randint(len(RELATIONS), (batch,), generator=generator)
    tokens = torch.stack([subject, count + relation], 1)
    answer = count + len(RELATIONS) + fact_table(count)[subject, relation]
    return tokens, torch.stack([torch.full_like(answer, IGNORE), answer], 1)
