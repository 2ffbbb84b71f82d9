"""One head, one sentence: which of was and were the model chooses with the head and without it, and how often it is right."""

from dataclasses import dataclass

from core.checkpoints.opened import Opened
from core.experiments.trained import prompt
from core.experiments.trained.knockout import bench, measured
from core.model.knockout import Cut
from core.tasks.sentences import BE

TEXT = "the defendant carrying the letters signed by the judges"  # what stands before the verb; its subject is one
SUBJECT, RIGHT = "defendant", BE[0]


@dataclass(frozen=True)
class Side:
    """The model with the head, or without it."""

    chances: dict[str, float]  # was and were -> probability as the next word
    right: int  # held-out sentences, of all
    of: int

    @property
    def chosen(self) -> str:
        """The likelier of the two."""
        return max(self.chances, key=self.chances.__getitem__)

    @property
    def wrong(self) -> bool:
        return self.chosen != RIGHT


@dataclass(frozen=True)
class Flip:
    words: tuple[str, ...]
    weights: tuple[float, ...]  # of the head's attention, at the word before the verb, to each word
    whole: Side
    without: Side


def flip(opened: Opened, layer: int, head: int, many: int = 256) -> Flip:
    """layer, head: from 0."""
    asked, cut = bench(opened, many), Cut(layer, "head", head)
    read = prompt.read(opened, TEXT)
    passes = [prompt.look(asked, read, cuts) for cuts in ((), (cut,))]
    last = len(read.ids) - 1
    sides = []
    for one, effect in zip(passes, (asked.baseline, measured(asked, (cut,), "zero"))):
        chances = prompt.logits(asked, one, last).double().softmax(-1)
        of_words = {word: chances[opened.model.vocabulary.index(word)].item() for word in BE}
        sides.append(Side(of_words, int(effect.correct.sum()), len(effect.correct)))
    weights = passes[0].sites["pattern"][layer][head, last]
    return Flip(read.labels, tuple(weights.tolist()), *sides)
