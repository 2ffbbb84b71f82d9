"""Prompt of a trained model: encoding, passes with and without ablations, next tokens."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import pandas as pd
import torch

from core.checkpoints.opened import Opened
from core.checkpoints.tokens import Words
from core.experiments.forward import Pass, run_recorded
from core.experiments.trained.knockout import Bench, bench, cached_effect
from core.experiments.trained.questions import find_partners
from core.model.cost import activation_bytes
from core.model.generate import Sampling, Step, generate, probabilities
from core.model.knockout import Cut, Lesion, Recorded, name_of
from core.model.text import MAX_CHARACTERS, MAX_TOKENS, shorten_token
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.memory import iterate_rows, room_for
from core.settings.progress import track
from core.settings.setting import ConfigError
from core.tasks import task
from core.tasks.sentences import BE, LONGEST

TEXT = (  # what stands before the verb; its subject is one
    "the defendant carrying the letters signed by the judges"
)
SUBJECT = "defendant"
RIGHT = BE[0]


@dataclass(frozen=True)
class Side:
    """Predictions at the verb of TEXT and accuracy, of the full or the ablated model."""

    chances: dict[str, float]  # was and were -> probability as the next word
    likeliest: dict[
        str, float
    ]  # the three most likely next tokens, and was and were -> probability, the largest first
    right: int  # held-out sentences, of all
    of: int

    @property
    def chosen(self) -> str:
        """Likelier of "was" and "were"."""
        return max(self.chances, key=self.chances.__getitem__)

    @property
    def wrong(self) -> bool:
        """Whether the likelier of "was" and "were" is the incorrect one."""
        return self.chosen != RIGHT


@dataclass(frozen=True)
class Flip:
    """Predictions at the verb of TEXT with and without a head, and the head's attention."""

    words: tuple[str, ...]
    weights: tuple[float, ...]  # of the head's attention, at the word before the verb, to each word
    whole: Side
    without: Side


def flip(opened: Opened, layer: int, head: int) -> Flip:
    """Compare was/were after TEXT, accuracy with/without a head (from 0); add its attention."""
    questions = bench(opened)
    cut = Cut(layer, "head", head)
    text = read(opened, TEXT)
    passes = [run_prompt(questions, text, cuts) for cuts in ((), (cut,))]
    last = len(text.ids) - 1
    sides = []
    for forward_pass, effect in zip(
        passes, (questions.baseline, cached_effect(questions, (cut,), "zero"))
    ):
        chances = next_token_logits(questions, forward_pass, last).double().softmax(-1)
        of_words = {word: chances[opened.model.vocabulary.index(word)].item() for word in BE}
        best = {
            opened.model.vocabulary[token_id]: chances[token_id].item()
            for token_id in chances.topk(3).indices.tolist()
        } | of_words
        likeliest = dict(sorted(best.items(), key=lambda item: -item[1]))
        sides.append(Side(of_words, likeliest, int(effect.correct.sum()), len(effect.correct)))
    weights = passes[0].sites["pattern"][layer][head, last]
    return Flip(text.labels, tuple(weights.tolist()), *sides)


def reachable(forward_pass: Pass) -> list[torch.Tensor]:
    """Return, per layer, which tokens (columns) may have influenced which (rows): bool (T, T).

    Cumulative: through all layers up to this one.
    """
    so_far = torch.eye(len(forward_pass.tokens), dtype=torch.bool)
    reached = []
    for layer in forward_pass.layers:
        step = forward_pass.allowed_in(layer)
        if forward_pass.config.residual_attention:
            step = step | torch.eye(len(step), dtype=torch.bool)
        so_far = (step.float() @ so_far.float()) > 0
        reached.append(so_far)
    return reached


@torch.inference_mode()
def logit_lens(model: Transformer, forward_pass: Pass, label: Callable[[int], str]) -> pd.DataFrame:
    """Tabulate likeliest next words by depth: depth, token, word, word_id, probability, of_last.

    Each layer's likeliest next word after each token (nostalgebraist, 2020). depth: 0 for the
    embedding; token: from 1; probability: a share; of_last: probability of the final prediction.

    Args:
        model: The model.
        forward_pass: Its recorded pass.
        label: Returns the text of a token id.
    """

    def chances(stream: torch.Tensor) -> torch.Tensor:  # (T, D) -> (T, V)
        return model.compute_logits(stream[None].to(model.embed)).float().softmax(-1)[0].cpu()

    output = forward_pass.output
    rows = []
    pieces = list(iterate_rows(len(output), len(model.vocabulary)))  # the words may be a million
    last = torch.cat([chances(output[piece]).argmax(-1) for piece in pieces])
    for depth, stream in enumerate([*forward_pass.sites["resid_pre"], output]):
        for piece in pieces:
            chance = chances(stream[piece])
            best, word = chance.max(-1)
            final = chance.gather(1, last[piece, None])[:, 0]
            for layer, *statistics in zip(
                range(piece.start + 1, piece.stop + 1), word, best, final
            ):
                rows.append(
                    (
                        depth,
                        layer,
                        label(int(statistics[0])),
                        int(statistics[0]),
                        statistics[1].item(),
                        statistics[2].item(),
                    )
                )
    return pd.DataFrame(
        rows, columns=["depth", "token", "word", "word_id", "probability", "of_last"]
    )


