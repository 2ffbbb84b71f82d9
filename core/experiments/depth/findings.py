"""Findings: one sentence for each statistic, built from the numbers on screen."""

import math

import numpy as np

from core.experiments.depth.depth import ROUNDING, Journey
from core.measure.stream_statistics import SAME, statistic
from core.settings.wording import count, fixed, number

ALIKE = 0.99  # cosine similarity from which on tokens are said to point the same way


def describe_finding(meter: str, journeys: dict[str, Journey]) -> str:
    """Describe a statistic of the variant that ends farthest from the first, the baseline.

    Over the passes that rounding does not decide, in a sentence. Without variants, the baseline is
    described.
    """
    first_rounded = rounded_from(journeys)
    if first_rounded is not None:
        journeys = {
            name: journey.until(max(1, first_rounded - 1)) for name, journey in journeys.items()
        }
    candidates = [(n, j) for n, j in journeys.items() if meter != "entropy" or j.config.attention]
    if not candidates:
        return "Attention is off, so there is nothing to measure."
    first, *others = candidates
    if meter in ("cosine", "rank", "entropy") and first[1].n_real < 2:
        return "There is only one token."
    base: Journey | None = first[1]
    if first[0] != next(iter(journeys)):
        # The baseline has no attention; the others are described by themselves.
        others = candidates
        base = None
    if not others:
        return _describe_journey(meter, "", first[1], None)
    name, journey = max(others, key=lambda pair: end_distance(meter, pair[1], base) if base else 0)
    if base and end_distance(meter, journey, base) < SAME:
        return _describe_in_between(meter, others, base)
    return _describe_journey(meter, f"{name}: ", journey, base)


def rounded_from(journeys: dict[str, Journey]) -> int | None:
    """Return the first pass that rounding decides in any of the journeys, or None."""
    return min(
        (journey.rounded for journey in journeys.values() if journey.rounded is not None),
        default=None,
    )


def describe_rounding(journeys: dict[str, Journey]) -> str:
    """Describe from which pass on rounding decides any journey, and which; "" if none."""
    first = rounded_from(journeys)
    if first is None:
        return ""
    names = ", ".join(name for name, journey in journeys.items() if journey.rounded is not None)
    return (
        f"From pass {first} on, rounding dominates ({names}): float32 and float64 differ by more"
        f" than {100 * ROUNDING:.0f} % of the stream's magnitude. The sentences describe"
        " the earlier passes only."
    )


def _describe_in_between(meter: str, others: list[tuple[str, Journey]], base: Journey) -> str:
    """Describe whether models that end like the baseline differ in between, and where most."""
    name, journey, index = max(
        (
            (name, journey, position)
            for name, journey in others
            for position in range(len(base.values))
        ),
        key=lambda candidate: distance(meter, candidate[1], base, candidate[2]),
    )
    if distance(meter, journey, base, index) < SAME:
        return f"No difference at any pass. {_describe_journey(meter, '', base, None)}"
    values = " vs ".join(
        _format_value(meter, float(side.values_of(meter)[index])) for side in (journey, base)
    )
    end = last_value(base, meter)[1]
    ends = (
        f"ends {'with all zeros' if math.isnan(end) else f'at {_format_value(meter, end)}'},"
        " like the baseline"
    )
    if base.diverged is not None:
        ends = f"diverges at pass {base.diverged}, like the baseline"
    return f"{name}: {ends}; largest difference after pass {index}: {values}."


def _format_value(meter: str, value: float) -> str:
    """Write a statistic's value without a unit; NaN as "undefined", or "all zeros" for the rank."""
    if math.isnan(value):
        return "all zeros" if meter == "rank" else "undefined"
    if meter == "rank":
        return f"{value:.1f}"
    return fixed(value) if meter in ("entropy", "cosine") else number(value)


def end_distance(meter: str, journey: Journey, base: Journey) -> float:
    """Return how far apart two journeys end, to rank by: ≥ 0, finite; diverged ones farthest.

    Of diverged ones the earlier is the farther; 0 if both diverged at the same pass. Then comes
    one that ends at zero alone, then the difference (of logarithms for statistics that span powers
    of ten).
    """
    if journey.diverged is not None or base.diverged is not None:
        return (
            1e9
            * abs(_divergence_pass(journey) - _divergence_pass(base))
            / (1 + min(_divergence_pass(journey), _divergence_pass(base)))
        )
    return distance(meter, journey, base, -1)


