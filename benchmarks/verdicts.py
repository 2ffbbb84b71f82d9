"""Benchmark of the rule that calls a difference significant: false claims in simulated studies.

    python -m benchmarks.verdicts [--studies 10000] [--seeds 2 3 5 10] [--variants 1 4 11]
        [--workers 2]

Simulates studies in which no variant differs from the baseline. Prints the share of studies with
at least one false claim. Then lets one variant differ, by 1 to 6 standard deviations over seeds or
from all answers right to a third, and prints how often it is found. Each for three rules:

- rule: the app's (core/measure/verdicts.py).
- looks: the app's for seeds = "5, 10, 20", where undecided variants get more seeds.
- t-test: a paired t-test over seeds, corrected by Holm, which the app used before.

At last it lets all variants differ by exactly the margin of equivalence, and prints the share of
studies that call one of them equivalent; and by one run in ten that does not learn the task.

Accuracies are shares of 1,024 test answers. The worlds:

- normal, skewed, heavy tails: 80 % plus noise of 3 points over seeds (normal, log-normal, t with
  three degrees of freedom). Half of its variance is common to all models of a seed.
- ceiling: all answers right, but in one run of four a few are wrong.
- threshold: 50 % plus normal noise of 12 points, where a task counts as learnt from 50 %.
- learnt 50, 80, 90 %: a run has all answers right with this probability, else about a third.

A row holds if its share is at most 5 %, up to the error of the simulation: the lower end of its
Wilson interval is at most 5 %. Where it is not, the command prints the row and ends with 1.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from core.measure.intervals import correct_together, paired, wilson
from core.measure.verdicts import (
    DIFFERENCE,
    EQUIVALENT,
    MARGIN,
    Facts,
    compare_in_looks,
    compare_runs,
    pair_runs,
)

ANSWERS = 1024
LEARNT = 0.5  # accuracy from which a run counts as having learnt the task
SPREAD = 0.03  # standard deviation over seeds, where noise is added
World = Callable[[np.random.Generator, int, int], np.ndarray]  # (models, seeds) accuracies
Rule = Callable[[np.ndarray], list[int]]  # accuracies -> rows that differ from the first
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
LOOKS = (5, 10, 20)
FACTS = Facts(LEARNT, ANSWERS)


def add_noise(
    draw: Draw, generator: np.random.Generator, models: int, seeds: int, spread: float = SPREAD
) -> np.ndarray:
    """Draw accuracies of 80 % plus standardised noise, half of its variance common to a seed."""
    common = draw(generator, (1, seeds))
    independent = draw(generator, (models, seeds))
    return 0.8 + spread * (common + independent) / math.sqrt(2)


def draw_normal(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw normal numbers of mean 0 and standard deviation 1."""
    return generator.normal(size=size)


