"""Benchmark of the parts of models since 2020: their cost if unused, and if used.

    python -m benchmarks.parts [before attention grid time] [--commit 1781aa4] [--seconds 20]

before: a measured pass and a step of training with the default settings, over the same in an older
commit (that before these parts, if no other is named): both trees, each in a process of its own, in
turn. attention: a pass and a step with a window, and with fewer key-value heads, over full
attention. grid: about 100 variants of axes that these parts brought × 24 blocks, all at once and
one after another. time: what trainings take that are to take as long as their baseline (*Match
cost*, training time). One thread, in turn, medians of the ratios within one run.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.depth import LAYERS, count_operations, time_in_turn
from core import Config, Transformer, trace
from core.experiments.depth import grid as experiment
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.depth.depth import _run as travel
from core.measure.tensor_meters import compute_meters
from core.measure.tensor_sums import Watcher
from core.model.variants import ablation, apply
from core.settings.device import Machine
from core.settings.memory import reuse_freed_memory
from core.tasks import task
from core.train import Training, start
from core.train.match import match_cost
from core.train.run import Run

ROOT = Path(__file__).parent.parent
BEFORE = "1781aa4"  # the last commit without them
SIZES = ((2, 64, 4, 10), (4, 128, 4, 64), (6, 256, 8, 128))  # layers, d_model, heads, tokens
# About 100 variants each: those at first with another axis in the place of the number of heads, and
# of six axes that came since.
NEW = {
    **{
        f"{axis} beside four that were there": f"n_heads-4__{axis}-{entries}"
        for axis, entries in (
            ("qk_norm", "on+off"),
            ("window", "0+4"),
            ("n_kv_heads", "1+4"),
            ("gate", "on+off"),
            ("parallel", "on+off"),
        )
    },
    "six new ones": (
        "norm-LayerNorm__placement-pre+output+sandwich__residual-both__activation-gelu__n_heads-4"
        "__n_kv_heads-1+4__qk_norm-on+off__window-0+4__softmax-usual+sink__gate-on+off"
    ),
}
# In either tree: on each line from outside one more call, and how long it took.
CHILD = """
import sys, time
import torch
from core import Config, Transformer, trace
from core.measure.tensor_meters import compute_meters
from core.measure.tensor_sums import Watcher
from core.settings.memory import reuse_freed_memory
from core.train import Training, start
from core.train.run import Run

kind, layers, width, heads, length = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(1)
reuse_freed_memory()
config = Config(d_model=width, n_heads=heads, n_layers=layers)
model, tokens = Transformer(config, [str(n) for n in range(length)]), torch.arange(length)[None]


def measured():
    with torch.inference_mode():
        watcher = Watcher()
        with trace(watcher):
            model.run_blocks(tokens)
        compute_meters(watcher)


training = Training(task="copy", length=length, batch=8, steps=100_000, every=100_000)
call = measured if kind == "pass" else Run(start(config.replace(mask="causal"), training, 0)).step
for line in sys.stdin:
    begin = time.perf_counter()
    call()
    print(time.perf_counter() - begin, flush=True)
