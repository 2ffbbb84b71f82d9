"""Exported scripts and notebooks, run in another folder, print what the pages show."""

import csv
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.checkpoints import family, files
from core.experiments.block import neurons, positions
from core.experiments.block.attention import measure_heads, vary_head_count
from core.experiments.block.compare import compare, per_token
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, table, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid
from core.experiments.forward import forward
from core.experiments.trained import comparison, contributions, knockout, prompt, tables
from core.experiments.training.judged import describe_rates, select_runs
from core.experiments.training.plan import Arm, Plan, Trial, plan
from core.experiments.training.results import every_row, summary, values_by_step
from core.export.scripts import (
    folder_call,
    make_block_script,
    make_compare_script,
    make_depth_script,
    make_family_script,
    make_grid_script,
    make_knockout_script,
    make_training_script,
    member_call,
)
from core.measure.stream_statistics import statistic
from core.model import cost
from core.model.config import Config
from core.model.generate import Sampling
from core.model.knockout import read_cuts
from core.model.parts import MENUS
from core.model.text import DEFAULT_TEXT, split_words
from core.model.variants import Variant
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.tasks import task
from core.train import Training, train

ROOT = Path(__file__).parent.parent
CPU = Machine("cpu")
SMALL = Config(d_model=24, n_heads=2, d_ff=40)
TOKENS = split_words(DEFAULT_TEXT)[:7]
ODD = [
    '"',
    "it's",
    'it\'s "so"',
    "\\",
    "\\n",
    "a,b",
    ",",
    "#",
    "# tokens",
    "$MACHINE",
    "👩‍👩‍👧",
    "naïve",
    "nan",
    "",
]
VARIANTS = {  # the baseline first
    "baseline": SMALL,
    "− FFN": SMALL.replace(ffn=False),
    "− attention, post": SMALL.replace(attention=False, placement="post"),
    "more heads, as many key-value heads": SMALL.replace(n_heads=4, n_kv_heads=2),
    "biases in attention alone": SMALL.replace(bias=False, attention_bias=True, norm_eps=0.05),
    'wide, "quoted"': Config(
        d_model=32, position="rope", n_heads=8, activation="swiglu", mask="causal"
    ),
}
OUT_OF_RANGE = {
    "baseline": SMALL.replace(init="normal_1", norm="none", activation="relu", residual_ffn=False)
}
AXES = Axes("norm-LayerNorm+none__residual-both+none__n_heads-1+2__ffn-on+off")
NO_AXES = Axes("norm-__placement-__residual-__activation-__n_heads-")
PADDED = SMALL.replace(padding=2, mask="causal", dropout=0.35, n_layers=2)
LEGAL = files.from_folder(files.ROOT / files.SHIPPED)
CUTS, _ = read_cuts("2.3~1.ffn", LEGAL.config)
TEXT = "the judge who saw the clerks was late ."
WEIGHT = ["layer", "head", "query", "key", "weight"]


def lineup(configs: dict) -> list[Variant]:
    return [Variant(name, config, colour) for colour, (name, config) in enumerate(configs.items())]


def planned(trial: dict, **training) -> Plan:
    training = {
        "task": "copy",
        "batch": 3,
        "steps": 8,
        "every": 2,
        "warmup": 2,
        "learning_rate": 0.01,
    } | training
    small = Config(d_model=16, n_heads=2, d_ff=24, position="learned")
    bad = small.replace(norm="none", init="normal_1", n_layers=3, position="none")
    variants = {"baseline": small, "− FFN": small.replace(ffn=False), "− norm": bad}
    return plan(lineup(variants), Training(**training), Trial(**trial), CPU)[0]


PLANS = {
    "training": planned({"seeds": 3}, task="recall", clip=0.5),
    "training, rates searched, some diverge": planned(
        {"seeds": 3, "search": "five"}, optimiser="sgd", learning_rate=0.5
    ),
    "training, equal time and all combinations": planned(
        {"seeds": 2, "match": "time", "together": True}
    ),
}


# What the pages compute


def attention_rows(forward_pass):
    return [
        (layer + 1, head + 1, query + 1, key + 1, pattern[head, query, key].item())
        for layer, pattern in enumerate(forward_pass.sites.get("pattern", ()))
        for head, query, key in itertools.product(*map(range, pattern.shape))
        if forward_pass.allowed_in(layer)[query, key]
    ]


