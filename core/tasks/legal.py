"""Legal sentences as the shipped language models read them: with predicates that fit, and gaps.

Predicates mostly go with their noun (the defendant was liable, the bank insolvent), so that a verb
has a reason to attend to its subject. Some sentences get a gap of unknown words, so that a model
can read words that the grammar does not have. No menu offers this task: it trains the models in
models/ (core/checkpoints/family.py) and those that users train beside them.
"""

import torch

from core.model.text import PAD, UNKNOWN
from core.tasks.sentences import (
    ADJECTIVES,
    BE,
    CLAUSES,
    LONGEST,
    NOUNS,
    VOCABULARY,
    find_anatomy,
    is_kept_back,
    sentences,
)
from core.tasks.task import IGNORE, Drawn, Words, register_task

SINGULAR = {form: pair[0] for pairs in NOUNS.values() for pair in pairs for form in pair}
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


@register_task(
    label="Legal sentences with gaps",
    skill="Grammar",
    help="predict the next token of legal sentences, some with unknown words.",
    listed=False,
    mask="causal",
    length=LONGEST,
    lengths=range(LONGEST, LONGEST + 1),
    vocabulary=(*VOCABULARY, UNKNOWN),
    marginal=lambda vocabulary: 1 / len(BE),
    needs=sentences.needs,
    rivals=(BE,),
    training={
        "steps": 4000,
        "batch": 64,
        "learning_rate": 3e-3,
        "warmup": 50,
        "decay": "cosine",
    },
)
def legal(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw sentences whose beginnings are not held out, some with a gap: tokens and targets.

    Unknown words are read but never asked for.
    """
    number = {word: index for index, word in enumerate(vocabulary)}
    pad = number[PAD]
    texts: list[list[str]] = []
    while len(texts) < batch:  # those that are held out are drawn again
        lines = sentences.draw(generator, batch, length, sentences.vocabulary)[0].tolist()
        for line, goes in zip(lines, torch.rand(batch, CLAUSES + 1, generator=generator).tolist()):
            words = with_fitting_predicates(
                [vocabulary[token] for token in line if token != pad], goes
            )
            if not is_kept_back(words):
                texts.append(words)
    rows = torch.full((batch, length + 1), pad)
    for row, (words, (gap, where, removed, inserted)) in enumerate(
        zip(texts, torch.rand(batch, 4, generator=generator).tolist())
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
