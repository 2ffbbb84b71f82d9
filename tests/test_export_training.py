"""Exported training scripts: run without the app, they print the rows of core.train to the last bit."""

import csv
import dataclasses
import functools
import io
import itertools
import math
import os
import subprocess
import sys

import pytest
import torch
from scipy import stats

from core.experiments.training.judged import judged, rates
from core.experiments.training.plan import Arm, Plan, Trial, plan
from core.experiments.training.results import every_row, summary
from core.export.forms import FLAVOURS
from core.export.plain_training import ENDS, beyond, quantile
from core.export.training import training_script
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.init import generator as stream_of
from core.model.variants import Variant
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.tasks import IGNORE, task
from core.tasks.task import described, uniform
from core.train import Training, decay, optimiser, train
from tests.test_export import ODD, ROOT, check_imports, check_layout, run_script

CPU = Machine("cpu")
WHOLE = ("variant", "seeds", "diverged", "parameters", "flops", "rates")  # columns of words and whole numbers
SMALL = Config(d_model=16, n_heads=2, d_ff=24, position="learned")
SHORT = {"batch": 3, "steps": 5, "every": 2, "warmup": 2, "learning_rate": 0.01}


def _plan(configs: dict, seeds: int = 1, machine: Machine = CPU, **training) -> Plan:
    arms = [Arm(name, config, at, frozenset([name] if at else [])) for at, (name, config) in enumerate(configs.items())]
    return Plan(tuple(arms), Training(**SHORT | training), Trial(seeds=seeds), machine)


