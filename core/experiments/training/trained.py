"""Answers and attention of a model in training, for one sequence."""

from dataclasses import dataclass

import torch

from core.experiments.forward import square_mask
from core.measure.stream_statistics import row_entropy
from core.model.parts.mask import restrict_to_window
from core.model.text import PAD
from core.model.trace import trace
from core.tasks import IGNORE, task
from core.train import State, model, start


@dataclass(frozen=True)
class Reading:
    """Answers and attention of a model for one sequence, float32 on the CPU."""

    answers: list[int]  # the word with the highest score at every place
    right: list[
        bool | None
    ]  # None where nothing is asked; False where the model gives no numbers any more
    probability: list[
        float
    ]  # that it gives to the right word, among those it chooses from; NaN where there is none
    patterns: list[torch.Tensor]  # per layer (H, T, T); empty without attention
    allowed: list[torch.Tensor]  # per layer (T, T) bool, which key each query may see
    is_word: torch.Tensor  # (T,) bool, False for padding

    def entropy(self, layer: int) -> torch.Tensor:
        """Return each head's mean attention entropy (bits) over real tokens: (H,)."""
        return row_entropy(self.patterns[layer][:, self.is_word]).mean(-1)


def untrained(state: State) -> State:
    """Return a new state of the same training, with its seed, before the first step."""
    return start(state.config, state.training, state.seed, state.machine)


def read(state: State, tokens: torch.Tensor, targets: torch.Tensor) -> Reading:
    """Run a training's model on one sequence (T,): its answers, which are right, and attention."""
    learnt = task[state.training.task]
    machine = state.machine
    device = machine.torch_device
    with torch.inference_mode():
        trained_model = model(state)
        with trace(sites=("pattern",)) as recorded, machine.autocast():
            logits = trained_model(tokens[None].to(device))[0].float().cpu()
        allowed = trained_model.attention_mask(tokens[None].to(device))
    scored = (targets != IGNORE).tolist()
    scores = logits.masked_fill(~learnt.choices(targets), -torch.inf)
    chances = scores.softmax(-1)
    answers = scores.argmax(-1)
    is_asked = learnt.answer_positions(targets).tolist()
    is_finite = ~logits.isnan().any(-1)
    length = len(tokens)
    is_word = torch.ones_like(tokens, dtype=torch.bool)
    if PAD in learnt.vocabulary:
        is_word = tokens != learnt.vocabulary.index(PAD)
    return Reading(
        answers.tolist(),
        [
            bool(is_finite[n] and answers[n] == targets[n]) if is_asked[n] else None
            for n in range(length)
        ],
        [chances[n, targets[n]].item() if scored[n] else float("nan") for n in range(length)],
        [pattern[0].float().cpu() for pattern in recorded.get("pattern", [])],
        [
            restrict_to_window(square_mask(allowed, length), state.config.window_in(layer))
            for layer in range(state.config.n_layers)
        ],
        is_word,
    )


def contrast(states: list[State], tokens: torch.Tensor, targets: torch.Tensor) -> int:
    """Return the index of the sequence (N, T) whose accuracy differs most between the states."""
    shares = []
    for state in states:
        learnt = task[state.training.task]
        is_asked = task[state.training.task].answer_positions(targets)
        with torch.inference_mode(), state.machine.autocast():
            logits = model(state)(tokens.to(state.machine.torch_device)).float().cpu()
        right = torch.zeros(targets.shape)
        right[is_asked] = learnt.right(logits, targets).float()
        shares.append(right.sum(1) / is_asked.sum(1).clamp(min=1))
    every = torch.stack(shares)
    return int((every.amax(0) - every.amin(0)).argmax())
