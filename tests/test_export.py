"""Exported scripts: run as a student would run them, they print what the app shows."""

import ast
import csv
import importlib
import importlib.util
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from core.experiments.block.attention import heads, recut
from core.experiments.block.change import per_token
from core.experiments.block.compare import apart, compare
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, blocks, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid
from core.experiments.forward import forward
from core.export.bundle.bundle import Bundle
from core.export.forms import FLAVOURS, values
from core.export.scripts import block_script, compare_script, depth_script, grid_script, heads_script
from core.measure.stream_statistics import statistic
from core.measure.tensor_meters import meter
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.norm import EPSILON
from core.model.text import DEFAULT_TEXT, words
from core.model.trace import tap
from core.model.variants import Variant
from core.settings.device import Machine
from tests import script_host

ROOT = Path(__file__).parent.parent
CPU = Machine("cpu")
SMALL = Config(d_model=24, n_heads=2, d_ff=40)
TOKENS = words(DEFAULT_TEXT)[:7]
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
    "a-very-very-long-word",
]


def _cycled(count: int, **fixed) -> list[Config]:
    """Small configs that together have every entry of every menu, those that are added later, too."""
    named = {field: itertools.cycle(menu) for field, menu in MENUS.items()}
    return [SMALL.replace(**{field: next(names) for field, names in named.items()}, **fixed) for _ in range(count)]


MANY = _cycled(max(map(len, MENUS.values())), n_layers=2)
BLOCK = {  # name -> (config, tokens, whether dropout acts)
    **{f"menus {at}": (config, TOKENS, False) for at, config in enumerate(MANY)},
    "defaults": (Config(), words(DEFAULT_TEXT), False),
    "odd text, padded, causal": (SMALL.replace(padding=2, mask="causal", scale=False), ODD, False),
    "dropout": (SMALL.replace(dropout=0.35, n_layers=2, residual_attention=False, bias=False), TOKENS, True),
    "dropout on hidden units, own epsilon": (
        SMALL.replace(dropout=0.35, ffn_dropout=True, norm_eps=0.05, qk_norm=True),
        TOKENS,
        True,
    ),
    "attention without biases": (SMALL.replace(attention_bias=False, init="normal_1_biases"), TOKENS, False),
    "narrow heads, one table": (SMALL.replace(d_head=5, tied=True), TOKENS, False),
    "grouped, normed, capped": (
        SMALL.replace(
            n_heads=4, n_kv_heads=2, qk_norm=True, score_cap=2.0, position="rope", rope_share=0.5, rope_base=100.0
        ),
        TOKENS,
        False,
    ),
    "layers that differ": (
        SMALL.replace(
            n_layers=3, window=2, global_every=2, nope_every=3, position="alibi", parallel=True, placement="sandwich"
        ),
        TOKENS,
        False,
    ),
    "gated, with a sink": (SMALL.replace(gate=True, softmax="sink", value_residual=True, n_layers=2), TOKENS, False),
    "one block, skips": (
        SMALL.replace(shared=True, n_layers=3, skips=True, residual_scale="layerscale", norm="DyT"),
        TOKENS,
        False,
    ),
    "matched": (SMALL.replace(activation="geglu", matched=True, d_ff=None), TOKENS, False),
    "one token, no attention": (SMALL.replace(attention=False, residual_ffn=False), ["it's"], False),
}
DEPTH = {  # name -> (configs, the baseline first, tokens, depth)
    "same": (
        {
            "baseline": SMALL,
            "− FFN": SMALL.replace(ffn=False),
            "− attention, post": SMALL.replace(attention=False, placement="post"),
            "neither": SMALL.replace(ffn=False, attention=False),
            "+ tied embeddings": SMALL.replace(tied=True),
            "values of the first, gated": SMALL.replace(value_residual=True, gate=True, softmax="off_by_one"),
            "shared keys, in parallel": SMALL.replace(n_kv_heads=1, parallel=True, window=2, placement="output"),
            "more heads, as many key-value heads": SMALL.replace(n_heads=4, n_kv_heads=2),
            "biases in attention alone": SMALL.replace(bias=False, attention_bias=True, norm_eps=0.05),
            "wide heads, turned": SMALL.replace(d_head=20, position="rope"),
            'wide, "quoted"': Config(d_model=32, position="rope", n_heads=8, activation="swiglu", mask="causal"),
        },
        TOKENS,
        Depth(passes=5),
    ),
    "separate, padded": (
        {
            "baseline": SMALL.replace(padding=3, n_layers=4, position="learned"),
            "b": SMALL.replace(bias=False, seed=7, dropout=0.2),
        },
        ODD,
        Depth(passes=4, blocks="separate"),
    ),
    "out of range": (
        {"baseline": SMALL.replace(init="normal_1", norm="none", activation="relu", residual_ffn=False)},
        TOKENS,
        Depth(passes=30),
    ),
    "bfloat16": ({"baseline": SMALL.replace(norm="RMSNorm", position="sinusoidal")}, TOKENS, Depth(passes=1)),
}
MACHINES = {"bfloat16": Machine("cpu", "bfloat16")}
GRID = {  # name -> (baseline, axes, tokens, depth)
    "norms": (
        SMALL.replace(padding=1),
        "norm-LayerNorm+none__residual-both+attention+ffn+none__activation-swiglu+tanh__n_heads-1__ffn-on+off",
        TOKENS,
        Depth(passes=3),
    ),
    "some cannot be": (
        Config(d_model=24, n_heads=3, activation="silu"),
        "norm-RMSNorm__placement-post__residual-both__activation-__n_heads-1+4+8+16__position-rope+alibi+none__mask-causal",
        TOKENS,
        Depth(passes=3, blocks="separate"),
    ),
    "heads that cannot be turned, alone": (
        Config(d_model=24, n_heads=4, position="rope", tied=True),
        "norm-__placement-__residual-__activation-__n_heads-1+8__position-none+rope",
        TOKENS,
        Depth(passes=2),
    ),
    "heads of a width of their own": (
        SMALL.replace(d_head=7),
        "norm-__placement-__residual-__activation-__n_heads-1+8",
        TOKENS,
        Depth(passes=2),
    ),
    "baseline alone": (
        SMALL,
        "norm-__placement-__residual-__activation-__n_heads-__attention-off+on",
        TOKENS,
        Depth(passes=2),
    ),
}


