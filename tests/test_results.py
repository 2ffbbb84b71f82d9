"""Side-by-side trainings: plans without duplicates, tables and sentences.

Plain NumPy and SciPy give the same tables, and the sentences agree with them.
"""

import math
import re
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from core.experiments.training import results
from core.experiments.training.plan import Trial, plan
from core.experiments.training.results import differences as differences_of
from core.experiments.training.results import effects, interactions, summary
from core.experiments.training.sentences import describe_finding, describe_gap
from core.experiments.training.trained import contrast, read, untrained
from core.measure.verdicts import Facts, compare_runs, measure_noise, pair_runs
from core.model.config import Config
from core.model.transformer import Transformer
from core.model.variants import NEXT, Pins, ablation, apply, encode, lineup
from core.settings.device import Machine
from core.tasks import IGNORE, task
from core.train import Row, Training, chunk, held_out, model, start
from tests.holm import verdicts

NAN = math.nan
CPU = Machine(device="cpu")
BASE = Config(d_model=16, n_heads=2, n_layers=1)
SHORT = Training(steps=30, every=10)
NO_NORM = {"norm": "none"}
NO_FFN = {"ffn": False}
NO_SCALING = {"scale": False}
NO_ATTENTION = {"attention": False}


def planned(*changes, baseline=BASE, training=SHORT, **trial):
    variants, notes = lineup(baseline, Pins(variants=NEXT.join(map(encode, changes)) or "none"))
    experiment, extra = plan(variants, training, Trial(**trial), CPU)
    return experiment, notes + extra


def row(step, accuracy, loss=1.0):
    return Row(step, loss, accuracy, 1.0, 0.01, 0.003)


def diverged_row(step, loss=math.inf):
    return Row(step, loss, NAN, 1.0, NAN, 0.003, f"diverged at step {step}")


def final_runs(experiment, accuracies):
    """Return runs from {arm: [accuracy at the last step for each seed; None if it diverged]}.

    Divergence is at step 15.
    """
    runs = {}
    for name, values in accuracies.items():
        for seed, value in zip(experiment.seeds, values):
            begun = [row(1, 0.1), row(10, 0.2)]
            runs[name, seed] = begun + (
                [diverged_row(15)] if value is None else [row(20, 0.3), row(30, value)]
            )
    return runs


# Plans


def test_arms_are_baseline_and_variants_with_equal_seeds():
    experiment, notes = planned(NO_NORM, {"n_heads": 1}, baseline=BASE.replace(seed=5), seeds=4)
    assert notes == [] and experiment.seeds == [5, 6, 7, 8]
    assert [(arm.name, arm.colour, arm.members, arm.note) for arm in experiment.arms] == [
        ("baseline", 0, frozenset(), ""),
        ("− norm", 1, {"− norm"}, ""),
        ("1 head", 2, {"1 head"}, ""),
    ]
    states = experiment.states()
    assert states.keys() == {
        (arm.name, seed) for arm in experiment.arms for seed in experiment.seeds
    }
    for (name, seed), state in states.items():
        arm = next(arm for arm in experiment.arms if arm.name == name)
        assert (
            state.config == arm.config.replace(seed=seed)
            and state.training == SHORT
            and state.step == 0
        )


@pytest.mark.parametrize("count", [2, 3, 4])
def test_combinations_are_all_subsets(count):
    changes = [NO_NORM, NO_FFN, NO_SCALING, {"position": "learned"}][:count]
    experiment, notes = planned(*changes, together=True)
    assert notes == [] and len(experiment.arms) == 2**count
    assert (
        len({arm.name for arm in experiment.arms})
        == len({arm.config for arm in experiment.arms})
        == 2**count
    )
    names = [arm.name for arm in experiment.arms[1 : count + 1]]
    by = {arm.members: arm for arm in experiment.arms}
    for size in range(count + 1):
        for several in combinations(range(count), size):
            arm = by[frozenset(names[n] for n in several)]
            assert arm.config == apply({f: v for n in several for f, v in changes[n].items()}, BASE)
            if size == 0:
                assert arm.colour == 0
            else:
                assert arm.colour == (several[0] + 1 if size == 1 else None)
            assert arm.name == "baseline" or all(names[n] in arm.name for n in several)


