"""Claims about what is inside a model: measured on models that are built, or trained, on the spot."""

from functools import lru_cache

import torch

from core.experiments.depth.depth import Depth, travel
from core.measure.stream_statistics import statistic
from core.model.config import Config
from core.model.knockout import Lesion, cuts
from core.model.parts.init import generator
from core.model.text import PAD
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.tasks import task
from core.teaching.claims.claim import Values, claim
from core.teaching.claims.evidence import Evidence, minus
from core.train import Training, chunk, model, start

CPU = Machine(device="cpu")
TEXT = "the court held that the defendant , who had signed the contracts , was liable .".split()
DRAWS, SEEDS = range(10), range(5)
STEPS, ROWS = 600, 512  # of the language models; rows of text on which each is asked
SMALL = 0.01  # of accuracy: what a head may cost that can be removed
FIRST = 3  # tokens of a row that have too little before them to choose from


@lru_cache
def trained(seed: int, gate: bool = False) -> Transformer:
    """A small language model, trained anew: the same on the same machine to the last bit."""
    state = start(task["sentences"].config(seed=seed, gate=gate), Training(task="sentences", steps=STEPS), seed, CPU)
    while not state.done:
        state, _ = chunk(state, 60.0)
    return model(state)


def texts(seed: int, rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of sentences that training never draws, with their answers: int64 (rows, T) each."""
    return task["sentences"](generator(seed, "claims"), rows, None, held_out=True)


def accuracy(asked: Transformer, tokens: torch.Tensor, targets: torch.Tensor, *edits: Lesion) -> float:
    """The share of the verbs that agree with their nouns, with parts of the model taken out."""
    with torch.inference_mode(), trace(*edits, sites=()):
        return task["sentences"].right(asked(tokens), targets).float().mean().item()


def removable(asked: Transformer, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    """The share of the heads without which, one at a time, accuracy falls by less than SMALL."""
    whole, config = accuracy(asked, tokens, targets), asked.config
    heads = [cut for cut in cuts(config) if cut.part == "head"]
    return sum(whole - accuracy(asked, tokens, targets, Lesion((cut,))) < SMALL for cut in heads) / len(heads)


def on_the_first(asked: Transformer, tokens: torch.Tensor) -> float:
    """Return the weight that a head gives to the first token: the mean over rows, heads, layers and the tokens that read.

    Padding reads nothing.
    """
    with torch.inference_mode(), trace(sites=("pattern",)) as seen:
        asked(tokens)
    is_reader = tokens != asked.vocabulary.index(PAD)
    is_reader[:, :FIRST] = False
    of_layers = [pattern[..., 0].mean(1)[is_reader].mean() for pattern in seen["pattern"]]
    return torch.stack(of_layers).mean().item()


@claim(
    paper="Dong et al., 2021: Attention is not all you need, theorem 2.2",
    here="ten layers of attention alone, random weights, no norm and no FFN",
    number="Similarity of all words after ten layers without residuals, minus with them (1: all are the same)",
    within=(-2.0, 2.0),
    smallest=0.3,
    points=False,
    live=("depth", {"ffn": "off", "norm": "none", "blocks": "separate", "variants": "residual_attention-off"}),
)  # fmt: skip
def rank_collapse(evidence: Evidence) -> Values:
    """Without residuals attention makes all words alike: pure attention loses rank doubly exponentially with depth."""

    def likeness(seed: int, residual: bool) -> float:
        config = Config(seed=seed, ffn=False, norm="none", residual_attention=residual)
        values = travel(config, TEXT, CPU, Depth(passes=10, blocks="separate")).values
        return float(values[-1, list(statistic).index("cosine")])

    return {seed: likeness(seed, False) - likeness(seed, True) for seed in DRAWS}


@claim(
    paper="Michel et al., 2019: Are sixteen heads really better than one?, section 3.2",
    here="language models of two layers with four heads each, trained for 600 steps; 512 rows of text",
    number="Share of the heads that can be removed, one at a time, for less than one point of accuracy",
    within=(0.0, 1.0),
    smallest=0.5,
    points=False,
    live=("trained", {"taken": "sweep"}),
)
def heads_can_go(evidence: Evidence) -> Values:
    """Most heads can be removed: a trained model hardly gets worse without any one of them."""
    return {seed: removable(trained(seed), *texts(seed)) for seed in SEEDS}


@claim(
    paper="Qiu et al., 2025: Gated attention for large language models",
    here="the same language models, and the same again with a gate behind each head; 512 rows of text",
    number="Attention to the first word of a row without gates, minus with them",
    smallest=0.05,
    points=False,
    live=("training", {"task": "sentences", "steps": "600", "variants": "gate-on"}),
)
def sinks(evidence: Evidence) -> Values:
    """Attention sinks vanish with gated attention: a head that finds nothing need not look at the first word."""
    tokens = {seed: texts(seed)[0] for seed in SEEDS}
    plain = {seed: on_the_first(trained(seed), tokens[seed]) for seed in SEEDS}
    return minus(plain, {seed: on_the_first(trained(seed, gate=True), tokens[seed]) for seed in SEEDS})
