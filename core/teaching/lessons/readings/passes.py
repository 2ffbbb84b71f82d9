"""Readings of passes through random weights, for ten seeds: what the parts do by themselves, before anything is learnt."""

import math
from collections.abc import Callable

import torch

from core.experiments.block.positions import order
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.forward import Pass, forward
from core.model.config import Config
from core.teaching.lessons.readings.reading import (
    CPU,
    SEEDS,
    TEXT,
    Curve,
    Measured,
    Params,
    names_of,
    per_seed,
    reading,
    settings_of,
)

SHARE = (0.0, 1.0)
COSINE = (-1.0, 1.0)
TURNED = ("dog", "bites", "man")


def _each(params: Params, of: Callable[[Pass], float], text: list[str] | tuple[str, ...] = TEXT) -> dict[int, float]:
    """Seed -> a number of the pass of the text."""
    config = settings_of(params, Config)
    return {seed: of(forward(config.replace(seed=seed), text, CPU)) for seed in SEEDS}


@reading(unit="percent", within=SHARE, takes=names_of(Config))
def largest_weight(params: Params) -> Measured:
    """Largest weight: the share of its attention that a word gives to a single one, on average over words and heads."""

    def largest(p: Pass) -> float:
        return torch.stack([pattern.amax(-1).mean() for pattern in p.sites["pattern"]]).mean().item()

    return per_seed(_each(params, largest), SHARE)


@reading(unit="percent", within=SHARE, takes=names_of(Config))
def silent(params: Params) -> Measured:
    """Silent units: the share of the hidden units of the FFN that are exactly 0."""

    def zeros(p: Pass) -> float:
        return (p.sites["mlp_post"][0][: p.n_real] == 0).double().mean().item()

    return per_seed(_each(params, zeros), SHARE)


@reading(takes=names_of(Config))
def turned(params: Params) -> Measured:
    """Word order: the largest difference that the output of a word shows between "dog bites man" and "man bites dog"."""

    def difference(p: Pass) -> float:
        table = order(p)
        row = table[(table.position == p.config.position) & (table["mask"] == p.config.mask)].iloc[0]
        return float(row.value) if row.notices else 0.0

    return per_seed(_each(params, difference, TURNED), (0.0, math.inf))


def _along(params: Params, meter: str) -> Curve:
    """Seed -> pass -> a statistic of the stream."""
    config, depth, curve = settings_of(params, Config), settings_of(params, Depth), {}
    for seed in SEEDS:
        values = travel(config.replace(seed=seed), TEXT, CPU, depth).of(meter)
        curve[seed] = dict(enumerate(map(float, values)))
    return curve


def _ends(curve: Curve) -> dict[int, float]:
    return {seed: each[max(each)] for seed, each in curve.items()}


@reading(curve="pass", within=(0.0, math.inf), takes=names_of(Config, Depth))
def spread(params: Params) -> Measured:
    """Size of the numbers: their standard deviation after the last pass, over words and dimensions."""
    curve = _along(params, "std")
    return per_seed(_ends(curve), (0.0, math.inf), curve)


@reading(curve="pass", within=COSINE, takes=names_of(Config, Depth))
def likeness(params: Params) -> Measured:
    """Likeness of words: the mean cosine similarity of all pairs of words after the last pass. 1: all are the same."""
    curve = _along(params, "cosine")
    return per_seed(_ends(curve), COSINE, curve)


@reading(curve="pass", within=(0.0, math.inf), takes=names_of(Config, Depth))
def gradient(params: Params) -> Measured:
    """Gradient that arrives: its size before the first pass, divided by that behind the last."""
    config, depth, curve = settings_of(params, Config), settings_of(params, Depth), {}
    for seed in SEEDS:
        stream = gradients(config.replace(seed=seed), TEXT, CPU, depth).stream
        curve[seed] = dict(enumerate((stream / stream[-1]).tolist()))
    return per_seed({seed: each[0] for seed, each in curve.items()}, (0.0, math.inf), curve)
