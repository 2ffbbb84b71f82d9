"""Looking into a pass of a trained model: what each layer would already say, and what reaches a word through all of them."""

from collections.abc import Callable

import pandas as pd
import torch

from core.experiments.forward import Pass
from core.model.knockout import Cut
from core.model.transformer import Transformer
from core.settings.memory import some_rows


def reachable(forward_pass: Pass) -> list[torch.Tensor]:
    """After each layer, which words' streams can have come to which word at all: bool (T, T) each."""
    so_far, reached = torch.eye(len(forward_pass.tokens), dtype=torch.bool), []
    for layer in forward_pass.layers:
        step = forward_pass.allowed_in(layer)
        if forward_pass.config.residual_attention:
            step = step | torch.eye(len(step), dtype=torch.bool)
        so_far = (step.float() @ so_far.float()) > 0
        reached.append(so_far)
    return reached


@torch.inference_mode()
def logit_lens(model: Transformer, forward_pass: Pass, label: Callable[[int], str]) -> pd.DataFrame:
    """The next word as each layer's stream would have it, read through the last norm and the unembedding (nostalgebraist,
    2020): depth (0: the embedding, then after each layer), token (from 1), word (the likeliest), word_id (its number in the
    vocabulary: two may read alike), probability (of it), of_last (probability of what the model finally says).

    label: token number -> word.
    """

    def chances(stream: torch.Tensor) -> torch.Tensor:  # (T, D) -> (T, V)
        return model.read(stream[None].to(model.embed)).float().softmax(-1)[0].cpu()

    output, rows = forward_pass.output, []
    pieces = list(some_rows(len(output), len(model.vocabulary)))  # the words may be a million
    last = torch.cat([chances(output[piece]).argmax(-1) for piece in pieces])
    for depth, stream in enumerate([*forward_pass.sites["resid_pre"], output]):
        for piece in pieces:
            chance = chances(stream[piece])
            best, word = chance.max(-1)
            final = chance.gather(1, last[piece, None])[:, 0]
            for at, *each in zip(range(piece.start + 1, piece.stop + 1), word, best, final):
                rows.append((depth, at, label(int(each[0])), int(each[0]), each[1].item(), each[2].item()))
    return pd.DataFrame(rows, columns=["depth", "token", "word", "word_id", "probability", "of_last"])


def rollout(forward_pass: Pass, cuts: tuple[Cut, ...] = ()) -> list[torch.Tensor]:
    """Attention rollout (Abnar and Zuidema, 2020): after each layer, how much of every word's stream comes from which word
    if heads are averaged and a residual counts as much as attention: (T, T) each, rows that add up to 1.

    cuts: with which the pass was made. What stands in the place of a head that is knocked out comes from no word of this text.
    A row of zeros: nothing of any word is left.
    """
    rollouts: list[torch.Tensor] = []
    so_far: torch.Tensor | None = None
    residual = 0.5 if forward_pass.config.residual_attention else 0.0
    for layer, pattern in enumerate(forward_pass.sites.get("pattern", [])):
        lost = [cut for cut in cuts if cut.layer == layer]
        heard = torch.ones(len(pattern), 1, 1, dtype=torch.float64)
        heard[[cut.head for cut in lost if cut.part == "head"]] = 0.0
        if any("attn_out" in cut.sites() for cut in lost):
            heard[:] = 0.0
        mixed = (1 - residual) * (pattern.double() * heard).mean(0)
        mixed += residual * torch.eye(len(mixed), dtype=torch.float64)
        mixed /= mixed.sum(-1, keepdim=True).clamp_min(1e-12)
        so_far = mixed if so_far is None else mixed @ so_far
        rollouts.append(so_far)
    return rollouts
