"""Baseline and variants trained side by side, several seeds each: what is run, and what came out, in tables and words."""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import pandas as pd

from core.measure.intervals import LEVEL, Interval, Paired, geometric, interval, paired, together
from core.model.config import Config
from core.model.variants import Variant, apply, difference, name_of
from core.settings.device import Machine
from core.settings.setting import ConfigError, Settings, dial
from core.settings.wording import fixed, number
from core.tasks import task
from core.train import Row, State, Training, start
from core.train.match import CLOSE, match, widened

RANGE = (0.0, 1.0)  # of an accuracy
CHANGE = (-1.0, 1.0)  # of the difference of two
DIGITS = 6  # that count in a difference: an accuracy is a float32
BASELINE = "baseline"
NINETY = 0.9
FEW = 3  # seeds, of which it is said what they cannot show


@dataclass(frozen=True)
class Trial(Settings):
    """How the comparison is made."""

    seeds: int = dial(
        3,
        "Seeds",
        "Every model is trained so many times, each time with other weights and other data. The first seed is the random seed.",
        group="Comparison",
        short="seeds",
        low=1,
        high=30,
        step=1,
        top=10,
    )
    match: str = dial(
        "nothing",
        "Hold equal",
        "Whether the widths of what is left after a part is taken out are changed, so that all models cost the same.",
        group="Comparison",
        short="held equal",
        menu=match,
    )
    together: bool = dial(
        False,
        "All combinations",
        "Train every combination of the variants too: leave one out, add one back, two at a time.",
        group="Comparison",
        short="combinations",
    )


@dataclass(frozen=True)
class Arm:
    """One model of the comparison: its name, its settings, and which variants (by their names) are in it."""

    name: str
    config: Config
    place: int | None  # of its colour; None for a combination of several variants
    members: frozenset[str]
    note: str = ""  # how it was widened
    also: tuple[frozenset[str], ...] = ()  # combinations that come out as this very model


@dataclass(frozen=True)
class Plan:
    """Everything that is trained: equal plans give the same numbers."""

    arms: tuple[Arm, ...]  # the baseline first
    training: Training
    trial: Trial
    machine: Machine

    @property
    def seeds(self) -> list[int]:
        first = self.arms[0].config.seed
        return list(range(first, first + self.trial.seeds))

    def states(self) -> dict[tuple[str, int], State]:
        """(arm, seed) -> a training before its first step. Raises ConfigError for what cannot be trained."""
        return {
            (arm.name, seed): start(arm.config, self.training, seed, self.machine)
            for seed in self.seeds
            for arm in self.arms
        }


def plan(variants: list[Variant], training: Training, trial: Trial, machine: Machine) -> tuple[Plan, list[str]]:
    """-> (what to train, why something is left out). variants: the baseline first (core.model.variants.lineup).

    No model is in it twice: the seed of a variant does not count, and what is made as wide as the baseline may become it.
    """
    first, *rest = variants
    arms, notes, kept = [Arm(BASELINE, first.config, 0, frozenset())], [], []
    wanted = _cost(first.config, training, trial.match)
    for variant in rest:
        config = variant.config.replace(seed=first.config.seed)
        arm = _arm(variant.name, config, variant.place, {variant.name}, training, trial, wanted)
        twin = _twin(arms, arm)
        if twin is None:
            arms.append(arm)
            kept.append(replace(variant, config=config))
        else:
            other = arms[twin].name if twin else "the baseline"
            notes.append(f"{variant.name} is left out here: as it would be trained, it is the same as {other}.")
    combined, refused = _combined(first.config, kept) if trial.together else ([], [])
    for each in combined:
        arm = _arm(*each, training, trial, wanted)
        twin = _twin(arms, arm)
        if twin is None:
            arms.append(arm)
        else:
            arms[twin] = replace(arms[twin], also=(*arms[twin].also, arm.members))
    return Plan(tuple(arms), training, trial, machine), notes + refused


