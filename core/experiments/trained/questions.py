"""Held-out questions with a known right token, on which ablations are measured."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch

from core.checkpoints.opened import Opened
from core.checkpoints.tokens import Tokens, Words
from core.experiments.trained.sentences import sentences
from core.model.parts.init import generator
from core.model.text import PAD
from core.settings.setting import ConfigError
from core.tasks import task
from core.tasks.sentences import BE, find_anatomy

# (words of a sentence, its subject, its verb) -> token numbers up to the verb, (subject's token,
# verb's token)
Encode = Callable[[Sequence[str], int, int], tuple[list[int], tuple[int, int]]]

SEED = 0
POOL = 8  # times as many texts are drawn at most, to find for each another one of its length


@dataclass(frozen=True, eq=False)
class Questions:
    """Texts, the shortest first, and Q questions about them. All tensors int64 on the CPU.

    A question asks for the token after tokens[row, position]: `right`, rather than `wrong` (−1:
    whatever else the full model finds likeliest). Sentences also have their subject and their verb.
    """

    what: str  # in words: "256 held-out legal sentences"
    asks: str  # in words: "was vs. were"
    tokens: torch.Tensor  # (N, T), padded on the right
    elsewhere: torch.Tensor  # (N, T): for each text another one of the same length
    lengths: torch.Tensor  # (N)
    row: torch.Tensor  # (Q)
    position: torch.Tensor  # (Q)
    right: torch.Tensor  # (Q)
    wrong: torch.Tensor  # (Q)
    value: torch.Tensor  # (Q), by which accuracy is split
    by: str  # what that is: "words between subject and verb"
    among: tuple[int, ...] = ()  # the answers to choose from; (): all words
    subject: torch.Tensor | None = None  # (Q)
    verb: torch.Tensor | None = None  # (Q)
    across: torch.Tensor | None = (
        None  # (Q) bool: a clause and a noun of the other number stand between them
    )

    @cached_property
    def key(self) -> str:
        """Hash of all texts and questions."""
        digest = hashlib.blake2b(digest_size=12)
        for x in (
            self.tokens,
            self.elsewhere,
            self.lengths,
            self.row,
            self.position,
            self.right,
            self.wrong,
        ):
            digest.update(repr(x.shape).encode() + x.contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def guessing(self) -> float:
        """Share of questions for which the most frequent right answer is right."""
        return (self.right == self.right.mode().values).double().mean().item()

    @property
    def real(self) -> torch.Tensor:
        """Mask of the tokens that are not padding: bool (N, T)."""
        return torch.arange(self.tokens.shape[1]) < self.lengths[:, None]

    def per_text(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean over each text's questions, 0 without any: (…, Q) -> float64 (…, N)."""
        counts = torch.bincount(self.row, minlength=len(self.tokens)).clamp_min(1)
        sums = torch.zeros(*values.shape[:-1], len(self.tokens), dtype=torch.float64)
        return sums.index_add_(-1, self.row, values.double()) / counts


def questions(opened: Opened, n_texts: int = 256) -> Questions:
    """Return questions on up to n_texts of the model's task or legal sentences; or ConfigError.

    Legal sentences for a task of agreement, and for a model of no known task, if it has single
    tokens for "was" and "were".
    """
    if opened.learnt and not opened.learnt.agreement:
        return _task_questions(opened, n_texts)
    return _sentence_questions(opened, n_texts)


def _sentence_questions(opened: Opened, n_texts: int) -> Questions:
    """Ask for "was" or "were" in up to n_texts legal sentences; ConfigError if unsuitable.

    Texts that are too long for the model are left out.
    """
    tokens = opened.tokens
    encode: Encode = (
        partial(_encode_by_word, tokens)
        if isinstance(tokens, Words)
        else partial(_encode_by_piece, tokens)
    )
    texts = []
    questions = []
    for words in sentences(n_texts, SEED):
        places = find_anatomy(list(words))
        ids, positions = encode(words, places.subject, places.verb)
        if opened.longest and len(ids) > opened.longest:
            continue
        texts.append(ids)
        questions.append(
            (*positions, places.verb - places.subject - 1, places.clause and places.distractors > 0)
        )
    if not texts:
        raise ConfigError(
            "model",
            f"The model reads at most {opened.longest} tokens; no legal sentence is that short.",
        )
    both = (
        encode(f"the {noun} {verb} late .".split(), 1, 2)
        for noun, verb in zip(("judge", "judges"), BE)
    )
    was, were = (ids[verb] for ids, (_, verb) in both)
    order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
    texts = [texts[n] for n in order]
    questions = [questions[n] for n in order]
    subject, verb, between, across = (torch.tensor(column) for column in zip(*questions))
    right = torch.tensor([ids[index] for ids, index in zip(texts, verb.tolist())])
    padded_texts, lengths = pad_texts(texts, _padding_id(opened))
    spare = [
        encode(words, *find_anatomy(list(words))[:2])[0]
        for words in sentences(POOL * n_texts, SEED + 1)
    ]
    return Questions(
        what=f"{len(texts)} held-out legal sentences",
        asks=" vs. ".join(BE),
        tokens=padded_texts,
        elsewhere=find_partners(texts, spare, _padding_id(opened)),
        lengths=lengths,
        row=torch.arange(len(texts)),
        position=verb - 1,
        right=right,
        wrong=was + were - right,
        value=between,
        by="words between subject and verb",
        among=(was, were),
        subject=subject,
        verb=verb,
        across=across,
    )


