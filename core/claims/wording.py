"""A claim's result in words: from the interval that is shown, and nothing else."""

import math

from core.claims.claim import DOES_NOT, REPLICATES, UNDECIDED, Claim, Judged
from core.experiments.training.sentences import points
from core.settings.wording import count, fixed

BECAUSE = {  # (verdict, whether the claim is that there is no such effect) -> why, with the smallest effect in words
    (REPLICATES, False): "the whole interval is above {smallest}",
    (DOES_NOT, False): "the whole interval is below {smallest}",
    (UNDECIDED, False): "the interval holds {smallest}",
    (REPLICATES, True): "the whole interval is within ±{smallest}",
    (DOES_NOT, True): "the whole interval is outside ±{smallest}",
    (UNDECIDED, True): "the interval is neither within ±{smallest} nor outside",
}


def number(value: float, of: Claim) -> str:
    """A value in the claim's unit, without it."""
    return "no number" if math.isnan(value) else points(value) if of.points else fixed(value, 2)


def smallest(of: Claim) -> str:
    """ "30.0 points", "0.50" """
    return number(of.smallest, of) + " points" * of.points


def result(found: Judged, of: Claim) -> str:
    """ "62.1 points (51.0 to 73.2, 10 seeds): replicates here, the whole interval is above 30.0 points." """
    mean, low, high, seeds = found.interval
    shown = (
        f"{number(mean, of)}{' points' * of.points} ({number(low, of)} to {number(high, of)}, {count(seeds, 'seed')})"
    )
    return f"{shown}: {found.verdict}, {BECAUSE[found.verdict, of.alike].format(smallest=smallest(of))}."
