"""Models trained without a part: shipped files match their training and their claims.

A damaged file affects only itself.
"""

import hashlib
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import scripts.family as command
import scripts.legal_model as legal
from core.checkpoints import CheckpointError, family, files
from core.checkpoints.family import (
    BASELINE,
    FOLDER,
    SUMS,
    WHOLE,
    ablate_after_training,
    config_of,
    members,
    open_member,
    read_shipped,
)
from core.experiments.trained.comparison import (
    CUT,
    SHOWN,
    TRAINED,
    compare_by_distance,
    compared,
    describe_by_distance,
    describe_summary,
    merge_distances,
    read,
    summary,
)
from core.experiments.trained.questions import SEED
from core.experiments.trained.sentences import sentences
from core.experiments.trained.tables import LEAST
from core.model.trace import trace
from core.model.transformer import Transformer
from core.tasks.sentences import find_anatomy
from scripts.family import BINS, SENTENCES, measure_model
from tests.holm import corrected

SHIPS = list(read_shipped())
TABLE = read()
EVERY = [name for name in compared if not compared[name].split]  # what is compared of every part


@pytest.mark.parametrize("member", members())
def test_initial_weights_equal_baseline_where_shapes_match(member):
    first, base = (
        Transformer(config_of(item, 1), family.vocabulary()).state_dict()
        for item in (member, WHOLE)
    )
    shared = [name for name in first if name in base and first[name].shape == base[name].shape]
    assert len(shared) >= 5 and all(torch.equal(first[name], base[name]) for name in shared)


@pytest.mark.parametrize("member, seed", SHIPS)
def test_member_opens_with_matching_hash(member, seed):
    model = open_member(member, seed)
    file = FOLDER / family.file_of(member, seed)
    assert (
        model.config == config_of(member, seed)
        and model.about["member"] == member
        and model.about["seed"] == seed
    )
    assert read_shipped()[member, seed] == hashlib.sha256(file.read_bytes()).hexdigest()
    steps = TABLE[(TABLE.member == member) & (TABLE.seed == seed) & (TABLE.how == TRAINED)].steps
    assert set(steps) == {model.about["steps"]} and model.about["steps"] <= family.TRAINING.steps


def test_wider_and_deeper_models_attend_more_to_the_subject():
    def best(member):
        rows = TABLE[(TABLE.member == member) & (TABLE.seed == 0) & (TABLE.how == TRAINED)]
        return rows[rows.meter == "subject"].value.max()

    assert best("d_model-16") < 0.5 < best("d_model-32") < best(WHOLE)
    assert best("n_layers-1") < 0.5 < best(WHOLE)


def test_baseline_of_first_seed_is_shipped_model():
    ours = open_member(WHOLE, 0).model.state_dict()
    ships = files.from_folder(files.ROOT / files.SHIPPED).model.state_dict()
    assert ours.keys() == ships.keys() and all(
        torch.equal(ours[name], ships[name]) for name in ours
    )


@pytest.mark.slow
@pytest.mark.parametrize("member, seed", SHIPS)
def test_family_table_matches_file(member, seed):
    def rows(how):
        selected = TABLE[(TABLE.member == member) & (TABLE.seed == seed) & (TABLE.how == how)]
        return {(line.meter, line.at): (line.value, line.n) for line in selected.itertuples()}

    model = open_member(member, seed)
    cut = None if member == WHOLE else ablate_after_training(member, open_member(WHOLE, seed))
    for how, opened_model in ((TRAINED, model), (CUT, cut)):
        now = (
            {}
            if opened_model is None
            else {
                (line.meter, line.at): (line.value, line.n)
                for line in measure_model(opened_model).itertuples()
            }
        )
        assert now.keys() == rows(how).keys()
        for key, (value, n) in now.items():
            # one sentence on the edge may be read otherwise on another machine
            assert rows(how)[key] == (pytest.approx(value, rel=1e-3, abs=2 / SENTENCES), n), (
                how,
                key,
            )


