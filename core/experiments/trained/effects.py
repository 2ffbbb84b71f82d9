"""What a knock-out may change in a model's answers: each effect is one number per question."""

import math
from dataclasses import dataclass
from typing import Protocol

import torch

from core.settings.cache import lazily
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

    @lazily
    def log(self) -> torch.Tensor:
        return self.logits.double().log_softmax(-1)

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
    return answers.log.gather(1, answers.right[:, None])[:, 0].exp()


@effect
def difference(answers: Answers, whole: Answers) -> torch.Tensor:
    """Logit difference: score of the right word minus score of the wrong one."""
    return answers.of(answers.right) - answers.of(whole.wrong)


@effect(bounds=(0.0, math.inf), distance=True, unit="nats")
def divergence(answers: Answers, whole: Answers) -> torch.Tensor:
    """KL divergence: how far all next-word probabilities have moved from the whole model's, in nats; 0: not at all."""
    return (whole.log.exp() * (whole.log - answers.log)).sum(-1).clamp_min(0.0)
