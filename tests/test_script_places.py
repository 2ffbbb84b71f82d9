"""Exported scripts where people run them: in a notebook, and outside the repository's folder."""

import contextlib
import io
import subprocess
import sys

import pytest
import torch

from core import Config
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.training.plan import Arm, Plan, Trial
from core.export.knockout import knockout_script
from core.export.scripts import block_script, compare_script, depth_script, grid_script, heads_script
from core.export.training import training_script
from core.model.variants import Variant
from core.settings.device import Machine
from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.report.rows import rows_of, script
from core.train import Training

CPU = Machine("cpu")
SMALL = Config(d_model=16, n_heads=2, d_ff=24)
TOKENS = ["− norm", "the", "dog"]
VARIANTS = [Variant("baseline", SMALL), Variant("− norm", SMALL.replace(norm="none"), 1)]
AXES = Axes("norm-LayerNorm+none__placement-__residual-__activation-__n_heads-")
PLAN = Plan((Arm("baseline", SMALL, 0, frozenset()),), Training(task="copy", steps=2, batch=2), Trial(seeds=1), CPU)
LESSON = read_lesson("layer_norm")
BOTH = {
    "One block": lambda flavour: block_script(flavour, SMALL, TOKENS, CPU),
    "Compare": lambda flavour: compare_script(flavour, VARIANTS, TOKENS, CPU),
    "Heads": lambda flavour: heads_script(flavour, SMALL, {"1 head": SMALL.replace(n_heads=1)}, TOKENS, CPU),
    "Depth": lambda flavour: depth_script(flavour, VARIANTS, TOKENS, CPU, Depth(passes=2)),
    "Grid": lambda flavour: grid_script(flavour, SMALL, AXES, TOKENS, CPU, Depth(passes=2)),
    "Training": lambda flavour: training_script(flavour, PLAN),
}
NEED_CORE = {name: lambda make=make: make("core") for name, make in BOTH.items()} | {
    "Knock-out": lambda: knockout_script("models/legal", (), "zero", 8),
    "Knock-out in the family": lambda: knockout_script("", (), "zero", 8, ("norm-none", 0)),
    "Lab report": lambda: script(rows_of(LESSON, outcome(LESSON))),
}
NEED_TORCH = {f"{name}, torch alone": lambda make=make: make("torch") for name, make in BOTH.items()}
ALL = NEED_CORE | NEED_TORCH


class Output(io.StringIO):
    """Standard output as a notebook has it: it cannot be reconfigured."""


def run(text: str, arguments: list[str], output: io.StringIO, monkeypatch) -> str:
    """Run a script in this process and return what it prints."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "argv", arguments)
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(text, "script", "exec"), {"__name__": "__main__"})
    finally:
        torch.set_num_threads(threads)
    return output.getvalue()


@pytest.mark.parametrize("arguments", [["-f", "/run/kernel-1.json"], ["--f=/run/kernel-1.json"]], ids=["-f", "--f"])
@pytest.mark.parametrize("name", ALL)
def test_a_script_runs_in_a_notebook(name, arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # a notebook lies where it lies
    text = ALL[name]()
    assert not hasattr(Output(), "reconfigure")
    printed = run(text, ["ipykernel_launcher.py", *arguments], Output(), monkeypatch)
    assert len(printed.splitlines()) > 3


def test_a_script_prints_the_same_in_a_notebook_and_by_itself(tmp_path, monkeypatch):
    for name in ("Depth", "Depth, torch alone"):
        text = ALL[name]()
        (tmp_path / "script.py").write_text(text, encoding="utf-8")
        command = [sys.executable, str(tmp_path / "script.py")]
        done = subprocess.run(command, capture_output=True, env={"PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}, check=True)
        assert run(text, ["launcher", "-f", "kernel.json"], Output(), monkeypatch) == done.stdout.decode()


def test_a_knockout_script_opens_the_folder_that_is_named(tmp_path, monkeypatch):
    """A name that begins with - is an option of the notebook, any other one is a folder."""
    text = NEED_CORE["Knock-out"]()
    with pytest.raises(ValueError, match="There is no folder nowhere"):
        run(text, ["script.py", str(tmp_path / "nowhere")], Output(), monkeypatch)


ANYWHERE = """
import runpy, sys
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print(path, end.code, sep=": ")
"""
MISSING = "No module named 'core'. Run this script in the folder of Ablation Lab, or install that first: pip install -e FOLDER"


def test_scripts_that_need_core_say_what_to_install_where_it_is_missing(tmp_path):
    paths = {name: tmp_path / f"{number}.py" for number, name in enumerate(NEED_CORE)}
    for name, path in paths.items():
        path.write_text(NEED_CORE[name](), encoding="utf-8")
    command = [
        sys.executable,
        "-I",
        "-c",
        ANYWHERE,
        *map(str, paths.values()),
    ]  # isolated: it finds nothing of the project
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{path}: {MISSING}" for path in paths.values()]


def test_a_script_that_finds_no_core_ends_with_one_line_and_an_error(tmp_path):
    (tmp_path / "script.py").write_text(NEED_CORE["Lab report"](), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{MISSING}\n")
