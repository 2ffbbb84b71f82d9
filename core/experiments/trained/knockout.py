"""Effects of ablations on a model's answers over held-out texts, paired by text."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from core.checkpoints.opened import Opened
from core.experiments.trained.questions import Questions, questions
from core.model.attention import Memory
from core.model.cost import activation_bytes
from core.model.knockout import Cut, Lesion, Recorded, list_cuts, name_of
from core.model.parts.placement import ON_OUTPUT
from core.model.trace import trace
from core.settings.memory import check_memory, iterate_rows, max_mb, room_for
from core.settings.menu import Menu
from core.settings.progress import hold_lock, report_as, track
from core.settings.wording import count

# (answers of a model, of the whole model) -> one number per question. bounds: of a change; share:
# of all, shown in percent; flips: only ever 0 or 1 for one question; distance: from the whole
# model, 0 for itself; unit: of what is no share.
effect: Menu[Any] = Menu(
    "Effect", bounds=(-math.inf, math.inf), share=False, flips=False, distance=False, unit=""
)


@dataclass(frozen=True, eq=False)
class Answers:
    """Logits at every question (float32, (Q, V)), and the right and wrong token of each."""

    logits: torch.Tensor
    right: torch.Tensor  # (Q)
    wrong: torch.Tensor  # (Q)
    among: tuple[int, ...]

    def log_probabilities(self, rows: slice) -> torch.Tensor:
        """Return log probabilities of every token for some questions: float64 (rows, V)."""
        return self.logits[rows].double().log_softmax(-1)

    def logits_of(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Return the logit of one token per question: float64 (Q,)."""
        return self.logits.gather(1, token_ids[:, None])[:, 0].double()


@effect.register(
    "accuracy",
    label="Accuracy",
    help="share of correct answers in a text, averaged over texts.",
    bounds=(-1.0, 1.0),
    share=True,
    flips=True,
)
def accuracy(answers: Answers, baseline: Answers) -> torch.Tensor:
    """Return 1 where the likeliest token, of `among` if it is given, is right, else 0: (Q,)."""
    logits = answers.logits
    if answers.among:
        choice = torch.tensor(answers.among, device=logits.device)
        return (choice[logits[:, choice].argmax(-1)] == answers.right).double()
    return (logits.argmax(-1) == answers.right).double()


@effect.register(
    "probability",
    label="Probability",
    help="probability of the correct token.",
    bounds=(-1.0, 1.0),
    share=True,
)
def probability(answers: Answers, baseline: Answers) -> torch.Tensor:
    """Return the probability of each right token among all tokens: float64 (Q,)."""
    return _compute_by_rows(
        answers,
        lambda rows: (
            answers.log_probabilities(rows).gather(1, answers.right[rows, None])[:, 0].exp()
        ),
    )


@effect.register(
    "difference",
    label="Logit difference",
    help="logit of the correct token minus logit of the wrong one.",
)
def logit_difference(answers: Answers, baseline: Answers) -> torch.Tensor:
    """Return the logit of the right token minus that of the baseline's wrong one: float64 (Q,).

    Both logits are those of `answers`.
    """
    return answers.logits_of(answers.right) - answers.logits_of(baseline.wrong)


@effect.register(
    "divergence",
    label="KL divergence",
    help="divergence of the next-token distribution from the full model's, in nats. 0 = identical.",
    bounds=(0.0, math.inf),
    distance=True,
    unit="nats",
)
def divergence(answers: Answers, baseline: Answers) -> torch.Tensor:
    """Return KL(full model ‖ answers) of the next token in nats: float64 (Q,)."""

    def divergence_of(rows: slice) -> torch.Tensor:
        before = baseline.log_probabilities(rows)
        return (before.exp() * (before - answers.log_probabilities(rows))).sum(-1).clamp_min(0.0)

    return _compute_by_rows(answers, divergence_of)


def _compute_by_rows(answers: Answers, call: Callable[[slice], torch.Tensor]) -> torch.Tensor:
    """Call a function with slices of questions and concatenate its results: (Q,)."""
    return torch.cat(
        [call(rows) for rows in iterate_rows(len(answers.logits), answers.logits.shape[1])]
    )


SLICE = 64  # texts at once: what they need stays in the cache
# texts that must reach a position for a mean of its own: of fewer, each is too large a part of it
ENOUGH = 8