def _twin(arms: list[Arm], arm: Arm) -> int | None:
    """Which of the arms is the same model."""
    return next((n for n, other in enumerate(arms) if other.config == arm.config), None)


def _combined(baseline: Config, variants):
    """Every combination of two variants or more -> ((name, config, None, members), …), why one cannot be.

    Two that change the same setting cannot: what one of them takes out is not there to be taken out by the other.
    """
    made, notes, refused = [], [], []
    for size in range(2, len(variants) + 1):
        for several in combinations(variants, size):
            members = {each.name for each in several}
            if any(few <= members for few in refused):
                continue  # which was said already
            changes = [difference(each.config, baseline) for each in several]
            together = {field: value for change in changes for field, value in change.items()}
            try:
                _check_apart(*changes[:2])
                made.append((name_of(together), apply(together, baseline), None, members))
            except ConfigError as error:
                refused.append(members)
                notes.append(f"{' and '.join(each.name for each in several)} cannot be combined: {error}")
    return made, notes


def _check_apart(one: dict, other: dict):
    """Raises ConfigError if two variants change the same setting."""
    shared = sorted(one.keys() & other.keys())
    if shared:
        how = f"both set {', '.join(shared)}." if all(one[name] == other[name] for name in shared) else ""
        raise ConfigError("variants", how or f"they set {', '.join(shared)} to different values.")


def _cost(config, training, kind) -> int:
    return match[kind](config, training.length, len(task[training.task].vocabulary))


def _arm(name, config, place, members, training, trial, wanted) -> Arm:
    if trial.match == "nothing":
        return Arm(name, config, place, frozenset(members))
    made = widened(config, wanted, lambda tried: _cost(tried, training, trial.match))
    there = {"d_model": True, "d_ff": config.ffn, "d_head": config.attention}
    changes = [f"{n} {getattr(made, n)}" for n in there if there[n] and getattr(made, n) != getattr(config, n)]
    off = _cost(made, training, trial.match) / wanted - 1
    if abs(off) > CLOSE:
        changes.append(f"not to be held equal: {100 * off:+.0f} % {match.label(trial.match)}".replace("-", "−"))
    return Arm(name, made, place, frozenset(members), ", ".join(changes))


# What came out: rows of every run -> tables and words. Runs: {(arm, seed): [Row, …]}


def last(rows: list[Row], field: str = "accuracy") -> float:
    """The newest value; NaN before the first row, and for a run that diverged."""
    return getattr(rows[-1], field) if rows and not diverged(rows) else math.nan


def diverged(rows: list[Row]) -> str:
    """ "diverged at step k", or nothing."""
    return rows[-1].note if rows else ""


def at(rows: list[Row], step: int, field: str) -> float:
    """The value at a step, NaN where there is none."""
    return next((getattr(row, field) for row in rows if row.step == step), math.nan)


def reached(runs, seeds, name) -> int:
    """The newest step that all seeds of an arm have come to, or 0; those that diverged do not count."""
    steps = [runs[name, seed][-1].step if runs[name, seed] else 0 for seed in seeds if not diverged(runs[name, seed])]
    return min(steps, default=0)


def common(runs, plan: Plan) -> int:
    """The newest step at which all can be compared."""
    steps = [reached(runs, plan.seeds, arm.name) for arm in plan.arms if not all_diverged(runs, plan, arm.name)]
    return min(steps, default=0)


def all_diverged(runs, plan, name) -> bool:
    return all(diverged(runs[name, seed]) for seed in plan.seeds)


def steps_to(rows: list[Row], level: float) -> float:
    """The first step at which accuracy was at least so high; NaN where it has not been yet."""
    return next((row.step for row in rows if row.accuracy >= level), math.nan)


