"""Benchmark of the first picture on a warm server, and of memory with all trained models.

    python -m benchmarks.first [--visits 7]

Each visit is a fresh browser profile: from asking for the page to the picture and the page's own
end. In the same run a page with one slider and its text: the floor. Then One block with every model
of the family; the server's resident memory before and after.
"""

import argparse
import statistics
import time

import psutil

from benchmarks.serving import IDLE, browser, server
from core.checkpoints import family

PAGES = (
    ("start page", "", ".st-key-hero svg"),
    ("One block", "/One_block", ".st-key-all_heads canvas"),
    ("One block, a part out", "/One_block?variants=norm-none", ".st-key-all_heads canvas"),
    ("Trained model", "/Trained_model", "[data-testid=stVegaLiteChart] svg.marks"),
)
FLOOR = ("one slider, text", "", "[data-testid=stSlider]")


def visit(chromium, address: str, picture_selector: str) -> float:
    """Return the seconds until the picture is visible, in a fresh browser profile."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(picture_selector, state="visible")
    took = time.perf_counter() - begun
    page.wait_for_selector(IDLE)
    context.close()
    return took


def median_visit(chromium, address: str, picture_selector: str, visits: int) -> float:
    """Return the median seconds to the picture, after one visit of warm-up."""
    return statistics.median(
        [visit(chromium, address, picture_selector) for _ in range(visits + 1)][1:]
    )


def main():
    """Print the seconds to the first picture of several pages, and the server's memory."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--visits", type=int, default=7)
    visits = args.parse_args().visits
    with (
        browser() as chromium,
        server(app="benchmarks/floor.py") as (simple, _),
        server() as (address, process),
    ):
        for _, path, picture in PAGES:  # warm
            visit(chromium, address + path, picture)
        floor = median_visit(chromium, simple + FLOOR[1], FLOOR[2], visits)
        print(f"{FLOOR[0]:24} {floor:5.2f} s: the floor", flush=True)
        for name, path, picture in PAGES:
            took = median_visit(chromium, address + path, picture, visits)
            print(f"{name:24} {took:5.2f} s, {took / floor:4.1f} floors", flush=True)
        resident = lambda: psutil.Process(process.pid).memory_info().rss / 1e6  # noqa: E731
        before = resident()
        for seed in family.SEEDS:
            for member in family.members()[1:]:
                visit(chromium, f"{address}/One_block?seed={seed}&variants={member}", PAGES[1][2])
        print(
            f"memory of the server: {before:.0f} MB, with every trained model looked at"
            f" {resident():.0f} MB"
        )


if __name__ == "__main__":
    main()
