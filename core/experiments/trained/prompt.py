"""One text before a trained model: what it is read as, the pass through it with and without knock-outs, the next word."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import pandas as pd
import torch

from core.checkpoints.opened import Opened
from core.checkpoints.tokens import Words
from core.experiments.forward import Pass, watched
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import partners
from core.model.cost import activations
from core.model.generate import Sampling, Step, generate, probabilities
from core.model.knockout import Cut, Lesion, Recorded, name_of
from core.model.text import MAX_CHARACTERS, MAX_TOKENS, shown
from core.model.trace import trace
from core.settings.device import Machine
from core.settings.memory import room_for
from core.settings.progress import track
from core.settings.setting import ConfigError
from core.tasks.sentences import BE

DRAWN = 80  # bytes for each word that the model knows, to sort their chances and draw one


@dataclass(frozen=True)
class Prompt:
    """A text as a model reads it."""

    ids: tuple[int, ...]
    labels: tuple[str, ...]  # as typed
    unknown: tuple[int, ...]  # which of them the model does not know
    notes: tuple[str, ...]  # what had to be changed, in words


def read(opened: Opened, text: str) -> Prompt:
    """Raises ConfigError for a text of which nothing can be read."""
    notes = []
    if len(text) > MAX_CHARACTERS:
        notes.append(f"text has {len(text):,} characters; the first {MAX_CHARACTERS:,} are read.")
    encoded = opened.tokens.encode(text[:MAX_CHARACTERS])
    if encoded.left_out:
        words = ", ".join(f"“{shown(word)}”" for word in dict.fromkeys(encoded.left_out[:8]))
        notes.append(
            f"This model has no word for {words}{' and others' if len(encoded.left_out) > 8 else ''}: left out."
        )
    most = min(MAX_TOKENS, opened.longest or MAX_TOKENS)
    if len(encoded.ids) > most:
        notes.append(f"text has {len(encoded.ids)} tokens; at most {most} are read, so it was cut after “{shown(encoded.labels[most - 1])}”.")  # fmt: skip
    if not encoded.ids:
        known = [word for word in opened.model.vocabulary if word.isalpha()] if isinstance(opened.tokens, Words) else []
        some = f" It knows {len(known)} words, among them {', '.join(known[:8])}." if known else ""
        raise ConfigError("prompt", f"The text holds no word that this model can read.{some}")
    unknown = tuple(at for at in encoded.unknown if at < most)
    return Prompt(tuple(encoded.ids[:most]), tuple(encoded.labels[:most]), unknown, tuple(notes))


def verb_of(prompt: Prompt) -> int | None:
    """The number of the last "was" or "were" with something before it, from 0."""
    words = [label.strip("␣").lower() for label in prompt.labels]
    return max((at for at, word in enumerate(words) if word in BE and at), default=None)


def lesion(bench: Bench, ids: Iterable[int], cuts: tuple[Cut, ...], mode: str) -> Lesion:
    """The knock-out for one text. Raises ConfigError where resampling finds no other text that is long enough."""
    if mode == "zero" or not cuts:
        return Lesion(cuts, "zero")
    if mode == "mean":
        return Lesion(cuts, "mean", bench.means)
    q = bench.questions
    texts = [row[:length].tolist() for row, length in zip(q.tokens, q.lengths.tolist())]
    other = partners([list(ids)], texts, 0)
    with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as recorded:
        bench.model.stream(other.to(bench.device))
    return Lesion(
        cuts, "resample", {(s, n): Recorded(elsewhere=x) for s in recorded for n, x in enumerate(recorded[s])}
    )


def look(bench: Bench, prompt: Prompt, cuts: tuple[Cut, ...] = (), mode: str = "zero") -> Pass:
    """The pass of a text, everything recorded; kept with the model, each under its own knock-out."""
    opened = bench.opened

    def make() -> tuple[Pass, int]:
        ids = torch.tensor([prompt.ids], device=bench.device)
        machine = Machine(device=bench.device.type)
        words = f"Trained: {opened.name}" + (f", {name_of(cuts)}" if cuts else "")
        edits = (lesion(bench, prompt.ids, cuts, mode),) if cuts else ()
        needed = 2 * sum(activations(opened.config, len(prompt.ids)).values())  # as recorded, and as many under way
        with room_for(needed, "This model and text"):
            forward_pass = watched(
                bench.model, ids, prompt.labels, len(prompt.ids), machine, words, edits=edits, layered=True
            )
        return forward_pass, 4 * sum(x.numel() for each in forward_pass.sites.values() for x in each)

    return opened.results.get((bench.key, "pass", prompt, cuts, mode), make)


@torch.inference_mode()
def logits(bench: Bench, forward_pass: Pass, after: int) -> torch.Tensor:
    """Scores of every word as the next one after token number `after` (from 0): float32 (V,)"""
    return bench.model.read(forward_pass.output[None, None, after].to(bench.device))[0, 0].float().cpu()


def next_words(
    scores: dict[str, torch.Tensor],
    sampling: Sampling,
    label: Callable[[int], str],
    many: int = 8,
    also: Iterable[int] = (),
) -> pd.DataFrame:
    """The likeliest next words of each variant: variant, word, token, probability (before temperature, top k and top p),
    chance (of being drawn). Those that are among the likeliest of any of them, and `also`; the likeliest of the first on top."""
    chances = {name: each.double().softmax(-1) for name, each in scores.items()}
    drawn = {name: probabilities(each, sampling) for name, each in scores.items()}
    kept = {token for each in chances.values() for token in each.topk(min(many, len(each))).indices.tolist()} | set(
        also
    )
    first = next(iter(chances.values()))
    order = sorted(kept, key=lambda token: -first[token].item())
    rows = [(n, label(t), t, chances[n][t].item(), drawn[n][t].item()) for t in order for n in scores]
    return pd.DataFrame(rows, columns=["variant", "word", "token", "probability", "chance"])


def continuation(
    bench: Bench, prompt: Prompt, after: int, sampling: Sampling, cuts: tuple[Cut, ...] = (), mode: str = "zero"
) -> Generator[Step]:
    """Steps of a text that goes on after token number `after` (from 0). An iterator, where the first visitor waits; what
    it gave is kept with the model. To be closed where it is not read to its end: a large one keeps its turn until then.
    Raises ConfigError for resampling, which needs another text as long as what is not written yet."""
    if cuts and mode == "resample":
        raise ConfigError("mode", "Resampling takes what stands at the same place of another text; a text that is being written has none. Choose zero or mean.", "mean")  # fmt: skip
    key = (bench.key, "text", prompt.ids[: after + 1], sampling, cuts, mode)
    before: list[Step] | None = bench.opened.results.peek(key)
    if before is not None:
        yield from before
        return
    room = (bench.opened.longest or MAX_TOKENS + sampling.words) - after - 1
    edits = (lesion(bench, prompt.ids, cuts, mode),) if cuts else ()
    written = []
    limit = Sampling(**{**sampling.__dict__, "words": max(1, min(sampling.words, room))})
    config, length = bench.opened.config, after + 1 + limit.words
    kept = 4 * limit.words * config.n_layers * config.n_heads * length
    drawn = DRAWN * len(bench.opened.model.vocabulary)
    with room_for(kept + drawn + sum(activations(config, length).values()), "This model and so many words"):
        steps = generate(bench.model, prompt.ids[: after + 1], limit, *edits, ends=bench.opened.ends)
        for step in track(steps, limit.words, f"{limit.words} words of this model"):
            written.append(step._replace(logits=None))  # nobody asks for them, and the words may be a million
            yield written[-1]
    bench.opened.results.put(key, written, 4 * sum(p.numel() for s in written for p in s.patterns))