def test_impossible_combination_is_named_once():
    experiment, notes = planned({"n_heads": 1}, {"n_heads": 4}, NO_NORM, together=True)
    assert notes == ["1 head and 4 heads cannot be combined: they set n_heads to different values."]
    assert {arm.members for arm in experiment.arms if arm.colour is None} == {
        frozenset({"1 head", "− norm"}),
        frozenset({"4 heads", "− norm"}),
    }
    experiment, notes = planned({"n_heads": 16}, {"d_model": 24}, together=True)
    assert len(experiment.arms) == 3 and len(notes) == 1
    assert notes[0].startswith(
        "16 heads and d_model 24 cannot be combined: n_heads is 16; it must divide d_model, which"
        " is 24"
    )
    experiment, notes = planned(*({"n_heads": n} for n in (1, 4, 8, 16)), together=True)
    assert len(notes) == 6 and len(experiment.arms) == 5  # every pair, and no larger set again


def test_combination_equal_to_variant_trains_once():
    experiment, notes = planned(NO_NORM, NO_FFN, NO_NORM | NO_FFN, together=True, seeds=2)
    names = [arm.name for arm in experiment.arms]
    assert (
        names == ["baseline", "− norm", "− FFN", "− FFN, − norm"] and len(experiment.states()) == 8
    )
    assert experiment.arms[3].also == (frozenset({"− norm", "− FFN"}),)
    assert len(notes) == 2  # that the third overlaps with either
    runs = final_runs(
        experiment,
        {
            "baseline": (1, 0.9),
            "− norm": (0.8, 0.8),
            "− FFN": (0.7, 0.5),
            "− FFN, − norm": (0.3, 0.3),
        },
    )
    table = summary(runs, experiment)
    assert list(table.variant) == names
    pair = interactions(runs, experiment).set_index(["one", "other"]).loc[("− norm", "− FFN")]
    assert pair.both == pytest.approx(0.3) and pair.interaction == pytest.approx(
        np.mean([0.3 - 0.8 - 0.7 + 1, 0.3 - 0.8 - 0.5 + 0.9])
    )


@pytest.mark.parametrize("kind", ["parameters", "flops"])
@pytest.mark.parametrize("name", task)
def test_matched_arms_cost_the_same_and_say_how(kind, name):
    training = Training(task=name)
    experiment, _ = planned(
        NO_ATTENTION,
        NO_FFN,
        baseline=task[name].config(),
        training=training,
        match=kind,
        together=True,
    )
    rows = final_runs(experiment, {arm.name: (0.5,) * 3 for arm in experiment.arms})
    table = summary(rows, experiment).set_index("variant")
    for arm in experiment.arms:
        cost = sum(p.numel() for p in Transformer(arm.config, task[name].vocabulary).parameters())
        assert table.parameters[arm.name] == cost
        if len(arm.members) < 2:
            assert abs(table[f"{kind}_difference"][arm.name]) <= 0.02
    out, back = experiment.arms[1:3]
    assert (
        re.fullmatch(r"(d_model \d+, )?d_ff \d+", out.note)
        and f"d_ff {out.config.d_ff}" in out.note
    )
    assert (
        re.fullmatch(r"(d_model \d+, )?d_head \d+", back.note)
        and f"d_head {back.config.d_head}" in back.note
    )
    assert experiment.arms[0].note == ""
    assert re.fullmatch(
        r"closest match: −\d+ % (parameters|FLOPs)", experiment.arms[3].note
    )  # nothing is left to widen


@given(
    st.lists(
        st.sampled_from([*ablation.values()] + [NO_NORM | NO_FFN, {"d_ff": 8}, {"seed": 3}]),
        min_size=1,
        max_size=4,
        unique_by=encode,
    ),
    st.sampled_from(["nothing", "parameters"]),
    st.booleans(),
)
def test_plan_has_unique_models_and_names(changes, kind, together):
    variants, left_out = lineup(
        task["copy"].config(), Pins(variants=NEXT.join(map(encode, changes)))
    )
    experiment, notes = plan(
        variants, Training(task="copy"), Trial(match=kind, together=together, seeds=1), CPU
    )
    assert (
        len({arm.name for arm in experiment.arms})
        == len({arm.config for arm in experiment.arms})
        == len(experiment.arms)
        == len(experiment.states())
    )
    members_seen = [
        frozenset(members) for arm in experiment.arms for members in (arm.members, *arm.also)
    ]
    assert len(members_seen) == len(set(members_seen))
    singles = {arm.name for arm in experiment.arms if arm.colour}
    assert all(members <= singles for members in members_seen)
    assert len(singles) == len(changes) - sum(" skipped" in note for note in left_out + notes)
    if together:
        for pair in combinations(sorted(singles), 2):
            refused = any(
                "cannot be combined" in note and all(name in note for name in pair)
                for note in notes
            )
            assert (frozenset(pair) in members_seen) != refused or refused


