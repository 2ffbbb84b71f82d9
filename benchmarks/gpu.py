"""Run all benchmarks of `core` on one device and print a table for benchmarks/README.md.

    python -m benchmarks.gpu [--device cuda]

`make gpu` runs the tests marked `gpu` first. Neither needs Streamlit or Altair.
"""

import argparse
import re
import subprocess
import sys

import torch

from benchmarks.serving import ROOT

BENCHMARKS = (
    ("instrumentation",),
    ("depth",),
    ("training", "step", "stack"),
    ("trained", "sweep"),
    ("trained", "generate"),
)


def figures(benchmark: tuple[str, ...], device: str) -> list[tuple[str, str]]:
    """Run one benchmark in its own process. Return (what it measures, figures) of each line."""
    name, *parts = benchmark
    command = [sys.executable, "-m", f"benchmarks.{name}", *parts, "--device", device]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, flush=True)
    rows = []
    heading = name
    for line in done.stdout.splitlines()[1:]:  # the first one names the device
        parted = re.split(r":\s+|\s{2,}", line.strip(), maxsplit=1)
        if len(parted) == 1:
            heading = parted[0]
        else:
            rows.append((f"{heading}: {parted[0]}", re.sub(r"\s+", " ", parted[1])))
    return rows


def main():
    """Run the benchmarks on the device of the command line and print the table."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--device", default="cuda")
    device = args.parse_args().device
    rows = [row for benchmark in BENCHMARKS for row in figures(benchmark, device)]
    card = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"| {card}, torch {torch.__version__} | |\n|---|---|")
    for kind_name, figure in rows:
        print(f"| {kind_name} | {figure} |")


if __name__ == "__main__":
    main()