def _block(flavour, name):
    config, tokens, dropout = BLOCK[name]
    return block_script(flavour, config, tokens, CPU, dropout)


def _depth(flavour, name):
    configs, tokens, depth = DEPTH[name]
    variants = [Variant(name, config, place) for place, (name, config) in enumerate(configs.items())]
    return depth_script(flavour, variants, tokens, MACHINES.get(name, CPU), depth)


def _grid(flavour, name):
    baseline, axes, tokens, depth = GRID[name]
    return grid_script(flavour, baseline, Axes(axes), tokens, CPU, depth)


def _compared(flavour, name):
    configs, tokens, _ = DEPTH[name]
    variants = [Variant(name, config, place) for place, (name, config) in enumerate(configs.items())]
    return compare_script(flavour, variants, tokens, CPU, dropout=name == "separate, padded")


HEADS = {  # name -> (config, tokens, dropout)
    "as it opens": (Config(), TOKENS, False),
    "padded, causal, dropping": (
        SMALL.replace(d_model=24, padding=2, mask="causal", dropout=0.3, n_layers=2),
        TOKENS,
        True,
    ),
    "12 are not cut into 8": (Config(d_model=12, n_heads=3), TOKENS, False),
    "heads that cannot be turned": (Config(d_model=24, n_heads=4, position="rope"), TOKENS, False),
}


def _recut(config) -> dict[str, Config]:
    return {f"{n} head{'s' * (n > 1)}": made for n, made in recut(config).items() if made}


def _heads(flavour, name):
    config, tokens, dropout = HEADS[name]
    return heads_script(flavour, config, _recut(config), tokens, CPU, dropout)


CASES = ((_heads, HEADS), (_block, BLOCK), (_depth, DEPTH), (_grid, GRID), (_compared, ["same", "separate, padded"]))
ALL = [(make, name) for make, names in CASES for name in names]


