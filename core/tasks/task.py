"""Task: a small problem with known answers, and its facts for training and reports."""

import functools
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from core.model.config import Config
from core.model.parts.init import generator
from core.model.text import PAD
from core.settings.menu import Menu
from core.settings.setting import ConfigError

IGNORE = (
    -100
)  # a target that is not scored; torch.nn.functional.cross_entropy leaves it out by default
NOTHING = "·"  # how it is written in an example

Words = tuple[str, ...]
Drawn = tuple[torch.Tensor, torch.Tensor]  # tokens, targets: both int64 (batch, length)
Draw = Callable[[torch.Generator, int, int, Words], Drawn]  # of (stream, batch, length, vocabulary)
Share = Callable[[Words], float]
Variety = Callable[[int, Words], list[tuple[float, int]]]  # of (length, vocabulary)

task: Menu["Task"] = Menu("Task")


@dataclass(frozen=True, eq=False)
class Task:
    """Task: a function (generator, batch, length, vocabulary) to (tokens, targets), and facts.

    tokens and targets are int64 (batch, length): token number i is vocabulary[i], and a target is
    the token that the model should answer at that place, or IGNORE. All chance comes from the
    torch.Generator that is handed in.
    """

    draw: Draw
    mask: str  # the Config.mask under which the task makes sense
    length: int  # tokens of a sequence
    lengths: range  # what other lengths can be drawn
    vocabulary: Words
    marginal: Share  # of the most frequent target: what guessing without reading gets right
    needs: str  # the part it is said to need, in words
    without: dict[str, Any] = field(default_factory=dict)  # the settings that take this part out
    model: dict[str, Any] = field(
        default_factory=dict
    )  # changes to Config, with which it is learnt as well as can be
    training: dict[str, Any] = field(
        default_factory=dict
    )  # the budget in which it is: fields of core.train.Training
    best: float = 1.0  # best possible accuracy
    why: str = "the answer follows from what can be read"  # why not more, or why 1.0 can be reached
    held_out: float = (
        0.0  # share of all sequences that training never draws; 0: none are kept apart
    )
    until: tuple[
        str, ...
    ] = ()  # if given: for that counts how a sequence begins, up to the first of these words
    variety: Variety | None = None  # [(share of the draws, different sequences among them), …]
    memorised: bool = False  # whether training draws every sequence of the test, too
    remains: str = ""  # why more than chance is left without that part
    agreement: bool = (
        False  # whether a verb agrees with its subject: models of it are then asked for that
    )
    ends: str = ""  # if given: the word with which a text ends that a model of it goes on with
    texts: tuple[
        tuple[str, str], ...
    ] = ()  # if given: (title, text) of what a model of it can be given to read
    rivals: tuple[
        tuple[str, ...], ...
    ] = ()  # if given: only these words are scored, each against its group
    skill: str = ""  # what it asks of a model; columns of a matrix are grouped by it
    test: int = 64  # sequences on which accuracy is measured
    example_seed: int = 0
    # Raised when the same seed comes to draw other data: what was trained before is then another
    # training.
    revision: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "__name__", self.draw.__name__)
        object.__setattr__(self, "__doc__", self.draw.__doc__)

    def tested_on(self, length: int, drawn: int) -> str:
        """Describe what accuracy is measured on, such as "held-out sequences".

        Args:
            length: Tokens of a sequence.
            drawn: Number of sequences that training draws.
        """
        if self.memorised:
            return "training questions (memorisation)"
        if self.held_out:
            return "held-out sequences"
        met = self.share_seen(length, drawn)
        if met < 0.005:
            return "new sequences"
        return (
            "sequences seen in training"
            if met > 0.995
            else f"test sequences ({100 * met:.0f} % also seen in training)"
        )

    def share_seen(self, length: int, drawn: int) -> float:
        """Return the expected share of test sequences among `drawn` trained ones; 0 if unknown."""
        if self.held_out or self.variety is None:
            return 0.0
        return sum(
            share * -math.expm1(drawn * share * math.log1p(-1 / count)) if count > 1 else share
            for share, count in self.variety(length, self.vocabulary)
        )

    @property
    def chance(self) -> float:
        """Accuracy (share) of always giving the most frequent answer, without reading anything."""
        return self.marginal(self.vocabulary)

    @property
    def learnt_from(self) -> float:
        """Accuracy from which a run has learnt the task: halfway from chance to best."""
        return (self.chance + self.best) / 2

    def config(self, **changes: Any) -> Config:
        """Return the Config of the model that learns this task, with some settings changed."""
        return Config(**{"mask": self.mask, **self.model, **changes})

    def __call__(
        self,
        stream: torch.Generator,
        batch: int,
        length: int | None = None,
        vocabulary: Words | None = None,
        held_out: bool = False,
    ) -> Drawn:
        """Draw tokens and targets, both int64 (batch, length).

        Args:
            stream: Source of random numbers.
            batch: Number of sequences.
            length: Tokens of a sequence; None for the task's usual length.
            vocabulary: Words of the task; None for its own.
            held_out: Whether to draw only sequences that training never draws, each once, where the
                task has such a split.

        Raises:
            ConfigError: The length cannot be drawn.
        """
        length = length or self.length
        vocabulary = vocabulary or self.vocabulary
        self.check_length(length)
        if not self.held_out:
            return self.draw(stream, batch, length, vocabulary)
        batches: list[Drawn] = []
        hashes: set[tuple[int, ...]] = set()
        while sum(len(tokens) for tokens, _ in batches) < batch:
            tokens, targets = self.draw(stream, batch, length, vocabulary)
            is_wanted = is_held_out(tokens, vocabulary, self.held_out, self.until) == held_out
            if held_out:
                new = []
                for line in map(tuple, tokens[is_wanted].tolist()):
                    new.append(line not in hashes)
                    hashes.add(line)
                hashes = hashes if any(new) else set()  # there are no more: they come again
                is_wanted[is_wanted.clone()] = torch.tensor(new, dtype=torch.bool)
            batches.append((tokens[is_wanted], targets[is_wanted]))
        tokens, targets = (torch.cat(parts)[:batch] for parts in zip(*batches))
        return tokens, targets

    def check_length(self, length: int) -> None:
        """Raise ConfigError, `instead` the usual length, for a length that is not in `lengths`."""
        if length not in self.lengths:
            low = self.lengths[0]
            high = self.lengths[-1]
            step = f" in steps of {self.lengths.step}" if self.lengths.step > 1 else ""
            allowed = f"{low}" if low == high else f"from {low} to {high}{step}"
            raise ConfigError(
                "length",
                f"length is {length}; for {self.draw.__name__} it must be {allowed}.",
                self.length,
            )

    def answer_positions(self, targets: torch.Tensor) -> torch.Tensor:  # int (…) -> bool (…)
        """Return which positions are scored (bool): with a target, among the rivals if any."""
        scored = targets != IGNORE
        return scored & (self._group_of(targets) >= 0) if self.rivals else scored

    def choices(self, targets: torch.Tensor) -> torch.Tensor:  # int (…) -> bool (…, V)
        """Return candidates, bool (…, V): the target with its rivals; all where it has none."""
        if not self.rivals:
            return torch.ones(
                *targets.shape, len(self.vocabulary), dtype=torch.bool, device=targets.device
            )
        group = self._group_of(targets)[..., None]
        return (group < 0) | (
            group == _rival_groups(self.vocabulary, self.rivals).to(targets.device)
        )

    def _group_of(self, targets: torch.Tensor) -> torch.Tensor:
        """Return the index of the group of rivals of each target, -1 for none."""
        groups = _rival_groups(self.vocabulary, self.rivals).to(targets.device)
        return groups[targets.clamp(min=0)].where(targets != IGNORE, -1)

    def right(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return whether the best candidate is the target at each scored position: bool (n,).

        logits are (B, T, V), targets int (B, T). The n scored positions come row by row.
        """
        is_asked = self.answer_positions(targets)
        logits = logits[is_asked]
        targets = targets[is_asked]
        if self.rivals:
            logits = logits.masked_fill(~self.choices(targets), -torch.inf)
        return logits.argmax(-1) == targets

    def example(self) -> str:
        """Return one drawn sequence and its targets as one line of text; always the same."""
        tokens, targets = self(generator(self.example_seed, "example"), 1)
        has_no_padding = (
            tokens[0] != self.vocabulary.index(PAD) if PAD in self.vocabulary else tokens[0] >= 0
        )
        read = " ".join(self.vocabulary[token] for token in tokens[0, has_no_padding])
        answer = " ".join(
            NOTHING if target == IGNORE else self.vocabulary[target]
            for target in targets[0, has_no_padding]
        )
        return f"Example (seed {self.example_seed}): {read} → {answer}"


def register_task(
    label: str, help: str, listed: bool = True, **facts: Any
) -> Callable[[Draw], Task]:
    """Return a decorator that makes a drawing function a Task with `facts`, in the menu by name.

    An unlisted task is found by its name, but no menu offers it.
    """

    def enter(draw: Draw) -> Task:
        learnt = Task(draw, **facts)
        task.add(draw.__name__, learnt, label=label, help=help, listed=listed)
        return learnt

    return enter


def uniform(count_answers: Callable[[Words], int] = len) -> Share:
    """Return a function of the vocabulary: the chance of each of equally likely answers, 1 / n.

    Args:
        count_answers: Returns the number of answers from the vocabulary.
    """
    return lambda vocabulary: 1 / count_answers(vocabulary)


@functools.lru_cache(maxsize=64)
def _rival_groups(vocabulary: Words, rivals: tuple[Words, ...]) -> torch.Tensor:
    """Return the index of each word's group of rivals, -1 for none: (V,)."""
    group_of = {word: number for number, group in enumerate(rivals) for word in group}
    return torch.tensor([group_of.get(word, -1) for word in vocabulary])


def is_held_out(
    tokens: torch.Tensor, vocabulary: Words, share: float, until: Words = ()
) -> torch.Tensor:
    """Return which of (B, T) are held out, a `share`, by hash of words before `until`: bool (B).

    until: hash only the words before the first of these. Then no beginning of a held-out sequence
        that ends before one of them stands at the beginning of any other.
    """
    words = _hash_words(tuple(vocabulary))
    places = _hash_words(tuple(map(str, range(tokens.shape[1]))))
    product = words[tokens] * (places | 1)
    if until:
        ends = torch.tensor([word in until for word in vocabulary])
        product = product.masked_fill(ends[tokens].cummax(1).values, 0)
    return (product.sum(1) >> 32) % 1000 < 1000 * share  # the sum wraps around, on purpose


@functools.lru_cache(maxsize=64)
def _hash_words(words: Words) -> torch.Tensor:
    """Return a 63-bit hash per word: (V,)."""
    digests = [hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words]
    return torch.tensor([int.from_bytes(digest, "big") >> 1 for digest in digests])