T = TypeVar("T")
Sites = dict[tuple[str, int], torch.Tensor]  # (site, layer) -> what was seen there
Slice = tuple[int, int, torch.Tensor, int]  # first text, last + 1, their questions, tokens to read
Recordings = dict[tuple[str, int], Recorded]  # (site, layer) -> what stands there elsewhere


class Written(Sites):
    """Outputs of every part at the asked positions, recorded as the last edit for trace()."""

    SITES = ("embed", "z", "attn_raw", "attn_out", "mlp_raw", "mlp_out")

    def __init__(self, row: torch.Tensor, position: torch.Tensor, first: int = 0) -> None:
        super().__init__()
        self.row = row
        self.position = position
        self.first = first

    def __call__(self, site: str, layer: int, x: torch.Tensor) -> None:
        """Store the values of a tensor at the asked positions."""
        if site in self.SITES:
            self[site, layer + self.first] = (
                x[self.row, :, self.position] if site == "z" else x[self.row, self.position]
            )


@dataclass(frozen=True, eq=False)
class Effect:
    """Effects of one ablation: one value per text (float64, N), and accuracy per question."""

    cuts: tuple[Cut, ...]
    mode: str
    values: dict[str, torch.Tensor]
    correct: torch.Tensor  # (Q)
    written: (
        Sites  # by every part at the places asked, (Q, …); nothing of one that belongs to a sweep
    )

    @property
    def name(self) -> str:
        """Ablated parts as on screen, by layer: "− FFN 1, − L2H3"; "full model" for none."""
        return name_of(self.cuts)