"""


def median_ratio(first, second) -> float:
    """Return the median of the ratios of two lists of times, second over first."""
    return statistics.median(b / a for a, b in zip(first, second))


def before(commit: str, seconds: float, sizes: int):
    """Print the time of a pass and a step in an older commit and now, at these sizes."""
    with tempfile.TemporaryDirectory() as folder:
        old_tree = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", old_tree, commit],
            cwd=ROOT,
            check=True,
        )
        try:
            for size in SIZES[:sizes]:
                for kind in ("pass", "step"):
                    old, new = time_trees_in_turn(
                        [old_tree, ROOT], [kind, *map(str, size)], seconds
                    )
                    print(
                        f"{kind}, {size[0]} layers, d_model {size[1]}, T {size[3]}: before"
                        f" {1e3 * statistics.median(old):8.2f} ms   now"
                        f" {1e3 * statistics.median(new):8.2f} ms   ratio"
                        f" {median_ratio(old, new):.3f}   ({len(old)} each)",
                        flush=True,
                    )
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", old_tree], cwd=ROOT, check=True)


def time_trees_in_turn(trees, arguments, seconds: float) -> list[list[float]]:
    """Return the seconds of each call, in turn in a process per tree, after 20 of warm-up."""
    command = [sys.executable, "-c", CHILD, *arguments]
    children = [
        subprocess.Popen(
            command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for tree in trees
    ]
    took: list[list[float]] = [[] for _ in children]
    end = None
    while end is None or time.monotonic() < end:
        turn = len(took[0]) % 2  # A B, B A: neither is always the second
        for child, item in list(zip(children, took))[:: -1 if turn else 1]:
            child.stdin.write("\n")
            child.stdin.flush()
            item.append(float(child.stdout.readline()))
        if len(took[0]) == 20:
            end = time.monotonic() + seconds
    for child in children:
        child.stdin.close()
        child.wait()
    return [entry[20:] for entry in took]


def attention():
    """Print the time of a pass and a step with windows and fewer key-value heads."""
    variants = {
        "full": {},
        "window of 8": {"window": 8},
        "window of 8, every second layer full": {"window": 8, "global_every": 2},
        "2 key-value heads": {"n_kv_heads": 2},
        "1 key-value head": {"n_kv_heads": 1},
    }
    for layers, width, heads, length in SIZES:
        base = Config(d_model=width, n_heads=heads, n_layers=layers, mask="causal")
        training = Training(task="copy", length=length, batch=8, steps=100_000, every=100_000)
        configs = {name: base.replace(**changes) for name, changes in variants.items()}
        passes = [watched(config, length) for config in configs.values()]
        steps = [Run(start(config, training, 0)).step for config in configs.values()]
        print(
            f"{layers} layers, d_model {width}, {heads} heads, T {length}: pass and step over full"
            " attention"
        )
        with torch.inference_mode():
            pass_times = time_in_turn(passes, 60, "cpu")
        step_times = time_in_turn(steps, 30, "cpu")
        for name, of_pass, of_step in zip(configs, pass_times, step_times):
            print(
                f"  {name:38} {median_ratio(pass_times[0], of_pass):.2f}  "
                f" {median_ratio(step_times[0], of_step):.2f}",
                flush=True,
            )


def watched(config, length):
    """Return a function that runs and measures one pass of this config."""
    model = Transformer(config, [str(n) for n in range(length)])
    tokens = torch.arange(length)[None]

    def call():
        watcher = Watcher()
        with trace(watcher):
            model.run_blocks(tokens)
        return compute_meters(watcher)

    return call


def grids():
    """Print the time of each grid of the newer axes."""
    for name, axes in NEW.items():
        grid(name, Axes(axes))


def grid(name: str, axes: Axes):
    """Print time and operations of one grid, at once and one variant after another."""
    tokens = tuple(f"w{n}" for n in range(10))
    machine = Machine("cpu")
    depth = Depth(LAYERS, "separate")

    def run_together():
        return experiment._run.__wrapped__(Config(), axes, tokens, machine, depth)

    configs = run_together().configs

    def one_by_one():
        for config in configs:
            travel.__wrapped__(config.replace(n_layers=1), tokens, machine, depth, 0)

    fast = time_in_turn([run_together], 7, "cpu")[0]
    slow = time_in_turn([one_by_one], 1, "cpu")[0]
    times = statistics.median(slow) / statistics.median(fast)
    print(
        f"grid of {name}, {len(configs)} variants × {LAYERS} blocks: {statistics.median(fast):.0f}"
        f" ms, {count_operations(run_together, 'cpu'):,} operations; one after another"
        f" {statistics.median(slow):.0f} ms, {count_operations(one_by_one, 'cpu'):,}:"
        f" {times:.1f} times as long",
        flush=True,
    )


def equal_time():
    """Print the training time of each ablation with its steps matched, over its baseline's.

    A tenth of the steps is run.
    """
    for name in ("reverse", "recall", "facts"):
        full = task[name].config()
        training = Training(task=name)
        models = {"baseline": (full, training)}
        for part, changes in ablation.items():
            changed = apply(changes, full)
            if changed != full:
                models[part] = match_cost("time", (changed, training), (full, training))[:2]

        def trained(config, how):
            run = Run(start(config, how, 0))
            for _ in range(max(1, how.steps // 10)):
                run.step()

        took = time_in_turn(
            [lambda c=config, h=how: trained(c, h) for config, how in models.values()], 3, "cpu"
        )
        print(f"{name}: time of the training over its baseline's")
        for (part, (_, how)), item in zip(models.items(), took):
            print(
                f"  {part:22} {how.steps:5} steps   {median_ratio(took[0], item):.2f}", flush=True
            )


def main():
    """Run the parts of the benchmark that the command line names."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("what", nargs="*", default=["before", "attention", "grid", "time"])
    args.add_argument("--commit", default=BEFORE)
    args.add_argument("--seconds", type=float, default=20)
    args.add_argument(
        "--sizes", type=int, default=len(SIZES), help="how many of the sizes, the smallest first"
    )
    arguments = args.parse_args()
    torch.set_num_threads(1)
    reuse_freed_memory()
    calls = {
        "before": lambda: before(arguments.commit, arguments.seconds, arguments.sizes),
        "attention": attention,
        "grid": grids,
        "time": equal_time,
    }
    for kind_name in arguments.what:
        calls[kind_name]()


if __name__ == "__main__":
    main()
