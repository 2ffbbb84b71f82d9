"""Benchmark of depth: statistics after every pass, and the grid of 100 variants at once.

    python -m benchmarks.depth [--device cuda]

First: 100 passes of one block, with every statistic after every pass, over the same 100 passes
unmeasured; in turn, A B A B, one thread, medians of the ratios within one run. Then the grid: 100
variants × 24 separate blocks, d_model 64, 10 tokens, seven statistics after each, drawing of the
weights included: the time, the operations that do work (on a GPU: kernels launched), and the same
for one variant after another. On a GPU also the CPU's time for the grid.
"""

import argparse
import statistics
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from core.experiments.depth import grid as experiment
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, journey
from core.experiments.depth.depth import _run as travel
from core.experiments.forward import prepare_model
from core.model.config import Config
from core.settings.device import Machine
from core.settings.memory import reuse_freed_memory

SIZES = ((64, 4, 10), (512, 8, 128))  # d_model, heads, tokens
PASSES = 100
LAYERS = 24
VIEWS = (
    "view",
    "detach",
    "t",
    "permute",
    "unbind",
    "transpose",
    "slice",
    "select",
    "unsqueeze",
    "expand",
    "alias",
    "mT",
)
VIEWS += (
    "split",
    "split_with_sizes",
    "empty",
    "empty_like",
    "as_strided",
    "lift_fresh",
    "chunk",
    "diagonal",
    "to",
    "reshape",
)


class Count(TorchDispatchMode):
    """Counter of operations that compute; a CPU's operation is about a GPU's kernel."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, function, types, args=(), named=None):
        self.n += function.overloadpacket.__name__ not in VIEWS
        return function(*args, **(named or {}))


def count_operations(call, device: str) -> int:
    """Count the operations (CPU, without views) or kernels (GPU) that a call launches."""
    if device == "cpu":
        with Count() as count:
            call()
        return count.n
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    return sum(event.count for event in profiled.key_averages() if event.device_type.name == "CUDA")


def time_call(call, device: str) -> float:
    """Return the milliseconds of one call, until the device has finished."""
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


def time_in_turn(calls, repeats: int, device: str) -> list[list[float]]:
    """Return one list of milliseconds per call, timed in turn after two rounds of warm-up."""
    took = [[time_call(call, device) for call in calls] for _ in range(repeats + 2)]
    return list(zip(*took[2:]))


def passes(device: str, width: int, heads: int, length: int):
    """Print the time of 100 passes without and with statistics, at one size."""
    config = Config(d_model=width, n_heads=heads)
    tokens = [f"w{n}" for n in range(length)]
    order = [0] * PASSES
    with torch.inference_mode():
        model, ids, real = prepare_model(config, tokens, Machine(device))

        def unmeasured():
            model.run_blocks(ids, real, order)

        def with_statistics():
            journey(model, ids, real, config, tokens, order, {1, PASSES // 2, PASSES})

        bare, measured = time_in_turn(
            (unmeasured, with_statistics), 40 if width < 128 else 9, device
        )
    ratio = statistics.median(b / a for a, b in zip(bare, measured))
    print(
        f"{PASSES} passes, d_model {width}, T {length}: bare {statistics.median(bare):8.1f} ms   "
        f"measured {statistics.median(measured):8.1f} ms   ratio {ratio:.2f}",
        flush=True,
    )


def grids(device: str):
    """Print time and operations of the grid, at once and one variant after another."""
    # __wrapped__: a kept result costs nothing.
    tokens = [f"w{n}" for n in range(10)]
    axes = Axes()
    depth = Depth(LAYERS, "separate")

    def run_together(device=device):
        return experiment._run.__wrapped__(Config(), axes, tokens, Machine(device), depth)

    configs = run_together().configs

    def one_by_one():
        for config in configs:
            travel.__wrapped__(config.replace(n_layers=1), tokens, Machine(device), depth, 0, False)

    def bare_loop():
        for config in configs:
            model, ids, real = prepare_model(config, tokens, Machine(device))
            with torch.inference_mode():
                model.run_blocks(ids, real)

    fast = time_in_turn([run_together], 11, device)[0]
    slow, bare = time_in_turn((one_by_one, bare_loop), 2, device)
    print(
        f"grid, {len(configs)} variants × {LAYERS} blocks: {statistics.median(fast):7.1f} ms,"
        f" {count_operations(run_together, device):,} operations"
    )
    print(
        f"  one variant after another: {statistics.median(slow):7.1f} ms,"
        f" {count_operations(one_by_one, device):,} operations,"
        f" {statistics.median(slow) / statistics.median(fast):.1f} times as long"
    )
    print(f"  the same, nothing measured: {statistics.median(bare):6.1f} ms")
    if device != "cpu":
        on_cpu = time_in_turn([lambda: run_together("cpu")], 5, "cpu")[0]
        print(f"  the grid on the CPU, one thread: {statistics.median(on_cpu):7.1f} ms")


def main():
    """Run the benchmark on the device of the command line."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = args.parse_args().device
    torch.set_num_threads(1)
    reuse_freed_memory()
    print(
        torch.cuda.get_device_name() if device == "cuda" else "CPU, one thread",
        f"· torch {torch.__version__}",
    )
    for size in SIZES:
        passes(device, *size)
    grids(device)


if __name__ == "__main__":
    main()