def rollout(forward_pass: Pass, cuts: tuple[Cut, ...] = ()) -> list[torch.Tensor]:
    """Return attention rollout (query, key) from the input to each layer's output: (T, T) each.

    Abnar and Zuidema, 2020. Heads are averaged, a residual counts as much as attention, rows sum to
    1. What replaces an ablated head comes from no token of this text. A row of zeros: nothing of
    any token is left.

    Args:
        forward_pass: The recorded pass.
        cuts: Ablations under which it was recorded.
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


LIKELIEST = 8  # next words of each variant that are shown
DRAWN = 80  # bytes for each word that the model knows, to sort their chances and draw one


@dataclass(frozen=True)
class Prompt:
    """Text as token ids, with labels, unknown tokens and notes on what was changed."""

    ids: tuple[int, ...]
    labels: tuple[str, ...]  # as typed
    unknown: tuple[int, ...]  # which of them the model does not know
    notes: tuple[str, ...]  # what had to be changed, in words


def read(opened: Opened, text: str) -> Prompt:
    """Encode the first tokens of a text, up to the model's length; ConfigError if none is known."""
    notes = []
    if len(text) > MAX_CHARACTERS:
        notes.append(
            f"The text has {len(text):,} characters; only the first {MAX_CHARACTERS:,} are used."
        )
    encoded = opened.tokens.encode(text[:MAX_CHARACTERS])
    if encoded.left_out:
        words = ", ".join(
            f"“{shorten_token(word)}”" for word in dict.fromkeys(encoded.left_out[:8])
        )
        notes.append(
            "Not in the vocabulary (skipped):"
            f" {words}{' and others' if len(encoded.left_out) > 8 else ''}."
        )
    limit = min(MAX_TOKENS, opened.longest or MAX_TOKENS)
    if len(encoded.ids) > limit:
        notes.append(f"The text has {len(encoded.ids):,} tokens; only the first {limit} are used.")
    if not encoded.ids:
        known_words = (
            [word for word in opened.model.vocabulary if word.isalpha()]
            if isinstance(opened.tokens, Words)
            else []
        )
        some = (
            f" The vocabulary has {len(opened.model.vocabulary):,} words, such as"
            f" {', '.join(known_words[:8])}."
            if known_words
            else ""
        )
        why = (
            "This text has no word of the model's vocabulary."
            if text.strip()
            else "Type some text."
        )
        raise ConfigError("prompt", f"{why}{some}")
    unknown = tuple(index for index in encoded.unknown if index < limit)
    return Prompt(tuple(encoded.ids[:limit]), tuple(encoded.labels[:limit]), unknown, tuple(notes))


def verb_of(prompt: Prompt) -> int | None:
    """Return the index of the last "was" or "were" (any case) from index 1 on; None without one."""
    words = [label.strip("␣").lower() for label in prompt.labels]
    return max((index for index, word in enumerate(words) if word in BE and index), default=None)


def lesion(bench: Bench, ids: Iterable[int], cuts: tuple[Cut, ...], mode: str) -> Lesion:
    """Return the edit for trace() that ablates parts; ConfigError if no text can be resampled."""
    if mode == "zero" or not cuts:
        return Lesion(cuts, "zero")
    if mode == "mean":
        return Lesion(cuts, "mean", bench.means)
    q = bench.questions
    texts = [row[:length].tolist() for row, length in zip(q.tokens, q.lengths.tolist())]
    other = find_partners([list(ids)], texts, 0)
    with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as recorded:
        bench.model.run_blocks(other.to(bench.device))
    return Lesion(
        cuts,
        "resample",
        {(s, n): Recorded(elsewhere=x) for s in recorded for n, x in enumerate(recorded[s])},
    )