def scores(runs, plan: Plan, name: str, step: int | None = None, field: str = "accuracy") -> dict[int, float]:
    """Seed -> value of one arm at a step (the newest if None); NaN where there is none, and for a run that diverged, at
    whatever step: a mean is always over the same seeds."""
    of = {seed: runs[name, seed] for seed in plan.seeds}
    values = {seed: last(rows, field) if step is None else at(rows, step, field) for seed, rows in of.items()}
    return {seed: math.nan if diverged(of[seed]) else value for seed, value in values.items()}


def accuracy(runs, plan, name, step=None) -> Interval:
    return interval(scores(runs, plan, name, step).values(), RANGE)


def course(runs, plan: Plan, name: str, field: str, log: bool = False) -> list[tuple[int, Interval]]:
    """Step -> a value's mean over seeds with its interval, up to where all seeds have come that have not diverged.

    log: the geometric mean, for what is shown by powers of ten. An arm of which all seeds diverged is shown up to there.
    """
    going = [seed for seed in plan.seeds if not diverged(runs[name, seed])] or plan.seeds
    rows = [{row.step: getattr(row, field) for row in runs[name, seed] if not row.note} for seed in going]
    steps = sorted(set.intersection(*(set(each) for each in rows)))
    within = RANGE if field == "accuracy" else (-math.inf, math.inf)
    values = {step: [each[step] for each in rows] for step in steps}
    return [(step, geometric(each) if log else interval(each, within)) for step, each in values.items()]


def gap(values: dict[int, float], base: dict[int, float], within=CHANGE, level: float = LEVEL) -> Paired:
    """values − base of accuracies, seed by seed. Rounded, or the rounding of float32 would pass for a difference."""
    both = {seed: round(values[seed] - base[seed], DIGITS) for seed in values}
    return paired(both, dict.fromkeys(both, 0.0), within, level)


def gaps(pairs: dict, within=CHANGE) -> dict:
    """key -> (values, base): the same of several differences that are looked at together, intervals and p corrected (Holm)."""
    return together(lambda key, level: gap(*pairs[key], within, level), pairs)


def summary(runs, plan: Plan) -> pd.DataFrame:
    """One row per arm at the newest step that all have come to.

    variant; accuracy, low, high (95 % interval); seeds (that did not diverge, of which accuracy and loss are means);
    diverged (how many did); difference to the baseline, difference_low, difference_high, p (paired t-test on the seeds
    that diverged in neither; corrected for all variants, Holm); parameters, parameters_difference (relative); flops (of one sequence, forward),
    flops_difference; note (how it was widened); loss; steps_to_90 (mean over the seeds that came to 90 % right, of the
    first step at which they had; as coarse as the rows are), seeds_at_90 (how many did).
    """
    base, step = plan.arms[0], common(runs, plan)
    words = len(task[plan.training.task].vocabulary)
    size = {arm.name: match["parameters"](arm.config, plan.training.length, words) for arm in plan.arms}
    work = {arm.name: match["flops"](arm.config, plan.training.length, words) for arm in plan.arms}
    rows, nothing, known = [], gap({}, {}), differences(runs, plan, step)
    for arm in plan.arms:
        mean = accuracy(runs, plan, arm.name, step)
        off = known.get(arm.name, nothing)
        quick = interval([steps_to(runs[arm.name, seed], NINETY) for seed in plan.seeds])
        rows.append({
            "variant": arm.name,
            "accuracy": mean.mean, "low": mean.low, "high": mean.high, "seeds": mean.n,
            "diverged": sum(bool(diverged(runs[arm.name, seed])) for seed in plan.seeds),
            "difference": off.mean, "difference_low": off.low, "difference_high": off.high, "p": off.p,
            "loss": interval(scores(runs, plan, arm.name, step, "loss").values()).mean,
            "parameters": size[arm.name], "parameters_difference": size[arm.name] / size[base.name] - 1,
            "flops": work[arm.name], "flops_difference": work[arm.name] / work[base.name] - 1,
            "note": arm.note,
            "steps_to_90": quick.mean, "seeds_at_90": quick.n,
        })  # fmt: skip
    return pd.DataFrame(rows)