# Tables


def values_of(runs, experiment, name, step):
    """Return each seed's accuracy at a step, without diverged runs."""
    actual = {}
    for seed in experiment.seeds:
        rows = runs[name, seed]
        if rows and not any(row.note for row in rows):
            for one_row in rows:
                if one_row.step == step:
                    actual[seed] = one_row.accuracy
    return actual


def test_arms_are_compared_at_newest_common_step():
    experiment, _ = planned(NO_NORM, seeds=2)
    runs = {
        ("baseline", 0): [row(1, 0.1), row(10, 0.5), row(20, 0.9)],
        ("baseline", 1): [row(1, 0.1), row(10, 0.6), row(20, 0.9), row(30, 1.0)],
        ("− norm", 0): [row(1, 0.1), row(10, 0.2)],
        ("− norm", 1): [row(1, 0.1), row(10, 0.3), row(20, 0.8)],
    }
    table = summary(runs, experiment)
    assert results.common_step(runs, experiment) == 10
    assert list(table.accuracy) == pytest.approx([0.55, 0.25]) and table.difference[
        1
    ] == pytest.approx(-0.3)
    assert (
        describe_finding(runs, experiment)
        == "At step 10, accuracy is 25.0 % for “− norm” and 55.0 % for the baseline."
        " Two seeds, so significance cannot be tested: train with more seeds."
    )
    runs["− norm", 0] = []
    assert (
        results.common_step(runs, experiment) == 0
        and summary(runs, experiment).accuracy.isna().all()
    )
    assert describe_finding(runs, experiment) == ""


def test_diverged_run_counts_at_no_step():
    experiment, _ = planned(NO_NORM, seeds=2)
    runs = final_runs(experiment, {"baseline": (0.9, 0.8), "− norm": (0.5, None)})
    assert list(summary(runs, experiment).seeds) == [2, 1]
    early = {key: [row for row in rows if row.step <= 10 or row.note] for key, rows in runs.items()}
    assert results.common_step(early, experiment) == 10
    assert list(summary(early, experiment).seeds) == [2, 1]  # though seed 1 had a value at step 10
    assert summary(early, experiment).loss.tolist() == [1.0, 1.0]
    assert math.isnan(results.last_value(runs["− norm", 1], "loss")) and math.isnan(
        results.last_value([])
    )
    at_end = {**runs, ("− norm", 1): [row(1, 0.1), diverged_row(30, loss=7.0)]}
    assert summary(at_end, experiment).loss.tolist() == [
        1.0,
        1.0,
    ]  # the loss at which it broke down is no loss


@st.composite
def made_up(draw, together=False):
    """Draw an experiment and its runs in any state.

    Seeds are at different steps; some diverged, some have not begun, some are all equal.
    """
    changes = draw(
        st.lists(
            st.sampled_from([NO_NORM, NO_FFN, NO_SCALING]), min_size=0, max_size=3, unique_by=encode
        )
    )
    experiment, _ = planned(*changes, seeds=draw(st.integers(1, 4)), together=together)
    grid = (1, 10, 20, 30)
    levels = draw(
        st.sampled_from([[0.0, 1.0], [0.5], [0.0625, 0.1, 0.1009, 0.5, 0.9, 0.9013, 1.0], None])
    )
    share = st.sampled_from(levels) if levels else st.floats(0, 1, width=32)
    finished = draw(st.booleans())
    runs = {}
    for arm in experiment.arms:
        fate = draw(st.sampled_from(["fine", "fine", "mixed", "lost"]))
        for seed in experiment.seeds:
            steps = grid if finished else grid[: draw(st.integers(0, 4))]
            runs[arm.name, seed] = [row(step, draw(share), draw(st.floats(0, 5))) for step in steps]
            if fate == "lost" or (fate == "mixed" and draw(st.booleans())):
                index = draw(st.integers(2, 30))
                runs[arm.name, seed] = [run for run in runs[arm.name, seed] if run.step < index] + [
                    diverged_row(index)
                ]
    return experiment, runs


