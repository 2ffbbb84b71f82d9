"""Benchmark of studies: their cost over that of their trainings alone.

    python -m benchmarks.studies [supervision jobs page dask]

supervision: a study on one worker, with its store, over the same trainings one after another in
this process. jobs: eight runs on two workers, and the same one after another. page: in headless
Chromium, opening the page "Studies" on a store with 10,000 runs and 1,000,000 rows, and what it
costs the server in memory.

dask: the same study on a cluster of two workers with one thread each on this machine, over the pool
of two processes; both pinned one to a core and with the same priority, through the runner and a
store in SQLite, in turn, medians within one run.
"""

import argparse
import contextlib
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

import psutil
import torch
from sqlalchemy import func, insert, select, update

from benchmarks.machines import Machines
from benchmarks.serving import browser, server, settle
from core.settings.cache import LRUCache
from core.settings.wording import count
from core.study.database.schema import DONE, rows, runs
from core.study.database.store import Store
from core.study.file import parse
from core.study.plan import Study
from core.study.runner import Runner
from core.train import Row, train
from core.workers.cluster import Cluster
from core.workers.job import WorkerPool
from core.workers.pool import ProcessPool

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


def time_study(workers: WorkerPool, folder) -> tuple[float, float]:
    """Train the study in a new store. Return seconds, and the workers' share in trainings (0–1)."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = Store(str(Path(place) / "studies.sqlite"))
        number = store.enrol(parse(STUDY)).study
        workers.kept = LRUCache(0)  # nothing is known from the time before
        begin = time.monotonic()
        for _ in Runner(store, [number], workers).train():
            pass
        took = time.monotonic() - begin
        trained = sum(run.seconds for run in store.runs(number))
        store.close()
    return took, trained / took / workers.count


def time_trainings(study: Study) -> float:
    """Return the seconds of the study's trainings one after another in this process."""
    begin = time.monotonic()
    for run in study.runs:
        for _ in train(run.config, run.training, run.seed, run.machine):
            pass
    return time.monotonic() - begin


@contextlib.contextmanager
def alone_on(core: int):
    """Pin this process to one core inside the block, if the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[core % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def compare_with_plain(name: str, workers: int):
    """Print the time of a study on so many workers over its trainings in this process."""
    study = parse(STUDY)
    pool = ProcessPool(workers)
    took = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for turn in range(TURNS + 1):
                with alone_on(0):  # where the first worker is
                    plain_seconds = time_trainings(study)
                study_seconds = time_study(pool, folder)[0]
                took.append((plain_seconds, study_seconds))
                warm_up = " (warm-up)" if turn == 0 else ""
                print(
                    f"{name}: one after another {plain_seconds:.1f} s, as a study"
                    f" {study_seconds:.1f} s{warm_up}",
                    flush=True,
                )
        finally:
            pool.close()
    ratios = [study_seconds / plain_seconds for plain_seconds, study_seconds in took[1:]]
    ratio = statistics.median(ratios)
    print(
        f"{name}: {len(study.runs)} runs on {count(workers, 'worker')}: ratio"
        f" {ratio:.3f}, {1 / ratio:.2f} times as fast (median of {TURNS}, in turn)",
        flush=True,
    )


def supervision():
    """Print the time of a study on one worker over its trainings alone."""
    compare_with_plain("supervision", 1)


def jobs():
    """Print the time of a study on two workers over its trainings alone."""
    compare_with_plain("jobs", 2)


LARGE = """
name = "large"
tasks = [
  "copy", "reverse", "induction", "recall", "subtraction", "facts", "sentences",
  "reverse 2", "reverse 3", "reverse 5",
]
seeds = 56
device = "cpu"
[axes]
norm = ["LayerNorm", "RMSNorm"]
activation = ["relu", "gelu", "identity"]
learning_rate = [0.001, 0.003, 0.01]
""" + "".join(f'[task."reverse {n}"]\ntask = "reverse"\nn_layers = {n}\n' for n in (2, 3, 5))
ROWS = 100  # of a run
LOADED = 15.0  # seconds after which workers that were started with the first visitor are at rest


def fill(address: str):
    """Make a store with 10,000 runs and 1,000,000 rows of made-up numbers."""
    store = Store(address)
    chance = random.Random(0)
    store.enrol(parse(LARGE))
    with store.writing() as connection:
        for number, steps in connection.execute(select(runs.c.id, runs.c.steps)).all():
            best = chance.random()
            made_up = [
                Row(max(1, steps * n // ROWS), 1 / n, best * n / ROWS, 1.0, 0.01, 0.003)
                for n in range(1, ROWS + 1)
            ]
            values = {row.step: {"run": number, **row._asdict()} for row in made_up}
            connection.execute(insert(rows), list(values.values()))
        done = {
            "state": DONE,
            "step": runs.c.steps,
            "seconds": 3.0,
            "ended": time.time(),
            "device": "CPU",
        }
        connection.execute(update(runs).values(done))
    with store.reading() as connection:
        sizes = [
            connection.scalar(select(func.count()).select_from(table)) for table in (runs, rows)
        ]
    store.close()
    print(f"page: a store with {sizes[0]:,} runs and {sizes[1]:,} rows", flush=True)


def page():
    """Print the milliseconds from a click to each view of a large study, and the memory.

    Each visit is by a new user; nothing is cached at the first.
    """
    took = {}
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{folder}/studies.sqlite"
        fill(address)
        with server(ABLATION_DATABASE_URL=address) as (where, process), browser() as chromium:
            warm(chromium, where)
            memory = psutil.Process(process.pid).memory_info
            before = memory().rss
            for turn in range(2 * TURNS):
                for name, milliseconds in visit(chromium, where).items():
                    took.setdefault(name, []).append(milliseconds)
                if turn in (0, TURNS - 1):
                    print(
                        f"page: memory {(memory().rss - before) / 2**20:+.0f} MB after {turn + 1}"
                        " visitors",
                        flush=True,
                    )
            after = memory().rss
    for name, times in took.items():
        print(
            f"page: {name}: first {times[0]:.0f} ms, median {statistics.median(times):.0f}, worst"
            f" {max(times):.0f}"
        )
    print(
        f"page: memory {(after - before) / 2**20:+.0f} MB after {2 * TURNS} visitors, of"
        f" {after / 2**20:.0f} MB"
    )


def warm(chromium, address):
    """Open Training as a user who trains nothing, then wait until the workers have loaded."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page_shown = context.new_page()
    page_shown.goto(f"{address}/Training")
    settle(page_shown)
    context.close()
    time.sleep(LOADED)