def differences(runs, plan: Plan, step: int) -> dict[str, Paired]:
    """Name of every arm but the baseline -> its difference in accuracy at a step, corrected for all of them."""
    base = scores(runs, plan, plan.arms[0].name, step)
    return gaps({arm.name: (scores(runs, plan, arm.name, step), base) for arm in plan.arms[1:]})


def every_row(runs, plan: Plan) -> pd.DataFrame:
    """All that was measured: variant, seed and the fields of core.train.Row."""
    rows = [(name, seed, *row) for (name, seed), given in runs.items() for row in given]
    return pd.DataFrame(rows, columns=["variant", "seed", *Row._fields])


def finding(runs, plan: Plan) -> str:
    """What diverged, and what the numbers say about the arm that ends farthest from the baseline, at the newest step that
    all have reached: both accuracies over the seeds on which neither diverged. Without a baseline, the best arm's."""
    step, lost = common(runs, plan), _lost(runs, plan)
    when = "" if step == plan.training.steps else f"At step {step}: "
    values = {arm.name: scores(runs, plan, arm.name, step) for arm in plan.arms if arm.place is not None}
    means = {name: interval(each.values()).mean for name, each in values.items()}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if not means:
        return lost.strip()
    base = values.pop(BASELINE)
    found = differences(runs, plan, step)
    known = {name: found[name] for name in values if found[name].n}
    if not known:
        name = BASELINE if BASELINE in means else max(means, key=means.get)
        return f"{lost}{when}{name} gets {percent(means[name])} right."
    name = max(known, key=lambda each: abs(known[each].mean))
    both = [seed for seed in plan.seeds if not math.isnan(values[name][seed] - base[seed])]
    one, other = (percent(interval([each[seed] for seed in both]).mean) for each in (values[name], base))
    some = f" on {len(both)} of {len(plan.seeds)} seeds" if len(both) < len(plan.seeds) else ""
    return f"{lost}{when}{name} gets {one} right against {other}{some}. {told(known[name], len(found))}"


def _lost(runs, plan) -> str:
    """Which arms have diverged, with the first step and seed."""
    told = []
    for arm in plan.arms:
        gone = {seed: runs[arm.name, seed] for seed in plan.seeds if diverged(runs[arm.name, seed])}
        if gone:
            first = min(gone, key=lambda seed: gone[seed][-1].step)
            share = "" if len(plan.seeds) == 1 else f" ({len(gone)} of {len(plan.seeds)} seeds)"
            told.append(f"{arm.name} {diverged(gone[first])}, seed {first}{share}. ")
    return "".join(told)


def told(gap: Paired, of: int = 1) -> str:
    """A paired difference of accuracies in words, and whether it can be told from noise: as its interval says.

    of: how many differences were looked at together, for which it is corrected (gaps()).
    """
    if gap.n < 2:
        return "One seed says nothing about noise: train more to know whether the difference is one."
    way = "lower" if gap.mean < 0 else "higher"
    if gap.low == gap.high:
        there = f"That is {points(abs(gap.mean))} points {way} on each of {gap.n} seeds."
        return there if gap.mean else f"No difference on any of {gap.n} seeds."
    fine = max(map(_decimals, gap[:3]))
    span = f"95 % interval {points(gap.low, fine)} to {points(gap.high, fine)} points"
    test = f"paired t-test on {gap.n} seeds, p {'< 0.001' if gap.p < 0.001 else f'= {number(gap.p, 2)}'}"
    test += f", corrected for {of} variants (Holm)" * (of > 1)
    if gap.clear:
        return f"That is {points(abs(gap.mean), fine)} points {way} ({span}; {test})."
    size = points(gap.mean, fine)
    return f"The difference of {size} points is not distinguishable from seed noise with {gap.n} seeds ({span}; {test}).{few(gap)}"


