"""Sentences about the results of a plan."""

import math
from collections.abc import Iterable

from core.experiments.training.plan import BASELINE, Plan
from core.experiments.training.results import (
    Runs,
    common_step,
    differences,
    diverged,
    facts_of,
    mean_accuracy,
    scores,
)
from core.measure.intervals import Paired, interval, wilson
from core.measure.power import LEAST_SEEDS, MOST_SEEDS
from core.measure.verdicts import (
    CHANGE,
    DIGITS,
    EQUIVALENT,
    NO_NOISE,
    Difference,
    Noise,
    Shares,
    measure_noise,
)
from core.model.variants import apply
from core.settings.wording import count, fixed, number
from core.tasks import task


def describe_finding(runs: Runs, plan: Plan) -> str:
    """Describe divergence and the model farthest from the baseline at the newest common step.

    Compares accuracies over seeds on which neither diverged. Without a baseline: the best model.
    """
    step = common_step(runs, plan)
    diverged_runs = describe_divergence(runs, plan)
    when = "Accuracy" if step == plan.training.steps else f"At step {step}, accuracy"
    values = {
        arm.name: scores(runs, plan, arm.name, step) for arm in plan.arms if arm.colour is not None
    }
    means = {name: interval(per_seed.values()).mean for name, per_seed in values.items()}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if not means:
        return diverged_runs.strip()
    base = values.pop(BASELINE)
    compared = differences(runs, plan, step)
    with_pairs = {name: compared[name] for name in values if compared[name].n}
    together = sum(
        not math.isnan(gap.p) for gap in compared.values()
    )  # those that are corrected for each other
    if not with_pairs:
        name = BASELINE if BASELINE in means else max(means, key=lambda name: means[name])
        return f"{diverged_runs}{when} is {format_percent(means[name])} ({name})."
    name = max(with_pairs, key=lambda name: abs(with_pairs[name].mean))
    both = [seed for seed in plan.seeds if not math.isnan(values[name][seed] - base[seed])]
    fine = _decimals(with_pairs[name].mean)
    a, other = (
        format_percent(interval([per_seed[seed] for seed in both]).mean, fine)
        for per_seed in (values[name], base)
    )
    some = f" on {len(both)} of {len(plan.seeds)} seeds" if len(both) < len(plan.seeds) else ""
    noise = measure_noise(values[name], base, facts_of(plan.training).answers, together)
    return (
        f"{diverged_runs}{when} is {a} for “{name}” and {other} for the baseline{some}."
        f" {describe_gap(with_pairs[name], together, noise)}"
    )


def describe_divergence(runs: Runs, plan: Plan) -> str:
    """Describe which models diverged, first step and seed, with a space at the end; or ""."""
    parts = []
    for arm in plan.arms:
        diverged_runs = {
            seed: runs[arm.name, seed] for seed in plan.seeds if diverged(runs[arm.name, seed])
        }
        if diverged_runs:
            first = min(diverged_runs, key=lambda seed: diverged_runs[seed][-1].step)
            share = (
                ""
                if len(plan.seeds) == 1
                else f" ({len(diverged_runs)} of {len(plan.seeds)} seeds)"
            )
            parts.append(f"{arm.name} {diverged(diverged_runs[first])}, seed {first}{share}. ")
    return "".join(parts)


def describe_gap(gap: Difference, corrected_for: int = 1, noise: Noise = NO_NOISE) -> str:
    """Describe a corrected difference of accuracies and its verdict, in sentences.

    Args:
        gap: The difference over seeds.
        corrected_for: Number of differences for which it is Holm-corrected together.
        noise: Its noise over seeds, for what more seeds would show.
    """
    if gap.n < LEAST_SEEDS:
        seeds = "One seed" if gap.n == 1 else "Two seeds"
        return f"{seeds}, so significance cannot be tested: train with more seeds."
    if gap.shares:
        return _describe_shares(gap, gap.shares, corrected_for)
    way = "lower" if gap.mean < 0 else "higher"
    if not gap.mean and gap.low == gap.high:
        return f"Accuracy is identical on all {gap.n} seeds."
    span = _describe_interval(gap)
    test = _describe_test(f"paired t-test on {gap.n} seeds", gap.p, corrected_for)
    fine = max(map(_decimals, gap[:3]))
    if gap.clear:
        size = format_points(abs(gap.mean), fine)
        return f"That is {size} percentage points {way} ({span}; {test})."
    margin = format_margin(gap.margin)
    if gap.verdict == EQUIVALENT:
        return (
            f"Accuracies are equivalent within {margin}: the difference is"
            f" {format_points(gap.mean, fine)} points ({span}; paired on {gap.n} seeds)."
        )
    return (
        f"Undecided: the difference, {format_points(gap.mean, fine)} points, is neither significant"
        f" nor certainly within {margin} ({span}; {test}).{describe_seeds_needed(gap.n, noise)}"
    )