def _of_task(at: int, name: str) -> Plan:
    """A task in its full model, made small, with the next optimiser, decay, length, clipping."""
    lengths = list(task[name].lengths)
    return _plan(
        {"baseline": task[name].config(d_model=16, n_heads=2, d_ff=24)},
        task=name,
        length=lengths[len(lengths) // 3] if at % 2 else task[name].length,
        optimiser=list(optimiser)[at % len(optimiser)],
        decay=list(decay)[at % len(decay)],
        clip=0.05 * (at % 3),
    )


def _cycled() -> dict[str, Config]:
    """Small configs that together have every entry of every menu, those that are added later, too."""
    named = {field: itertools.cycle(menu) for field, menu in MENUS.items()}
    many = max(map(len, MENUS.values()))
    return {f"menus {at}": SMALL.replace(**{field: next(each) for field, each in named.items()}) for at in range(many)}


SWITCHES = {
    "baseline": SMALL,
    **{f"no {each}": SMALL.replace(**{each: False}) for each in ("attention", "ffn", "scale", "bias")},
    **{f"no {each}": SMALL.replace(**{each: False}) for each in ("residual_attention", "residual_ffn")},
    "tied, d_head, two layers": SMALL.replace(tied=True, d_head=5, n_layers=2),
    "dropout": SMALL.replace(dropout=0.3),
    "dropout on hidden units": SMALL.replace(dropout=0.3, ffn_dropout=True, attention_bias=False, norm_eps=0.01),
    "shared and normed": SMALL.replace(n_kv_heads=1, qk_norm=True, score_cap=5.0, logit_cap=20.0, window=3),
    "gated": SMALL.replace(gate=True, value_residual=True, softmax="sink", n_layers=2, skips=True),
    "one block": SMALL.replace(shared=True, n_layers=3, residual_scale="rezero", norm="DyT"),
    "side by side, matched": SMALL.replace(
        parallel=True, matched=True, activation="swiglu", d_ff=None, placement="sandwich"
    ),
    "much dropout": SMALL.replace(dropout=0.9, mask="causal", tied=True, seed=9),
    "what does not matter": SMALL.replace(padding=3, seed=7),
}
COMBINED, _ = plan(
    [Variant("baseline", SMALL), Variant("− FFN", SMALL.replace(ffn=False), 1), Variant("− norm", SMALL.replace(norm="none"), 2)],
    Training(**SHORT | {"task": "recall", "clip": 0.5}),
    Trial(seeds=3, match="parameters", together=True),
    CPU,
)  # fmt: skip
GUARDED, SEARCHED, TIMED = (
    plan(
        [Variant("baseline", SMALL), Variant("− FFN", SMALL.replace(ffn=False), 1), Variant("− norm", SMALL.replace(norm="none", init="normal_1", n_layers=3, position="none"), 2)],
        Training(**SHORT | {"task": "copy", "steps": 11} | more),
        Trial(seeds=3, **trial),
        CPU,
    )[0]
    for trial, more in (
        ({"search": "three", "match": "time"}, {}),
        ({"search": "five"}, {"optimiser": "sgd", "learning_rate": 0.5}),
        ({"match": "time"}, {"optimiser": "muon"}),
    )
)  # fmt: skip
CASES = {
    "equal time, rate searched": GUARDED,
    "rate searched, some diverge": SEARCHED,
    "equal time": TIMED,
    **{name: _of_task(at, name) for at, name in enumerate(task)},
    "every part": _plan(_cycled(), length=5),
    "switches": _plan(SWITCHES, 2, length=7, warmup=0, decay="cosine", weight_decay=0.5),
    "all combinations, as large": COMBINED,
    "some diverge": _plan(
        {"baseline": SMALL, "− norm": SMALL.replace(norm="none", init="normal_1", n_layers=3, position="none")},
        3,
        steps=40,
        optimiser="sgd",
        learning_rate=0.5,
        warmup=0,
        every=7,
    ),
    "all diverge": _plan({"baseline": SMALL}, 2, steps=30, optimiser="sgd", learning_rate=1000.0, weight_decay=10.0),
    "weights too large": _plan(
        {"baseline": SMALL, "nothing in between": SMALL.replace(attention=False, ffn=False, norm="none")},
        steps=9,
        learning_rate=1000.0,
        weight_decay=10.0,
        every=1,
    ),
    "bfloat16": _plan({"baseline": SMALL.replace(dropout=0.2, n_layers=2)}, machine=Machine("cpu", "bfloat16"), clip=1),
    "odd names": _plan({name: SMALL.replace(seed=2**31 - 3) for name in [*ODD, "− norm", "# rows,"]}, 2, steps=1),
    "one step": _plan({"baseline": SMALL}, task="copy", steps=1, batch=1, warmup=10_000, length=1 + 1),
}


@functools.cache
def _right(name):
    """What core gives: (arm, seed) -> rows."""
    made = CASES[name]
    runs = {key: list(train(s.config, s.training, s.seed, s.machine)) for key, s in made.states().items()}
    found = judged(runs, made)
    return every_row(runs, made), summary(found.runs, made, rates(made, found.names))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """flavour -> name of a case -> section -> its lines: all scripts of a flavour in one process without pytest."""
    return functools.cache(lambda flavour: _run_all(flavour, tmp_path_factory.mktemp(flavour)))


ALL = """
import contextlib, runpy, sys
for path in sys.argv[1:]:
    with open(path + ".csv", "w") as file, contextlib.redirect_stdout(file):
        runpy.run_path(path, run_name="__main__")
"""


def _run_all(flavour, folder):
    paths = {name: folder / f"script_{at}.py" for at, name in enumerate(CASES)}
    for name, path in paths.items():
        path.write_text(training_script(flavour, CASES[name]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *(["-I"] if flavour == "torch" else []), "-c", ALL, *map(str, paths.values())],
        cwd=folder if flavour == "torch" else ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "2"},  # the scripts ask for one by themselves
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return {name: _sections(path.with_suffix(".py.csv").read_text("utf-8")) for name, path in paths.items()}


def _sections(text):
    rows, _, accuracy = text.removeprefix("# rows\n").partition("\n# accuracy\n")
    return {name: list(csv.reader(io.StringIO(each))) for name, each in (("rows", rows), ("accuracy", accuracy))}


def _check(found, table):
    """Every cell the same, numbers to the last bit."""
    assert found[0] == list(table.columns)
    assert len(found) == len(table) + 1
    for line, row in zip(found[1:], table.itertuples(index=False)):
        for text, cell in zip(line, row, strict=True):
            right = text == cell if isinstance(cell, str) else _same(float(text), cell)
            assert right, (line, row)


def _same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", CASES)
def test_a_script_prints_the_rows_to_the_last_bit(name, flavour, printed):
    rows, ends = _right(name)
    found = printed(flavour)[name]
    _check(found["rows"], rows)
    if flavour == "core":
        _check(found["accuracy"], ends)
        return
    columns = [*ENDS, *["rates"] * ("rates" in ends)]
    assert found["accuracy"][0] == columns and len(found["accuracy"]) == len(ends) + 1
    for line, row in zip(found["accuracy"][1:], ends[columns].itertuples(index=False)):
        for column, text, cell in zip(columns, line, row, strict=True):
            if column in WHOLE:
                assert text == str(cell), (column, line, row)
            else:  # of the app by SciPy, of the script by an integral
                assert float(text) == pytest.approx(cell, rel=1e-9, abs=1e-15, nan_ok=True), (column, line, row)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 29])
