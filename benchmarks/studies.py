"""What a study costs beside its trainings.

    python -m benchmarks.studies [dask]

dask: the same study on a cluster of two workers with one thread each on this machine, over the pool of two processes;
both pinned one to a core and as nice to others, through the runner and a store in SQLite, in turn, medians within one run.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.machines import Machines
from core.cluster import Cluster
from core.jobs import Workers
from core.memory import Shelf
from core.study.file import parse
from core.study.runner import Runner
from core.study.store import Store

TURNS = 5
STUDY = """
name = "speed"
tasks = ["reverse", "induction"]
seeds = 2
device = "cpu"
[training]
steps = 250
[variants]
"− attention" = { attention = false }
"""


def seconds(workers: Workers, folder) -> tuple[float, float]:
    """Train the study from its start in a new store -> (how long it took, share of that in which workers trained)"""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = Store(str(Path(place) / "studies.sqlite"))
        number = store.enrol(parse(STUDY)).study
        workers.kept = Shelf(0)  # nothing is known from the time before
        begin = time.monotonic()
        for _ in Runner(store, [number], workers).progress():
            pass
        took = time.monotonic() - begin
        trained = sum(each.seconds for each in store.runs(number))
        store.close()
    return took, trained / took / workers.count


def dask():
    with tempfile.TemporaryDirectory() as folder:
        machines, local = Machines(folder, 2), Workers(2)
        cluster = Cluster(machines.address)
        try:
            while cluster.look() or cluster.count < 2:
                time.sleep(0.1)
            pools = {"local pool": local, "cluster": cluster}
            took, share = {name: [] for name in pools}, {name: [] for name in pools}
            for turn in range(TURNS + 1):  # the first one loads
                for name, each in pools.items():
                    lasted, trained = seconds(each, folder)
                    print(f"dask: {name} {lasted:.1f} s, {trained:.0%} of it in trainings", flush=True)
                    if turn:
                        took[name].append(lasted)
                        share[name].append(trained)
        finally:
            cluster.close()
            local.close()
            machines.close()
    ratios = [there / here for here, there in zip(*took.values())]
    medians = [
        f"{name} {statistics.median(took[name]):.1f} s ({statistics.median(share[name]):.0%} in trainings)"
        for name in took
    ]
    print(f"dask: {', '.join(medians)}, ratio {statistics.median(ratios):.3f} (median of {TURNS}, in turn)", flush=True)


PARTS = {"dask": dask}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    torch.set_num_threads(1)
    for name in args.parse_args().parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