@given(made_up())
def test_summary_matches_numpy_and_scipy(case):
    experiment, runs = case
    table = summary(runs, experiment)
    step = results.common_step(runs, experiment)
    assert list(table.variant) == [arm.name for arm in experiment.arms]
    base = values_of(runs, experiment, "baseline", step)
    pairs = {}
    for arm in experiment.arms[1:]:
        accuracies = values_of(runs, experiment, arm.name, step)
        pairs[arm.name] = accuracies, base
    expected = verdicts(pairs, *results.facts_of(experiment.training))
    for line in table.itertuples():
        accuracies = values_of(runs, experiment, line.variant, step)
        assert line.seeds == len(accuracies)
        assert line.diverged == sum(
            bool(rows) and rows[-1].note != ""
            for (name, _), rows in runs.items()
            if name == line.variant
        )
        assert line.accuracy == pytest.approx(
            np.mean(list(accuracies.values())) if accuracies else NAN, nan_ok=True
        )
        if len(accuracies) > 1 and np.ptp(list(accuracies.values())) > 1e-9:
            low, high = stats.t.interval(
                0.95,
                len(accuracies) - 1,
                np.mean(list(accuracies.values())),
                stats.sem(list(accuracies.values())),
            )
            assert (line.low, line.high) == pytest.approx((max(0, low), min(1, high)))
        if line.variant == "baseline":
            assert math.isnan(line.difference)
            continue
        mean, low, high, _, p = expected[line.variant]
        assert line.difference == pytest.approx(mean, abs=1e-6, nan_ok=True)
        assert line.p == pytest.approx(p, rel=1e-4, abs=1e-12, nan_ok=True)
        if (
            min(abs(item[-1] - 0.05) for item in expected.values()) > 1e-4
        ):  # else either side may be right
            assert (line.difference_low, line.difference_high) == pytest.approx(
                (low, high), abs=1e-4, nan_ok=True
            )


# Words


def shown_number(text):
    return float(text.replace("−", "-"))


@given(made_up())
def test_finding_matches_table(case):
    experiment, runs = case
    text = describe_finding(runs, experiment)
    table = summary(runs, experiment)
    step = results.common_step(runs, experiment)
    assert "nan" not in text and "undefined" not in text and "e-" not in text and "None" not in text
    for arm in experiment.arms:  # what diverged, and first
        lost = [
            (runs[arm.name, seed][-1].step, seed)
            for seed in experiment.seeds
            if runs[arm.name, seed] and runs[arm.name, seed][-1].note
        ]
        message = re.search(
            rf"(?:^|\. ){re.escape(arm.name)} diverged at step (\d+), seed (\d+)(?: \((\d+) of"
            r" (\d+) seeds\))?\.",
            text,
        )
        assert bool(message) == bool(lost)
        if lost:
            assert (int(message[1]), int(message[2])) == min(lost)
            assert (message[3] is None) == (len(experiment.seeds) == 1)
            assert message[3] is None or (int(message[3]), int(message[4])) == (
                len(lost),
                len(experiment.seeds),
            )
    assert ("At step" in text) == (0 < step < 30 and "ccuracy is" in text)
    assert "At step" not in text or f"At step {step}, accuracy is " in text
    compared = (
        r"for “(?P<name>.+?)” and (?P<other>[\d.]+) % for the baseline(?: on (?P<n>\d+) of"
        r" (?P<of>\d+) seeds)?"
    )
    match = re.search(rf"ccuracy is (?P<one>[\d.]+) % (?:{compared}|\((?P<alone>.+)\))\.", text)
    if table.accuracy.isna().all():
        assert match is None
        return
    name = match["name"] or match["alone"]
    by = table.set_index("variant")
    with_difference = by.difference[[arm.name for arm in experiment.arms if arm.colour]].dropna()
    if with_difference.empty:
        assert match["other"] is None and shown_number(match["one"]) == pytest.approx(
            100 * by.accuracy[name], abs=0.0501
        )
        best = by.accuracy.max()
        assert name == "baseline" or (
            math.isnan(by.accuracy["baseline"]) and by.accuracy[name] == best
        )
        return
    chosen = by.loc[name]
    assert abs(chosen.difference) == with_difference.abs().max()
    first = shown_number(match["one"])
    other = shown_number(match["other"])
    assert first - other == pytest.approx(
        100 * chosen.difference, abs=0.11
    )  # both over the same seeds
    both = (
        values_of(runs, experiment, name, step).keys()
        & values_of(runs, experiment, "baseline", step).keys()
    )
    assert (match["n"] is not None) == (len(both) < len(experiment.seeds))
    assert match["n"] is None or (int(match["n"]), int(match["of"])) == (
        len(both),
        len(experiment.seeds),
    )
    remaining = text[match.end() :].strip()
    ends = chosen.difference_low, chosen.difference_high
    full = differences_of(runs, experiment, step)[name]
    assert (full.mean, full.low, full.high, full.p) == pytest.approx(
        (chosen.difference, *ends, chosen.p), nan_ok=True
    )
    compared = int(table.p.notna().sum())
    answers = results.facts_of(experiment.training).answers
    sides = [values_of(runs, experiment, model, step) for model in (name, "baseline")]
    noise = measure_noise(*sides, answers, compared)
    assert remaining == describe_gap(full, compared, noise) and full.n == len(both)