def block_tables(config, tokens, dropout=False, kind="random", view=""):
    forward_pass = forward(config, tokens, CPU, dropout, kind)
    stages = forward_pass.statistics
    moved = per_token(forward_pass)
    tables = {
        "stages": stages.assign(layer=stages.layer + 1),
        "tokens": moved.assign(token=moved.token + 1),
        "attention": pd.DataFrame(attention_rows(forward_pass), columns=WEIGHT),
    }
    if view == "heads" and config.attention:
        tables["heads"] = pd.concat(
            [measure_heads(forward_pass, n).assign(layer=n + 1) for n in forward_pass.layers]
        )
        tables["heads"] = tables["heads"][["layer", "head", "meter", "value"]]
    if view == "neurons":
        tables["silent"] = neurons.sparsity(forward_pass, 0).assign(layer=1)
        tables["silent"] = tables["silent"][["layer", "token", "word", "value", "small"]]
    if view == "positions":
        tables["order"] = positions.compare_word_orders(forward_pass)
    if view == "cost":
        length = len(forward_pass.tokens)
        parts = (
            cost.parameters(config),
            cost.flops(config, length),
            cost.activation_bytes(config, length),
        )
        rows = [
            (kind_name, *part)
            for kind_name, item in zip(("parameters", "operations", "bytes"), parts)
            for part in item.items()
        ]
        tables["cost"] = pd.DataFrame(rows, columns=["amount", "part", "value"])
    return tables


def compare_tables(configs, tokens, dropout=False):
    return {
        "compared": compare(
            {name: forward(config, tokens, CPU, dropout) for name, config in configs.items()}
        )
    }


def heads_tables(configs, tokens, dropout=False):
    passes = {name: forward(config, tokens, CPU, dropout) for name, config in configs.items()}
    entropies = [
        (name, layer + 1, row.head, row.value)
        for name, forward_pass in passes.items()
        for layer in forward_pass.layers
        for row in measure_heads(forward_pass, layer).itertuples()
        if row.meter == "entropy"
    ]
    weights = [
        (name, *row)
        for name, forward_pass in passes.items()
        for row in attention_rows(forward_pass)
    ]
    return {
        "heads": pd.DataFrame(entropies, columns=["variant", "layer", "head", "entropy"]),
        "attention": pd.DataFrame(weights, columns=["variant", *WEIGHT]),
    }


def depth_tables(configs, tokens, depth, machine=CPU):
    journeys = {name: travel(config, tokens, machine, depth) for name, config in configs.items()}
    back = {name: gradients(config, tokens, machine, depth) for name, config in configs.items()}
    stream = [
        (name, n, value)
        for name, item in back.items()
        for n, value in enumerate(item.stream.tolist())
    ]
    weights = [
        (name, *row) for name, item in back.items() for row in item.weights.itertuples(index=False)
    ]
    attention = [
        (name, number, query + 1, key + 1, float(weight))
        for name, journey in journeys.items()
        for number, pattern in journey.patterns.items()
        for (query, key), weight in np.ndenumerate(pattern.double().mean(0).numpy())
    ]
    return {
        "statistics": table(journeys),
        "gradients": pd.DataFrame(stream, columns=["variant", "pass", "value"]),
        "weights": pd.DataFrame(weights, columns=["variant", "layer", "weight", "value"]),
        "attention": pd.DataFrame(attention, columns=["variant", "pass", "query", "key", "weight"]),
    }


def grid_tables(baseline, axes, tokens, depth):
    grid_results = grid(baseline, axes, tokens, CPU, depth)
    rows = [
        (*entries.values(), number, meter, value)
        for entries, passes in zip(grid_results.entries, grid_results.values.tolist())
        for number, row in enumerate(passes)
        for meter, value in zip(statistic, row)
    ]
    return {"grid": pd.DataFrame(rows, columns=[*grid_results.axes, "pass", "meter", "value"])}


