"""A text that goes on: the next words of a block, each chosen after reading a context of limited length."""

from collections.abc import Sequence

from core.experiments.forward import known_to
from core.experiments.weights import weights
from core.model.config import Config
from core.model.cost import run_bytes
from core.model.generate import Sampling, Step, generate
from core.settings.cache import cached
from core.settings.device import Machine
from core.settings.memory import max_mb, room_for
from core.settings.progress import track

Text = tuple[tuple[str, ...], list[Step]]


def continuation(
    config: Config, tokens: Sequence[str], machine: Machine, kind: str, sampling: Sampling, context: int
) -> Text:
    """Let a text go on. Return the vocabulary and the steps.

    Args:
        tokens: the text, without padding. A model with random weights knows these words alone.
        kind: of weights, among core.experiments.weights.
        context: how many tokens are read at most; when it is full, it slides.

    Raises:
        ConfigError: there are no such weights, or the logits are not finite.
        MemoryLimit: it would need more memory than is allowed.
    """
    return _run(config.replace(padding=0), tuple(tokens), machine, kind, sampling, context)


def _bytes(text: Text) -> int:
    return sum(4 * pattern.numel() for step in text[1] for pattern in step.patterns)


@cached(megabytes=max_mb() / 64, size=_bytes)
def _run(
    config: Config, tokens: tuple[str, ...], machine: Machine, kind: str, sampling: Sampling, context: int
) -> Text:
    words = tuple(dict.fromkeys(tokens))
    vocabulary, numbers = known_to(kind, words)
    number = dict(zip(words, numbers))
    length = min(context, len(tokens) + sampling.words)
    patterns = 4 * sampling.words * config.n_layers * config.n_heads * length
    needed = run_bytes(config, length, len(vocabulary), machine.dtype) + patterns
    with room_for(needed, "This model and so many words"):
        model = weights[kind].model(config, vocabulary, config).requires_grad_(False)
        model = model.to(machine.torch_device, machine.precision)
        steps = generate(model, [number[token] for token in tokens], sampling, context=context)
        written = track(steps, sampling.words, f"{sampling.words} words of this model")
        return vocabulary, [step._replace(logits=None) for step in written]
