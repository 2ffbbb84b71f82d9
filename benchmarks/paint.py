"""What a person waits for: from a key press on a slider to the last painted pixel, in headless Chromium; and cold start.

    python -m benchmarks.paint [--moves 15]

Moves the slider "Random seed", which changes every number on the page. One block: the default sentence; 12 heads ×
64 tokens; 12 × 128. Depth: ten passes of a baseline and four variants; their gradients; the grid. Median, 90th percentile and range over the moves, after one that does not count, and
how many times the floor that is: the same of an app that has one slider and shows its value (benchmarks/floor.py); then the server's
memory with this one user, and the time from starting the server to the first painted attention map.
"""

import argparse
import statistics
import time

import psutil

from benchmarks.serving import IDLE, browser, server, settle

FOUR = "norm-none~residual_attention-off__residual_ffn-off~placement-post~n_heads-1"
CASES = (
    ("default sentence", "/One_block?weights=random"),
    (
        "12 heads × 64 tokens",
        "/One_block?weights=random&d_model=96&n_heads=12&text=" + "+".join(f"w{n}" for n in range(64)),
    ),
    (
        "12 heads × 128 tokens",
        "/One_block?weights=random&d_model=96&n_heads=12&text=" + "+".join(f"w{n}" for n in range(128)),
    ),
    ("depth, 4 variants", f"/Depth?variants={FOUR}"),
    ("depth, gradients", f"/Depth?show=gradients&variants={FOUR}"),
    ("depth, grid of 96", "/Depth?show=grid"),
)

# Notes the time of every drawing call and every change of the page outside the slider, and of the frame after it.
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
    CanvasRenderingContext2D.prototype[call] = function (...given) { drawn(); return plain.apply(this, given) }
  }
  document.addEventListener("keydown", () => Object.assign(seen, { key: performance.now(), changed: 0, painted: 0 }), true)
  document.addEventListener("DOMContentLoaded", () => new MutationObserver(changes => {
    if (changes.some(({ target }) => {
      const element = target.nodeType === 1 ? target : target.parentElement
      return element && element.closest("[data-testid=stMain]")
    })) drawn()
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true }))
})()
"""


def waits(page, moves: int, moved: str = "[data-name=seed] input") -> list[float]:
    """Milliseconds from key press to last paint, for each move."""
    page.locator(moved).first.focus()
    took = []
    for _ in range(moves + 1):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        settle(page)
        seen = page.evaluate("window.seen")
        assert seen["painted"], "the move painted nothing"
        took.append(seen["painted"] - seen["key"])
    return took[1:]


def watched(chromium, address: str):
    """A page on which painting is noted."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(WATCH)
    page.goto(address)
    settle(page, 800)
    page.wait_for_timeout(4000)  # the server's workers have started
    return page


def _memory(process) -> float:
    """MB of a server, now."""
    return psutil.Process(process.pid).memory_info().rss / 2**20


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--moves", type=int, default=15)
    moves = args.parse_args().moves
    with browser() as chromium:
        start = time.perf_counter()
        with server() as (address, process):
            page = chromium.new_page(viewport={"width": 1400, "height": 900})
            page.goto(f"{address}/One_block")
            page.wait_for_selector(".st-key-all_heads canvas")
            page.wait_for_selector(IDLE)
            cold = time.perf_counter() - start
            page.close()
            with server(app="benchmarks/floor.py") as (simple, _):
                floor = statistics.median(
                    waits(
                        watched(chromium, simple),
                        2 * moves,
                        "[data-testid=stSlider] [role=slider], [data-testid=stSlider] input",
                    )
                )
            print(f"one slider, text       median {floor:6.0f} ms: the floor")
            alone = 0.0
            for name, path in CASES:
                page = watched(chromium, address + path)
                took = sorted(waits(page, moves))
                print(
                    f"{name:22} median {statistics.median(took):6.0f} ms, {statistics.median(took) / floor:4.1f} floors   90th {took[int(0.9 * (len(took) - 1))]:6.0f}   "
                    f"{took[0]:.0f} to {took[-1]:.0f} over {len(took)} moves",
                    flush=True,
                )
                alone = alone or _memory(process)
                page.close()
            print(
                f"server memory, one user  {alone:.0f} MB on the first of these, {_memory(process):.0f} MB after all of them"
            )
            print(f"cold start to first picture  {cold:.1f} s")


if __name__ == "__main__":
    main()