def training_tables(plan):
    runs = {
        (name, seed): list(train(config, how, seed, CPU))
        for name, config, how, seed in plan.trainings()
    }
    judged_results = select_runs(runs, plan)
    curves = [
        (arm.name, field, step, *values)
        for field in ("accuracy", "loss")
        for arm in plan.arms
        for step, values in values_by_step(
            judged_results.runs, plan, arm.name, field, field == "loss"
        )
    ]
    return {
        "rows": every_row(runs, plan),
        "curves": pd.DataFrame(
            curves, columns=["variant", "field", "step", "mean", "low", "high", "seeds"]
        ),
        "accuracy": summary(judged_results.runs, plan, describe_rates(plan, judged_results.names)),
    }


def trained_tables(opened, cuts, mode, texts, view, sampling=None):
    bench = knockout.bench(opened, texts)
    effect = bench.effect(cuts, mode)
    if view == "knockout":
        split = [
            tables.accuracy_by_distance(item, bench.questions, tables.LEAST).assign(model=name)
            for name, item in (("whole", bench.baseline), ("without", effect))
        ]
        columns = ["model", "value", "accuracy", "low", "high", "questions"]
        return {
            "effects": tables.tabulate_effects(effect, bench.baseline),
            "distances": pd.concat(split)[columns],
            "takeover": contributions.compare_contributions(bench, cuts, mode),
        }
    if view == "credit":
        return {"contributions": contributions.table(bench, cuts, mode)}
    if view == "sweep":
        return {"sweep": tables.rank_effects(list(bench.sweep(mode)), bench.baseline)}
    if view == "words":
        read = prompt.read(opened, TEXT)
        scores = {
            name: prompt.next_token_logits(bench, prompt.run_prompt(bench, read, *arguments), 4)
            for name, arguments in (("whole", ()), ("without", (cuts, mode)))
        }
        return {
            "words": prompt.next_words(
                scores, sampling, opened.tokens.label, included=read.ids[5:6]
            )
        }
    rows = [
        (
            f"{reading.layer + 1}.{reading.head + 1}",
            *reading.verb[:3],
            *reading.before[:3],
            reading.even,
        )
        for reading in tables.attention_to_subject(bench)
    ]
    columns = [
        "head",
        "verb",
        "verb_low",
        "verb_high",
        "before",
        "before_low",
        "before_high",
        "even",
    ]
    return {"readings": pd.DataFrame(rows, columns=columns)}


def block(config, tokens, dropout=False, kind="random", view=""):
    return make_block_script(config, tokens, CPU, dropout, kind, view), lambda: block_tables(
        config, tokens, dropout, kind, view
    )


def depth(configs, tokens, passes, machine=CPU, **extra):
    how = Depth(passes=passes, **extra)
    return make_depth_script(configs, tokens, machine, how), lambda: depth_tables(
        configs, tokens, how, machine
    )


def trained(view, mode, sampling=None):
    script = make_knockout_script(folder_call("legal"), CUTS, mode, 64, view, TEXT, 5, sampling)
    return script, lambda: trained_tables(LEGAL, CUTS, mode, 64, view, sampling)