@given(made_up())
def test_course_is_mean_over_seeds_that_reached_step(case):
    experiment, runs = case
    for arm in experiment.arms:
        going = [
            s for s in experiment.seeds if not (runs[arm.name, s] and runs[arm.name, s][-1].note)
        ] or experiment.seeds
        rows = [[row for row in runs[arm.name, seed] if not row.note] for seed in going]
        count = min(map(len, rows))  # made-up runs have rows at the same steps
        for log in (False, True):
            actual = results.values_by_step(runs, experiment, arm.name, "gradient_norm", log)
            assert [step for step, _ in actual] == [row.step for row in rows[0][:count]]
            for index, (_, span) in enumerate(actual):
                values = np.array([row[index].gradient_norm for row in rows])
                assert span.n == len(going)
                assert span.mean == pytest.approx(
                    np.exp(np.log(values).mean()) if log else values.mean()
                )


def test_multiple_differences_need_stronger_evidence():
    accuracies = {0: 0.1, 1: 0.12, 2: 0.08}
    base = dict.fromkeys(range(3), 0.0)
    noise = {0: 0.3, 1: -0.2, 2: 0.1}

    def compare(several):
        return compare_runs(pair_runs(several, Facts(0.5, 10_000)))

    alone = describe_gap(compare({"one": (accuracies, base)})["one"])
    assert "p = 0.013)" in alone and "higher (95 % CI 5.0 to 15.0;" in alone
    actual = compare({"one": (accuracies, base), "noise": (noise, base)})
    assert "p = 0.026, Holm-corrected for 2 variants)" in describe_gap(
        actual["one"], 2
    ) and "higher" in describe_gap(actual["one"], 2)
    assert actual["noise"].verdict == "undecided"
    assert describe_gap(actual["noise"], 2).startswith("Undecided")
    count = compare({"one": (accuracies, base), **{n: (noise, base) for n in range(4)}})["one"]
    assert "p = 0.065, Holm-corrected for 5 variants)" in describe_gap(count, 5)
    assert describe_gap(count, 5).startswith("Undecided") and count.low < 0 < count.high


@st.composite
def gaps(draw):
    n = draw(st.integers(3, 10))
    values = draw(st.lists(st.floats(-1, 1, width=32), min_size=n, max_size=n))
    pair = dict(enumerate(values)), dict.fromkeys(range(n), 0.0)
    facts = Facts(2.0, 1000, draw(st.sampled_from([0.02, 0.5])))
    return compare_runs(pair_runs({"one": pair}, facts))["one"], measure_noise(*pair, 1000)


