"""Readings: what lessons can measure, with a link's parameters.

A reading returns one number per seed, or per sentence; a single number is exact: it does not
depend on random numbers.
"""

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import torch

from core.checkpoints import family
from core.experiments.block.positions import compare_word_orders
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.forward import Pass, forward
from core.experiments.trained.knockout import Bench, bench
from core.experiments.trained.knockout import cached_effect as knocked_out
from core.experiments.trained.prompt import next_token_logits, read, run_prompt
from core.experiments.trained.tables import attention_to_subject as subject_readings
from core.experiments.trained.tables import compare_texts
from core.experiments.training.plan import BASELINE
from core.measure.intervals import ANYTHING, Interval, Within, interval
from core.model import cost
from core.model.config import Config
from core.model.generate import Sampling, probabilities
from core.model.knockout import Cut, list_cuts
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.setting import ConfigError, Settings
from core.study.plan import StudyError
from core.study.shipped import table_of
from core.study.summary import read_summary
from core.teaching.claims import Evidence
from core.train import Row
from core.train.match import late_loss

Params = Mapping[str, str]
Curve = Mapping[int, Mapping[int, float]]  # seed -> pass or step -> number
Kind = TypeVar("Kind", bound=Settings)

CPU = Machine(device="cpu")
SEEDS = range(10)  # of random weights
TEXT = "the court held that the defendant , who had signed the contracts , was liable .".split()
TURNED = ("dog", "bites", "man")
LONGEST = 100_000  # words of a text whose cost is computed
EXACT = ""
SEED = "seed"
SENTENCE = "sentence"
SHARE = (0.0, 1.0)
COSINE = (-1.0, 1.0)
POSITIVE = (0.0, math.inf)


@dataclass(frozen=True)
class Measured:
    """Numbers of a reading.

    Args:
        values: One number for each seed or sentence.
        found: Their mean with its interval.
        per: Unit of repetition: SEED, SENTENCE or EXACT.
        curve: The curve that ends in the values, where there is one.
    """

    values: Mapping[int, float]
    found: Interval
    per: str = SEED
    curve: Curve | None = None


class Reading(Protocol):
    """Entry of the menu of readings.

    Attributes:
        unit: Unit of its numbers (core/teaching/lessons/wording.py).
        within: Range of possible values.
        curve: Horizontal axis of its curve; "" without one.
        takes: Names of its parameters.
    """

    unit: str
    within: Within
    curve: str
    takes: Collection[str]

    def __call__(self, params: Params, /) -> Measured:
        """Measure with these parameters. Raises ConfigError."""


reading: Menu[Reading] = Menu("Readings", unit="number", within=ANYTHING, curve="", takes=())


def measure_reading(name: str, params: Params) -> Measured:
    """Measure the reading of this name, or return it from a cache; ConfigError if it fails."""
    return _measure_once(name, tuple(sorted(params.items())))


@functools.lru_cache(maxsize=256)
def _measure_once(name: str, parameters: tuple[tuple[str, str], ...]) -> Measured:
    """Measure a reading once per set of parameters."""
    return reading[name](dict(parameters))


def wrap_exact(value: float) -> Measured:
    """Wrap a computed number as a result whose interval has no width."""
    return Measured({0: value}, Interval(value, value, value, 1), EXACT)


def wrap_by_seed(
    values: Mapping[int, float], within: Within = ANYTHING, curve: Curve | None = None
) -> Measured:
    """Wrap seed -> number as a result, with mean and 95 % interval cut to the range `within`."""
    return Measured(values, interval(values.values(), within), SEED, curve)


def parse_settings(params: Params, settings_class: type[Kind]) -> Kind:
    """Parse those parameters of a link that the class has, defaults for the rest; ConfigError."""
    settings, problems = settings_class.read(dict(params))
    if problems:
        raise problems[0]
    return settings


def names_of(*kinds: type[Settings]) -> tuple[str, ...]:
    """Return the names of all settings of these classes."""
    return tuple(name for kind in kinds for name in kind.settings())


# Costs, computed from the settings alone