def few(gap: Paired) -> str:
    """What two or three seeds cannot show."""
    if gap.n > FEW:
        return ""
    if gap.reach >= CHANGE[1]:
        return f" With so much noise {gap.n} seeds cannot show any difference: train more."
    return f" With so much noise {gap.n} seeds can only show a difference of more than {points(gap.reach)} points: train more to see a smaller one."


def percent(share: float) -> str:
    """Of an accuracy: "97.2 %"."""
    return "no number" if math.isnan(share) else f"{fixed(100 * share, 1)} %"


def points(share: float, decimals: int | None = None) -> str:
    """Of a difference of accuracies, in percentage points: with one decimal, and more where that would read as none."""
    return fixed(100 * share, decimals or _decimals(share))


def _decimals(share: float) -> int:
    return next((many for many in range(1, DIGITS - 2) if round(100 * share, many)), 1)


# Several parts at once (T8)


def effects(runs, plan: Plan) -> pd.DataFrame:
    """Leave one out and add one back: part; removed, removed_low, removed_high, removed_p: accuracy lost when it
    alone is gone; alone, …: accuracy won when it alone comes back to the model that lacks all of them. At the newest
    step that all have reached, over the seeds on which neither of the two diverged; each of the two columns corrected
    for all parts (Holm)."""
    singles = [arm for arm in plan.arms if arm.place]
    by, step = _by_members(plan), common(runs, plan)
    every = frozenset(arm.name for arm in singles)
    of = lambda members: _scores_of(runs, plan, by.get(members), step)  # noqa: E731
    out = gaps({arm.name: (of(frozenset()), of(arm.members)) for arm in singles})
    back = gaps({arm.name: (of(every - arm.members), of(every)) for arm in singles})
    rows = [(name, *out[name][:3], out[name].p, *back[name][:3], back[name].p) for name in out]
    names = ["removed", "removed_low", "removed_high", "removed_p", "alone", "alone_low", "alone_high", "alone_p"]
    return pd.DataFrame(rows, columns=["part", *names])


def interactions(runs, plan: Plan) -> pd.DataFrame:
    """2 × 2 for every pair of variants: one, other; neither, first, second, both: mean accuracy with so much removed;
    interaction, low, high, p: both − first − second + neither, seed by seed, corrected for all pairs (Holm). 0: the losses
    simply add up; below 0: taking out both costs more than the two losses together; above 0: less (what the first took,
    the second cannot). At the newest step that all have reached, over the seeds on which none of the four diverged (each
    mean over its own, where there are none)."""
    by, step = _by_members(plan), common(runs, plan)
    found = {}
    for one, other in combinations([arm.name for arm in plan.arms if arm.place], 2):
        four = [by.get(frozenset(members)) for members in ((), (one,), (other,), (one, other))]
        if None not in four:
            found[one, other] = [scores(runs, plan, name, step) for name in four]
    sums = {
        pair: (
            {seed: both[seed] - first[seed] for seed in plan.seeds},
            {seed: second[seed] - neither[seed] for seed in plan.seeds},
        )
        for pair, (neither, first, second, both) in found.items()
    }
    rows, off_by = [], gaps(sums, (-2.0, 2.0))
    for pair, values in found.items():
        all_four = [seed for seed in plan.seeds if not any(math.isnan(v[seed]) for v in values)] or plan.seeds
        means = [interval([v[seed] for seed in all_four]).mean for v in values]
        rows.append((*pair, *means, *off_by[pair][:3], off_by[pair].p, off_by[pair].n))
    names = ["neither", "first", "second", "both", "interaction", "low", "high", "p", "seeds"]
    return pd.DataFrame(rows, columns=["one", "other", *names])


def _by_members(plan) -> dict[frozenset[str], str]:
    """Which arm has just these variants in it."""
    return {members: arm.name for arm in plan.arms for members in (arm.members, *arm.also)}


def _scores_of(runs, plan, name: str | None, step: int) -> dict[int, float]:
    """Of an arm that may not have been trained."""
    return scores(runs, plan, name, step) if name else dict.fromkeys(plan.seeds, math.nan)