def distance(meter: str, journey: Journey, base: Journey, index: int) -> float:
    """Return two journeys' gap in a statistic after a pass (−1: last), ≥ 0; 1e6 if one is NaN.

    0 within rounding; of logarithms for statistics that span powers of ten.
    """
    a = float(journey.values_of(meter)[index])
    two = float(base.values_of(meter)[index])
    if math.isnan(a) or math.isnan(two):
        return 0.0 if math.isnan(a) and math.isnan(two) else 1e6
    if statistic[meter].log:
        return abs(math.log(a / two)) if a > 0 and two > 0 else 1e6 * (a != two)
    scale = float(base.values_of("rms")[index]) if meter == "mean" else max(abs(a), abs(two))
    return abs(a - two) if abs(a - two) > SAME * scale else 0.0


def _divergence_pass(journey: Journey) -> float:
    """Return the pass at which a journey diverged; 1e6 if it did not."""
    return 1e6 if journey.diverged is None else journey.diverged


def format_passes(n: int) -> str:
    """Return a number of passes in words: "1 pass", "10 passes"."""
    return count(n, "pass", "passes")


def last_value(journey: Journey, meter: str) -> tuple[int, float]:
    """Return (pass, statistic), the last before divergence; (0, NaN) if the input is not finite."""
    index = len(journey.values) - 1 if journey.diverged is None else journey.diverged - 1
    return (index, float(journey.values_of(meter)[index])) if index >= 0 else (0, math.nan)


def first_value(journey: Journey, meter: str) -> float:
    """Return the first finite value of a statistic (entropy has none at pass 0), or NaN."""
    finite = [value for value in journey.values_of(meter) if math.isfinite(value)]
    return float(finite[0]) if finite else math.nan


def _describe_journey(meter: str, lead: str, journey: Journey, base: Journey | None) -> str:
    """Describe one journey, alone or compared with `base`, in a sentence that opens with `lead`.

    Args:
        meter: Key of the statistic.
        lead: Name of the variant and ": ", or "" for the baseline.
        journey: The journey to describe.
        base: Baseline to compare with, or None.
    """
    if journey.diverged is not None:
        index, value = last_value(journey, meter)
        text = f"diverged at pass {journey.diverged}"
        if math.isfinite(value):
            text += f" (last value: {number(value)}, at pass {index})"
    else:
        text = SENTENCES.get(meter, _describe_change)(meter, journey)
    if base is not None:
        text += f"; {_describe_baseline(meter, journey, base)}"
    return f"{lead}{text}." if lead else f"{text[0].upper()}{text[1:]}."


def _describe_baseline(meter: str, variant: Journey, base: Journey) -> str:
    """Return a clause on where the baseline ends or diverged, without punctuation around it.

    For the cosine similarity: its value at the pass from which the variant's tokens are alike.
    """
    if base.diverged is not None:
        return f"the baseline diverged at pass {base.diverged}"
    if meter == "cosine" and variant.diverged is None:
        index = _alike_from(variant.values_of(meter))
        if index is not None:
            return f"the baseline is at {fixed(base.values_of(meter)[index])} by then"
        return f"the baseline ends at {fixed(last_value(base, meter)[1])}"
    end = last_value(base, meter)[1]
    if math.isnan(end):
        return "the baseline ends with all zeros"
    return f"the baseline ends at {_format_value(meter, end)}"


def _describe_growth(meter: str, journey: Journey) -> str:
    """Describe a magnitude: it stays, grows or shrinks from first to last, or its end and range."""
    n, end = last_value(journey, meter)
    begin = first_value(journey, meter)
    values = journey.values_of(meter)
    low = float(np.nanmin(values))
    high = float(np.nanmax(values))
    if end == 0 == begin:
        return f"stays at 0 over {format_passes(n)}"
    if end == 0:
        zeros = np.flatnonzero(values == 0)
        return f"shrinks from {number(begin)} to 0 in {format_passes(int(zeros[0]))}"
    if begin > 0 and 0.8 < end / begin < 1.25:
        if number(low, 2) == number(high, 2) or number(low) == number(high):
            return f"stays at {number(end, 2)} over {format_passes(n)}"
        if high / low < 1.25:
            return f"stays between {number(low)} and {number(high)} over {format_passes(n)}"
        span = f"range {number(low)} to {number(high)}"
        return f"ends at {number(end)} after {format_passes(n)} ({span})"
    verb = "grows" if end > begin else "shrinks"
    return (
        f"{verb} from {number(begin)} to {number(end)} in"
        f" {format_passes(n)}{f' (× {number(end / begin)})' if begin else ''}"
    )


