"""What a knock-out may change in a model's answers: each effect is one number per question."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

from core.settings.memory import some_rows
from core.settings.menu import Menu


class Change(Protocol):
    """(answers of a model, of the whole model) -> one number per question."""

    bounds: tuple[float, float]  # of a change
    share: bool  # of all, shown in percent
    flips: bool  # only ever 0 or 1 for one question
    distance: bool  # from the whole model, 0 for itself
    unit: str  # of what is no share

    def __call__(self, answers: "Answers", whole: "Answers", /) -> torch.Tensor: ...


effect: Menu[Change] = Menu("Effect", bounds=(-math.inf, math.inf), share=False, flips=False, distance=False, unit="")


@dataclass(frozen=True, eq=False)
class Answers:
    """Scores of every word at every place asked: float32 (Q, V); the questions; and what the whole model's strongest
    wrong word is where a question names none."""

    logits: torch.Tensor
    right: torch.Tensor  # (Q)
    wrong: torch.Tensor  # (Q)
    among: tuple[int, ...]

    def log(self, rows: slice) -> torch.Tensor:
        """Of some questions: ln(probability of every word), float64 (rows, V)."""
        return self.logits[rows].double().log_softmax(-1)

    def of(self, words: torch.Tensor) -> torch.Tensor:
        return self.logits.gather(1, words[:, None])[:, 0].double()


@effect(bounds=(-1.0, 1.0), share=True, flips=True)
def accuracy(answers: Answers, whole: Answers) -> torch.Tensor:
    """Accuracy: share of a text's questions to which the right answer has the highest score, averaged over texts."""
    logits = answers.logits
    if answers.among:
        choice = torch.tensor(answers.among, device=logits.device)
        return (choice[logits[:, choice].argmax(-1)] == answers.right).double()
    return (logits.argmax(-1) == answers.right).double()


@effect(bounds=(-1.0, 1.0), share=True)
def probability(answers: Answers, whole: Answers) -> torch.Tensor:
    """Probability: what the model gives to the right word, among all words."""
    return _by_rows(answers, lambda rows: answers.log(rows).gather(1, answers.right[rows, None])[:, 0].exp())


@effect
def difference(answers: Answers, whole: Answers) -> torch.Tensor:
    """Logit difference: score of the right word minus score of the wrong one."""
    return answers.of(answers.right) - answers.of(whole.wrong)


@effect(bounds=(0.0, math.inf), distance=True, unit="nats")
def divergence(answers: Answers, whole: Answers) -> torch.Tensor:
    """KL divergence: how far all next-word probabilities have moved from the whole model's, in nats; 0: not at all."""

    def of(rows: slice) -> torch.Tensor:
        before = whole.log(rows)
        return (before.exp() * (before - answers.log(rows))).sum(-1).clamp_min(0.0)

    return _by_rows(answers, of)


def _by_rows(answers: Answers, of: Callable[[slice], torch.Tensor]) -> torch.Tensor:
    """What is computed of some questions at a time: the words may be a million, and their chances take eight bytes each."""
    return torch.cat([of(rows) for rows in some_rows(len(answers.logits), answers.logits.shape[1])])