def test_student_t_of_a_script_is_that_of_scipy(n):
    for t in (1e-6, 0.1, 1.0, 2.5, 40.0, 1e4):
        assert beyond(math.atan2(math.sqrt(n), t), n) == pytest.approx(2 * stats.t.sf(t, n), rel=1e-9)
    for level in (0.5, 0.95, 0.975, 1 - 0.05 / 3, 0.999):
        assert quantile(n, level) == pytest.approx(stats.t.ppf((1 + level) / 2, n), rel=1e-9)
    assert beyond(math.pi / 2, n) == 1.0


def test_the_cases_say_what_their_names_say():
    rows, ends = _right("some diverge")
    assert list(ends.seeds) == [3, 0] and set(rows.note.str.replace(r"\d+", "k", regex=True)) == {
        "",
        "diverged at step k",
    }
    assert list(_right("all diverge")[1].seeds) == [0]
    end = _right("weights too large")[0].iloc[-1]
    assert end.note and end.step > 3
    assert len(CASES["all combinations, as large"].arms) == 4 and CASES["all combinations, as large"].arms[1].note


def test_the_cases_have_every_entry_of_every_menu():
    configs = [arm.config for each in CASES.values() for arm in each.arms]
    trainings = [each.training for each in CASES.values()]
    for settings in (configs, trainings):
        for field, each in settings[0].settings().items():
            there = {getattr(one, field) for one in settings}
            wanted = set(each.menu or ()) | ({True, False} if each.kind is bool else set())
            assert wanted <= there, field
    assert {bool(each.clip) for each in trainings} == {bool(each.warmup) for each in trainings} == {True, False}
    assert any(task[each.task].held_out for each in trainings) and any(task[each.task].rivals for each in trainings)
    assert any(each.length != task[each.task].length for each in trainings)
    assert {each.machine.dtype for each in CASES.values()} == {"float32", "bfloat16"}


@pytest.mark.thorough
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_script_alone(flavour, tmp_path, printed):
    found = run_script(flavour, training_script(flavour, CASES["copy"]), tmp_path)
    assert found == printed(flavour)["copy"]


@pytest.mark.thorough
def test_the_torch_flavour_needs_torch_and_nothing_else():
    for each in CASES.values():
        check_imports(training_script("torch", each))


@pytest.mark.thorough
def test_scripts_are_clean_and_well_laid_out(tmp_path):
    check_layout(
        [training_script(flavour, each) for flavour in FLAVOURS for each in (*CASES.values(), *_ends())], tmp_path
    )


def _ends():
    """Plans with every setting of a model or a training at either of its ends."""
    for settings in (SMALL, Training(**SHORT)):
        for field, each in settings.settings().items():
            for value in {each.low, each.high} - {None}:
                try:
                    made = dataclasses.replace(settings, **{field: each.kind(value)})
                except ConfigError:  # no such length, or heads that do not fit
                    continue
                yield (
                    _plan({"baseline": made})
                    if settings is SMALL
                    else dataclasses.replace(_plan({"b": SMALL}), training=made)
                )


def _defined(script, until):
    """What a script has defined before it starts to work."""
    there = {"__name__": "script"}
    exec(compile(script.partition(until)[0], "script", "exec"), there)
    return there


def _plain(settings):
    return {name: getattr(settings, name) for name in settings.settings()}