RECUT = {f"{n} heads": config for n, config in vary_head_count(PADDED).items() if config}
CASES = {  # name -> (script, what computes the tables that it prints)
    "block": block(Config(), split_words(DEFAULT_TEXT)),
    "block, odd text, padding, dropout": block(PADDED, ODD, dropout=True),
    "block, no attention, one token": block(
        SMALL.replace(attention=False, residual_ffn=False), ["it's"], view="heads"
    ),
    "block, trained weights": block(
        family.BASELINE, ["the", "judge", "was"], kind="trained", view="heads"
    ),
    "block, cut weights": block(
        family.config_of("norm-none", 0), ["the", "judge", "was"], kind="cut"
    ),
    "block, neurons": block(SMALL, TOKENS, view="neurons"),
    "block, positions": block(SMALL, TOKENS, view="positions"),
    "block, cost": block(SMALL, TOKENS, view="cost"),
    "compare": (
        make_compare_script(VARIANTS, TOKENS, CPU),
        lambda: compare_tables(VARIANTS, TOKENS),
    ),
    "compare, dropout": (
        make_compare_script({"baseline": PADDED}, ODD, CPU, dropout=True),
        lambda: compare_tables({"baseline": PADDED}, ODD, dropout=True),
    ),
    "heads": (
        make_compare_script(RECUT, TOKENS, CPU, True, baseline=PADDED),
        lambda: heads_tables(RECUT, TOKENS, True),
    ),
    "depth": depth(VARIANTS, TOKENS, 5),
    "depth, separate": depth(
        {"baseline": SMALL.replace(padding=3, position="learned")}, ODD, 4, blocks="separate"
    ),
    "depth, out of range": depth(OUT_OF_RANGE, TOKENS, 30),
    "depth, bfloat16": depth({"baseline": SMALL}, TOKENS, 1, Machine("cpu", "bfloat16")),
    "grid": (
        make_grid_script(PADDED, AXES, TOKENS, CPU, Depth(passes=3)),
        lambda: grid_tables(PADDED, AXES, TOKENS, Depth(passes=3)),
    ),
    "grid of one": (
        make_grid_script(SMALL, NO_AXES, TOKENS, CPU, Depth(passes=2)),
        lambda: grid_tables(SMALL, NO_AXES, TOKENS, Depth(passes=2)),
    ),
    **{
        name: (make_training_script(plan), lambda plan=plan: training_tables(plan))
        for name, plan in PLANS.items()
    },
    "trained": trained("attention", "zero"),
    "trained, knock-out": trained("knockout", "mean"),
    "trained, credit": trained("credit", "resample"),
    "trained, every part": trained("sweep", "zero"),
    "trained, next word": trained("words", "mean", Sampling(temperature=0.5, top_k=3)),
    "trained, of the family": (
        make_knockout_script(member_call("norm-none", 1), (), "zero", 64),
        lambda: trained_tables(family.open_member("norm-none", 1), (), "zero", 64, ""),
    ),
    "trained without": (
        make_family_script("perplexity"),
        lambda: {"family": comparison.summary(comparison.read(), "perplexity")},
    ),
    "trained without, by distance": (
        make_family_script("distance", "attention-off"),
        lambda: {"family": comparison.compare_by_distance(comparison.read(), "attention-off")},
    ),
}


# What they print

RUNNER = """
import ast, contextlib, json, runpy, sys

def run_notebook(path):
    '''Execute the cells one after another; print the tables that Jupyter displays.'''
    scope, heading = {"__name__": "__main__"}, ""
    for cell in json.load(open(path, encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = source.splitlines()[0].strip("# ")
            continue
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path, "exec"), scope)
        if last:
            displayed = eval(compile(ast.Expression(last.value), path, "eval"), scope)
            print(f"# {heading}")
            print(displayed.to_csv(index=False, na_rep="nan", lineterminator="\\n"), end="")

for path in sys.argv[1:]:
    with open(path + ".csv", "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        run_notebook(path) if path.endswith(".ipynb") else runpy.run_path(path, run_name="__main__")
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Return each case's printed script and notebook, run in one process in another folder."""
    folder = tmp_path_factory.mktemp("scripts")
    ends = (".py", ".ipynb")
    for number, (script, _) in enumerate(CASES.values()):
        (folder / f"{number}.py").write_text(script.python(), encoding="utf-8")
        (folder / f"{number}.ipynb").write_text(script.notebook(), encoding="utf-8")
    paths = [f"{number}{end}" for number in range(len(CASES)) for end in ends]
    done = python([], "-c", RUNNER, *paths, cwd=folder)
    assert done.returncode == 0 and not done.stderr, done.stderr
    read = lambda number, end: (folder / f"{number}{end}.csv").read_text("utf-8")  # noqa: E731
    return {name: [read(number, end) for end in ends] for number, name in enumerate(CASES)}


