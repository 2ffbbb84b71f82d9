"""What can come next in a sentence of the grammar, and how a text that stops in the middle ends: words to write with."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.experiments.trained.knockout import Bench
from core.experiments.trained.prompt import Prompt, continuation
from core.experiments.trained.sentences import forms
from core.model.generate import Sampling
from core.tasks.sentences import KINDS, LONGEST, MARKS

END = MARKS[-1]


@dataclass(frozen=True, eq=False)
class Place:
    """A place in the forms of sentences that begin alike: what may stand there -> the place after it."""

    after: dict[frozenset[str], "Place"] = field(default_factory=dict)


@functools.cache
def places() -> tuple[Place, ...]:
    """Every place, the beginning first. (Which noun is one and which are several, is left open: that is for the model to know.)"""
    known, found = forms(), [Place()]
    slots = np.stack(known.slots, -1)  # (nodes, words, 6)
    first = known.nodes[2]
    ends = np.flatnonzero(first == np.arange(len(first)))  # nodes from which the way goes nowhere else

    @functools.cache
    def words_of(start: int, step: int, several: int, numbers: int) -> frozenset[str]:
        return frozenset(known.words[start + step * n + m] for n in range(several) for m in range(numbers))

    for form in slots[ends].tolist():
        now = found[0]
        for start, step, _, several, _, numbers in form:
            if not start:
                break  # padding
            words = words_of(start, step, several, numbers)
            if words not in now.after:
                found.append(Place())
                now.after[words] = found[-1]
            now = now.after[words]
    return tuple(found)


def following(words: Sequence[str]) -> set[str]:
    """The words of the grammar that can come after these, by their kind. After what the grammar does not write, those that it
    writes after the last word anywhere; after a word that it does not know, those with which a sentence begins."""
    lower = [word.lower() for word in words]
    begun = len(lower) - lower[::-1].index(END) if END in lower else 0
    now = [places()[0]]
    for word in lower[begun:]:
        now = [after for place in now for kind, after in place.after.items() if word in kind]
    if not now:
        last = lower[-1]
        now = [after for place in places() for kind, after in place.after.items() if last in kind] or [places()[0]]
    return {word for place in now for kind in place.after for word in kind}


def offered(words: Sequence[str]) -> list[tuple[str, list[str], bool]]:
    """Every word of the grammar, by its kind: (kind, words, whether they can come next), those that can first."""
    can = following(words)
    split = [(kind, [word for word in there if (word in can) == is_next], is_next)
             for is_next in (True, False) for kind, there in KINDS.items()]  # fmt: skip
    return [group for group in split if group[1]]


def completed(bench: Bench, prompt: Prompt) -> list[str]:
    """The words with which the model ends the text, the likeliest each time, up to its full stop."""
    steps = continuation(bench, prompt, len(prompt.ids) - 1, Sampling(temperature=0.0, words=LONGEST))
    return [bench.opened.tokens.label(step.token) for step in steps]