def parse_n_tokens(params: Params) -> int:
    """Parse the parameter "tokens", a number of tokens, 100 by default; else ConfigError."""
    text = params.get("tokens", "100")
    if (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(LONGEST))
        and 0 < int(text) <= LONGEST
    ):
        return int(text)
    raise ConfigError(
        "tokens", f"tokens is {text[:20]}; it must be a whole number from 1 to {LONGEST}."
    )


@reading.register(
    "parameters",
    label="Parameters",
    help="number of parameters of the block.",
    unit="count",
    takes=names_of(Config),
)
def parameters(params: Params) -> Measured:
    """Return the number of parameters of all blocks, without embeddings, for a link's settings."""
    return wrap_exact(sum(cost.parameters(parse_settings(params, Config)).values()))


@reading.register(
    "attention_work",
    label="Compute of attention",
    help="floating-point operations of scores and weighted sum, by number of tokens.",
    unit="count",
    takes=(*names_of(Config), "tokens"),
)
def attention_work(params: Params) -> Measured:
    """Return the FLOPs of attention scores and weighted sum, all layers; multiply-add is 2.

    For the number of tokens in `params`.
    """
    return wrap_exact(
        cost.flops(parse_settings(params, Config), parse_n_tokens(params))[
            "scores and weighted sum"
        ]
    )


@reading.register(
    "block_work",
    label="Compute of the block",
    help="floating-point operations of all its matrix products, by number of tokens.",
    unit="count",
    takes=(*names_of(Config), "tokens"),
)
def block_work(params: Params) -> Measured:
    """Return the FLOPs of all matrix products of all blocks, for the tokens in `params`."""
    return wrap_exact(
        sum(cost.flops(parse_settings(params, Config), parse_n_tokens(params)).values())
    )


# Passes through random weights, for ten seeds


def measure_passes(
    params: Params, measure: Callable[[Pass], float], text: Sequence[str] = TEXT
) -> dict[int, float]:
    """Return seed -> measure(pass of a text), for ten seeds of random weights.

    The seed in `params` is not used.
    """
    config = parse_settings(params, Config)
    return {seed: measure(forward(config.replace(seed=seed), list(text), CPU)) for seed in SEEDS}


@reading.register(
    "largest_weight",
    label="Largest attention weight",
    help="largest attention weight of a token, averaged over tokens and heads.",
    unit="percent",
    within=SHARE,
    takes=names_of(Config),
)
def largest_weight(params: Params) -> Measured:
    """Return the mean largest attention weight of queries, heads and layers (share), by seed."""

    def largest(p: Pass) -> float:
        return (
            torch.stack([pattern.amax(-1).mean() for pattern in p.sites["pattern"]]).mean().item()
        )

    return wrap_by_seed(measure_passes(params, largest), SHARE)


@reading.register(
    "silent",
    label="Inactive units",
    help="share of the FFN's hidden units that are exactly 0.",
    unit="percent",
    within=SHARE,
    takes=names_of(Config),
)
def silent(params: Params) -> Measured:
    """Return the share of hidden values of the first layer's FFN that are exactly 0, by seed.

    Over real tokens and units together.
    """

    def zeros(p: Pass) -> float:
        return (p.sites["mlp_post"][0][: p.n_real] == 0).double().mean().item()

    return wrap_by_seed(measure_passes(params, zeros), SHARE)


@reading.register(
    "turned",
    label="Order sensitivity",
    help='largest change of a token\'s output between "dog bites man" and "man bites dog".',
    takes=names_of(Config),
)
def turned(params: Params) -> Measured:
    """Return the largest change of a token's output if word order is reversed, or 0, by seed."""

    def difference(p: Pass) -> float:
        table = compare_word_orders(p)
        row = table[(table.position == p.config.position) & (table["mask"] == p.config.mask)].iloc[
            0
        ]
        return float(row.value) if row.notices else 0.0

    return wrap_by_seed(measure_passes(params, difference, TURNED), POSITIVE)


