"""One sentence per statistic, made from the numbers on screen: what happened, to whom, against what."""

import math

import numpy as np
import torch

from core.experiments.depth import Journey
from core.streams import statistic

ALIKE = 0.99  # cosine similarity from which on tokens are said to point the same way


def finding(meter: str, journeys: dict[str, Journey]) -> str:
    """What happened to one statistic; the first of the journeys is the baseline.

    Speaks of the variant that ends farthest from the baseline, or of the baseline where there is none.
    """
    names = list(journeys)
    base = journeys[names[0]]
    others = {name: journeys[name] for name in names[1:] if meter != "entropy" or journeys[name].config.attention}
    if meter == "entropy" and not base.config.attention and not others:
        return "Attention is off, so there is nothing to measure."
    name = max(others, key=lambda each: _far(meter, others[each], base), default=None)
    told = (name, others[name]) if name else (names[0], base)
    beside = base if name and (meter != "entropy" or base.config.attention) else None
    if told[1].diverged is not None:
        return _diverged(meter, *told, beside)
    return SENTENCES.get(meter, _plain)(meter, *told, beside)


def number(value: float) -> str:
    """A number in a sentence: three significant digits."""
    if math.isnan(value):
        return "no number"
    size = abs(value)
    text = f"{value:.2e}" if size and (size >= 1e5 or size < 1e-3) else f"{value:.3g}"
    return text.replace("-", "−").replace("e+0", "e").replace("e+", "e").replace("e−0", "e−")


def passes(n: int) -> str:
    return f"{n} pass{'es' * (n != 1)}"


def last(journey: Journey, meter: str) -> tuple[int, float]:
    """The last pass that has a number, and the number; NaN where none has."""
    values = journey.of(meter)
    known = np.flatnonzero(np.isfinite(values))
    return (int(known[-1]), float(values[known[-1]])) if len(known) else (0, math.nan)


def first(journey: Journey, meter: str) -> float:
    values = journey.of(meter)
    known = np.flatnonzero(np.isfinite(values))
    return float(values[known[0]]) if len(known) else math.nan


def _far(meter, journey, base) -> float:
    """How far apart two journeys end; one that diverged is farthest of all, the sooner the farther."""
    if journey.diverged is not None and base.diverged is None:
        return 1e9 / (1 + journey.diverged)
    one, two = last(journey, meter)[1], last(base, meter)[1]
    if getattr(statistic[meter], "log", False) and one > 0 and two > 0:
        return abs(math.log(one / two))
    return abs(one - two) if math.isfinite(one - two) else -1.0


def _diverged(meter, name, journey, base) -> str:
    at, value = last(journey, meter)
    k = journey.diverged
    seen = f", after {number(value)} at pass {at}" if math.isfinite(value) else ""
    if not base:
        return f"The {name} diverged at pass {k}{seen}."
    if base.diverged is not None:
        return f"{name} diverged at pass {k}{seen}; the baseline at pass {base.diverged}."
    return f"{name} diverged at pass {k}{seen}; the baseline ends at {number(last(base, meter)[1])}."


def _grown(meter, name, journey, base) -> str:
    n, end = last(journey, meter)
    if not base:
        change = _change(first(journey, meter), end, n)
        return f"{change[0].upper()}{change[1:]}."
    return f"{name}: {_change(first(journey, meter), end, n)}; {_beside(base, meter)}."


def _change(start, end, n) -> str:
    verb = (
        "stays near"
        if start == end or (start > 0 and 0.8 < end / start < 1.25)
        else "grows"
        if end > start
        else "shrinks"
    )
    if verb == "stays near":
        return f"stays near {number(end)} over {passes(n)}"
    times = f" (× {number(end / start)})" if start > 0 else ""
    return f"{verb} from {number(start)} to {number(end)} in {passes(n)}{times}"


def _beside(base, meter) -> str:
    if base.diverged is not None:
        return f"the baseline diverged at pass {base.diverged}"
    return f"the baseline ends at {number(last(base, meter)[1])}"


def _alike(meter, name, journey, base) -> str:
    if journey.n_real < 2:
        return "There is only one word."
    values, n = journey.of(meter), journey.n_real
    reached = np.flatnonzero(values >= ALIKE)
    at = int(reached[0]) if len(reached) else int(last(journey, meter)[0])
    subject = f"{name}: the" if base else "The"
    if len(reached):
        text = f"{subject} {n} words point the same way after {passes(at)}: cosine similarity {values[at]:.2f}"
    else:
        text = f"{subject} {n} words are alike by {values[at]:.2f} after {passes(at)} (1: all point the same way)"
    if base and math.isfinite(base.of(meter)[at]):
        return f"{text}; baseline {base.of(meter)[at]:.2f}."
    return f"{text}."


def _directions(meter, name, journey, base) -> str:
    n, end = last(journey, meter)
    if not math.isfinite(end):
        return "All numbers are zero, so there is no direction."
    start, whole = first(journey, meter), min(journey.n_real, journey.config.d_model)
    text = f"{f'{name}: ' if base else ''}from {start:.1f} of at most {whole} to {end:.1f} after {passes(n)}"
    return f"{text}; {_beside(base, meter)}." if base else f"{text[0].upper()}{text[1:]}."


def _narrowed(meter, name, journey, base) -> str:
    n, end = last(journey, meter)
    start, even = first(journey, meter), evenly(journey)
    verb = "narrows" if end < start - 0.05 else "spreads" if end > start + 0.05 else "stays"
    way = f"from {start:.2f} to {end:.2f} bits" if verb != "stays" else f"at {end:.2f} bits"
    text = f"{f'{name}: attention' if base else 'Attention'} {verb} {way} in {passes(n)} (spread evenly: {even:.2f})"
    return f"{text}; {_beside(base, meter)}." if base else f"{text}."


def evenly(journey: Journey) -> float:
    """Bits of attention that is spread evenly over all that each real token may see, averaged over them."""
    allowed = journey.config.part("mask")(journey.n_real)
    seen = torch.full((journey.n_real,), float(journey.n_real)) if allowed is None else allowed.sum(-1).float()
    return seen.log2().mean().item()


def _plain(meter, name, journey, base) -> str:
    n, end = last(journey, meter)
    text = f"{number(end)} after {passes(n)}"
    return f"{name}: {text}; {_beside(base, meter)}." if base else f"{text[0].upper()}{text[1:]}."


SENTENCES = {
    "rms": _grown,
    "std": _grown,
    "largest": _grown,
    "cosine": _alike,
    "rank": _directions,
    "entropy": _narrowed,
}