def _describe_interval(gap: Paired | Difference) -> str:
    """Describe an interval in points, "95 % CI 1.2 to 3.4"; without signs if it is below 0."""
    fine = max(map(_decimals, gap[:3]))
    low, high = (-gap.high, -gap.low) if gap.high < 0 else (gap.low, gap.high)
    return f"95 % CI {format_points(low, fine)} to {format_points(high, fine)}"


def _describe_test(name: str, p: float, corrected_for: int) -> str:
    """Describe a test and its corrected p: "paired t-test on 5 seeds, p = 0.012"."""
    corrected = f", Holm-corrected for {corrected_for} variants" if corrected_for > 1 else ""
    return f"{name}, p {'< 0.001' if p < 0.001 else f'= {number(p, 2)}'}{corrected}"


def format_learnt(learnt: int, n: int) -> str:
    """Format how many runs learnt the task: "5 of 6 runs learnt it (44 to 97 %)"."""
    _, low, high = wilson(learnt, n)
    return f"{learnt} of {n} runs learnt it ({fixed(100 * low, 0)} to {fixed(100 * high, 0)} %)"


def _describe_shares(gap: Difference, shares: Shares, corrected_for: int) -> str:
    """Describe how many runs learnt the task, then its baseline's; and the test, if any decides."""
    counts = f"{format_learnt(shares.learnt, shares.n)}, {shares.base_learnt} of the baseline"
    both = shares.both
    by_means = both.p < shares.p
    verdict = "significant" if gap.clear else "not significant"
    name = f"paired t-test on {both.n} seeds" if by_means else "Boschloo's exact test"
    test = _describe_test(name, gap.p, corrected_for)
    if by_means:
        change = f"{format_points(both.mean)} points"
        return (
            f"{counts}. Where both learnt it, the difference is {change}, {verdict}"
            f" ({_describe_interval(both)}; {test})."
        )
    if shares.learnt == shares.base_learnt:
        return f"{counts}."
    return f"{counts}; the difference is {verdict} ({test})."


def format_margin(margin: float) -> str:
    """Format a margin of equivalence, a share: 0.02 as "±2 points"."""
    return f"±{number(100 * margin, 2)} points"


def describe_seeds_needed(n: int, noise: Noise) -> str:
    """Describe what n seeds can show and how many would show more, after a space; "" if unknown."""
    if math.isnan(noise.smallest_effect):
        return ""
    if noise.smallest_effect >= CHANGE[1]:
        first = f" With {n} seeds and this much noise, no difference is detectable"
    else:
        points = format_points(noise.smallest_effect)
        first = f" Smallest detectable difference with {n} seeds: {points} points"
    needed = [
        (points, seeds)
        for points, seeds in ((5, noise.seeds_for_5), (1, noise.seeds_for_1))
        if seeds > n
    ]
    words = [f"{_format_seeds(seeds)} for {count(points, 'point')}" for points, seeds in needed]
    return f"{'; '.join([f'{first} (80 % power)', *words])}."


def _format_seeds(seeds: float) -> str:
    """Format a number of seeds: "about 40 seeds"; infinity as "more than 1,000 seeds"."""
    return f"more than {MOST_SEEDS:,} seeds" if math.isinf(seeds) else f"about {seeds:,.0f} seeds"


def beats_chance(runs: Runs, plan: Plan) -> bool:
    """Return whether the interval of a model without its task's needed part is above chance."""
    learnt = task[plan.training.task]
    step = common_step(runs, plan)
    lacking = [
        arm for arm in plan.arms[1:] if arm.config == apply(learnt.without, plan.arms[0].config)
    ]
    spans = [mean_accuracy(runs, plan, arm.name, step) for arm in lacking]
    return any(span.low > learnt.chance for span in spans)


def format_percent(share: float, decimals: int = 1) -> str:
    """Format an accuracy, a share, in percent: "97.2 %"; "undefined" for NaN."""
    return "undefined" if math.isnan(share) else f"{fixed(100 * share, decimals)} %"


def format_points(share: float, decimals: int | None = None) -> str:
    """Format a share as points, such as "−1.2", with more decimals where it would read as 0."""
    return fixed(100 * share, decimals or _decimals(share))


def decimals_of(shares: Iterable[float]) -> int:
    """Return the decimals, 1 at least, at which the largest share in percent is not 0."""
    finite = [abs(share) for share in shares if not math.isnan(share)]
    return _decimals(max(finite, default=0.0))


def _decimals(share: float) -> int:
    """Return the decimals at which a share in percent is not rounded to 0; 1 if at none."""
    return next((n for n in range(1, DIGITS - 2) if round(100 * share, n)), 1)