def run_script(flavour, script, folder) -> dict[str, list[list[str]]]:
    """Run a script in a process of its own -> section -> its lines, the header first."""
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    status, printed, complained = script_host.run(flavour, path)
    assert status == 0 and not complained, complained
    return sections_of(printed)


def run_anew(flavour, script, folder, *before) -> dict[str, list[list[str]]]:
    """The same with a Python started for it, as who took it away does. before: what stands before the script's path."""
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    command = [sys.executable, *(["-I"] if flavour == "torch" else []), *before, str(path)]
    done = subprocess.run(
        command,
        cwd=folder if flavour == "torch" else ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr or before, done.stderr
    return sections_of(done.stdout)


def sections_of(printed: str) -> dict[str, list[list[str]]]:
    """What a script printed, by its headings."""
    sections = {}
    for line in printed.split("\n")[:-1]:
        if line.startswith("# "):
            sections[line[2:]] = lines = []
        else:
            lines.append(line)
    return {name: list(csv.reader(lines)) for name, lines in sections.items()}


def _same(found, columns: str, expected):
    """Rows (…keys, value) or, for several values, the last ones floats: keys exactly, numbers to 1e-5."""
    expected = list(expected)
    assert found[0] == columns.split(",")
    assert len(found) - 1 == len(expected)
    for line, row in zip(found[1:], expected):
        keys = [str(cell) for cell in row if not isinstance(cell, float)]
        numbers = [cell for cell in row if isinstance(cell, float)]
        assert line[: len(keys)] == keys
        assert len(line) == len(row)
        for text, number in zip(line[len(keys) :], numbers):
            assert _close(float(text), number), (line, number)


def _close(a: float, b: float) -> bool:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= 1e-5 * (1 + abs(b))


def _check_block(found, name):
    config, tokens, dropout = BLOCK[name]
    seen = forward(config, tokens, CPU, dropout)
    assert list(found) == ["stages", "tokens", "attention"]
    rows = ((row.layer + 1, row.site, row.meter, row.value) for row in seen.statistics.itertuples())
    _same(found["stages"], "layer,site,meter,value", rows)
    rows = ((row.token + 1, row.word, row.distance, row.cosine) for row in per_token(seen).itertuples())
    _same(found["tokens"], "token,word,distance,cosine", rows)
    rows = (
        (layer + 1, head + 1, query + 1, key + 1, pattern[head, query, key].item())
        for layer, pattern in enumerate(seen.sites.get("pattern", ()))
        for head, query, key in itertools.product(*map(range, pattern.shape))
        if seen.allowed_in(layer)[query, key]
    )
    _same(found["attention"], "layer,head,query,key,weight", rows)


def _check_depth(found, name):
    configs, tokens, depth = DEPTH[name]
    machine = MACHINES.get(name, CPU)
    assert list(found) == ["statistics", "gradients", "weights", "attention"]
    went = {each: travel(config, tokens, machine, depth) for each, config in configs.items()}
    came = {each: gradients(config, tokens, machine, depth) for each, config in configs.items()}
    rows = (
        (each, at, column, value)
        for each, journey in went.items()
        for at, row in enumerate(journey.values.tolist())
        for column, value in zip(statistic, row)
    )
    _same(found["statistics"], "variant,pass,meter,value", rows)
    assert (name == "out of range") == any(journey.diverged is not None for journey in went.values())
    rows = ((each, at, value) for each, back in came.items() for at, value in enumerate(back.stream.tolist()))
    _same(found["gradients"], "variant,pass,value", rows)
    rows = ((each, row.layer, row.weight, row.value) for each, b in came.items() for row in b.weights.itertuples())
    _same(found["weights"], "variant,layer,weight,value", rows)
    rows = (
        (each, number, query + 1, key + 1, weight)
        for each, journey in went.items()
        for number, pattern in journey.patterns.items()
        for (query, key), weight in np.ndenumerate(pattern.double().mean(0).numpy())
    )
    _same(found["attention"], "variant,pass,query,key,weight", (tuple(r[:-1]) + (float(r[-1]),) for r in rows))


def _check_grid(found, name):
    baseline, axes, tokens, depth = GRID[name]
    made = grid(baseline, Axes(axes), tokens, CPU, depth)
    rows = (
        (*entries.values(), at, column, value)
        for entries, values in zip(made.entries, made.values.tolist())
        for at, row in enumerate(values)
        for column, value in zip(statistic, row)
    )
    _same(found["grid"], ",".join([*made.axes, "pass", "meter", "value"]), rows)
    assert len(made.configs) == len({tuple(line[: len(made.axes)]) for line in found["grid"][1:]})
    if name == "some cannot be":
        assert made.left_out and len(made.configs) == 3 * 3 - 1  # 16 heads never fit; 8 heads of 3 cannot be turned


def _check_compared(found, name):
    configs, tokens, _ = DEPTH[name]
    table = compare(
        {each: forward(config, tokens, CPU, name == "separate, padded") for each, config in configs.items()}
    )
    columns = ("variant", "parameters", *statistic, "distance", "direction")
    _same(found["compared"], ",".join(columns), (tuple(row) for row in table.itertuples(index=False)))


def _check_heads(found, name):
    config, tokens, dropout = HEADS[name]
    assert list(found) == ["heads", "attention"]
    went = {each: forward(made, tokens, CPU, dropout) for each, made in _recut(config).items()}
    assert list(went) == ["1 head", "4 heads"] + ["8 heads"] * (config.d_model % 8 == 0)
    rows = (
        (each, layer + 1, head, value)
        for each, seen in went.items()
        for layer in seen.layers
        for head, value in enumerate(heads(seen, layer).query("meter == 'entropy'").value, 1)
    )
    _same(found["heads"], "variant,layer,head,entropy", rows)
    rows = (
        (each, layer + 1, head + 1, query + 1, key + 1, seen.sites["pattern"][layer][head, query, key].item())
        for each, seen in went.items()
        for layer in seen.layers
        for head in range(seen.config.n_heads)
        for query, key in seen.allowed.nonzero().tolist()
    )
    _same(found["attention"], "variant,layer,head,query,key,weight", rows)


CHECKS = {
    _heads: _check_heads,
    _block: _check_block,
    _depth: _check_depth,
    _grid: _check_grid,
    _compared: _check_compared,
}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("make, name", ALL)
def test_a_script_prints_what_the_app_shows(make, name, flavour, tmp_path):
    CHECKS[make](run_script(flavour, make(flavour, name), tmp_path), name)


@pytest.mark.thorough
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("make, names", CASES)
def test_a_script_of_each_kind_runs_by_itself(make, names, flavour, tmp_path):
    name = next(iter(names))
    CHECKS[make](run_anew(flavour, make(flavour, name), tmp_path), name)


def test_the_cases_have_every_entry_of_every_menu_and_every_switch_off():
    configs = [case[0] for case in BLOCK.values()] + [c for case in DEPTH.values() for c in case[0].values()]
    acting = {"activation": "ffn", "position": "attention", "mask": "attention"}
    for field, menu in MENUS.items():
        there = [each for each in configs if getattr(each, acting.get(field, "d_model"))]
        assert {getattr(each, field) for each in there} == set(menu), field
    for field, each in Config.settings().items():
        assert each.kind is not bool or {getattr(config, field) for config in configs} == {True, False}, field
    assert {case[2].blocks for case in DEPTH.values()} == set(blocks)
    assert any(config.padding for config in configs)


def check_imports(script):
    """Nothing but torch and the standard library, no detour through NumPy, and no word to mypy."""
    assert "type: ignore" not in script
    tree = ast.parse(script)
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    found = {each.module for each in imports if isinstance(each, ast.ImportFrom)}
    found |= {alias.name for each in imports if isinstance(each, ast.Import) for alias in each.names}
    assert {name.split(".")[0] for name in found} - set(sys.stdlib_module_names) == {"torch"}
    used = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    assert not used & {"numpy", "from_numpy"}


@pytest.mark.parametrize("make, name", ALL)
def test_the_torch_flavour_needs_torch_and_nothing_else(make, name):
    check_imports(make("torch", name))


@pytest.mark.thorough
def test_the_torch_flavour_runs_where_there_is_no_numpy(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(_depth("torch", "bfloat16"), encoding="utf-8")
    without = "import runpy, sys; sys.modules['numpy'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    assert run_anew("torch", _depth("torch", "bfloat16"), tmp_path, "-W", "ignore", "-c", without)["statistics"]


def check_layout(scripts, folder):
    """Clean to a linter, and laid out as a formatter would."""
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    for at, script in enumerate(scripts):
        (folder / f"script_{at}.py").write_text(script, encoding="utf-8")
    given = ["--isolated", "--line-length", "120", "--target-version", "py311", str(folder)]
    rules = ["--select", "E,F,I,UP,B", "--ignore", "E501,B905", "--config", "lint.isort.known-first-party=['core']"]
    for command in (["check", *rules], ["format", "--diff"]):
        line = [sys.executable, "-m", "ruff", *command, *given]
        done = subprocess.run(line, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.thorough
def test_scripts_are_clean_and_well_laid_out(tmp_path):
    check_layout([make(flavour, name) for (make, name), flavour in itertools.product(ALL, FLAVOURS)], tmp_path)


def test_a_script_has_only_the_parts_that_its_settings_use():
    script = block_script("torch", Config(norm="RMSNorm", activation="swiglu"), TOKENS, CPU)
    assert "class RMSNorm" in script and "def swiglu" in script and "@gated" in script
    assert "LayerNorm(" not in script and "gelu" not in script and "sinusoid" not in script and "xavier" not in script
    assert "MultiHeadAttention" not in block_script("torch", Config(attention=False), TOKENS, CPU)


def test_a_part_may_come_from_a_module_without_a_docstring(tmp_path, monkeypatch):
    (tmp_path / "part_of_a_guest.py").write_text("def doubled(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    part = importlib.import_module("part_of_a_guest").doubled
    text = Bundle([part, apart], values(Config())).text()
    assert "# part_of_a_guest.py ---" in text and "def doubled(x):" in text


def test_a_flavour_that_there_is_not():
    with pytest.raises(ValueError, match="flavour is 'jax'; it must be one of core, torch"):
        block_script("jax", Config(), TOKENS, CPU)


# New parts, as a reader of the code would add them. They are in their menus only while the test below runs.

FACTOR = 1.5


def stretched(x):
    return FACTOR * x


def none(x):  # a name that three other menus have, too
    """softsign: x / (1 + |x|)."""
    return F.softsign(stretched(x))


class Largest(nn.Module):
    """Largest: divides by the largest magnitude."""

    def __init__(self, site: str, width: int, bias: bool = True, eps: float = 1e-5):
        super().__init__()
        self.site = site

    def forward(self, x):
        return tap(self.site, x / x.abs().amax(-1, keepdim=True).clamp_min(EPSILON))


def span(t):
    """Span: from the lowest number to the highest."""
    return np.abs(t.high - t.low)


def tokens(s):
    """Tokens: how many there are."""
    return torch.full_like(s.mean, s.x.shape[1])


@pytest.fixture
def new_parts():
    added = ((MENUS["activation"], none), (MENUS["norm"], Largest), (meter, span), (statistic, tokens))
    for menu, part in added:
        menu(part)
    yield SMALL.replace(activation="none", norm="Largest", mask="causal")
    for menu, part in added:
        del menu[part.__name__]


@pytest.mark.thorough
def test_a_part_that_is_added_to_a_menu_is_in_the_scripts(new_parts, tmp_path, monkeypatch):
    monkeypatch.setitem(BLOCK, "new", (new_parts, TOKENS, False))
    monkeypatch.setitem(DEPTH, "new", ({"baseline": new_parts}, TOKENS, Depth(passes=2)))
    found = run_script("torch", _block("torch", "new"), tmp_path)
    assert any(line[2] == "span" for line in found["stages"])
    _check_block(found, "new")
    found = run_script("torch", _depth("torch", "new"), tmp_path)
    assert any(line[2] == "tokens" for line in found["statistics"])
    _check_depth(found, "new")
