"""Benchmark of dragging a slider: pictures per second, and the delay of the last one.

    python -m benchmarks.drag [--seconds 3]

In headless Chromium: takes the thumb of *Width* on One block with the mouse, moves it forth and
back by ten pixels, which is another value, every 30 ms, and lets go. Prints three figures, for the
default sentence and for 12 heads × 64 tokens. Pictures a second while the button was down (drawings
on a canvas at least 25 ms apart). The median time between two. The time from letting go to the last
drawing.
"""

import argparse
import statistics
import time

from benchmarks.paint import CASES
from benchmarks.serving import browser, server, settle

# pixels of a move, moves in one direction
STEP = 10
WAY = 12
WATCH = """
(() => {
  const drawn = window.drawn = []
  for (const call of ["fillRect", "putImageData", "drawImage"]) {
    const plain = CanvasRenderingContext2D.prototype[call]
    CanvasRenderingContext2D.prototype[call] = function (...given) {
      drawn.push(performance.now())
      return plain.apply(this, given)
    }
  }
})()
"""


def drag(page, seconds: float) -> tuple[list[float], float]:
    """Drag the slider for some seconds.

    Returns:
        Times in ms at which pictures began while the button was down, and the delay in ms from
        releasing it to the last drawing.
    """
    field = page.get_by_role("slider", name="Width (d_model)")
    box = field.bounding_box()
    share = field.evaluate("e => (e.value - e.min) / (e.max - e.min)")
    x = box["x"] + share * box["width"]
    y = box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate("window.drawn.length = 0")
    end = time.monotonic() + seconds
    step = 0
    while time.monotonic() < end:
        step += 1
        page.mouse.move(x + STEP * (WAY - abs(step % (2 * WAY) - WAY)), y)
        time.sleep(0.03)
    drawn = page.evaluate("[...window.drawn]")
    page.mouse.move(x, y)
    let_go = page.evaluate("performance.now()")
    page.mouse.up()
    page.wait_for_timeout(2500)
    last = page.evaluate("Math.max(0, ...window.drawn)")
    return [now for before, now in zip([-1e9, *drawn], drawn) if now - before > 25], max(
        0.0, last - let_go
    )


def main():
    """Print pictures per second and the delay after the release, for two models."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--seconds", type=float, default=3)
    seconds = args.parse_args().seconds
    with server() as (address, _), browser() as chromium:
        for name, path in CASES[:2]:
            page = chromium.new_page(viewport={"width": 1400, "height": 900})
            page.add_init_script(WATCH)
            page.goto(address + path)
            settle(page, 800)
            drag(page, seconds)  # warm-up
            began, after = drag(page, seconds)
            gaps = [b - a for a, b in zip(began, began[1:])]
            between = f"{statistics.median(gaps):.0f} ms between two" if gaps else "none to compare"
            print(
                f"{name:22} {len(began) / seconds:4.1f} pictures a second, {between}; last"
                f" {after:.0f} ms after letting go",
                flush=True,
            )
            page.close()


if __name__ == "__main__":
    main()