def visit(chromium, address) -> dict[str, float]:
    """Open the views of the study as a new user. Return view's name -> milliseconds."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page_shown = context.new_page()
    took = {}
    page_shown.goto(address)
    settle(page_shown)
    menu = page_shown.get_by_test_id("stSidebar").get_by_role("link", name="Studies")
    for name, click, sign in (
        ("the page with its matrix", menu, ".st-key-study_matrix svg"),
        ("runs", page_shown.get_by_role("radio", name="Runs"), "[data-testid=stDataFrame] canvas"),
        (
            "curves of five models, 56 seeds each",
            page_shown.get_by_role("radio", name="Curves"),
            ".st-key-learning svg",
        ),
    ):
        begin = time.perf_counter()
        click.click()
        page_shown.locator(sign).first.wait_for()
        took[name] = 1000 * (time.perf_counter() - begin)
        settle(page_shown)
    context.close()
    return took


def dask():
    """Print the time of the study on a local pool and on a Dask cluster."""
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(folder, 2)
        local = ProcessPool(2)
        cluster = Cluster(machines.address)
        try:
            while cluster.refresh_workers() or cluster.count < 2:
                time.sleep(0.1)
            pools = {"local pool": local, "cluster": cluster}
            took = {name: [] for name in pools}
            share = {name: [] for name in pools}
            for turn in range(TURNS + 1):  # the first one loads
                for name, pool in pools.items():
                    lasted, trained = time_study(pool, folder)
                    print(
                        f"dask: {name} {lasted:.1f} s, {trained:.0%} of it in trainings", flush=True
                    )
                    if turn:
                        took[name].append(lasted)
                        share[name].append(trained)
        finally:
            cluster.close()
            local.close()
            machines.close()
    ratios = [on_second / on_first for on_first, on_second in zip(*took.values())]
    medians = [
        f"{name} {statistics.median(took[name]):.1f} s ({statistics.median(share[name]):.0%} in"
        " trainings)"
        for name in took
    ]
    print(
        f"dask: {', '.join(medians)}, ratio {statistics.median(ratios):.3f} (median of {TURNS}, in"
        " turn)",
        flush=True,
    )


PARTS = {"supervision": supervision, "jobs": jobs, "page": page, "dask": dask}


def main():
    """Run the parts of the benchmark that the command line names; all without names."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    torch.set_num_threads(1)
    for name in args.parse_args().parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
