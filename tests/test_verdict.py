"""Verdicts as JSON: they fit their schema, equal the summary, and agree with SciPy."""

import inspect
import json
import math
import subprocess
import sys
import textwrap
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from core import ConfigError, ablate
from core.experiments.training.plan import BASELINE, Trial, plan
from core.experiments.training.results import summary
from core.model.variants import Pins, lineup
from core.settings.device import Machine
from core.study import __main__ as command
from core.study.database.schema import QUEUED
from core.study.database.store import Store
from core.study.looks import enrol_needed
from core.study.plan import StudyError
from core.study.shipped import shipped, table_of
from core.study.summary import read_summary
from core.study.tables import summary_with_guards
from core.study.verdict import (
    has_missing_runs,
    shipped_document,
    study_document,
    training_document,
    write_document,
)
from core.tasks import task
from core.train import Row, Training
from tests.holm import corrected, level
from tests.studies import TEXT, fill, study
from tests.verdict_documents import SCHEMA, VALIDATOR, check_document, find_problems

TINY = {"base": {"d_model": 16, "n_heads": 2, "n_layers": 1}, "training": {"steps": 2, "batch": 8}}
MADE = {
    "torch": ("2.13.0",),
    "numpy": ("2.4.6",),
    "python": ("3.11.7",),
    "code": ("abc",),
    "device": ("CPU",),
}


@pytest.fixture
def store(tmp_path):
    with_results = Store(str(tmp_path / "studies.sqlite"))
    yield with_results
    with_results.close()


def score(run) -> float:
    """Return a synthetic accuracy, different for each run; no run learnt its task."""
    return round(0.3 + 0.1 * math.sin(len(run.variant) * 7 + run.seed), 3)


def document_of(store, study_, outcome) -> dict:
    """Return the document of a study with synthetic results, checked against its summary."""
    number = fill(store, study_, outcome)
    document = study_document(store, number)
    check_document(document, summary_with_guards(store, number))
    return document


# The schema


def list_schemas(schema, path="") -> list[tuple[str, dict]]:
    """Return the schema of each field, with its path."""
    found = []
    for part in ("properties", "$defs"):
        for name, field in schema.get(part, {}).items():
            found += [(f"{path}/{name}", field), *list_schemas(field, f"{path}/{name}")]
    return found


def test_schema_describes_each_field_and_allows_no_other():
    VALIDATOR.check_schema(SCHEMA)
    schemas = [("", SCHEMA), *list_schemas(SCHEMA)]
    assert len(schemas) > 50
    for path, schema in schemas:
        assert schema["description"], path
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
            assert schema["required"] == list(schema["properties"]), path


def test_extra_missing_and_wrong_fields_are_refused(store):
    document = document_of(store, study(), score)
    wrong = []
    for change in (
        {"extra": 1},
        {"schema": "verdict/0"},
        {"study": 3},
        {"guards": "none"},
        {"comparisons": None},
    ):
        wrong.append(document | change)
    for change in (
        {"extra": 1},
        {"verdict": "same"},
        {"p": 1.5},
        {"n": 2.5},
        {"effect": "0.1"},
        {"mixed": None},
        {"missing": 0},
        {"noise_floor": "0.1"},
    ):
        changed = deepcopy(document)
        changed["comparisons"][-1] |= change
        wrong.append(changed)
    for name in document:
        wrong.append({key: value for key, value in document.items() if key != name})
    for part in ("accuracy", "learnt", "noise"):
        changed = deepcopy(document)
        changed["comparisons"][0][part]["extra"] = 0
        wrong.append(changed)
    assert all(find_problems(changed) for changed in wrong)


# Studies in a store


def test_numbers_match_scipy(store):
    document = document_of(store, study(old="seeds = 3", new="seeds = 6"), score)
    assert document["study"] == "made up" and document["question"] == "What would it cost?"
    assert document["guards"] == [] and document["rule"]["looks"] == []
    assert document["versions"]["devices"] == ["CPU (made up)"]
    assert document["versions"]["torch"] == [torch.__version__]
    values = {}
    for run in study(old="seeds = 3", new="seeds = 6").runs:
        values.setdefault((run.task, run.variant), []).append(score(run))
    for name in ("copy", "reverse"):
        several = [line for line in document["comparisons"] if line["task"] == name]
        tests = [
            stats.ttest_rel(values[name, line["variant"]], values[name, BASELINE])
            for line in several
        ]
        together = corrected([test.pvalue for test in tests])
        for place, (line, test, p) in enumerate(zip(several, tests, together)):
            model, base = values[name, line["variant"]], values[name, BASELINE]
            gaps = np.subtract(model, base)
            assert line["n"] == 6 and line["compared_by"] == "means" and line["task_key"] == name
            assert line["effect"] == pytest.approx(gaps.mean())
            assert line["p"] == pytest.approx(test.pvalue, rel=1e-5)
            assert line["p_corrected"] == pytest.approx(p, rel=1e-5)
            signs = stats.permutation_test(
                (gaps,), np.mean, permutation_type="samples", n_resamples=np.inf
            )
            assert line["p_exact"] == pytest.approx(signs.pvalue)
            assert line["p_exact_least"] == 2 / 2**6
            assert line["noise"]["spread"] == pytest.approx(gaps.std(ddof=1))
            assert line["noise"]["correlation"] == pytest.approx(stats.pearsonr(model, base)[0])
            ends = test.confidence_interval(level([test.pvalue for test in tests], place))
            assert [line["low"], line["high"]] == pytest.approx(list(ends), rel=1e-4)
            of_none = stats.binomtest(0, 6).proportion_ci(method="wilson")
            for side in line["learnt"].values():
                assert (side["count"], side["share"]) == (0, 0)
                assert [side["low"], side["high"]] == pytest.approx(list(of_none))


