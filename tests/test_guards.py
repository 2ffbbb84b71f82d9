"""Fair comparisons in studies: matched cost and a tuned learning rate per model.

The rate is chosen on other data than it is judged on.
"""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from core.experiments.training.plan import BASELINE, Trial, plan
from core.experiments.training.plan import SEARCHED as RATE_SEARCHED
from core.experiments.training.results import facts_of
from core.model.variants import Variant, ablation, apply
from core.settings.device import Machine
from core.study.__main__ import main
from core.study.database.schema import FAILED
from core.study.database.store import Store
from core.study.file import describe_guards, parse, read_ticks
from core.study.plan import StudyError, plan_arms, without_rate
from core.study.plan import TaskSetup as Setup
from core.study.tables import searched_table, summary_with_guards
from core.tasks import task
from core.train import Training
from core.train.match import CLOSE, match, search
from tests.holm import verdicts
from tests.studies import TEXT, fill, late_loss

NAN = math.nan
RATES = (0.001, 0.01)
SEARCHED = parse(TEXT.replace('device = "cpu"', f'device = "cpu"\nsearch = {list(RATES)}'))
DEFAULT = {name: task[name].training["learning_rate"] for name in ("copy", "reverse")}
HERE = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


# What is searched


def test_models_choose_from_equal_rates():
    actual: dict = {}
    for run in SEARCHED.runs:
        model = run.task, without_rate(run.variant, run.training.learning_rate)
        actual.setdefault(model, set()).add((run.training.learning_rate, run.seed))
        plain = run.config.replace(seed=0), run.training.batch
        assert plain[1] == 8 and (run.config.norm == "none") == (model[1] == "− norm")
    assert {model for _, model in actual} == {BASELINE, "− norm", "1 head"}
    for (name, _), item in actual.items():
        assert item == {(rate, seed) for rate in (*RATES, DEFAULT[name]) for seed in range(3)}


@pytest.mark.parametrize("kind", search)
def test_rates_of_the_menu_are_around_each_models_own(kind):
    """Each optimiser's rates are searched around its own default, none twice and none left out.

    SGD has another default rate than the baseline.
    """
    text = TEXT.replace('device = "cpu"', f'search = "{kind}"').replace(
        "{n_heads = 1}", '{optimiser = "sgd", learning_rate = 0.1}'
    )
    parsed = parse(text)
    factors = {"none": (), "three": (3,), "five": (3, 9)}[kind]
    assert not parsed.notes
    for name in ("copy", "reverse"):
        for model, default_rate in {
            BASELINE: DEFAULT[name],
            "− norm": DEFAULT[name],
            "1 head": 0.1,
        }.items():
            actual = [
                run.training.learning_rate
                for run in parsed.runs
                if (run.task, without_rate(run.variant, run.training.learning_rate), run.seed)
                == (name, model, 0)
            ]
            expected = sorted(
                [
                    default_rate,
                    *(default_rate * f for f in factors),
                    *(default_rate / f for f in factors),
                ]
            )
            assert sorted(actual) == pytest.approx(expected, rel=0.005)
    assert describe_guards(text) == ([] if kind == "none" else [RATE_SEARCHED])


def test_tasks_can_have_own_variants():
    text = TEXT + '[task.copy]\nvariants = ["1 head"]\n[task.reverse]\nvariants = []\n'
    actual = {(run.task, run.variant) for run in parse(text).runs}
    assert actual == {("copy", BASELINE), ("copy", "1 head"), ("reverse", BASELINE)}
    assert read_ticks(text) is None


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        (
            '"fast" = {learning_rate = 0.01}',
            "search: “fast” differs from “baseline” only in the learning rate",
        ),
        (
            '"a" = {norm = "none", learning_rate = 0.01}',
            "“a” differs from “− norm” only in the learning rate",
        ),
        (
            "[axes]\nlearning_rate = [0.01, 0.03]",
            "“learning rate 0.01” differs from “baseline” only in",
        ),
        (
            '[axes]\nnorm = ["RMSNorm"]\nlearning_rate = [0.01, 0.03]',
            "RMSNorm, learning rate 0.03” differs from “RMSNorm, l",
        ),
    ],
)
def test_setups_differing_in_searched_rate_alone_are_refused(variants, words):
    """Such setups would be one model with the rates of both."""
    with pytest.raises(StudyError) as error:
        parse(TEXT.replace('device = "cpu"', 'device = "cpu"\nsearch = "three"') + variants)
    assert words in str(error.value)
    assert parse(TEXT + variants)  # without a search they are two