@given(gaps())
def test_sentence_matches_difference_in_numbers(case):
    gap, noise = case
    text = describe_gap(gap, 1, noise)
    assert ("lower" in text) == (gap.mean < 0 and gap.p < 0.05) and ("higher" in text) == (
        gap.mean > 0 and gap.p < 0.05
    )
    unknown = gap.low != gap.high and gap.low <= 0 <= gap.high
    is_inside = unknown and max(-gap.low, gap.high) < gap.margin
    assert ("equivalent within" in text) == is_inside
    assert text.startswith("Undecided") == ("detectable" in text) == (unknown and not is_inside)
    if "Smallest detectable" in text:
        assert shown_number(re.search(r"seeds: ([\d.]+) points", text)[1]) == pytest.approx(
            100 * noise.smallest_effect, abs=0.0501
        )
    is_hopeless = unknown and not is_inside and noise.smallest_effect >= 1
    assert ("no difference is detectable" in text) == is_hopeless
    needed = {int(n.replace(",", "")) for n in re.findall(r"about ([\d,]+) seeds", text)}
    assert all(n > gap.n for n in needed) and needed <= {noise.seeds_for_1, noise.seeds_for_5}
    assert ("identical" in text) == (gap.mean == gap.low == gap.high == 0)
    numbers = [shown_number(item) for item in re.findall(r"−?\d+\.\d+", text)]
    if "95 % CI" in text:
        mean, low, high = numbers[:3]
        assert mean == pytest.approx(100 * (abs(gap.mean) if gap.clear else gap.mean), abs=0.0501)
        ends = (-gap.high, -gap.low) if "lower" in text else (gap.low, gap.high)
        assert (low, high) == pytest.approx((100 * ends[0], 100 * ends[1]), abs=0.0501)
        assert f"on {gap.n} seeds" in text
        assert -100 <= low <= high <= 100
        assert ("p < 0.001" in text) == (gap.p < 0.001)
    assert " 0.0 points" not in text or gap.mean == 0


# Several parts at once


@pytest.mark.slow
@given(made_up(together=True))
def test_effects_and_interactions_match_numpy_and_scipy(case):
    experiment, runs = case
    singles = [arm.name for arm in experiment.arms if arm.colour]
    assume(len(singles) > 1)
    by = {arm.members: arm.name for arm in experiment.arms}
    step = results.common_step(runs, experiment)
    value = lambda *members: values_of(runs, experiment, by[frozenset(members)], step)  # noqa: E731

    facts = results.facts_of(experiment.training)

    def add(values):
        seeds = set.intersection(*map(set, values))
        return {seed: sum(value[seed] for value in values) for seed in seeds}

    def check(actual, expected, learnt_from=facts.learnt_from, bound=1):
        """Compare each (value, low, high, p) with the values behind it."""
        plain = verdicts(
            dict(enumerate(expected)), learnt_from, facts.answers, low=-bound, high=bound
        )
        for index, (mean, low, high, n, p) in plain.items():
            assert actual[index][0] == pytest.approx(mean, abs=2e-6, nan_ok=True)
            if n > 2 and min(abs(figures[-1] - 0.05) for figures in plain.values()) > 1e-3:
                found = pytest.approx((low, high, p), rel=0.01, abs=1e-4, nan_ok=True)
                assert actual[index][1:] == found

    lines = list(effects(runs, experiment).itertuples())
    others = {name: [single for single in singles if single != name] for name in singles}
    assert [line.part for line in lines] == singles
    removed = [(value(), value(name)) for name in singles]
    check(
        [(line.removed, line.removed_low, line.removed_high, line.removed_p) for line in lines],
        removed,
    )
    alone = [(value(*others[name]), value(*singles)) for name in singles]
    check([(line.alone, line.alone_low, line.alone_high, line.alone_p) for line in lines], alone)
    table = interactions(runs, experiment)
    assert list(zip(table.one, table.other)) == list(combinations(singles, 2))
    fours = [(value(), value(a), value(b), value(a, b)) for a, b in combinations(singles, 2)]
    expected = [(add([four[3], four[0]]), add(four[1:3])) for four in fours]
    check(
        [
            (itertuple.interaction, itertuple.low, itertuple.high, itertuple.p)
            for itertuple in table.itertuples()
        ],
        expected,
        math.inf,  # sums of accuracies, of which none counts as learnt
        2,
    )
    shared = [plus.keys() & minus.keys() for plus, minus in expected]
    for line, seeds, first, second in zip(
        table.itertuples(), shared, table["first"], table["second"]
    ):
        assert line.seeds == len(seeds)
        if seeds:  # the four that are shown add up to it
            assert line.both - first - second + line.neither == pytest.approx(
                line.interaction, abs=1e-5
            )


# One sequence through a model


