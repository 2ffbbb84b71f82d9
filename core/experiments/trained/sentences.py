"""Vectorised generator of the held-out legal sentences that core.tasks.sentences writes.

A Writer takes a random number for every choice. Few of its choices decide which clauses stand where
(the form of a sentence), all others only which words fill it. So every form is written once, with
those words left open; then the form of each row of numbers is found by walking a tree, and its
words are looked up, for all rows together.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from core.model.parts.init import generator
from core.model.text import PAD
from core.settings.cache import cached
from core.settings.progress import report_progress
from core.tasks import task
from core.tasks.sentences import BE, KINDS, LONGEST, MARKS, NOUNS, NUMBERS, Writer, is_kept_back

END = MARKS[-1]


@dataclass(frozen=True, eq=False)
class Place:
    """State of the grammar: which words may follow, and the state after each."""

    after: dict[frozenset[str], "Place"] = field(default_factory=dict)


@functools.cache
def grammar_states() -> tuple[Place, ...]:
    """Return all states of the grammar, the start first. Agreement in number is left open."""
    forms_by_kind = forms()
    places_found = [Place()]
    slots = np.stack(forms_by_kind.slots, -1)  # (nodes, words, 6)
    first = forms_by_kind.nodes[2]
    ends = np.flatnonzero(
        first == np.arange(len(first))
    )  # nodes from which the way goes nowhere else

    @functools.cache
    def words_of(start: int, step: int, several: int, numbers: int) -> frozenset[str]:
        return frozenset(
            forms_by_kind.words[start + step * n + m]
            for n in range(several)
            for m in range(numbers)
        )

    for form in slots[ends].tolist():
        now = places_found[0]
        for start, step, _, several, _, numbers in form:
            if not start:
                break  # padding
            words = words_of(start, step, several, numbers)
            if words not in now.after:
                places_found.append(Place())
                now.after[words] = places_found[-1]
            now = now.after[words]
    return tuple(places_found)


def following_words(words: Sequence[str]) -> set[str]:
    """Return the words that may follow `words`; after an unknown word, a sentence's first words.

    After unseen prefixes: the words that follow the last word anywhere; after an unknown word:
    those that begin a sentence.
    """
    lower = [word.lower() for word in words]
    begun = len(lower) - lower[::-1].index(END) if END in lower else 0
    now = [grammar_states()[0]]
    for word in lower[begun:]:
        now = [after for place in now for kind, after in place.after.items() if word in kind]
    if not now:
        last = lower[-1]
        now = [
            after
            for place in grammar_states()
            for kind, after in place.after.items()
            if last in kind
        ] or [grammar_states()[0]]
    return {word for place in now for kind in place.after for word in kind}


def group_words(words: Sequence[str]) -> list[tuple[str, list[str], bool]]:
    """Group the grammar's words: (kind, words, whether they can follow), those that can first."""
    can = following_words(words)
    split = [
        (kind, [word for word in clause if (word in can) == is_next], is_next)
        for is_next in (True, False)
        for kind, clause in KINDS.items()
    ]
    return [group for group in split if group[1]]


Choices = tuple[str | tuple[str, str], ...]  # words, or pairs of one and several

PORTION = 4096  # sentences written at once: what they need stays in the cache
BYTES = 64 + 8 * 16  # of a sentence of sixteen words, which it shares with all others


@dataclass(frozen=True)
class Open:
    """Open slot of a form: one of `words`, chosen by the random number at `place`.

    For pairs of singular and plural, the random number at `number` chooses between the two.
    """

    words: Choices
    place: int
    number: int | None = None


class UndecidedError(Exception):
    """Form that depends on a random number that was not given: its place, modulo `cases`."""

    def __init__(self, place: int, cases: int) -> None:
        self.place = place
        self.cases = cases


class FormWriter(Writer):
    """Writer of a form: takes the choices that decide the form, leaves words open."""

    def __init__(self, counts: tuple[int, ...]) -> None:
        super().__init__(range(NUMBERS))
        self.told = iter(counts)

    def pick(self, options: Sequence[Any]) -> Any:
        """Return a given choice, an Open word or a number's place; or raise UndecidedError."""
        place = next(self.numbers)
        if options == (0, 1):  # one or several: stands for it from here on
            return place
        if isinstance(options[0], str):
            return Open(tuple(options), place)
        case = next(self.told, None)
        if case is None:
            raise UndecidedError(place, len(options))
        return options[case]

    def noun(self, kind: str, number: Any) -> Any:
        """Return an open slot for a noun of this kind; random number `number` decides plural."""
        return Open(tuple(NOUNS[kind]), next(self.numbers), number)

    def be(self, number: Any) -> Any:
        """Return an open slot for "was" or "were", by the random number at place `number`."""
        return Open(BE, number)