def slowly(outcomes) -> dict:
    """Return each model's (accuracy, rate) by seed, by going through all seeds and rates.

    The key is (task, model); the value is None where one of a seed's rates is lacking.
    """
    cells: dict = {}
    for run, outcome in zip(SEARCHED.runs, outcomes):
        model = run.task, without_rate(run.variant, run.training.learning_rate)
        cells.setdefault(model, {}).setdefault(run.seed, []).append(
            (run.training.learning_rate, outcome, late_loss(run))
        )
    actual = {}
    for model, seeds in cells.items():
        actual[model] = {}
        for seed, several in seeds.items():
            if any(isinstance(outcome, str) for _, outcome, _ in several):
                actual[model][seed] = None
                continue
            finished = [
                (loss, rate, outcome) for rate, outcome, loss in several if not math.isnan(outcome)
            ]
            least = min(finished) if finished else (NAN, min(rate for rate, _, _ in several), NAN)
            actual[model][seed] = least[2], least[1]
    return actual


OUTCOMES = some.one_of(
    some.integers(0, 20).map(lambda n: n / 20), some.sampled_from([NAN, 0.5, FAILED])
)


@HERE
@given(some.lists(OUTCOMES, min_size=len(SEARCHED.runs), max_size=len(SEARCHED.runs)))
def test_seed_uses_rate_with_least_final_loss(tmp_path_factory, outcomes):
    store = Store(str(tmp_path_factory.mktemp("store") / "studies.sqlite"))
    outcome_of = {run.hash: outcome for run, outcome in zip(SEARCHED.runs, outcomes)}
    table = searched_table(store, fill(store, SEARCHED, lambda run: outcome_of[run.hash]), "")
    expected = slowly(outcomes)
    assert list(zip(table.task, table.variant)) == list(expected)
    for line in table.itertuples():
        ended = [seed for seed in expected[line.task, line.variant].values() if seed]
        values = [value for value, _ in ended if not math.isnan(value)]
        assert (line.seeds, line.diverged, line.missing) == (
            len(values),
            len(ended) - len(values),
            3 - len(ended),
        )
        assert line.accuracy == pytest.approx(np.mean(values) if values else NAN, nan_ok=True)
        rates = [rate for _, rate in ended]
        assert line.rates == ", ".join(
            f"{rate:g} on {rates.count(rate)}" for rate in sorted(set(rates))
        )
    store.close()


def test_differences_use_chosen_runs_with_holm(store):
    def outcome(run) -> float:
        return round(
            0.5
            + 0.4
            * math.sin(len(run.variant) * 3 + 5 * run.seed + 100 * run.training.learning_rate),
            3,
        )

    def values_of(seeds) -> dict[int, float]:
        return {seed: value for seed, (value, _) in seeds.items()}

    table = searched_table(store, fill(store, SEARCHED, outcome), "").set_index(["task", "variant"])
    expected = slowly(list(map(outcome, SEARCHED.runs)))
    for name in ("copy", "reverse"):
        base = expected[name, BASELINE]
        several = {
            model: (values_of(seeds), values_of(base))
            for (task_name, model), seeds in expected.items()
            if task_name == name and model != BASELINE
        }
        training = next(run.training for run in SEARCHED.runs if run.task == name)
        for model, (mean, low, high, _, p) in verdicts(several, *facts_of(training)).items():
            line = table.loc[name, model]
            assert (
                line.difference,
                line.difference_low,
                line.difference_high,
                line.p,
            ) == pytest.approx((mean, low, high, p), abs=1e-6, nan_ok=True)


