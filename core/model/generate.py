"""The next word: from scores to probabilities to a choice, again and again."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch

from core.model.knockout import Lesion
from core.model.kv_cache import KVCache
from core.model.parts.init import generator
from core.model.trace import Edit, trace
from core.model.transformer import Transformer
from core.settings.setting import ConfigError, Settings, setting

word_setting = partial(setting, group="Next token")
# a temperature below it is taken for 0: scores divided by it would leave the range of numbers
COLD = 1e-6


@dataclass(frozen=True)
class Sampling(Settings):
    """Sampling settings. Raises ConfigError for impossible values."""

    temperature: float = word_setting(
        1.0,
        "Temperature",
        "Divides the logits before the softmax. Below 1 sharpens, above 1 flattens the"
        " distribution. 0 = greedy.",
        low=0.0,
        high=100.0,
        step=0.1,
        top=3.0,
    )
    top_k: int = word_setting(
        0,
        "Top-k",
        "Sample from the k most likely tokens only (Fan et al., 2018). 0 = off.",
        low=0,
        high=100_000,
        step=1,
        top=50,
    )
    top_p: float = word_setting(
        1.0,
        "Top-p",
        "Nucleus sampling: sample from the smallest set of tokens whose total probability is at"
        " least p (Holtzman et al., 2020). 1 = off.",
        low=0.0,
        high=1.0,
        step=0.05,
    )
    draw: int = word_setting(
        0,
        "Random seed",
        "Seed for sampling. The same seed gives the same text.",
        low=0,
        high=2**31 - 1,
        step=1,
        top=99,
    )
    words: int = word_setting(
        24,
        "Max new tokens",
        "Maximum number of generated tokens.",
        low=1,
        high=200,
        step=1,
        top=60,
    )


def probabilities(
    logits: torch.Tensor, sampling: Sampling
) -> torch.Tensor:  # (V,) -> float64 (V,), to draw from
    """Return chances (V,) after temperature, top k, top p; ConfigError for non-finite logits."""
    logits = logits.double()
    if not bool(logits.isfinite().all()):
        raise ConfigError(
            "model", "The model produces infinite or NaN logits, so there is no next token."
        )
    if sampling.temperature < COLD:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    logits = logits / sampling.temperature
    if 0 < sampling.top_k < len(logits):
        logits = logits.masked_fill(logits < logits.topk(sampling.top_k).values[-1], -torch.inf)
    if sampling.top_p == 1:
        return logits.softmax(-1)
    chances, order = logits.softmax(-1).sort(descending=True, stable=True)
    before = (
        chances.cumsum(0) - chances
    )  # a word stays while those before it have not reached p; the first always
    chances = chances.where((before < sampling.top_p) | (torch.arange(len(chances)) == 0), 0.0)
    kept_chances = torch.zeros_like(chances).scatter(0, order, chances)
    return kept_chances / kept_chances.sum()


class Step(NamedTuple):
    """Sampled token with its probabilities."""

    token: int
    probability: float  # that the model gave it, before temperature, top k and top p
    chance: float  # with which it was drawn
    logits: torch.Tensor | None  # (V,), float32 on the CPU; None where they are not kept
    patterns: list[
        torch.Tensor
    ]  # per layer (H, tokens read): what was read to choose it, by the last word read


def generate(
    model: Transformer,
    ids: torch.Tensor | Sequence[int],
    sampling: Sampling,
    *edits: Edit,
    end_tokens: Collection[int] = (),
    cache: bool = True,
    context: int = 0,
) -> Iterator[Step]:
    """Yield a Step per token sampled after ids, to an end token (included) or sampling.words.

    The same choices for the same text and seed. edits: as for trace().
    cache: keep keys and values, where the model is causal; without, all words are computed again
    for each. context: how many tokens are read at most (0: all). When it is full it slides, and
    positions are counted from its first token. Raises ValueError where the text or its end is
    longer than learned positions reach.
    """
    draws = generator(sampling.draw, "generate")
    kv_cache = KVCache(model) if cache and not model.mask.looks_ahead else None
    ids = torch.as_tensor(ids, device=model.embed.device)
    for _ in range(sampling.words):
        read = ids[-context:]  # all of them where context is 0
        if len(read) < len(ids):
            # every token has moved to another position: nothing that was kept is right any more
            kv_cache = None
        n_cached = 0 if kv_cache is None else kv_cache.length
        placed = [
            replace(edit, start=n_cached) if isinstance(edit, Lesion) else edit for edit in edits
        ]
        with torch.inference_mode(), trace(*placed, sites=("pattern",)) as recorded:
            stream = model.run_blocks(read[None, n_cached:], kv_cache=kv_cache)
            last = stream[:, -1:]  # alone: the words to be scored may be a million
            logits = model.compute_logits(last)[0, 0].float().cpu()
        chances = probabilities(logits, sampling)
        token = int(torch.multinomial(chances, 1, generator=draws))
        # A copy, or what all words read would be kept with it.
        patterns = [
            pattern[0, :, -1].float().cpu().clone() for pattern in recorded.get("pattern", [])
        ]
        yield Step(
            token,
            logits.double().softmax(-1)[token].item(),
            chances[token].item(),
            logits,
            patterns,
        )
        if token in end_tokens:
            return
        ids = torch.cat([ids, torch.tensor([token], device=ids.device)])