def python(options: list[str], *arguments, cwd: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *options, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def sections(text: str) -> dict[str, list[list[str]]]:
    """Return the printed tables: name -> lines, the header first."""
    actual: dict[str, list[str]] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# ") and "," not in line:
            lines = actual[line[2:]] = []
        else:
            lines.append(line)
    return {name: list(csv.reader(lines)) for name, lines in actual.items()}


def assert_same(lines: list[list[str]], expected: pd.DataFrame, tolerance: float):
    assert lines[0] == list(expected.columns)
    assert len(lines) - 1 == len(expected)
    for line, row in zip(lines[1:], expected.itertuples(index=False)):
        for text, value in zip(line, row, strict=True):
            if isinstance(value, float):
                assert (
                    math.isclose(float(text), value, rel_tol=tolerance, abs_tol=tolerance)
                    or float(text) == value
                    or math.isnan(value)
                    and text == "nan"
                ), (line, row)
            else:
                assert text == str(value), (line, row)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_script_and_notebook_print_page_numbers(name, printed):
    from_script, from_notebook = printed[name]
    assert from_notebook == from_script
    actual = sections(from_script)
    expected = CASES[name][1]()
    assert list(actual) == list(expected)
    for section, lines in actual.items():
        assert_same(lines, expected[section], 0.0 if name in PLANS else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["block", "training", "trained"])
def test_script_names_what_to_install_without_core(name, tmp_path):
    script = CASES[name][0]
    cells = json.loads(script.notebook())["cells"]
    imports = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
    for text in (script.python(), imports):
        (tmp_path / "script.py").write_text(text, encoding="utf-8")
        done = python(
            ["-I"], "script.py", cwd=tmp_path
        )  # isolated: it finds nothing of the project
        message = "No module named 'core'. Install Ablation Lab: pip install -e ITS_FOLDER\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_scripts_are_short():
    lengths = {name: len(script.python().splitlines()) for name, (script, _) in CASES.items()}
    assert lengths["block"] <= 60 and max(lengths.values()) < 100, lengths


# The settings that they hold


def assigned(text: str) -> dict:
    """Return a script's assignments before its first computation."""
    scope = {"__name__": "script"}
    exec(compile(text.partition("\n\n\ndef show")[0], "script", "exec"), scope)
    return scope


def configs() -> list[Config]:
    """Yield small configs that cover every menu entry and both states of every switch."""
    named = {field: itertools.cycle(menu) for field, menu in MENUS.items()}
    count = [
        SMALL.replace(**{field: next(keys) for field, keys in named.items()})
        for _ in range(max(map(len, MENUS.values())))
    ]
    switches = [name for name, definition in Config.settings().items() if definition.kind is bool]
    count += [SMALL.replace(**{name: not getattr(SMALL, name)}) for name in switches]
    return [
        *count,
        SMALL.replace(d_head=5, tied=True),
        SMALL.replace(n_heads=4, n_kv_heads=2),
        PADDED,
    ]


def test_script_has_all_settings_of_model():
    variants = {f"variant {n}": config for n, config in enumerate(configs())}
    script = assigned(make_compare_script({"baseline": SMALL} | variants, ODD, CPU).python())
    assert script["BASELINE"] == SMALL and script["VARIANTS"] == {"baseline": SMALL} | variants
    assert script["TOKENS"] == ODD and script["MACHINE"] == CPU
    for config in configs():
        assert assigned(make_block_script(config, TOKENS, CPU).python())["CONFIG"] == config


@pytest.mark.parametrize(
    "tokens",
    [ODD, TOKENS, ["a"], ["a b"], ["\x1b", "\u2028"], split_words(DEFAULT_TEXT) * 9, ["w" * 200]],
)
def test_script_has_all_tokens(tokens):
    assert assigned(make_block_script(SMALL, tokens, CPU).python())["TOKENS"] == tokens


def plans():
    """Yield plans with every task, optimiser and decay, and both ends of every training setting."""
    yield from PLANS.values()
    for name in task:
        arm = Arm("baseline", task[name].config(d_model=16, n_heads=2, d_ff=24), 0, frozenset())
        yield Plan((arm,), Training(task=name, steps=2), Trial(seeds=1), CPU)
    usual = Training(task="copy")
    for field, definition in usual.settings().items():
        for value in definition.menu or {definition.low, definition.high} - {None}:
            try:
                training = dataclasses.replace(
                    usual, **{field: value if definition.menu else definition.kind(value)}
                )
            except ConfigError:  # no such length
                continue
            arms = [Arm(name, SMALL, 0, frozenset()) for name in ODD[:3]]
            yield Plan(tuple(arms), training, Trial(seeds=2), Machine("cpu", "bfloat16"))


def test_script_has_whole_training_plan():
    for training_plan in plans():
        assert assigned(make_training_script(training_plan).python())["PLAN"] == training_plan