def test_diverged_rate_is_chosen_only_if_all_diverged(store):
    high = max(RATES)
    table = summary_with_guards(
        store, fill(store, SEARCHED, lambda run: NAN if run.training.learning_rate == high else 0.1)
    )
    assert (table.diverged == 0).all() and not any(f"{high:g} on" in rates for rates in table.rates)
    all_diverged = summary_with_guards(store, fill(store, SEARCHED, lambda run: NAN))
    assert (all_diverged.diverged == 3).all() and all_diverged.accuracy.isna().all()


# What is held equal


@pytest.mark.parametrize("kind", ["parameters", "flops"])
@pytest.mark.parametrize("part", ablation)
def test_matching_works_as_on_training_page(part, kind):
    """Studies match models as the page Training does, to the baseline's cost where possible."""
    changes = ablation[part]
    setting = Setup("recall", "recall", {})
    planned, _ = plan_arms(setting, {"it": changes}, kind)
    first = task["recall"].config()
    experiment, _ = plan(
        [Variant("baseline", first), Variant("it", apply(changes, first), 1)],
        Training(task="recall"),
        Trial(match=kind),
        Machine(),
    )
    ours = planned.get("it")
    theirs = next((arm.config for arm in experiment.arms if arm.name == "it"), None)
    assert (ours and ours[0]) == theirs
    if theirs:
        costs = [match[kind](item, Training(task="recall")) for item in (theirs, first)]
        assert abs(costs[0] / costs[1] - 1) <= CLOSE


def test_study_states_what_is_matched(store):
    text = TEXT.replace('device = "cpu"', 'device = "cpu"\nequal = "parameters"')
    table = summary_with_guards(store, fill(store, parse(text), lambda run: 0.5))
    assert set(table.guards) == {"equal parameters"}
    for name, cells in table.groupby("task"):
        base = cells[cells.variant == BASELINE].parameters.item()
        assert (abs(cells.parameters / base - 1) <= CLOSE).all(), name
    both = ["equal FLOPs", RATE_SEARCHED]
    assert (
        describe_guards('equal = "flops"\nsearch = [0.1, 0.2]') == both
        and describe_guards("") == []
    )


# Mistakes, and all of it from the command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'equal = "steps"',
            "equal is “steps”; it must be one of nothing, parameters, flops, time.",
        ),
        (
            "search = 0.1",
            "search is 0.1; it must be one of none, three, five. Or give a list of learning rates.",
        ),
        (
            '[task.copy]\nvariants = ["− norm", "9 heads"]',
            (
                "task “copy” is not possible: variants names “9 heads”, which is not a variant;"
                " there are “− norm, 1 head”."
            ),
        ),
        (
            '[task.copy]\nsearch = "three"',
            "task.copy.search belongs at the top of the file, before the first table.",
        ),
        ("search = [0.1, -1]", "search is -1; it must be a number from"),
    ],
)
def test_mistakes_are_named(line, words):
    with pytest.raises(StudyError) as error:
        parse(TEXT.replace('device = "cpu"', f'device = "cpu"\n{line}'))
    assert words in str(error.value)


@pytest.mark.slow
def test_command_trains_and_exports_searched_study(tmp_path):
    text = (
        SEARCHED.source.replace("steps = 40", "steps = 4")
        .replace("every = 20", "every = 2")
        .replace('["copy", "reverse"]', '["copy"]')
    )
    (tmp_path / "study.toml").write_text(
        text.replace('device = "cpu"', 'device = "cpu"\nequal = "parameters"')
    )
    url = ["--database", f"sqlite:///{tmp_path}/store.sqlite"]
    assert main(["run", str(tmp_path / "study.toml"), *url]) == 0
    assert main(["export", "made up", "--summary", str(tmp_path / "made.csv"), *url]) == 0
    table = pd.read_csv(tmp_path / "made.csv")
    assert list(table.variant) == [BASELINE, "− norm", "1 head"] and (table.seeds == 3).all()
    assert set(table.guards) == {"equal parameters, learning rate searched"}
    assert all(
        sum(int(part.split(" on ")[1]) for part in rates.split(", ")) == 3 for rates in table.rates
    )