def test_document_is_the_same_each_time(store):
    number = fill(store, study(), score)
    texts = {write_document(study_document(store, number)) for _ in range(2)}
    assert len(texts) == 1


def test_two_groups_are_compared_by_runs_that_learnt(store):
    five = study(old="seeds = 3", new="seeds = 5")

    def outcome(run) -> float:
        has_learnt = run.variant == BASELINE or (run.variant == "1 head" and run.seed > 2)
        return 0.99 if has_learnt else 0.1

    document = document_of(store, five, outcome)
    by_name = {
        line["variant"]: line for line in document["comparisons"] if line["task"] == "reverse"
    }
    some = by_name["1 head"]
    assert some["compared_by"] == "learnt" and some["low"] is some["high"] is None
    assert (some["learnt"]["model"]["count"], some["learnt"]["baseline"]["count"]) == (2, 5)
    assert some["p"] == pytest.approx(
        2 * stats.boschloo_exact([[2, 5], [3, 0]], n=64).pvalue, rel=1e-3
    )
    ends = stats.binomtest(2, 5).proportion_ci(method="wilson")
    learnt = some["learnt"]["model"]
    assert [learnt["low"], learnt["high"]] == pytest.approx(list(ends))


def test_divergence_is_counted_and_makes_no_numbers(store):
    def outcome(run) -> float:
        return math.nan if run.variant == "− norm" and run.seed else score(run)

    document = document_of(store, study(), outcome)
    for line in document["comparisons"]:
        if line["variant"] == "− norm":
            assert line["diverged"] == {"model": 2, "baseline": 0} and line["n"] == 1
            assert line["p"] is line["p_corrected"] is line["low"] is line["compared_by"] is None
            assert line["noise"]["spread"] is line["noise"]["seeds_for_1_point"] is None
            assert line["verdict"] == "undecided"
    assert not has_missing_runs(document)


def test_missing_runs_are_counted(store):
    document = document_of(store, study(), lambda run: QUEUED if run.seed == 2 else score(run))
    assert has_missing_runs(document)
    for line in document["comparisons"]:
        assert line["missing"] == {"model": 1, "baseline": 1} and line["n"] == 2
    nothing = document_of(store, study(), lambda run: QUEUED)
    assert all(line["effect"] is None and line["n"] == 0 for line in nothing["comparisons"])


def test_seeds_beyond_the_limit_are_null(store):
    wild = study(old="seeds = 3", new="seeds = [3, 8, 9]")
    accuracies = {3: 0.0, 8: 0.3, 9: 0.0}
    document = document_of(
        store, wild, lambda run: 0.1 if run.variant == BASELINE else accuracies[run.seed]
    )
    noise = document["comparisons"][0]["noise"]
    assert noise["spread"] > 0.1 and noise["seeds_for_1_point"] is None
    assert isinstance(noise["seeds_for_5_points"], int)


def test_looks_and_guards_are_named(store):
    text = TEXT.replace("seeds = 3", 'seeds = "3, 5, 8"\nmargin = 1\nequal = "parameters"')
    text = text.replace('"1 head" = {n_heads = 1}\n', "")
    looking = study(text=text)
    noisy = {0: 0.3, 1: 0.42, 2: 0.21, 3: 0.35, 4: 0.28, 5: 0.4, 6: 0.3, 7: 0.24}

    def outcome(run) -> float:
        return 0.3 if run.variant == BASELINE else noisy[run.seed]

    number = 0
    for _ in looking.looks:
        number = enrol_needed(store, looking).study
        wanted = {run.hash for run in store.runs(number, spec=False)}
        runs = [run for run in (*looking.runs, *looking.later) if run.hash in wanted]
        number = fill(store, replace(looking, runs=tuple(runs)), outcome)
    document = study_document(store, number)
    check_document(document, summary_with_guards(store, number))
    assert document["rule"]["looks"] == [3, 5, 8] and "3 looks" in document["rule"]["words"]
    assert document["guards"] == ["equal parameters"]
    for line in document["comparisons"]:
        gaps = np.subtract(list(noisy.values()), 0.3)
        p = stats.ttest_1samp(gaps, 0).pvalue
        assert line["n"] == 8 and line["margin"] == 0.01
        assert line["p"] == pytest.approx(p, rel=1e-5)
        assert line["p_corrected"] == pytest.approx(min(1, 3 * p), rel=1e-5)