def draw_heavy_tails(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw numbers of Student's t with three degrees of freedom, of standard deviation 1."""
    return generator.standard_t(3, size) / math.sqrt(3)


def draw_skewed(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw log-normal numbers of mean 0 and standard deviation 1."""
    mean = math.exp(0.5)
    spread = math.sqrt((math.e - 1) * math.e)
    return (mean - generator.lognormal(size=size)) / spread


def draw_ceiling(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
    """Draw accuracies of 1, but in one run of four one to three answers are wrong."""
    is_wrong = generator.random((models, seeds)) < 0.25
    return 1 - is_wrong * generator.integers(1, 4, (models, seeds)) / ANSWERS


def draw_two_humps(
    learnt: float, generator: np.random.Generator, models: int, seeds: int
) -> np.ndarray:
    """Draw accuracies of runs that are perfect with this probability, else right by a third."""
    has_learnt = generator.random((models, seeds)) < learnt
    return np.where(has_learnt, 1.0, generator.normal(0.35, 0.01, (models, seeds)))


def draw_near_threshold(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
    """Draw accuracies around the threshold, of which some seem to be two groups."""
    return generator.normal(LEARNT, 0.12, (models, seeds))


WORLDS: dict[str, World] = {
    "normal": partial(add_noise, draw_normal),
    "skewed": partial(add_noise, draw_skewed),
    "heavy tails": partial(add_noise, draw_heavy_tails),
    "ceiling": draw_ceiling,
    "learnt 50 %": partial(draw_two_humps, 0.5),
    "learnt 80 %": partial(draw_two_humps, 0.8),
    "learnt 90 %": partial(draw_two_humps, 0.9),
    "threshold": draw_near_threshold,
}


COLLAPSES: dict[str, World] = {  # what the other variants of a study do
    "": draw_ceiling,
    ", others learn in half of the runs": partial(draw_two_humps, 0.5),
}


def find_claims_by_t_test(accuracies: np.ndarray) -> list[int]:
    """Return the variants that paired t-tests call different from the first row."""
    by_seed = [dict(enumerate(row)) for row in accuracies.tolist()]
    gaps = correct_together(
        lambda variant, level: paired(by_seed[variant], by_seed[0], (-1.0, 1.0), level),
        range(1, len(by_seed)),
    )
    return [variant for variant, gap in gaps.items() if gap.clear]


def find_claims(accuracies: np.ndarray, verdict: str = DIFFERENCE) -> list[int]:
    """Return the variants of a verdict, against the baseline, the first row."""
    differences = compare_runs(pair_runs(pair_rows(accuracies), FACTS))
    return [variant for variant, gap in differences.items() if gap.verdict == verdict]


def find_claims_in_looks(accuracies: np.ndarray, verdict: str = DIFFERENCE) -> list[int]:
    """Return the variants of a verdict, where undecided ones get more seeds."""
    differences = compare_in_looks(pair_rows(accuracies), FACTS, LOOKS).differences
    return [variant for variant, gap in differences.items() if gap.verdict == verdict]


def pair_rows(accuracies: np.ndarray) -> dict[int, tuple[dict[int, float], dict[int, float]]]:
    """Return each variant's accuracies and those of the baseline, the first row, by seed."""
    by_seed = [dict(enumerate(row)) for row in accuracies.tolist()]
    return {variant: (by_seed[variant], by_seed[0]) for variant in range(1, len(by_seed))}


RULES: dict[str, Rule] = {
    "rule": find_claims,
    "looks": find_claims_in_looks,
    "t-test": find_claims_by_t_test,
}


def count_answers(accuracies: np.ndarray) -> np.ndarray:
    """Return accuracies as shares of whole test answers."""
    return np.round(np.clip(accuracies, 0, 1) * ANSWERS) / ANSWERS


def false_claims(rule: Rule, world: World, seeds: int, variants: int, studies: int) -> float:
    """Return the share of studies without any effect in which a variant is called different."""
    generator = np.random.default_rng(0)
    hits = sum(
        bool(rule(count_answers(world(generator, variants + 1, seeds)))) for _ in range(studies)
    )
    return hits / studies


def power(rule: Rule, effect: float, seeds: int, variants: int, studies: int) -> float:
    """Return how often a variant is found that is lower by `effect` standard deviations."""
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(studies):
        accuracies = WORLDS["normal"](generator, variants + 1, seeds)
        accuracies[1] -= effect * SPREAD
        hits += 1 in rule(count_answers(accuracies))
    return hits / studies


def power_of_collapse(rule: Rule, seeds: int, variants: int, studies: int, others: World) -> float:
    """Return how often a variant is found that falls from 100 % to a third on every seed.

    others: world of the other variants.
    """
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(studies):
        accuracies = others(generator, variants + 1, seeds)
        accuracies[0] = 1.0
        accuracies[1] = generator.normal(0.35, 0.01, seeds)
        hits += 1 in rule(count_answers(accuracies))
    return hits / studies


def false_equivalence(
    rule: Callable[[np.ndarray, str], list[int]],
    spread: float,
    seeds: int,
    variants: int,
    studies: int,
) -> float:
    """Return the share of studies that call a variant equivalent which differs by the margin.

    spread: standard deviation of accuracies over seeds.
    """
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(studies):
        accuracies = add_noise(draw_normal, generator, variants + 1, seeds, spread)
        accuracies[1:] -= MARGIN
        # Not rounded to answers: that could bring the difference below the margin.
        hits += bool(rule(accuracies, EQUIVALENT))
    return hits / studies


def missed_failures(
    rule: Callable[[np.ndarray, str], list[int]], seeds: int, variants: int, studies: int
) -> float:
    """Return how often a variant is called equivalent that fails in one run of ten."""
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(studies):
        accuracies = np.ones((variants + 1, seeds))
        accuracies[1:] = draw_two_humps(0.9, generator, variants, seeds)
        hits += 1 in rule(count_answers(accuracies), EQUIVALENT)
    return hits / studies


def print_table(title: str, columns: Sequence[str], rows: dict[str, list[float]]):
    """Print percentages as a Markdown table."""
    print(f"\n| {title} |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name, shares in rows.items():
        print(f"| {name} |", " | ".join(f"{100 * share:.1f}" for share in shares), "|", flush=True)


def main():
    """Print false claims in every world, and the share of effects found, for all rules."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--variants", type=int, nargs="+", default=[1, 4, 11])
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.workers) as pool:
        broken = [
            sentence
            for name in RULES
            for sentence in print_rule(pool, name, list_cells(arguments, name), arguments.studies)
        ]
        for name in ("rule", "looks"):
            broken += print_equivalence(pool, name, list_cells(arguments, name), arguments.studies)
    if broken:
        raise SystemExit(f"More than 5 % false claims: {'; '.join(broken)}")


def list_cells(arguments: argparse.Namespace, name: str) -> list[tuple[int, int]]:
    """Return the (seeds, variants) to simulate for a rule."""
    seeds = [LOOKS[-1]] if name == "looks" else arguments.seeds
    return [(n, variants) for n in seeds for variants in arguments.variants]


def name_cells(name: str, cells: Sequence[tuple[int, int]]) -> list[str]:
    """Return the names of the columns of a rule's tables."""
    words = {LOOKS[-1]: ", ".join(map(str, LOOKS))} if name == "looks" else {}
    return [f"{words.get(seeds, seeds)} seeds × {variants}" for seeds, variants in cells]


def print_rule(
    pool: ProcessPoolExecutor, name: str, cells: Sequence[tuple[int, int]], studies: int
) -> list[str]:
    """Print a rule's false claims and power; return the rows of the app's with too many."""
    rule = RULES[name]
    columns = name_cells(name, cells)
    rows = {
        words: simulate(pool, partial(false_claims, rule, world), cells, studies)
        for words, world in WORLDS.items()
    }
    print_table(f"{name}: studies with a false claim, %", columns, rows)
    broken = find_broken(name, rows, columns, studies) if name != "t-test" else []
    rows = {
        f"{effect} SD": simulate(pool, partial(power, rule, effect), cells, studies // 4)
        for effect in range(1, 7)
    }
    for words, others in COLLAPSES.items():
        call = partial(power_of_collapse, rule, others=others)
        rows[f"100 % to a third{words}"] = simulate(pool, call, cells, studies // 4)
    print_table(f"{name}: effect found, %", columns, rows)
    return broken


def print_equivalence(
    pool: ProcessPoolExecutor, name: str, cells: Sequence[tuple[int, int]], studies: int
) -> list[str]:
    """Print how often variants are called equivalent that are not; return rows with too many."""
    rule = RULES[name]
    columns = name_cells(name, cells)
    rows = {
        f"spread of {100 * spread:g} points": simulate(
            pool, partial(false_equivalence, rule, spread), cells, studies
        )
        for spread in (0.005, 0.01, 0.02, 0.04)
    }
    print_table(f"{name}: studies with a false equivalence, %", columns, rows)
    missed = {
        "one run of ten fails": simulate(pool, partial(missed_failures, rule), cells, studies)
    }
    print_table(f"{name}: equivalent by means, %", columns, missed)
    return find_broken(f"{name}, equivalence", rows, columns, studies)


def simulate(
    pool: ProcessPoolExecutor,
    call: Callable[..., float],
    cells: Sequence[tuple[int, int]],
    studies: int,
) -> list[float]:
    """Return the result of a simulation for each (seeds, variants)."""
    waiting = [pool.submit(call, seeds, variants, studies) for seeds, variants in cells]
    return [result.result() for result in waiting]


def find_broken(
    name: str, rows: dict[str, list[float]], columns: Sequence[str], studies: int
) -> list[str]:
    """Return the names of the entries whose share is above 5 %, beyond the simulation's error."""
    return [
        f"{name}: {words}, {column}"
        for words, shares in rows.items()
        for column, share in zip(columns, shares)
        if wilson(round(share * studies), studies)[1] > 0.05
    ]


if __name__ == "__main__":
    main()
