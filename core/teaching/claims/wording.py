"""A claim's result in words: from the interval that is shown, and nothing else."""

import math
from collections import Counter
from collections.abc import Iterable

from core.experiments.training.sentences import decimals_of, points
from core.settings.wording import count, fixed
from core.teaching.claims.claim import DOES_NOT, REPLICATES, UNDECIDED, Claim, Judged

BECAUSE = {  # (verdict, whether the claim is that there is no such effect) -> why
    (REPLICATES, False): "the whole interval is above {smallest}",
    (DOES_NOT, False): "the whole interval is below {smallest}",
    (UNDECIDED, False): "the interval holds {smallest}",
    (REPLICATES, True): "the whole interval is within ±{smallest}",
    (DOES_NOT, True): "the whole interval is outside ±{smallest}",
    (UNDECIDED, True): "the interval is neither within ±{smallest} nor outside",
}


def number(value: float, of: Claim, decimals: int | None = None) -> str:
    """A value in the claim's unit, without it."""
    return "no number" if math.isnan(value) else points(value, decimals) if of.points else fixed(value, 2)


def smallest(of: Claim) -> str:
    """ "30.0 points", "0.50" """
    return number(of.smallest, of) + " points" * of.points


def shown(found: Judged, of: Claim) -> str:
    """ "62.1 points (51.0 to 73.2)" """
    mean, low, high, _ = found.interval
    decimals = decimals_of((mean, low, high))
    span = "no interval" if math.isnan(low) else f"{number(low, of, decimals)} to {number(high, of, decimals)}"
    return f"{number(mean, of, decimals)}{' points' * of.points} ({span})"


def told(found: Judged, of: Claim) -> str:
    """ "62.1 points (51.0 to 73.2), 10 seeds: replicates here, the whole interval is above 30.0 points." """
    told_apart = not math.isnan(found.interval.low)
    why = BECAUSE[found.verdict, of.alike].format(smallest=smallest(of)) if told_apart else "there is no interval"
    return f"{shown(found, of)}, {count(found.interval.n, 'seed')}: {found.verdict}, {why}."


def tally(found: Iterable[Judged]) -> str:
    """ "18 claims: 9 replicate here, 3 do not, 6 are undecided." """
    many = Counter(each.verdict for each in found)
    yes, no, rest = many[REPLICATES], many[DOES_NOT], many[UNDECIDED]
    return (
        f"{count(yes + no + rest, 'claim')}: {yes} replicate{'s' * (yes == 1)} here, {no} do{'es' * (no == 1)} not, "
        f"{rest} {'is' if rest == 1 else 'are'} undecided."
    )
