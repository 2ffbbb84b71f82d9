"""Benchmark of painting: from a key press on a slider to the last painted pixel; cold start.

    python -m benchmarks.paint [--moves 10] [--rounds 4]

In headless Chromium: moves the slider "Random seed", which changes every number on the page. One
block: the default sentence; 12 heads × 64 tokens; 12 × 128. Depth: ten passes of a baseline and
four variants; their gradients; the grid. All of them in turn, in rounds, with the same of an app
that has one slider and shows its value (benchmarks/floor.py): median, 90th percentile and range
over the moves, and how many times that floor; then the server's memory with this one user, and the
time from starting the server to the first painted attention map.
"""

import argparse
import statistics
import time
from itertools import chain

import psutil

from benchmarks.serving import IDLE, browser, server, settle

FOUR = "norm-none~residual_attention-off__residual_ffn-off~placement-post~n_heads-1"
CASES = (
    ("default sentence", "/One_block?weights=random"),
    (
        "12 heads × 64 tokens",
        "/One_block?weights=random&d_model=96&n_heads=12&text="
        + "+".join(f"w{n}" for n in range(64)),
    ),
    (
        "12 heads × 128 tokens",
        "/One_block?weights=random&d_model=96&n_heads=12&text="
        + "+".join(f"w{n}" for n in range(128)),
    ),
    ("depth, 4 variants", f"/Depth?variants={FOUR}"),
    ("depth, gradients", f"/Depth?show=gradients&variants={FOUR}"),
    ("depth, grid of 100", "/Depth?show=grid"),
)

FLOOR = "one slider, text"
SLIDER = "[data-testid=stSlider] [role=slider], [data-testid=stSlider] input"
SEED = "[data-name=seed] input"

# Notes the time of every drawing call and every change of the page outside the slider, and of the
# frame after it.
WATCH = """
(() => {
  const seen = window.seen = { key: 0, changed: 0, painted: 0 }
  const channel = new MessageChannel()
  channel.port1.onmessage = () => { seen.painted = performance.now() }
  const drawn = () => {
    if (!seen.key) return
    seen.changed = performance.now()
    requestAnimationFrame(() => channel.port2.postMessage(0))
  }
  for (const call of ["fillRect", "fill", "stroke", "drawImage", "putImageData", "fillText"]) {
    const plain = CanvasRenderingContext2D.prototype[call]
    CanvasRenderingContext2D.prototype[call] = function (...given) {
      drawn()
      return plain.apply(this, given)
    }
  }
  document.addEventListener("keydown", () => {
    Object.assign(seen, { key: performance.now(), changed: 0, painted: 0 })
  }, true)
  document.addEventListener("DOMContentLoaded", () => new MutationObserver(changes => {
    if (changes.some(({ target }) => {
      const element = target.nodeType === 1 ? target : target.parentElement
      return element && element.closest("[data-testid=stMain]")
    })) drawn()
  }).observe(document.body, {
    subtree: true, childList: true, characterData: true, attributes: true
  }))
})()
"""


def waits(page, moves: int, slider_selector: str = SEED) -> list[float]:
    """Return the milliseconds from key press to last paint of each move, after one of warm-up."""
    page.locator(slider_selector).first.focus()
    took = []
    for _ in range(moves + 1):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        settle(page)
        times = page.evaluate("window.seen")
        assert times["painted"], "the move painted nothing"
        took.append(times["painted"] - times["key"])
    return took[1:]


def open_watched(chromium, address: str):
    """Open a page with the script that notes the time of painting. Return it."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(WATCH)
    page.goto(address)
    settle(page, 800)
    return page


def _memory(process) -> float:
    """Return a server's resident memory in MB."""
    return psutil.Process(process.pid).memory_info().rss / 2**20


def _round(
    chromium, pages: dict[str, tuple[str, str]], moves: int, first_seed: int
) -> dict[str, list[float]]:
    """Return the milliseconds of the moves on each page.

    Args:
        chromium: Browser.
        pages: Address, and selector of the slider to move, by name.
        moves: Moves per page.
        first_seed: First seed of the slider; a new range for each round, so that nothing is cached.
    """
    took = {}
    for name, (address, moved) in pages.items():
        page = open_watched(chromium, f"{address}&seed={first_seed}")
        took[name] = waits(page, moves, moved)
        page.close()
    return took


def _cold(chromium, address: str, started_at: float) -> float:
    """Return the seconds from the server's start until the first attention map is painted."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{address}/One_block")
    page.wait_for_selector(".st-key-all_heads canvas")
    page.wait_for_selector(IDLE)
    page.close()
    return time.perf_counter() - started_at


def main():
    """Print times of moves, memory and cold start."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--moves", type=int, default=10)
    args.add_argument("--rounds", type=int, default=4)
    arguments = args.parse_args()
    with browser() as chromium:
        start = time.perf_counter()
        with server() as (address, process), server(app="benchmarks/floor.py") as (simple, _):
            cold = _cold(chromium, address, start)
            pages = {FLOOR: (f"{simple}/?", SLIDER)} | {
                name: (address + path, SEED) for name, path in CASES
            }
            seeds = range(0, 1000, arguments.moves + 2)
            _round(
                chromium, dict(list(pages.items())[:2]), arguments.moves, seeds[0]
            )  # not counted
            alone = _memory(process)
            rounds = [_round(chromium, pages, arguments.moves, seeds[1])]
            later = _memory(process)
            rounds += [
                _round(chromium, pages, arguments.moves, seed)
                for seed in seeds[2 : arguments.rounds + 1]
            ]
    took = {name: sorted(chain.from_iterable(round[name] for round in rounds)) for name in pages}
    floor = statistics.median(took[FLOOR])
    for name, all_of in took.items():
        median = statistics.median(all_of)
        print(
            f"{name:24} median {median:6.0f} ms, {median / floor:4.1f} floors   90th"
            f" {all_of[int(0.9 * (len(all_of) - 1))]:6.0f}   {all_of[0]:.0f} to {all_of[-1]:.0f}"
            f" over {len(all_of)} moves"
        )
    print(
        f"server memory, one user  {alone:.0f} MB on the first of these, {later:.0f} MB after all"
        " of them"
    )
    print(f"cold start to first picture  {cold:.1f} s")


if __name__ == "__main__":
    main()