def measure_stream(params: Params, statistic: str, within: Within) -> Measured:
    """Return a statistic after the last pass by seed, with its curve over passes from 0 (input).

    Args:
        params: Settings of Config and Depth.
        statistic: Key of core.measure.stream_statistics.
        within: Range of possible values.
    """
    config = parse_settings(params, Config)
    depth = parse_settings(params, Depth)
    curve = {}
    for seed in SEEDS:
        values = travel(config.replace(seed=seed), TEXT, CPU, depth).values_of(statistic)
        curve[seed] = dict(enumerate(map(float, values)))
    return wrap_by_seed(
        {seed: values[max(values)] for seed, values in curve.items()}, within, curve
    )


reading.add(
    "spread",
    partial(measure_stream, statistic="std", within=POSITIVE),
    label="Standard deviation",
    help="of the residual stream after the last pass, over tokens and dimensions.",
    curve="pass",
    within=POSITIVE,
    takes=names_of(Config, Depth),
)
reading.add(
    "likeness",
    partial(measure_stream, statistic="cosine", within=COSINE),
    label="Token similarity",
    help="mean cosine similarity of all pairs of tokens after the last pass (1 = same direction).",
    curve="pass",
    within=COSINE,
    takes=names_of(Config, Depth),
)


@reading.register(
    "gradient",
    label="Relative gradient norm",
    help="gradient norm before the first pass, divided by the norm after the last.",
    curve="pass",
    within=POSITIVE,
    takes=names_of(Config, Depth),
)
def gradient(params: Params) -> Measured:
    """Return gradient norm before the first pass ÷ after the last, by seed, with its curve."""
    config = parse_settings(params, Config)
    depth = parse_settings(params, Depth)
    curve = {}
    for seed in SEEDS:
        stream = gradients(config.replace(seed=seed), TEXT, CPU, depth).stream
        curve[seed] = dict(enumerate((stream / stream[-1]).tolist()))
    return wrap_by_seed({seed: values[0] for seed, values in curve.items()}, POSITIVE, curve)


# Trainings that ship: every curve of every seed, by study, task and variant

NAMES = ("study", "task", "variant")


def read_training(params: Params) -> tuple[str, str, str]:
    """Return (study, task, variant or else the baseline); ConfigError without study or task."""
    for name in NAMES[:2]:
        if name not in params:
            raise ConfigError(
                name,
                f"{name} is missing; a reading of training results takes study, task and variant.",
            )
    return params["study"], params["task"], params.get("variant", BASELINE)


def training_rows(params: Params) -> dict[int, list[Row]]:
    """Return seed -> rows of the shipped training in the parameters; ConfigError if it lacks."""
    try:
        return {
            seed: list(rows) for seed, rows in Evidence().curves(*read_training(params)).items()
        }
    except (StudyError, OSError) as error:
        raise ConfigError("study", f"The results for this lesson are missing: {error}") from None


@reading.register(
    "accuracy",
    label="Accuracy after training",
    help="share of correct answers on a test set.",
    unit="percent",
    within=SHARE,
    curve="step",
    takes=NAMES,
)
def accuracy(params: Params) -> Measured:
    """Return the accuracy (share) by seed of params' study, task and variant, with its curve.

    A diverged run has that of chance; the curve is over steps.
    """
    curve = {
        seed: {row.step: row.accuracy for row in rows}
        for seed, rows in training_rows(params).items()
    }
    return wrap_by_seed(Evidence().accuracy(*read_training(params)), SHARE, curve)


@reading.register(
    "loss",
    label="Training loss",
    help="mean of the last tenth of the steps, in nats.",
    within=POSITIVE,
    curve="step",
    takes=NAMES,
)
def loss(params: Params) -> Measured:
    """Return the mean loss (nats) of the last tenth of the steps by seed, with its curve."""
    curve = {
        seed: {row.step: row.loss for row in rows} for seed, rows in training_rows(params).items()
    }
    ends = {seed: late_loss(losses.items(), max(losses)) for seed, losses in curve.items()}
    return wrap_by_seed(ends, POSITIVE, curve)