def _encode_by_word(
    tokens: Words, words: Sequence[str], subject: int, verb: int
) -> tuple[list[int], tuple[int, int]]:
    """Encode a sentence through its verb: ids, (subject, verb) indices; ConfigError if unknown."""
    number = tokens._number
    missing = [word for word in words if word not in number]
    if missing:
        raise ConfigError(
            "model",
            f"The model does not know the word “{missing[0]}”, so it cannot be tested on legal"
            " sentences.",
        )
    return [number[word] for word in words[: verb + 1]], (subject, verb)


def _encode_by_piece(
    tokens: Tokens, words: Sequence[str], subject: int, verb: int
) -> tuple[list[int], tuple[int, int]]:
    """Encode through the verb: ids, last indices of subject, verb; ConfigError if verb is split."""

    def read(end: int) -> list[int]:
        text = " ".join(words[:end]).replace(" ,", ",").replace(" .", ".")
        return tokens.encode(text[:1].upper() + text[1:]).ids

    before = read(verb)
    with_verb = read(verb + 1)
    if with_verb[:-1] != before:
        raise ConfigError(
            "model",
            f"The model has no single token for “{words[verb]}”, so it cannot be tested on legal"
            " sentences.",
        )
    return with_verb, (len(read(subject + 1)) - 1, len(with_verb) - 1)


def _task_questions(opened: Opened, n_texts: int) -> Questions:
    """Return questions on held-out sequences of the model's task; ConfigError if too long."""
    learnt = task[opened.task]
    training = opened.about.get("training")
    document = (
        training if isinstance(training, dict) else {}
    )  # what its file says of its training may be anything
    length = document.get("length")
    length = length if type(length) is int and length in learnt.lengths else learnt.length
    if opened.longest and length > opened.longest:
        raise ConfigError(
            "model",
            f"The model reads at most {opened.longest} tokens; texts of its task, {opened.task},"
            f" have {length}.",
        )
    index_of = {word: index for index, word in enumerate(opened.model.vocabulary)}
    number = torch.tensor([index_of[word] for word in learnt.vocabulary])

    def draw(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        return learnt(generator(seed, f"knockout.{opened.task}"), n, length, held_out=True)

    tokens, targets = draw(n_texts, SEED)
    row, position = learnt.answer_positions(targets).nonzero(as_tuple=True)
    texts = number[tokens].tolist()
    spare = number[draw(n_texts, SEED + 1)[0]].tolist()
    # Whether the model may have met these texts.
    counts: list[Any] = [document.get("steps"), document.get("batch")]
    drawn = (
        math.prod(counts)
        if all(type(number) is int and 0 < number < 10**9 for number in counts)
        else 0
    )
    return Questions(
        what=f"{n_texts} texts of the task {opened.task}, {learnt.tested_on(length, drawn)}",
        asks="the correct answer",
        tokens=number[tokens],
        elsewhere=find_partners(texts, spare, 0),
        lengths=torch.full((n_texts,), length),
        row=row,
        position=position,
        right=number[targets[row, position]],
        wrong=torch.full_like(row, -1),
        value=position + 1,
        by="position in the sequence",
    )


def _padding_id(opened: Opened) -> int:
    """Return the id of the padding token; 0 without one."""
    return opened.model.vocabulary.index(PAD) if PAD in opened.model.vocabulary else 0


def pad_texts(texts: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad texts of ids on the right to one tensor (N, T); also return their lengths (N)."""
    rows = torch.full((len(texts), max(map(len, texts))), pad)
    for row, ids in enumerate(texts):
        rows[row, : len(ids)] = torch.tensor(ids)
    return rows, torch.tensor([len(ids) for ids in texts])


def find_partners(texts: list[list[int]], spare: list[list[int]], pad: int) -> torch.Tensor:
    """Find another text of each text's length, cut if need be: ids (N, T); ConfigError if none.

    Args:
        texts: Texts as ids, which may be each other's partners.
        spare: Further texts.
        pad: Id that fills shorter rows.
    """
    by_key: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for ids in dict.fromkeys(map(tuple, [*texts, *spare])):
        by_key[len(ids)].append(ids)
    longest = sorted((ids for group in by_key.values() for ids in group), key=len, reverse=True)
    pairs = []
    for index, ids in enumerate(map(tuple, texts)):
        group = by_key[len(ids)]
        others = [text for text in group[index % len(group) :] + group if text != ids]
        others = others or [
            text[: len(ids)]
            for text in longest
            if text[: len(ids)] != ids and len(text) >= len(ids)
        ]
        if not others:
            raise ConfigError(
                "mode",
                f"resampling needs another text of {len(ids)} tokens, and there is none.",
                "zero",
            )
        pairs.append(list(others[0]))
    tokens, _ = pad_texts(pairs, pad)
    return tokens