def run_prompt(
    bench: Bench, prompt: Prompt, cuts: tuple[Cut, ...] = (), mode: str = "zero"
) -> Pass:
    """Run a text through the model with ablations, record everything, and cache the pass."""
    opened = bench.opened

    def make() -> tuple[Pass, int]:
        ids = torch.tensor([prompt.ids], device=bench.device)
        machine = Machine(device=bench.device.type)
        is_named_after_task = opened.task in task and opened.name == task.label(opened.task)
        words = f"{'Trained on' if is_named_after_task else 'Model'}: {opened.name}"
        if cuts:
            words += f", {name_of(cuts)}"
        edits = (lesion(bench, prompt.ids, cuts, mode),) if cuts else ()
        needed = 2 * sum(
            activation_bytes(opened.config, len(prompt.ids)).values()
        )  # as recorded, and as many under way
        with room_for(needed, "This model and text"):
            forward_pass = run_recorded(
                bench.model, ids, prompt.labels, len(prompt.ids), machine, words, edits=edits
            )
        return forward_pass, 4 * sum(
            x.numel() for tensor in forward_pass.sites.values() for x in tensor
        )

    return opened.results.get((bench.key, "pass", prompt, cuts, mode), make)


@torch.inference_mode()
def next_token_logits(bench: Bench, forward_pass: Pass, after: int) -> torch.Tensor:
    """Return the next-token logits after token index `after` (from 0): float32 (V,)."""
    return (
        bench.model.compute_logits(forward_pass.output[None, None, after].to(bench.device))[0, 0]
        .float()
        .cpu()
    )


def next_words(
    logits_by_variant: dict[str, torch.Tensor],
    sampling: Sampling,
    label: Callable[[int], str],
    included: Iterable[int] = (),
) -> pd.DataFrame:
    """Tabulate likely next tokens: variant, word, token (id), probability, chance if sampled.

    Rows: the tokens that are likeliest in any variant and those in `included`, by probability in
    the first variant. probability: before temperature, top k and top p; chance: of being sampled.
    """
    chances = {name: logits.double().softmax(-1) for name, logits in logits_by_variant.items()}
    drawn = {name: probabilities(logits, sampling) for name, logits in logits_by_variant.items()}
    shown_tokens = set(included)
    for probability in chances.values():
        shown_tokens.update(probability.topk(min(LIKELIEST, len(probability))).indices.tolist())
    first = next(iter(chances.values()))
    order = sorted(shown_tokens, key=lambda token: -first[token].item())
    rows = [
        (n, label(t), t, chances[n][t].item(), drawn[n][t].item())
        for t in order
        for n in logits_by_variant
    ]
    return pd.DataFrame(rows, columns=["variant", "word", "token", "probability", "chance"])


def continuation(
    bench: Bench,
    prompt: Prompt,
    after: int,
    sampling: Sampling,
    cuts: tuple[Cut, ...] = (),
    mode: str = "zero",
) -> Generator[Step]:
    """Yield Steps after tokens 0 to `after`, cached, logits None; ConfigError if cuts resample.

    Close the iterator if it is not read to its end: a large one holds its turn until then.
    """
    if cuts and mode == "resample":
        raise ConfigError(
            "mode",
            "Resample ablation needs the same position in another text, which generated text lacks."
            " Choose zero or mean.",
            "mean",
        )
    key = (bench.key, "text", prompt.ids[: after + 1], sampling, cuts, mode)
    before: list[Step] | None = bench.opened.results.peek(key)
    if before is not None:
        yield from before
        return
    room = (bench.opened.longest or MAX_TOKENS + sampling.words) - after - 1
    edits = (lesion(bench, prompt.ids, cuts, mode),) if cuts else ()
    written = []
    limit = Sampling(**{**sampling.__dict__, "words": max(1, min(sampling.words, room))})
    config = bench.opened.config
    length = after + 1 + limit.words
    pattern_bytes = 4 * limit.words * config.n_layers * config.n_heads * length
    drawn = DRAWN * len(bench.opened.model.vocabulary)
    with room_for(
        pattern_bytes + drawn + sum(activation_bytes(config, length).values()),
        "Generating this many tokens",
    ):
        steps = generate(
            bench.model, prompt.ids[: after + 1], limit, *edits, end_tokens=bench.opened.ends
        )
        for step in track(steps, limit.words, f"generating {limit.words} tokens"):
            written.append(
                step._replace(logits=None)
            )  # nobody asks for them, and the words may be a million
            yield written[-1]
    bench.opened.results.store(
        key, written, 4 * sum(p.numel() for s in written for p in s.patterns)
    )


def complete_text(bench: Bench, prompt: Prompt) -> list[str]:
    """Continue a text greedily, at most LONGEST tokens; return the new tokens' labels."""
    steps = continuation(
        bench, prompt, len(prompt.ids) - 1, Sampling(temperature=0.0, words=LONGEST)
    )
    return [bench.opened.tokens.label(step.token) for step in steps]