def a_state(name, **changes):
    config = task[name].config(d_model=16, n_heads=2, d_ff=None, d_head=None, **changes)
    return chunk(start(config, Training(task=name, steps=3, batch=4), 2, CPU), 1000)[0]


@pytest.mark.parametrize("name", task)
@pytest.mark.parametrize("change", [{}, {"attention": False}, {"mask": "none"}], ids=str)
def test_reading_matches_model(name, change):
    state = a_state(name, **change)
    learnt = task[name]
    tokens, targets = held_out(name, 2)
    network = Transformer(state.config, learnt.vocabulary)
    network.load_state_dict(state.model)
    with torch.no_grad():
        logits = network(tokens[:5])
    for index in range(5):
        actual = read(state, tokens[index], targets[index])
        right = iter(learnt.right(logits[index : index + 1], targets[index : index + 1]).tolist())
        for place, target in enumerate(targets[index].tolist()):
            scores = dict(zip(learnt.vocabulary, logits[index, place].double().tolist()))
            word = None if target == IGNORE else learnt.vocabulary[target]
            for group in learnt.rivals:
                if word in group:
                    scores = {item: scores[item] for item in group}
            assert learnt.vocabulary[actual.answers[place]] == max(scores, key=scores.get)
            if word is None:
                assert actual.right[place] is None and math.isnan(actual.probability[place])
                continue
            chance = math.exp(scores[word]) / sum(map(math.exp, scores.values()))
            assert actual.probability[place] == pytest.approx(chance, abs=1e-5)
            if learnt.rivals and not any(word in group for group in learnt.rivals):
                assert actual.right[place] is None
            else:
                assert actual.right[place] == next(right) == (actual.answers[place] == target)
        assert next(right, None) is None
        assert len(actual.patterns) == (state.config.n_layers if state.config.attention else 0)
        length = len(tokens[index])
        expected = (
            torch.ones(length, length).tril()
            if state.config.mask == "causal"
            else torch.ones(length, length)
        )
        assert len(actual.allowed) == state.config.n_layers
        assert all(torch.equal(allowed, expected.bool()) for allowed in actual.allowed)
        for pattern in actual.patterns:
            assert pattern.shape == (2, length, length) and pattern.min() >= 0
            torch.testing.assert_close(pattern.sum(-1), torch.ones(2, length), rtol=0, atol=1e-5)
            assert (pattern.masked_select(~expected.bool()) == 0).all()


@pytest.mark.parametrize("name", task)
def test_before_training_it_is_the_model_as_drawn(name):
    state = a_state(name)
    before = untrained(state)
    fresh = start(state.config, state.training, state.seed, CPU)
    assert before == fresh and before.seconds == 0
    tokens, targets = (item[0] for item in held_out(name, 2))
    initial, other, now = (read(item, tokens, targets) for item in (before, fresh, state))
    drawn = Transformer(state.config, task[name].vocabulary)
    with torch.no_grad():
        assert initial.answers == other.answers
        scores = drawn(tokens[None])[0].masked_fill(~task[name].choices(targets), -math.inf)
        assert initial.answers == scores.argmax(-1).tolist()
    assert all(map(torch.equal, initial.patterns, other.patterns))
    assert initial.probability != now.probability


def test_contrast_is_sequence_with_most_disagreement():
    training = Training(task="reverse", steps=60, batch=16, warmup=0)
    config = task["reverse"].config(d_model=16, n_heads=2, n_layers=1)
    end = chunk(start(config, training, 0), 1e9)[0]
    states = [end, untrained(end)]
    tokens, targets = held_out("reverse", 0, training.length)
    with torch.inference_mode():
        shares = [(model(state)(tokens).argmax(-1) == targets).float().mean(1) for state in states]
    actual = contrast(states, tokens, targets)
    assert (shares[0] - shares[1]).abs()[actual] == (shares[0] - shares[1]).abs().max()
    assert contrast(states[:1], tokens, targets) == 0


def test_steps_to_ninety_percent():
    rows = [
        Row(step, 1.0, accuracy, 1.0, 0.1, 0.01)
        for step, accuracy in ((1, 0.1), (10, 0.89), (20, 0.9), (30, 0.5))
    ]
    assert results.steps_to(rows, 0.9) == 20
    assert math.isnan(results.steps_to(rows, 0.95)) and math.isnan(results.steps_to([], 0.9))
