"""Readings: what lessons can measure, with a link's parameters.

A reading returns one number per seed, or per sentence; a single number is exact: nothing in it is
random.
"""

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import torch

from core.checkpoints import family
from core.experiments.block.positions import order
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.forward import Pass, forward
from core.experiments.trained.knockout import Bench, bench
from core.experiments.trained.knockout import measured as knocked_out
from core.experiments.trained.prompt import logits, look, read
from core.experiments.trained.tables import compared
from core.experiments.trained.tables import readings as subject_readings
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
        values: one number for each seed or sentence.
        found: their mean with its interval.
        per: what the numbers are of: SEED, SENTENCE or EXACT.
        curve: the curve that led there, where there is one.
    """

    values: Mapping[int, float]
    found: Interval
    per: str = SEED
    curve: Curve | None = None


class Reading(Protocol):
    """Entry of the menu.

    Attributes:
        unit: how its numbers are written (core/teaching/lessons/wording.py).
        within: the range of possible values.
        curve: what its curve runs over; "" without one.
        takes: names of its parameters.
    """

    unit: str
    within: Within
    curve: str
    takes: Collection[str]

    def __call__(self, params: Params, /) -> Measured: ...


reading: Menu[Reading] = Menu("Readings", unit="number", within=ANYTHING, curve="", takes=())


def measured(name: str, params: Params) -> Measured:
    """Return what a reading measures, from a cache. Raises ConfigError for a bad parameter."""
    return _measured(name, tuple(sorted(params.items())))


@functools.lru_cache(maxsize=256)
def _measured(name: str, parameters: tuple[tuple[str, str], ...]) -> Measured:
    return reading[name](dict(parameters))


def exact(value: float) -> Measured:
    """Return a number that is computed, not drawn."""
    return Measured({0: value}, Interval(value, value, value, 1), EXACT)


def per_seed(
    values: Mapping[int, float], within: Within = ANYTHING, curve: Curve | None = None
) -> Measured:
    """Return seed -> number with the interval of the mean."""
    return Measured(values, interval(values.values(), within), SEED, curve)


def settings_of(params: Params, kind: type[Kind]) -> Kind:
    """Read settings of a class from the parameters. Raises ConfigError."""
    settings, problems = kind.read(dict(params))
    if problems:
        raise problems[0]
    return settings


def names_of(*kinds: type[Settings]) -> tuple[str, ...]:
    """Return the names of these settings."""
    return tuple(name for kind in kinds for name in kind.settings())


# Costs, computed from the settings alone


def tokens_of(params: Params) -> int:
    """Return the number of words of the text whose cost is computed. Raises ConfigError."""
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
    return exact(sum(cost.parameters(settings_of(params, Config)).values()))


@reading.register(
    "attention_work",
    label="Compute of attention",
    help="floating-point operations of scores and weighted sum, by number of tokens.",
    unit="count",
    takes=(*names_of(Config), "tokens"),
)
def attention_work(params: Params) -> Measured:
    return exact(
        cost.flops(settings_of(params, Config), tokens_of(params))["scores and weighted sum"]
    )


@reading.register(
    "block_work",
    label="Compute of the block",
    help="floating-point operations of all its matrix products, by number of tokens.",
    unit="count",
    takes=(*names_of(Config), "tokens"),
)
def block_work(params: Params) -> Measured:
    return exact(sum(cost.flops(settings_of(params, Config), tokens_of(params)).values()))


# Passes through random weights, for ten seeds


def measure_passes(
    params: Params, measure: Callable[[Pass], float], text: Sequence[str] = TEXT
) -> dict[int, float]:
    """Return seed -> a number of the pass of the text."""
    config = settings_of(params, Config)
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
    def largest(p: Pass) -> float:
        return (
            torch.stack([pattern.amax(-1).mean() for pattern in p.sites["pattern"]]).mean().item()
        )

    return per_seed(measure_passes(params, largest), SHARE)


@reading.register(
    "silent",
    label="Inactive units",
    help="share of the FFN's hidden units that are exactly 0.",
    unit="percent",
    within=SHARE,
    takes=names_of(Config),
)
def silent(params: Params) -> Measured:
    def zeros(p: Pass) -> float:
        return (p.sites["mlp_post"][0][: p.n_real] == 0).double().mean().item()

    return per_seed(measure_passes(params, zeros), SHARE)


@reading.register(
    "turned",
    label="Order sensitivity",
    help='largest change of a token\'s output between "dog bites man" and "man bites dog".',
    takes=names_of(Config),
)
def turned(params: Params) -> Measured:
    def difference(p: Pass) -> float:
        table = order(p)
        row = table[(table.position == p.config.position) & (table["mask"] == p.config.mask)].iloc[
            0
        ]
        return float(row.value) if row.notices else 0.0

    return per_seed(measure_passes(params, difference, TURNED), POSITIVE)


def measure_stream(params: Params, statistic: str, within: Within) -> Measured:
    """Measure a statistic of the stream after the last pass, with its curve over passes."""
    config = settings_of(params, Config)
    depth = settings_of(params, Depth)
    curve = {}
    for seed in SEEDS:
        values = travel(config.replace(seed=seed), TEXT, CPU, depth).of(statistic)
        curve[seed] = dict(enumerate(map(float, values)))
    return per_seed({seed: values[max(values)] for seed, values in curve.items()}, within, curve)


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
    config = settings_of(params, Config)
    depth = settings_of(params, Depth)
    curve = {}
    for seed in SEEDS:
        stream = gradients(config.replace(seed=seed), TEXT, CPU, depth).stream
        curve[seed] = dict(enumerate((stream / stream[-1]).tolist()))
    return per_seed({seed: values[0] for seed, values in curve.items()}, POSITIVE, curve)


# Trainings that ship: every curve of every seed, by study, task and variant

NAMES = ("study", "task", "variant")


def name_training(params: Params) -> tuple[str, str, str]:
    """Return study, task and variant. Raises ConfigError."""
    for name in NAMES[:2]:
        if name not in params:
            raise ConfigError(
                name,
                f"{name} is missing; a reading of training results takes study, task and variant.",
            )
    return params["study"], params["task"], params.get("variant", BASELINE)


def training_rows(params: Params) -> dict[int, list[Row]]:
    """Return seed -> rows of a training. Raises ConfigError."""
    try:
        return {
            seed: list(rows) for seed, rows in Evidence().curves(*name_training(params)).items()
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
    curve = {
        seed: {row.step: row.accuracy for row in rows}
        for seed, rows in training_rows(params).items()
    }
    return per_seed(Evidence().accuracy(*name_training(params)), SHARE, curve)


@reading.register(
    "loss",
    label="Training loss",
    help="mean of the last tenth of the steps, in nats.",
    within=POSITIVE,
    curve="step",
    takes=NAMES,
)
def loss(params: Params) -> Measured:
    curve = {
        seed: {row.step: row.loss for row in rows} for seed, rows in training_rows(params).items()
    }
    ends = {seed: late_loss(losses.items(), max(losses)) for seed, losses in curve.items()}
    return per_seed(ends, POSITIVE, curve)


@reading.register(
    "accuracy_at_own_rate",
    label="Accuracy, tuned learning rate",
    help="each seed at the best of three learning rates.",
    unit="percent",
    within=SHARE,
    takes=("task", "variant"),
)
def accuracy_at_own_rate(params: Params) -> Measured:
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
    """Return the model with the sentences that it is asked."""
    return bench(family.kept(family.WHOLE, 0))


def find_head(params: Params) -> Cut:
    """Return the head that is named as on screen: "2.3" is the third of the second layer."""
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
    bench = shipped_bench()
    effect = knocked_out(bench, (find_head(params),), "zero")
    comparison = compared(effect, bench.baseline, "accuracy")
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
    scores = logits(bench, look(bench, prompt), len(prompt.ids) - 1)
    chance = probabilities(scores, sampling)[vocabulary.index(word)].item()
    return exact(chance if math.isfinite(chance) else 0.0)