@dataclass(frozen=True)
class Forms:
    """Tables of all forms that a sentence can have, in NumPy.

    From a node the way goes to node `first + number[place] % cases`; a form is a node from which it
    goes nowhere else. A word of a form is word number `start + step * (number[place] % cases) +
    number[which] % several` of `words`.
    """

    depth: int
    nodes: tuple[np.ndarray, ...]  # place, cases, first: (nodes) each
    slots: tuple[
        np.ndarray, ...
    ]  # start, step, place, cases, which, several: (nodes, LONGEST + 1) each
    words: tuple[str, ...]

    def write(self, numbers: np.ndarray, vocabulary: Sequence[str]) -> np.ndarray:
        """Turn random whole numbers (N, NUMBERS) into sentences of ids (N, LONGEST + 1), padded."""
        rows = np.arange(len(numbers))[:, None] * NUMBERS
        flat = numbers.astype(np.int32).ravel()
        node = np.zeros(len(numbers), dtype=np.int32)
        for _ in range(self.depth):
            place, cases, first = (table[node] for table in self.nodes)
            node = first + flat[rows[:, 0] + place] % cases
        start, step, place, cases, which, several = (table[node] for table in self.slots)
        flat_index = start + step * (flat[rows + place] % cases) + flat[rows + which] % several
        index = {word: token for token, word in enumerate(vocabulary)}
        written: np.ndarray = np.array([index[word] for word in self.words])[flat_index]
        return written


@functools.cache
def forms() -> Forms:
    """Return the tables of all forms of a sentence, built once."""
    nodes: list[tuple[int, int, int]] = []
    written: dict[int, Sequence[str | Open]] = {}
    counts: list[tuple[int, ...]] = [()]
    for node, choices in enumerate(counts):  # which grows on the way
        try:
            written[node] = FormWriter(choices).sentence()
            nodes.append((0, 1, node))
        except UndecidedError as missing:
            nodes.append((missing.place, missing.cases, len(counts)))
            counts += [(*choices, case) for case in range(missing.cases)]
    words = [PAD]
    starts: dict[Choices, int] = {}
    slots = np.tile(np.array([0, 0, 0, 1, 0, 1], dtype=np.int32), (len(nodes), LONGEST + 1, 1))
    for node, sentence in written.items():
        slots[node, : len(sentence)] = [_slot(word, words, starts) for word in sentence]
    of_nodes = tuple(np.array(nodes, dtype=np.int32).T.copy())
    return Forms(
        max(map(len, counts)), of_nodes, tuple(np.moveaxis(slots, -1, 0).copy()), tuple(words)
    )


def _slot(word: str | Open, words: list[str], starts: dict[Choices, int]) -> tuple[int, ...]:
    """Return a word's line of Forms.slots; add its words to `words` and `starts` if new.

    Args:
        word: The word of a form, or its open slot.
        words: All words so far, to which new ones are appended.
        starts: Index at which each slot's words start.
    """
    choices = (word,) if isinstance(word, str) else word.words
    if choices not in starts:
        starts[choices] = len(words)
        words += [
            form
            for choice in choices
            for form in ((choice,) if isinstance(choice, str) else choice)
        ]
    if isinstance(word, str):
        return starts[choices], 0, 0, 1, 0, 1
    if word.number is None:
        return starts[choices], 1, word.place, len(choices), 0, 1
    return starts[choices], 2, word.place, len(choices), word.number, 2


def draw(
    stream: torch.Generator, batch: int, length: int, vocabulary: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the ids of legal sentences, as their task does; the targets are the ids themselves."""
    numbers = torch.randint(2**31, (batch, NUMBERS), generator=stream)
    parts = [forms().write(part.numpy(), vocabulary) for part in torch.split(numbers, PORTION)]
    rows = torch.from_numpy(np.concatenate(parts))[:, :length]
    return rows, rows


@cached(megabytes=24, size=lambda texts: BYTES * len(texts))
def sentences(n: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """Return n different held-out legal sentences as words, up to the full stop (cached)."""
    learnt = replace(task["sentences"], draw=draw)
    stream = generator(seed, "knockout.sentences")
    unique: dict[tuple[str, ...], None] = {}
    end = learnt.vocabulary.index(".")
    while len(unique) < n:
        tokens, _ = learnt(stream, n, held_out=True)
        ends = (tokens == end).int().argmax(1) + 1
        rows = (
            tuple([learnt.vocabulary[token] for token in row[:length]])
            for row, length in zip(tokens.tolist(), ends.tolist())
        )
        unique |= dict.fromkeys(
            words for words in rows if words not in unique and is_kept_back(list(words))
        )
        report_progress(len(unique) / n, "drawing held-out sentences")
    return tuple(unique)[:n]
