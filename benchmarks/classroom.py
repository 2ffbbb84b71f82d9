"""Benchmark of storing votes: time until a vote is stored when a class votes.

    python -m benchmarks.classroom [--database ADDRESS] [--seats 100] [--seconds 5] [--processes 1]

So many seats vote, each in a thread of its own, spread evenly over so many seconds (0: all at
once), from one process or several; then what a look at the class costs. Without an address: SQLite
in a folder that goes with it.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from core.teaching.classroom import Classroom

REASON = "because " + "x" * 100


def burst(
    database: str, code: str, question_name: str, spread: float, keys: list[str]
) -> list[float]:
    """Let these seats vote, spread over `spread` seconds. Return the seconds of each vote."""
    store = Classroom(database)
    took = []
    store.watch(code)  # it is connected

    def vote(place: int) -> None:
        time.sleep(spread * place / len(keys))
        begun = time.perf_counter()
        store.vote(code, keys[place], question_name, 1, "yes", 2, REASON)
        took.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=vote, args=(place,)) for place in range(len(keys))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.shut()
    return took


def format_milliseconds(took: list[float]) -> str:
    """Return median, 95th percentile and maximum as text in ms, for times in seconds."""
    ordered = sorted(took)
    late = ordered[int(0.95 * len(ordered))]
    return (
        f"median {1000 * statistics.median(ordered):.1f} ms, p95 {1000 * late:.1f} ms, last"
        f" {1000 * ordered[-1]:.1f} ms"
    )


def measure(database: str, seats: int, spread: float, processes: int) -> None:
    """Print the time of votes, and the time of one look as projector, teacher and student."""
    store = Classroom(database)
    started = store.start()
    keys = [store.join(started.code, f"student {number}") for number in range(seats)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for turn in range(3):
            store.open(started.token, f"question {turn}")
            vote_of_seats = partial(burst, database, started.code, f"question {turn}", spread)
            took = sum(
                pool.map(vote_of_seats, [keys[first::processes] for first in range(processes)], 1),
                [],
            )
            assert store.watch(started.code).votes == seats
            print(
                f"{seats} votes within {spread:g} s, {processes} process(es):"
                f" {format_milliseconds(took)}"
            )
    for name, look in (
        ("watch", lambda: store.watch(started.code)),
        ("watch_as_teacher", lambda: store.watch_as_teacher(started.token)),
        ("mine", lambda: store.read_own_votes(started.code, keys[0])),
    ):
        begun = time.perf_counter()
        for _ in range(100):
            look()
        print(f"{name}: {10 * (time.perf_counter() - begun):.2f} ms")
    store.end(started.token)
    store.shut()


def main() -> None:
    """Measure the database of the command line, or a temporary SQLite file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database")
    parser.add_argument(
        "--seats", type=int, default=100, help="at most 300, as many as may join within a minute"
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = arguments.database or str(Path(folder) / "classes.sqlite")
        measure(where, arguments.seats, arguments.seconds, arguments.processes)


if __name__ == "__main__":
    main()
