"""Benchmark of the rule that calls a difference significant: false claims in simulated studies.

    python -m benchmarks.verdicts [--studies 10000] [--seeds 2 3 5 10] [--variants 1 4 11]

Simulates studies in which no variant differs from the baseline. Prints the share of studies with
at least one false claim. Then lets one variant differ, by 1 to 6 standard deviations over seeds or
from all answers right to a third, and prints how often it is found. Each for two rules:

- rule: the app's (core/measure/verdicts.py).
- t-test: a paired t-test over seeds, corrected by Holm, which the app used before.

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

import numpy as np

from core.measure.intervals import correct_together, paired, wilson
from core.measure.verdicts import Facts, compare_runs, pair_runs

ANSWERS = 1024
LEARNT = 0.5  # accuracy from which a run counts as having learnt the task
SPREAD = 0.03  # standard deviation over seeds, where noise is added
World = Callable[[np.random.Generator, int, int], np.ndarray]  # (models, seeds) accuracies
Rule = Callable[[np.ndarray], list[int]]  # accuracies -> rows that differ from the first


def add_noise(draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> World:
    """Return a world of 80 % plus standardised noise, half of its variance common to a seed."""

    def world(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
        common = draw(generator, (1, seeds))
        independent = draw(generator, (models, seeds))
        return 0.8 + SPREAD * (common + independent) / math.sqrt(2)

    return world


def draw_skewed(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw log-normal numbers of mean 0 and standard deviation 1."""
    mean = math.exp(0.5)
    spread = math.sqrt((math.e - 1) * math.e)
    return (mean - generator.lognormal(size=size)) / spread


def draw_ceiling(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
    """Draw accuracies of 1, but in one run of four one to three answers are wrong."""
    is_wrong = generator.random((models, seeds)) < 0.25
    return 1 - is_wrong * generator.integers(1, 4, (models, seeds)) / ANSWERS


def draw_two_humps(learnt: float) -> World:
    """Return a world in which a run is perfect with this probability, else right by a third."""

    def world(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
        has_learnt = generator.random((models, seeds)) < learnt
        return np.where(has_learnt, 1.0, generator.normal(0.35, 0.01, (models, seeds)))

    return world


def draw_near_threshold(generator: np.random.Generator, models: int, seeds: int) -> np.ndarray:
    """Draw accuracies around the threshold, of which some seem to be two groups."""
    return generator.normal(LEARNT, 0.12, (models, seeds))


WORLDS: dict[str, World] = {
    "normal": add_noise(lambda generator, size: generator.normal(size=size)),
    "skewed": add_noise(draw_skewed),
    "heavy tails": add_noise(lambda generator, size: generator.standard_t(3, size) / math.sqrt(3)),
    "ceiling": draw_ceiling,
    "learnt 50 %": draw_two_humps(0.5),
    "learnt 80 %": draw_two_humps(0.8),
    "learnt 90 %": draw_two_humps(0.9),
    "threshold": draw_near_threshold,
}


COLLAPSES: dict[str, World] = {  # what the other variants of a study do
    "": draw_ceiling,
    ", others learn in half of the runs": draw_two_humps(0.5),
}


def find_claims_by_t_test(accuracies: np.ndarray) -> list[int]:
    """Return the variants that paired t-tests call different from the first row."""
    by_seed = [dict(enumerate(row)) for row in accuracies.tolist()]
    gaps = correct_together(
        lambda variant, level: paired(by_seed[variant], by_seed[0], (-1.0, 1.0), level),
        range(1, len(by_seed)),
    )
    return [variant for variant, gap in gaps.items() if gap.clear]


def find_claims(accuracies: np.ndarray) -> list[int]:
    """Return the variants that the app calls different from the baseline, the first row."""
    by_seed = [dict(enumerate(row)) for row in accuracies.tolist()]
    several = {variant: (by_seed[variant], by_seed[0]) for variant in range(1, len(by_seed))}
    differences = compare_runs(pair_runs(several, Facts(LEARNT, ANSWERS)))
    return [variant for variant, difference in differences.items() if difference.clear]


RULES: dict[str, Rule] = {"rule": find_claims, "t-test": find_claims_by_t_test}


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


def print_table(title: str, columns: Sequence[str], rows: dict[str, list[float]]):
    """Print percentages as a Markdown table."""
    print(f"\n| {title} |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name, shares in rows.items():
        print(f"| {name} |", " | ".join(f"{100 * share:.1f}" for share in shares), "|", flush=True)


def main():
    """Print false claims in every world, and the share of effects found, for both rules."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--variants", type=int, nargs="+", default=[1, 4, 11])
    arguments = parser.parse_args()
    cells = [(seeds, variants) for seeds in arguments.seeds for variants in arguments.variants]
    columns = [f"{seeds} seeds × {variants}" for seeds, variants in cells]
    studies = arguments.studies
    broken = []
    for name, rule in RULES.items():
        rows = {
            world_name: [false_claims(rule, world, *cell, studies) for cell in cells]
            for world_name, world in WORLDS.items()
        }
        print_table(f"{name}: studies with a false claim, %", columns, rows)
        if name == "rule":
            broken = [
                f"{world_name}, {column}"
                for world_name, shares in rows.items()
                for column, share in zip(columns, shares)
                if wilson(round(share * studies), studies)[1] > 0.05
            ]
        rows = {
            f"{effect} SD": [power(rule, effect, *cell, studies // 4) for cell in cells]
            for effect in range(1, 7)
        }
        for words, others in COLLAPSES.items():
            rows[f"100 % to a third{words}"] = [
                power_of_collapse(rule, *cell, studies // 4, others) for cell in cells
            ]
        print_table(f"{name}: effect found, %", columns, rows)
    if broken:
        raise SystemExit(f"More than 5 % false claims: {'; '.join(broken)}")


if __name__ == "__main__":
    main()