@reading.register(
    "accuracy_at_own_rate",
    label="Accuracy, tuned learning rate",
    help="each seed at the best of three learning rates.",
    unit="percent",
    within=SHARE,
    takes=("task", "variant"),
)
def accuracy_at_own_rate(params: Params) -> Measured:
    """Return the accuracy at tuned rates, from a shipped summary: mean and interval, no values.

    Of params' task and variant in the study own_learning_rates. Raises ConfigError.
    """
    table = read_summary(table_of("own_learning_rates"))
    rows = table[
        (table.task == params.get("task")) & (table.variant == params.get("variant", BASELINE))
    ]
    if len(rows) != 1:
        raise ConfigError(
            "task", "task and variant must be a cell of the study with tuned learning rates."
        )
    row = rows.iloc[0]
    return Measured(
        {}, Interval(float(row.accuracy), float(row.low), float(row.high), int(row.seeds))
    )


# The language model that ships, trained on legal sentences


def shipped_bench() -> Bench:
    """Open the shipped language model with its held-out sentences (cached)."""
    return bench(family.open_cached(family.WHOLE, 0))


def find_head(params: Params) -> Cut:
    """Parse params' "head": "2.3" is head 3 of layer 2, from 0 in a Cut; ConfigError if unknown."""
    config = shipped_bench().model.config
    heads = {
        f"{cut.layer + 1}.{(cut.head or 0) + 1}": cut
        for cut in list_cuts(config)
        if cut.part == "head"
    }
    if params.get("head") not in heads:
        raise ConfigError(
            "head",
            f"head is {params.get('head', '')[:20]!r}; it must be one of {', '.join(heads)}.",
        )
    return heads[params["head"]]


@reading.register(
    "reads_subject",
    label="Attention to the subject",
    help="attention from the verb to its subject across a clause, in one head.",
    unit="percent",
    within=SHARE,
    takes=["head"],
)
def reads_subject(params: Params) -> Measured:
    """Return attention (share) from verb to subject in the shipped model's head ("2.3"): no values.

    Mean and interval over sentences.
    """
    cut = find_head(params)
    (head_reading,) = [
        row
        for row in subject_readings(shipped_bench())
        if (row.layer, row.head) == (cut.layer, cut.head)
    ]
    return Measured(
        {},
        Interval(
            head_reading.verb.mean,
            float(head_reading.verb.low),
            float(head_reading.verb.high),
            head_reading.verb.n,
        ),
        SENTENCE,
    )


@reading.register(
    "without_head",
    label="Ablated head",
    help="change in accuracy when the head is removed after training, on the same sentences.",
    unit="points",
    within=COSINE,
    takes=["head"],
)
def without_head(params: Params) -> Measured:
    """Return the shipped model's accuracy without params' head − with it, by sentence index."""
    bench = shipped_bench()
    effect = knocked_out(bench, (find_head(params),), "zero")
    comparison = compare_texts(effect, bench.baseline, "accuracy")
    values = effect.values["accuracy"] - bench.baseline.values["accuracy"]
    return Measured(
        dict(enumerate(values.tolist())),
        Interval(comparison.mean, comparison.low, comparison.high, comparison.n),
        SENTENCE,
    )


@reading.register(
    "next_word",
    label="Next-token probability",
    help="probability of a token at a temperature.",
    unit="percent",
    within=SHARE,
    takes=["text", "word", "temperature"],
)
def next_word(params: Params) -> Measured:
    """Return the shipped model's probability of a word after a text; ConfigError if unknown."""
    bench = shipped_bench()
    vocabulary = bench.model.vocabulary
    word = params.get("word", "")
    if word not in vocabulary:
        raise ConfigError("word", f"word is {word[:20]!r}; it must be in the model's vocabulary.")
    try:
        sampling = Sampling(temperature=float(params.get("temperature", "1")))
    except ValueError as error:
        raise ConfigError("temperature", f"temperature cannot be read: {error}") from None
    prompt = read(bench.opened, params.get("text", ""))
    scores = next_token_logits(bench, run_prompt(bench, prompt), len(prompt.ids) - 1)
    chance = probabilities(scores, sampling)[vocabulary.index(word)].item()
    return wrap_exact(chance if math.isfinite(chance) else 0.0)