@pytest.mark.parametrize("member", ["norm-none", "attention-off", "activation-swiglu"])
def test_examined_values_match_single_sentences_in_float64(member):
    model = open_member(member, 0)
    count = 48
    number = {word: index for index, word in enumerate(model.model.vocabulary)}
    net = open_member(member, 0).model.double()
    nats = 0.0
    words = 0
    right = []
    by = []
    subject = {}
    for sentence in sentences(count, SEED):
        ids = torch.tensor([[number[word] for word in sentence]])
        with torch.inference_mode(), trace() as record:
            log = net(ids)[0].log_softmax(-1)
        for position in range(1, len(sentence)):
            nats = nats - log[position - 1, ids[0, position]].item()
            words = words + 1
        places = find_anatomy(list(sentence))
        before = log[places.verb - 1]
        right.append(
            (before[number["was"]] > before[number["were"]]).item()
            == (sentence[places.verb] == "was")
        )
        by.append(places.verb - places.subject - 1)
        if places.clause and places.distractors and "pattern" in record:
            for layer, pattern in enumerate(record["pattern"]):
                for head in range(pattern.shape[1]):
                    share = pattern[0, head, places.verb - 1, places.subject].item()
                    subject.setdefault(f"{layer + 1}.{head + 1}", []).append(share)
    actual = {
        (line.meter, line.at): line.value for line in measure_model(model, count).itertuples()
    }
    assert actual.pop(("perplexity", "")) == pytest.approx(math.exp(nats / words), rel=1e-5)
    assert actual.pop(("accuracy", "")) == pytest.approx(np.mean(right))
    for low, high in BINS:
        inside = [item for item, between in zip(right, by) if low <= between <= high]
        position = f"{low}" if low == high else f"{low}–{high}"
        assert (("accuracy", position) in actual) == (len(inside) >= LEAST)
        assert len(inside) < LEAST or actual.pop(("accuracy", position)) == pytest.approx(
            np.mean(inside)
        )
    assert actual == {
        ("subject", head): pytest.approx(np.mean(shares), abs=1e-5)
        for head, shares in subject.items()
    }


def test_ablated_member_has_trained_weights_and_new_settings():
    full = open_member(WHOLE, 0)
    cut = ablate_after_training("norm-none", full)
    assert cut.config == config_of("norm-none", 0) and cut.key != full.key
    weights = cut.model.state_dict()
    had = full.model.state_dict()
    assert weights.keys() < had.keys() and all(
        torch.equal(weights[name], had[name]) for name in weights
    )
    assert ablate_after_training("activation-swiglu", full) is None, (
        "it would need a gate that was never trained"
    )