def test_mixed_versions_are_listed(store):
    number = fill(store, study(), score)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET torch = '1.0' WHERE seed = 1")
    document = study_document(store, number)
    check_document(document, summary_with_guards(store, number))
    versions = sorted(["1.0", torch.__version__])
    assert document["versions"]["torch"] == versions
    for line in document["comparisons"]:
        assert line["mixed"] == [f"torch {' and '.join(versions)}"]


def test_deleted_study_has_no_document(store):
    with pytest.raises(StudyError):
        study_document(store, 7)


# Built-in studies


@pytest.mark.parametrize("name", shipped)
def test_built_in_studies_fit_the_schema(name):
    document = shipped_document(name)
    check_document(document, read_summary(table_of(name)))
    assert not has_missing_runs(document) and len(document["comparisons"]) > 20
    assert all(document["versions"].values())
    assert all(line["p"] is not None or line["n"] < 3 for line in document["comparisons"])


# The page Training


def test_training_has_numbers_only_when_all_runs_have_ended():
    config = task["reverse"].config(d_model=16, n_heads=2, n_layers=1)
    training = Training(task="reverse", steps=20)
    variants, _ = lineup(config, Pins(variants="norm-none"), padding=0)
    planned, _ = plan(variants, training, Trial(seeds=3, match="parameters"), Machine("cpu"))
    values = iter([0.2, 0.3, 0.25, 0.1, 0.12, 0.15])
    runs = {
        (arm.name, seed): [
            Row(10, 2.0, 0.5, 1.0, 0.1, 0.1),
            Row(20, 1.0, next(values), 1.0, 0.1, 0.1),
        ]
        for arm in planned.arms
        for seed in planned.seeds
    }
    other = MADE | {"torch": ("2.12.1",)}
    document = training_document(runs, planned, [MADE, other])
    table = summary(runs, planned).assign(
        task="reverse", missing=0, mixed="torch 2.12.1 and 2.13.0"
    )
    check_document(document, table)
    assert document["study"] is None and document["guards"] == ["equal parameters"]
    assert document["versions"]["torch"] == ["2.12.1", "2.13.0"]
    assert document["comparisons"][0]["effect"] == pytest.approx(
        np.mean([0.1, 0.12, 0.15]) - np.mean([0.2, 0.3, 0.25])
    )
    runs["− norm", 1] = runs["− norm", 1][:1]
    partly = training_document(runs, planned, [MADE])
    assert find_problems(partly) == [] and has_missing_runs(partly)
    (line,) = partly["comparisons"]
    assert line["missing"] == {"model": 1, "baseline": 0} and line["effect"] is None


# From Python


def test_ablate_equals_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    document = ablate(
        "reverse", {"− norm": {"norm": "none"}, "1 head": "n_heads-1"}, seeds=3, margin=10, **TINY
    )
    assert find_problems(document) == []
    assert torch.get_num_threads() == threads and not list(tmp_path.iterdir())
    text = TEXT.replace('["copy", "reverse"]', '["reverse"]').replace("steps = 40", "steps = 2")
    text = text.replace("every = 20\n", "").replace("seeds = 3", "seeds = 3\nmargin = 10")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    code = command.main(["run", "study.toml", "--workers", "1", "--database", "s.sqlite"])
    assert code == command.COMPLETE
    with_results = Store("s.sqlite")
    stored = study_document(with_results, 1)
    with_results.close()
    assert document["comparisons"] == stored["comparisons"]
    assert document["versions"] == stored["versions"]
    assert document["study"] == "ablation" and document["comparisons"][0]["margin"] == 0.1