@pytest.mark.parametrize("made", [*CASES.values(), *_ends()])
def test_scripts_have_the_settings_of_the_plan(made):
    assert _defined(training_script("core", made), "\n\n\ndef show")["PLAN"] == made
    there = _defined(training_script("torch", made), "\n\n\n# core/model/trace.py")
    assert vars(there["Training"]()) == _plain(made.training)
    ways = {name: (a.config, how) for a in made.arms for name, how in made.ways(a).items()}
    assert {name: vars(each) for name, each in there["VARIANTS"].items()} == {
        name: _plain(config) for name, (config, _) in ways.items()
    }
    otherwise = {name: _plain(how) for name, (_, how) in ways.items() if how != made.training}
    assert {name: vars(each) for name, each in there.get("OTHERWISE", {}).items()} == otherwise
    assert list(there["SEEDS"]) == made.seeds
    assert there["VOCABULARY"] == task[made.training.task].vocabulary


def test_a_script_has_only_what_its_settings_use():
    script = training_script("torch", CASES["copy"])
    assert "def copy(" in script and "def adamw(" in script and "@described" not in script
    for absent in ("def reverse(", "def sgd(", "def cosine(", "is_held_out", "rivals(", "clip_grads", "def one_side("):
        assert absent not in script
    script = training_script("torch", CASES["sentences"])
    assert "class Writer" in script and "def is_held_out(" in script and "def right_among_rivals(" in script


def test_what_cannot_be_trained():
    with pytest.raises(ValueError, match="flavour is 'jax'; it must be one of core, torch"):
        training_script("jax", CASES["copy"])
    with pytest.raises(ConfigError, match="seed is 2147483648"):
        training_script("torch", _plan({"baseline": SMALL.replace(seed=2**31 - 1)}, 2))


# A new task, optimiser and decay, as a reader of the code would add them. They are in their menus only in the test below.

WALLS = 3


@functools.lru_cache(maxsize=4)
def maze(vocabulary):
    """Where the walls are, the same in every run."""
    return torch.randperm(len(vocabulary), generator=stream_of(0, "walls"))[:WALLS]


@described(
    mask="causal",
    length=6,
    lengths=range(4, 9),
    vocabulary=("left", "turn right", 'say "stop"', "it's", "\\", "north", "south", "east", "west"),
    marginal=uniform(),
    needs="something",
    held_out=0.3,
    rivals=(("turn right", "left"), ("west", "north", "east")),
    test=70,
)
def accuracy(generator, batch, length, vocabulary):  # what the loop of the script has a name for, too
    """Paths: go on, but not through walls.

    Example (seed 0): is not shown
    """
    shift = torch.randint(5, (1,), generator=stream_of(1, "shift"))  # a name that a parameter here has, too
    tokens = torch.randint(len(vocabulary), (batch, length), generator=generator)
    targets = (tokens.cumsum(1) + shift) % len(vocabulary)
    return tokens, targets.masked_fill(torch.isin(tokens, maze(vocabulary)), IGNORE)


task.pop("accuracy")


def rmsprop(parameters, heights, learning_rate, weight_decay, fused):
    """RMSprop: divides by what gradients usually are."""
    return torch.optim.RMSprop(parameters, lr=learning_rate, weight_decay=weight_decay)


def none_at_all(progress):
    """Root: the root of what is left."""
    return math.sqrt(1 - progress)


@pytest.mark.thorough
def test_what_is_added_to_a_menu_is_in_the_scripts(tmp_path, monkeypatch):
    monkeypatch.setitem(task, "accuracy", accuracy)
    monkeypatch.setitem(optimiser, "rmsprop", rmsprop)
    monkeypatch.setitem(decay, "none_at_all", none_at_all)
    made = _plan({"baseline": SMALL}, task="accuracy", optimiser="rmsprop", decay="none_at_all", length=7)
    monkeypatch.setitem(CASES, "new", made)
    found = run_script("torch", training_script("torch", made), tmp_path)
    rows, ends = _right("new")
    _check(found["rows"], rows)
    assert float(found["accuracy"][1][1]) == ends.accuracy[0] > 0