def of_seeds(values: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    rows = [
        (member, how, seed, 4000, meter, "2.4" if meter == "subject" else "", value, 1024)
        for (member, how), several in values.items()
        for seed, value in enumerate(several)
        for meter in ("accuracy", "perplexity", "subject")
    ]
    return pd.DataFrame(
        rows, columns=["member", "how", "seed", "steps", "meter", "at", "value", "n"]
    )


MADE = {
    (WHOLE, TRAINED): [0.99, 0.98, 1.0, 0.97],
    ("norm-none", TRAINED): [0.98, 0.99, 0.99, 0.98],
    ("norm-none", CUT): [0.5, 0.52, 0.49, 0.5],
    ("attention-off", TRAINED): [0.6, 0.58, 0.61, 0.6],
}


@pytest.mark.parametrize("name", EVERY)
def test_summary_is_paired_test_with_holm(name):
    onto, times = (
        (np.log, 10) if name == "perplexity" else (np.asarray, 1)
    )  # a perplexity is 1 or more
    inputs = {key: [times * value for value in values] for key, values in MADE.items()}
    rows = summary(of_seeds(inputs), name)
    samples = {key: onto(values) for key, values in inputs.items()}
    base = samples[WHOLE, TRAINED]
    others = [key for key in MADE if key[0] != WHOLE]
    expected = dict(
        zip(others, corrected([stats.ttest_rel(samples[key], base).pvalue for key in others]))
    )
    assert rows.value[0] == pytest.approx(
        stats.gmean(inputs[WHOLE, TRAINED]) if name == "perplexity" else np.mean(base)
    )
    for line in rows[rows.member != WHOLE].itertuples():
        values = samples[line.member, line.how]
        assert onto(line.value) == pytest.approx(np.mean(values)) and line.seeds == 4
        assert line.difference == pytest.approx(np.mean(values) - np.mean(base))
        assert line.p == pytest.approx(expected[line.member, line.how], rel=1e-6)
        assert line.clear == (line.p < 0.05) == (not line.low <= rows.value[0] <= line.high)
    down = {"accuracy": "lowers accuracy", "subject": "reduces attention to the subject"}
    if name in down:
        assert (
            f"1 of 1 change made after training {down[name]} significantly, against 1 of 2"
            in describe_summary(rows, name)
        )
    else:
        assert (
            "0 of 1 change made after training raise perplexity significantly, against 0 of 2"
            in describe_summary(rows, name)
        )


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "its hash differs"),
        (lambda file: file.write_bytes(b""), "its hash differs"),
        (lambda file: (file.parent / SUMS).write_text(""), "is not included"),
        (lambda file: (file.parent / SUMS).write_bytes(b"\xff\xfe"), "is not included"),
    ],
)
def test_damaged_member_is_named_and_alone_lost(tmp_path, damage, says):
    for member in (WHOLE, "norm-none"):
        file = tmp_path / family.file_of(member, 0)
        file.write_bytes((FOLDER / file.name).read_bytes())
    (tmp_path / SUMS).write_bytes((FOLDER / SUMS).read_bytes())
    damage(tmp_path / family.file_of("norm-none", 0))
    with pytest.raises(CheckpointError, match=says):
        open_member("norm-none", 0, tmp_path)
    if says != "is not included":
        assert open_member(WHOLE, 0, tmp_path).config == BASELINE