def test_ablate_takes_texts_of_links_looks_and_searches():
    document = ablate(
        ["copy", "reverse"],
        "norm-none~ffn-off",
        seeds="3, 4",
        margin=0.1,
        search=[0.001],
        name='a "name"',
        question="Why?",
        **TINY,
    )
    assert find_problems(document) == []
    assert (document["study"], document["question"]) == ('a "name"', "Why?")
    assert document["rule"]["looks"] == [3, 4] and document["guards"] == ["learning rate searched"]
    names = [(line["task"], line["variant"]) for line in document["comparisons"]]
    assert names == [
        (name, variant) for name in ("copy", "reverse") for variant in ("− norm", "− FFN")
    ]
    assert not has_missing_runs(document)
    with_keys = ablate("copy", ("no_norm", "ffn-off"), seeds=[7], **TINY)
    assert [line["variant"] for line in with_keys["comparisons"]] == ["− norm", "− FFN"]
    assert all(line["n"] == 1 and line["p"] is None for line in with_keys["comparisons"])


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"task": "revers"}, StudyError, "tasks names “revers”, which is not a task"),
        ({"task": None}, StudyError, "tasks is “None”"),
        ({"variants": ["norm-nope"]}, ConfigError, "LayerNorm, RMSNorm, DyT, none"),
        ({"variants": ["nope"]}, ConfigError, "variants names “nope”"),
        ({"variants": {"a": {"norm": None}}}, StudyError, "variants.a.norm is “None”"),
        ({"variants": {"a": {"nrm": "none"}}}, StudyError, "Did you mean norm?"),
        ({"variants": {}}, StudyError, "variants is empty"),
        ({"variants": {"same": {"n_layers": 1}}}, StudyError, "equals the baseline"),
        ({"seeds": math.nan}, StudyError, "seeds is “nan”; it must be how many"),
        ({"base": {"steps": 3}}, StudyError, "base.steps belongs under training"),
        ({"training": {"batch": -1}}, StudyError, "batch"),
        ({"margin": 0}, StudyError, "margin is 0"),
        ({"equal": "size"}, StudyError, "equal"),
        ({"device": "tpu"}, StudyError, "device"),
    ],
)
def test_ablate_names_what_is_wrong_and_what_is_allowed(changed, error, words):
    arguments = {"task": "reverse", "variants": ["norm-none"], "seeds": 3, **TINY}
    with pytest.raises(error) as raised:
        ablate(**(arguments | changed))
    assert words in str(raised.value)


def test_example_in_docstring_works(capsys):
    text = inspect.getdoc(ablate)
    code = text[text.index("    from core") : text.index("Args:")]
    exec(textwrap.dedent(code), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" ", 2)[0] for line in lines] == ["− norm", "1 head"]


def test_import_of_core_stays_light():
    code = (
        "import core, sys; print(sorted({'sqlalchemy', 'core.study', 'core.train'} &"
        " set(sys.modules)), 'ablate' in core.__all__, core.ablate.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True ablate"


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    return tmp_path


def called(capsys, *args) -> tuple[int, str, str]:
    code = command.main(["verdict", *args])
    out, errors = capsys.readouterr()
    return code, out, errors


def test_command_prints_stored_studies(folder, store, capsys):
    number = fill(store, study(), score)
    code, out, errors = called(capsys, "made up", "--json")
    assert (code, errors) == (command.COMPLETE, "")
    assert json.loads(out) == study_document(store, number)
    (folder / "file.toml").write_text(TEXT, encoding="utf-8")
    assert called(capsys, "file.toml", "--json")[1] == out
    code, out, _ = called(capsys, "made up")
    first, counted, rule, *cells = out.splitlines()
    assert first == f"made up: {study().question}"
    assert counted.startswith("4 comparisons: ") and rule.startswith(
        "Accuracies are paired by seed"
    )
    assert cells[0].startswith("copy, baseline: accuracy ")
    assert cells[1].startswith("copy, − norm: ") and "95 % CI" in cells[1]
    fill(store, study(), lambda run: QUEUED if run.seed == 2 else score(run))
    code, out, _ = called(capsys, "made up", "--json")
    assert code == command.INCOMPLETE and has_missing_runs(json.loads(out))
    code, out, errors = called(capsys, "other")
    assert code == command.MISTAKE and not out
    assert "“other” is neither" in errors and "Built-in studies: ablation_matrix" in errors


def test_command_prints_built_in_studies(folder, capsys):
    name = "feed_forward"
    without_store = called(capsys, name, "--json")
    assert without_store[0] == command.COMPLETE
    assert json.loads(without_store[1]) == shipped_document(name)
    Store(str(folder / "studies.sqlite")).close()
    assert called(capsys, name, "--json") == without_store
    assert called(capsys, "other")[0] == command.MISTAKE


def test_command_needs_a_store_for_other_studies(folder, capsys):
    code, out, errors = called(capsys, "other", "--json")
    assert code == command.NO_STORE and not out and "There are no studies at" in errors


def test_null_arms_are_printed_last(folder, capsys):
    out = called(capsys, "positions")[1]
    before, _, arms = out.partition("\nNull arms:\n")
    assert "baseline, " not in before and len(arms.splitlines()) == 10