class Bench:
    """Model with its questions, baseline answers, replacement activations and effects.

    Nothing in it changes once it is made, so several users may share one. key: of its questions;
    their results are cached under it, without the bench.
    """

    def __init__(self, opened: Opened, questions: Questions) -> None:
        self.opened = opened
        self.model = opened.model
        self.questions = questions
        self.key = questions.key
        self.device = opened.model.embed.device
        self.needed = check_room(opened, questions)
        self.slices: list[Slice] = []
        size = sum(activation_bytes(self.model.config, questions.tokens.shape[1]).values())
        texts = max(
            1, min(SLICE, (max_mb() << 19) // size)
        )  # half of what one run may use, for what is recorded
        for first in range(0, len(questions.tokens), texts):
            end = min(first + texts, len(questions.tokens))
            indices = ((questions.row >= first) & (questions.row < end)).nonzero()[:, 0]
            self.slices.append((first, end, indices, int(questions.lengths[first:end].max())))
        self._recording = threading.Lock()
        self._recorded: list[Recordings] | None = None
        self.streams: list[list[torch.Tensor]] = []  # slice -> what enters each block, (n, T, D)
        self.patterns: list[
            torch.Tensor
        ] = []  # layer -> of the place asked and of the word after it: (2, Q, H, T)
        with room_for(self.needed, "This model"):
            begun = time.perf_counter()
            self.whole, written = self._measure_baseline()
            self.seconds = time.perf_counter() - begun  # that the whole model took for all texts
            self.baseline = self._make_effect((), "zero", self.whole, written)

    @torch.inference_mode()
    def _measure_baseline(self) -> tuple[Answers, Sites]:
        """Run the full model; store streams and patterns, return answers and part outputs."""
        q = self.questions
        answers = []
        rows = []
        written = []
        for first, end, indices, width in self._track_slices(self.slices):
            tokens = q.tokens[first:end, :width].to(self.device)
            row = q.row[indices] - first
            position = q.position[indices]
            written.append(Written(row, position))
            with trace(written[-1], sites=("resid_pre", "pattern")) as recorded:
                stream = self.model.run_blocks(tokens, self._real_tokens(first, end, width))
            self.streams.append(recorded["resid_pre"])
            answers.append(self.model.compute_logits(stream[row, position]).float().cpu())
            both = torch.stack([position, (position + 1).clamp(max=width - 1)])
            short = (0, q.tokens.shape[1] - width)
            read = [x[row, :, both].float().cpu() for x in recorded.get("pattern", [])]
            rows.append([torch.nn.functional.pad(x, short) for x in read])
        self.patterns = [torch.cat(patterns, 1) for patterns in zip(*rows)]
        logits = torch.cat(answers)
        # What each question calls wrong, or the likeliest word that is not right.
        others = logits.scatter(1, q.right[:, None], -torch.inf)
        wrong = q.wrong.where(q.wrong >= 0, others.argmax(-1))
        return Answers(logits, q.right, wrong, q.among), _concatenate_slices(written)

    def _track_slices(self, slices: Iterable[T]) -> Iterator[T]:
        """Iterate over slices of the texts and report progress."""
        return track(
            slices,
            len(self.slices),
            f"Running {count(len(self.questions.tokens), 'text')} through this model",
        )

    def _real_tokens(self, first: int, end: int, width: int) -> torch.Tensor | None:
        """Return which tokens of a slice are not padding; None if a causal mask hides padding."""
        return (
            self.questions.real[first:end, :width].to(self.device)
            if self.model.mask.looks_ahead
            else None
        )

    @property
    def recorded(self) -> list[Recordings]:
        """Replacement activations for each slice, recorded at the first access (can block)."""
        with hold_lock(self._recording, "waiting for an identical request"):
            if self._recorded is None:
                with room_for(self.needed, "This model"), torch.inference_mode():
                    self._recorded = self._record()
            return self._recorded

    def _record(self) -> list[Recordings]:
        """Record the activations that replace ablated ones: means by position, other texts."""
        sites = ("z", "attn_out", "mlp_out")
        others = []
        real = self.questions.real
        sums: Sites = {}  # (site, layer) -> over all texts, by position: (T, d) or (H, T, d_head)
        for first, end, _, width in self._track_slices(self.slices):
            padding = ~real[first:end, :width].to(self.device)
            for tokens in (self.questions.tokens, self.questions.elsewhere):
                with trace(sites=sites) as taps:
                    self.model.run_blocks(
                        tokens[first:end, :width].to(self.device),
                        self._real_tokens(first, end, width),
                    )
                recorded = {(site, layer): x for site in taps for layer, x in enumerate(taps[site])}
                if tokens is self.questions.elsewhere:
                    others.append(recorded)
                    continue
                for key, x in recorded.items():
                    hidden = padding[:, None, :, None] if key[0] == "z" else padding[..., None]
                    # On the CPU: some GPUs have no float64.
                    total = x.masked_fill(hidden, 0).cpu().sum(0, dtype=torch.float64)
                    total = torch.nn.functional.pad(total, (0, 0, 0, real.shape[1] - width))
                    sums[key] = sums.get(key, 0) + total
        means = {key: self._mean_by_position(total) for key, total in sums.items()}
        return [
            {key: Recorded(means[key], x) for key, x in recorded.items()} for recorded in others
        ]

    @property
    def positions_with_means(self) -> int:
        """Number of leading positions with a mean of their own: ENOUGH texts reach them."""
        return int((self.questions.real.sum(0) >= ENOUGH).sum())

    def _mean_by_position(self, sums: torch.Tensor) -> torch.Tensor:
        """Return float32 means by position, and at the end one for all that too few texts reach.

        Args:
            sums: over all texts, float64 (…, T, d).
        """
        texts = self.questions.real.sum(0)
        replaced = self.positions_with_means
        means = sums[..., :replaced, :] / texts[:replaced, None]
        # From the last position with a mean of its own on, so that enough texts stand behind the
        # shared mean, too.
        late = slice(max(0, replaced - 1), None)
        shared = sums[..., late, :].sum(-2, keepdim=True) / texts[late].sum()
        return torch.cat([means, shared], -2).float()

    @property
    def means(self) -> Recordings:
        """Mean activations by position, for a text that is not among the questions."""
        return {key: Recorded(record.mean) for key, record in self.recorded[0].items()}

    def effect(self, chosen: tuple[Cut, ...], mode: str) -> Effect:
        """Run the model with parts ablated together (not cached); without parts: the baseline."""
        if not chosen:
            return self.baseline
        recorded = self.recorded if mode != "zero" else []
        q = self.questions
        logits = []
        written = []
        # All layers before the first cut are as they were, unless early layers leave something for
        # late ones.
        begin = min(cut.layer for cut in chosen)
        if self.model.config.skips or self.model.config.value_residual:
            begin = 0
        with room_for(self.needed, "This model"), torch.inference_mode():
            for index, (first, end, indices, width) in self._track_slices(enumerate(self.slices)):
                x = self.streams[index][begin]
                row = q.row[indices] - first
                position = q.position[indices]
                allowed = self.model.attention_mask(
                    torch.empty(1, width, device=self.device), self._real_tokens(first, end, width)
                )
                written.append(Written(row, position, begin))
                memory = Memory()
                lesion = Lesion(chosen, mode, recorded[index] if recorded else {}, begin)
                with trace(lesion, written[-1], sites=()):
                    for layer in range(begin, self.model.config.n_layers):
                        x = self.model.run_layer(layer, x, allowed, memory)
                logits.append(self.model.compute_logits(x[row, position]).float().cpu())
            answers = Answers(torch.cat(logits), q.right, self.whole.wrong, q.among)
            return self._make_effect(
                chosen, mode, answers, self.baseline.written | _concatenate_slices(written)
            )

    def _make_effect(
        self, chosen: tuple[Cut, ...], mode: str, answers: Answers, written: Sites
    ) -> Effect:
        """Compute the effects of an ablation from its answers."""
        scores_of = {name: call(answers, self.whole) for name, call in effect.items()}
        values = {
            name: self.questions.per_text(per_question) for name, per_question in scores_of.items()
        }
        return Effect(chosen, mode, values, scores_of["accuracy"], written)

    def sweep(self, mode: str) -> Iterator[Effect]:
        """Yield the effect of ablating each part of list_cuts() alone; its `written` is empty."""
        every = list_cuts(self.model.config)
        for done, cut in enumerate(every):
            with report_as(done / len(every), f"{cut.name}: {done} of {len(every)} parts"):
                effect = replace(self.effect((cut,), mode), written={})
            yield effect

    @property
    def sweep_seconds(self) -> float:
        """Estimated seconds of a sweep; each part costs the layers above it."""
        return len(list_cuts(self.model.config)) * self.seconds / 2


def check_room(opened: Opened, q: Questions) -> int:
    """Return the bytes a bench needs, the sum of sizes(); MemoryLimitError if they are too many."""
    needed = sum(sizes(opened, q))
    check_memory(
        needed,
        f"Running {count(len(q.tokens), 'text')} through this model",
        "Choose fewer sentences.",
    )
    return needed


def sizes(opened: Opened, q: Questions) -> tuple[int, int, int, int]:
    """Return the bytes of streams, recorded replacements, part outputs and answers."""
    c = opened.config
    texts, width = q.tokens.shape
    n_questions = len(q.right)
    streams = texts * width * c.d_model * c.n_layers
    recorded = (texts + 1) * width * (c.n_heads * c.d_head + 2 * c.d_model) * c.n_layers
    # What each part wrote, and whom it read.
    raw = ON_OUTPUT in c.part("placement").norms or c.residual_scale != "none"
    parts = (
        n_questions * c.n_layers * ((2 + 2 * raw) * c.d_model + c.n_heads * (c.d_head + 2 * width))
    )
    # Of the whole model; and as they come, joined, and without the right ones.
    answers = 4 * n_questions * len(opened.model.vocabulary)
    return 4 * streams, 4 * recorded, 4 * parts, 4 * answers


def _concatenate_slices(written: list[Written]) -> Sites:
    """Concatenate the outputs of all slices, site by site."""
    return {key: torch.cat([part[key] for part in written]) for key in written[0]}


def bench(opened: Opened, n_texts: int = 256) -> Bench:
    """Return a bench on up to n_texts held-out texts, cached; ConfigError for unsuitable models."""

    def make() -> tuple[Bench, int]:
        opened_bench = Bench(opened, questions(opened, n_texts))
        return opened_bench, sum(sizes(opened, opened_bench.questions))

    return opened.results.get(("bench", n_texts), make)


def cached_effect(bench: Bench, chosen: tuple[Cut, ...], mode: str) -> Effect:
    """Return the effect of ablating these parts, measured now or from the model's cache."""

    def make() -> tuple[Effect, int]:
        effect = bench.effect(chosen, mode)
        return effect, 64 * len(bench.questions.tokens) + 4 * sum(
            x.numel() for x in effect.written.values()
        )

    return bench.opened.results.get((bench.key, chosen, mode), make)
