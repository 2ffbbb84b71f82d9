"""Study files and their runs: every mistake is named, every run is determined and unique."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measure.verdicts import MARGIN
from core.model.config import Config
from core.settings.device import Machine
from core.study.file import margin_of, parse, read
from core.study.plan import (
    MODEL,
    SETTINGS,
    TRAINING,
    Run,
    StudyError,
    describe_plan,
    is_null,
    pair_seed,
    read_run,
)
from core.tasks import task
from core.train import Training, start

ROOT = Path(__file__).parent.parent
HEAD = 'name = "a study"\ntasks = ["copy", "reverse"]\nseeds = 2\n'
RUN = Run("reverse", "baseline", task["reverse"].config(seed=3), Training(), Machine(device="cpu"))


def arms(study, name="reverse") -> dict:
    """Return each variant's first run on one task."""
    return {run.variant: run for run in reversed(study.runs) if run.task == name}


def another_value(setting, value):
    """Return a value of a setting that differs from the given one."""
    if setting.menu:
        return next(variant for variant in setting.menu if variant != value)
    if setting.kind is bool:
        return not value
    return value + 1 if setting.kind is int and value < setting.high else value / 2 or 0.25


@pytest.mark.slow
def test_hash_is_independent_of_process_and_order():
    script = (
        "from core.study.plan import Run; from core.tasks import task; from core.train import"
        " Training;from core.settings.device import Machine;c = task['reverse'].config(); c ="
        " type(c)(**dict(reversed(c.__dict__.items()))).replace(seed=3);print(Run('x', 'y', c,"
        " Training(), Machine(device='cpu')).hash)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    actual = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert actual.stdout.strip() == RUN.hash


def test_hash_is_stable():
    """A changed hash retrains everything in existing stores: raise FORMAT if that is intended."""
    assert RUN.hash == "c3b8a9684036918c1cd7ddadf79e7d65"


def test_task_with_new_data_is_another_training():
    run = dataclasses.replace(RUN, training=Training(task="sentences"))
    before = run.hash
    del run.__dict__["hash"], run.__dict__["spec"]
    learnt = task["sentences"]
    object.__setattr__(learnt, "revision", learnt.revision + 1)
    try:
        assert run.hash != before
    finally:
        object.__setattr__(learnt, "revision", learnt.revision - 1)
    assert "revision" not in RUN.spec and RUN.hash == "c3b8a9684036918c1cd7ddadf79e7d65"


@pytest.mark.parametrize("name", [*SETTINGS, "seed"])
def test_any_other_setting_gives_another_hash(name):
    config = RUN.config
    training = RUN.training
    if name in TRAINING:
        changed = {
            name: 24 if name == "length" else another_value(TRAINING[name], getattr(training, name))
        }
        run = dataclasses.replace(RUN, training=dataclasses.replace(training, **changed))
    else:
        value = {"n_heads": 8, "d_model": 64, "d_head": 16, "n_kv_heads": 2}.get(
            name, another_value(Config.settings()[name], getattr(config, name))
        )
        run = dataclasses.replace(RUN, config=config.replace(**{name: value}))
    assert run != RUN and run.hash != RUN.hash


@given(
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from(list(Config.settings()["norm"].menu)),
    st.floats(0.0, 0.9),
    st.floats(1e-6, 1.0),
    st.integers(0, 2**31 - 1),
)
def test_stored_run_reads_back_bit_for_bit(d_model, norm, dropout, rate, seed):
    config = Config(d_model=d_model, norm=norm, dropout=dropout, seed=seed)
    run = Run("reverse", "x", config, Training(learning_rate=rate), Machine())
    repeated = read_run("reverse", "x", run.spec)
    assert (
        repeated == run
        and repeated.hash == run.hash
        and repeated.start() == start(config, run.training, seed)
    )


def test_runs_are_unique_with_baseline_first():
    study = parse(
        HEAD + '[variants]\n"− norm" = {norm = "none"}\n[axes]\nn_heads = [1, 2]\nscale = [true,'
        " false]\n"
    )
    assert len({run.hash for run in study.runs}) == len(study.runs) == 2 * 2 * (1 + 1 + 4)
    assert [run.variant for run in study.runs][:3] == ["baseline", "− norm", "1 head, + scaling"]
    assert [run.seed for run in study.runs] == [0] * 12 + [1] * 12  # one seed of everything first
    for run in study.runs:
        if run.variant == "baseline":
            assert run.config == task[run.task].config(seed=run.seed) and run.training == Training(
                task=run.task
            )


def test_base_and_training_apply_unless_task_overrides():
    text = (
        HEAD
        + "[base]\nn_layers = 1\nd_model = 16\n[training]\nsteps = 100\n[task.reverse]\nn_layers ="
        " 3\nbatch = 8\n"
    )
    study = parse(text)
    copy, reverse = (arms(study, name)["baseline"] for name in ("copy", "reverse"))
    assert (copy.config.n_layers, reverse.config.n_layers, reverse.config.d_model) == (1, 3, 16)
    assert copy.config.d_ff == 64 and copy.training.every == 2  # what follows goes on following
    assert (copy.training.batch, reverse.training.batch) == (32, 8)
    assert copy.training.steps == reverse.training.steps == 100


def test_task_may_appear_under_several_names():
    study = parse(
        'name = "x"\ntasks = ["reverse", "reverse, deep"]\nseeds = [7]\n'
        '[task."reverse, deep"]\ntask = "reverse"\nn_layers = 12\nwarmup = 0\n'
    )
    plain, deep = study.runs
    assert (plain.task, deep.task) == ("reverse", "reverse, deep") and plain.seed == deep.seed == 7
    assert (
        deep.training.task == "reverse" and deep.training.warmup == 0 and deep.config.n_layers == 12
    )


def test_impossible_or_equal_variants_are_left_out_with_reason():
    study = parse(
        HEAD
        + '[variants]\n"as it is" = {n_heads = 4}\n"five" = {n_heads = 5}\na = {ffn = false}\nb ='
        ' {ffn = "off"}\n'
    )
    assert set(arms(study)) == {"baseline", "a"}
    assert len(study.notes) == 6 and all(" skipped" in note for note in study.notes)
    assert (
        "In “copy”, the variant “as it is” is skipped because it equals the baseline."
        in study.notes
    )
    assert any("five skipped: n_heads is 5; it must divide" in note for note in study.notes)
    assert "In “reverse”, the variant “b” is skipped because it equals “a”." in study.notes


# Mistakes


SHARES = [round(0.0001 * n, 4) for n in range(1, 401)]
MISTAKES = {
    "no TOML": ("name = ", "This is not TOML: Invalid value (at end of document)."),
    "nothing": ("", "name is missing"),
    "no tasks": (
        'name = "x"',
        "tasks is missing; it must be a list of at least one of copy, reverse",
    ),
    "a key": (HEAD + "sedes = 3", "“sedes” is not a key of a study. Did you mean seeds?"),
    "a name": ('name = 3\ntasks = ["copy"]', "name is 3; it must be text."),
    "a long name": (
        f'name = "{"x" * 201}"\ntasks = ["copy"]',
        "it must be printable, on one line, 200 characters at most.",
    ),
    "a question": (HEAD + "question = 4", "question is 4; it must be text."),
    "a task": (
        'name = "x"\ntasks = [\n  "copy",\n  "revers"]',
        "tasks names “revers”, which is not a task. Did you mean reverse?",
    ),
    "a task twice": ('name = "x"\ntasks = ["copy", "copy"]', "tasks names “copy” twice."),
    "seeds": ('name = "x"\ntasks = ["copy"]\nseeds = [1, 1]', "seeds is [1, 1]"),
    "too many": (
        'name = "x"\ntasks = ["copy"]\nseeds = 1000000',
        "these are 1,000,000 runs (1 task, 1 variant, 1,000,000 seeds); the limit is 100,000.",
    ),
    "a device": (
        HEAD + 'device = "tpu"',
        "device is “tpu”; it must be one of auto, cuda, mps, cpu.",
    ),
    "a precision": (HEAD + 'dtype = "float16"\ndevice = "cpu"', "dtype is float16"),
    "a setting": (
        HEAD + "[base]\n\nwidth = 3",
        "base.width is not a setting; there are d_model, n_heads",
    ),
    "a setting misspelt": (
        HEAD + "[base]\nn_head = 3",
        "base.n_head is not a setting. Did you mean n_heads?",
    ),
    "a value": (
        HEAD + '[base]\nnorm = "layer"',
        "base.norm is “layer”; it must be one of LayerNorm, RMSNorm, DyT, none.",
    ),
    "a number": (
        HEAD + "[base]\nd_model = 7",
        "base.d_model is 7; it must be a whole number from 8 to 1,600.",
    ),
    "elsewhere": (HEAD + "[base]\nsteps = 3", "base.steps belongs under training."),
    "together": (
        HEAD + "[base]\nn_heads = 5",
        "the task “copy” is not possible: n_heads is 5; it must divide d_model",
    ),
    "a task's length": (
        'name = "x"\ntasks = ["facts"]\n[task.facts]\nlength = 3',
        "the task “facts” is not possible: length is 3; for facts it must be 2.",
    ),
    "an unused table": (
        HEAD + "[task.facts]\nsteps = 3",
        "task.facts is not in the list of tasks.",
    ),
    "the same twice": (
        'name = "x"\ntasks = ["copy", "other"]\n[task.other]\ntask = "copy"',
        "baseline of “other” would be trained exactly like baseline of “copy”: remove one of them.",
    ),
    "a variant": (
        HEAD + '[variants]\n"− norm" = {norm = "no"}',
        'variants."− norm".norm is “no”; it must be one of',
    ),
    "the baseline": (
        HEAD + "[variants]\nbaseline = {n_heads = 2}",
        "a variant cannot be called “baseline”",
    ),
    "an axis": (HEAD + "[axes]\nnorm = 3", "axes.norm is 3; it must be a list of values."),
    "an axis' value": (
        HEAD + '[axes]\nnorm = ["none", "x"]',
        "axes.norm is “x”; it must be one of",
    ),
    "two names": (
        HEAD + '[variants]\n"− FFN" = {ffn = false}\n[axes]\nffn = [false]',
        "axes: a combination and a variant are both called “− FFN”",
    ),
    "too many variants": (
        HEAD + f"[axes]\ndropout = {SHARES}\nweight_decay = {SHARES}",
        "the limit is 100,000.",
    ),
    "a margin": (HEAD + "margin = 0", "margin is 0; it must be a number of percentage points"),
    "a margin of a task": (HEAD + '[task.copy]\nmargin = "2"', "task.copy.margin is “2”"),
    "curly quotes": (
        HEAD.replace('"a study"', "“a study”"),
        "no-break spaces from a word processor",
    ),
    "a long text": ("x" * 60_000, "the limit is 50,000 characters"),
    "memory": (
        HEAD + "[training]\nbatch = 4096\n[base]\nd_model = 1024\nn_layers = 100",
        "would need about",
    ),
}


def test_margin_is_of_the_task_else_of_the_study():
    text = HEAD + "margin = 1.5\n[task.copy]\nmargin = 4\n"
    assert margin_of(text, "copy") == 0.04 and margin_of(text, "reverse") == 0.015
    assert margin_of(HEAD, "copy") == MARGIN
    assert [run.hash for run in parse(text).runs] == [run.hash for run in parse(HEAD).runs]


@pytest.mark.parametrize("text, words", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_name_key_and_allowed_values(text, words):
    with pytest.raises(StudyError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert all(len(problem) < 1000 and problem.isprintable() for problem in caught.value.problems)


def test_study_may_begin_with_byte_order_mark(tmp_path):
    (tmp_path / "study.toml").write_text(HEAD, encoding="utf-8-sig")
    assert read(tmp_path / "study.toml").runs == parse(HEAD).runs


def test_mistakes_are_named_together():
    with pytest.raises(StudyError) as caught:
        parse(
            'name = 3\ntasks = ["copy"]\nsedes = 1\n[base]\nnorm = "x"\nn_layers = 0\n[variants]\na'
            " = {ffn = 3}\n"
        )
    keys = [problem.split(" ")[0] for problem in caught.value.problems]
    assert keys == ["“sedes”", "name", "base.norm", "base.n_layers", "variants.a.ffn"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda path: path.stem
)
def test_shipped_studies_are_valid_without_duplicates(path):
    study = read(path)
    assert len({run.hash for run in study.runs}) == len(study.runs) and study.question


def test_ablation_matrix_covers_parts_and_tasks_in_an_hour():
    study = read(ROOT / "studies" / "ablation_matrix.toml")
    assert {run.training.task for run in study.runs} == set(task)
    assert len({run.variant for run in study.runs if not is_null(run.variant)}) == 12
    assert len({pair_seed(run.variant, run.seed) for run in study.runs}) == 5
    assert math.isfinite(study.seconds(2)) and study.seconds(2) < 3600
    assert "5 seeds per model" in describe_plan(study, 2)
    assert set(MODEL) | set(TRAINING) == set(SETTINGS)