def _alike_from(values: np.ndarray) -> int | None:
    """Return the pass from which on token similarity stays at ALIKE or more, or None."""
    below = np.flatnonzero(~(values >= ALIKE))
    index = int(below[-1]) + 1 if len(below) else 0
    return index if index < len(values) else None


def _describe_similarity(meter: str, journey: Journey) -> str:
    """Describe token similarity: from when all tokens point the same way, or its last value."""
    values = journey.values_of(meter)
    n = journey.n_real
    index = _alike_from(values)
    if index is None:
        index, end = last_value(journey, meter)
        after = format_passes(index)
        return f"mean cosine similarity {fixed(end)} after {after} (1 = identical direction)"
    when = f"after {format_passes(index)}" if index else "from the start"
    return f"all {n} tokens point the same way {when} (cosine similarity {fixed(values[index])})"


def _describe_rank(meter: str, journey: Journey) -> str:
    """Describe the effective rank: first → last, with its maximum, or since when all is zeros."""
    n, end = last_value(journey, meter)
    limit = min(journey.n_real, journey.config.d_model)
    values = journey.values_of(meter)
    if math.isnan(end):
        finite = np.flatnonzero(np.isfinite(values))
        return (
            f"all zeros {f'from pass {finite[-1] + 1} on' if len(finite) else 'from the start'}, so"
            " the rank is undefined"
        )
    begin = _format_value(meter, first_value(journey, meter))
    last_one = _format_value(meter, end)
    if begin != last_one:
        return f"effective rank {begin} → {last_one} in {format_passes(n)} (max {limit})"
    return (
        f"effective rank starts and ends at {begin} over {format_passes(n)} (max"
        f" {limit}){_describe_range(meter, values)}"
    )


def _describe_entropy(meter: str, journey: Journey) -> str:
    """Describe how the attention entropy changes, and what uniform attention would have."""
    n, end = last_value(journey, meter)
    begin = first_value(journey, meter)
    values = journey.values_of(meter)
    low = float(np.nanmin(values))
    high = float(np.nanmax(values))
    left = "" if journey.config.part("softmax").sums_to_one else ", weights summing to 1"
    even = f"(uniform{left}: {fixed(uniform_entropy(journey))})"
    if abs(end - begin) <= 0.05:
        if fixed(low) == fixed(high):
            return f"entropy stays at {fixed(end)} bits over {format_passes(n)} {even}"
        if high - low <= 0.1:
            span = f"{fixed(low)} and {fixed(high)} bits"
            return f"entropy stays between {span} over {format_passes(n)} {even}"
        return f"entropy ends at {fixed(end)} bits, range {fixed(low)} to {fixed(high)} {even}"
    verb = "falls" if end < begin else "rises"
    return f"entropy {verb} from {fixed(begin)} bits in pass 1 to {fixed(end)} in pass {n} {even}"


def uniform_entropy(journey: Journey) -> float:
    """Return uniform attention's entropy (bits) in the last finite pass, mean of real queries."""
    index, _ = last_value(journey, "entropy")
    return journey.allowed_in(max(1, index))[: journey.n_real].sum(-1).float().log2().mean().item()


def _describe_range(meter: str, values: np.ndarray) -> str:
    """Return ", range LOW to HIGH" for a statistic back at its start; "" if it never left."""
    low, high = (_format_value(meter, float(end)) for end in (np.nanmin(values), np.nanmax(values)))
    return "" if low == high else f", range {low} to {high}"


def _describe_change(meter: str, journey: Journey) -> str:
    """Describe any other statistic: from first to last, or where it starts and ends and range."""
    n, end = last_value(journey, meter)
    begin = number(first_value(journey, meter))
    last_one = number(end)
    if begin == last_one:
        between = _describe_range(meter, journey.values_of(meter))
        return f"starts and ends at {begin} over {format_passes(n)}{between}"
    return f"goes from {begin} to {last_one} in {format_passes(n)}"


SENTENCES = {
    "rms": _describe_growth,
    "std": _describe_growth,
    "largest": _describe_growth,
    "cosine": _describe_similarity,
    "rank": _describe_rank,
    "entropy": _describe_entropy,
}
