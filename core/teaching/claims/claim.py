"""A claim of a paper, and the rule by which it is judged here.

What is measured, and the smallest effect that counts, stand in the claim's definition before it is run: one number for each
seed. Intervals of all claims hold together (Bonferroni): the chance that any of them misses is 5 % at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from core.measure.intervals import LEVEL, Interval, Within, interval
from core.settings.menu import Menu
from core.teaching.claims.evidence import Evidence

Values = Mapping[int, float]  # seed -> what was measured
Link = tuple[str, Mapping[str, str]]  # key of a page, and the parameters of the experiment there

REPLICATES, DOES_NOT, UNDECIDED = "replicates here", "does not replicate here", "undecided"


class Claim(Protocol):
    """An entry of the menu: what gives one number for each seed, and what is known about it.

    paper: authors, year, title, and where in it. here: the experiment at this size. number: what is measured.
    smallest: the effect that counts at the least. alike: whether the claim is that there is none so large.
    points: whether the number is a difference of accuracies, shown in percentage points. within: what it can be at all. live: what opens the experiment.
    """

    paper: str
    here: str
    number: str
    smallest: float
    alike: bool
    points: bool
    within: Within
    live: Link

    def __call__(self, evidence: Evidence, /) -> Values: ...


claim: Menu[Claim] = Menu("Claims", alike=False, points=True, within=(-1.0, 1.0))


@dataclass(frozen=True)
class Judged:
    """A claim's result: mean over seeds, interval, and the verdict that follows from it."""

    interval: Interval
    verdict: str


def judged(values: Values, of: Claim) -> Judged:
    """The verdict on a claim, from its numbers."""
    found = interval(values.values(), of.within, 1 - (1 - LEVEL) / len(claim))
    return Judged(found, verdict(found, of.smallest, of.alike))


def verdict(found: Interval, smallest: float, alike: bool) -> str:
    """An effect replicates where the whole interval is beyond the smallest that counts, and does not where the whole interval is
    short of it. That there is none (alike) replicates where the whole interval is within ± the smallest, and does not where the
    whole interval is outside. All else is undecided, as is whatever has no interval."""
    if not found.low <= found.high:
        return UNDECIDED
    if alike:
        inside, outside = (
            -smallest < found.low and found.high < smallest,
            found.low > smallest or found.high < -smallest,
        )
    else:
        inside, outside = found.low > smallest, found.high < smallest
    return REPLICATES if inside else DOES_NOT if outside else UNDECIDED