def test_command_trains_missing_members_bit_for_bit(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(legal, "TRAINING", replace(family.TRAINING, steps=3))
    wanted = [(member, seed) for seed in (0, 1) for member in (WHOLE, "attention-off")]
    command.train_what_is_missing(tmp_path / "one", wanted[:2], 1)
    command.train_what_is_missing(tmp_path / "two", wanted, 1)
    for member in (WHOLE, "attention-off"):
        first, two = (
            open_member(member, 0, tmp_path / name).model.state_dict() for name in ("one", "two")
        )
        assert all(torch.equal(first[name], two[name]) for name in first)
    capsys.readouterr()
    (tmp_path / "two" / family.file_of("attention-off", 1)).unlink()
    command.train_what_is_missing(tmp_path / "two", wanted, 1)
    assert capsys.readouterr().out == "attention-off, seed 1\n"
    assert len(read_shipped(tmp_path / "two")) == 4


@pytest.mark.slow
def test_retrained_baseline_equals_shipped_model(tmp_path):
    """Retraining gives equal weights on a similar machine and an equally good model elsewhere.

    Another machine may sum in another order, which rounds differently.
    """
    member = "d_model-16"
    (tmp_path / family.file_of(member, 0)).write_bytes(command.train_member(member, 0))
    command.train_what_is_missing(tmp_path, [], 1)
    anew = open_member(member, 0, tmp_path)
    ships = open_member(member, 0)
    weights = ships.model.state_dict()
    if not all(torch.equal(x, weights[name]) for name, x in anew.model.state_dict().items()):
        figures = [
            compared[name](measure_model(item))
            for name in ("accuracy", "perplexity")
            for item in (anew, ships)
        ]
        assert figures[0] == pytest.approx(figures[1], abs=0.02) and figures[2] == pytest.approx(
            figures[3], rel=0.05
        )


def at_distances(
    values: dict[tuple[str, str], dict[str, list[float]]], n: dict[str, int]
) -> pd.DataFrame:
    rows = [
        (member, how, seed, 4000, "accuracy", index, value, n[index])
        for (member, how), by in values.items()
        for index, several in by.items()
        for seed, value in enumerate(several)
    ]
    return pd.DataFrame(
        rows, columns=["member", "how", "seed", "steps", "meter", "at", "value", "n"]
    )


FAR = {
    (WHOLE, TRAINED): {
        "0": [0.99, 1.0, 0.98],
        "1–5": [0.97, 0.99, 0.98],
        "6–28": [0.96, 0.98, 0.99],
    },
    ("norm-none", TRAINED): {
        "0": [0.98, 1.0, 0.99],
        "1–5": [0.9, 0.99, 0.97],
        "6–28": [0.6, 0.63, 0.63],
    },
    ("norm-none", CUT): {
        "0": [0.99, 0.99, 0.98],
        "1–5": [0.5, 0.52, 0.5],
        "6–28": [0.51, 0.52, 0.5],
    },
    ("attention-off", CUT): {"0": [0.5, 0.5, 0.5], "1–5": [0.1, 0.1, 0.1], "6–28": [0.2, 0.2, 0.2]},
}
ENOUGH = {"0": 30, "1–5": 40, "6–28": 50}


@pytest.mark.parametrize(
    "measured, member",
    [(at_distances(FAR, ENOUGH), "norm-none"), *((TABLE, m) for m in members()[1:])],
)
def test_by_distance_is_paired_test_with_holm(measured, member):
    rows = compare_by_distance(measured, member)
    accuracies = measured[(measured.meter == "accuracy") & (measured["at"] != "")]

    def values(whose, how, index):
        selected = accuracies[
            (accuracies.member == whose) & (accuracies.how == how) & (accuracies["at"] == index)
        ].sort_values("seed")
        return selected.value.to_numpy()

    lines = {"baseline": (WHOLE, TRAINED), TRAINED: (member, TRAINED), CUT: (member, CUT)}
    tested = []
    p = []
    for row in rows[rows.line != "baseline"].itertuples():
        gaps = values(*lines[row.line], row.distance) - values(WHOLE, TRAINED, row.distance)
        tested.append(row)
        if np.ptp(gaps) == 0:
            p.append(0.0 if gaps[0] else 1.0)
        else:
            p.append(stats.ttest_1samp(gaps, 0).pvalue)
        assert row.difference == pytest.approx(gaps.mean()) and row.seeds == len(gaps) == 3
    for row, expected in zip(tested, corrected(p)):
        assert row.p == pytest.approx(expected, rel=1e-6) and row.clear == (row.p < 0.05)
        base = values(WHOLE, TRAINED, row.distance).mean()
        assert row.low <= row.value <= row.high and row.clear == (not row.low <= base <= row.high)
    for row in rows.itertuples():
        assert row.value == pytest.approx(values(*lines[row.line], row.distance).mean())
        assert {row.n} == set(accuracies[accuracies["at"] == row.distance].n)
    assert list(dict.fromkeys(rows.distance)) == list(dict.fromkeys(accuracies["at"]))
    text = describe_by_distance(rows)
    for how in (CUT, TRAINED):
        rows_of_line = [row for row in tested if row.line == how]
        lower = sum(row.p < 0.05 and row.difference < 0 for row in rows_of_line)
        told = re.search(rf"significantly lower at {lower}\b[^;]* is {SHOWN[how]}", text)
        assert bool(told) == (lower > 0)


@pytest.mark.parametrize(
    "n, expected",
    [
        ((30, 40, 50), ["0", "1–5", "6–28"]),
        ((19, 40, 50), ["0–5", "6–28"]),
        ((30, 19, 1), ["0", "1–28"]),
        ((30, 40, 19), ["0", "1–28"]),
        ((9, 9, 9), ["0–28"]),
    ],
)
def test_distances_with_few_sentences_stand_together(n, expected):
    n = dict(zip(ENOUGH, n))
    table = at_distances(FAR, n)
    assert [name for name, _ in merge_distances(table)] == expected
    rows = compare_by_distance(table, "norm-none").set_index(["distance", "line"])
    for name, together in merge_distances(table):
        by = FAR["norm-none", CUT]
        right = [
            sum(by[index][seed] * n[index] for index in together) for seed in range(3)
        ]  # sentences that were right
        total = sum(n[index] for index in together)
        assert (
            rows.value[name, CUT] == pytest.approx(np.mean(right) / total)
            and rows.n[name, CUT] == total
        )
