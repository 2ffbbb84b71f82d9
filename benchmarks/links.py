"""Benchmark of links to results: from a click on a matrix cell, or an opened link, to curves.

    python -m benchmarks.links [--cells 15]

In headless Chromium: a cell of the start page is clicked, another one each time, and the time is
taken to the frame after the first one with all curves in it. Then the same link is opened in a
fresh browser. With each, in turn, the floor: the same of an app of two pages with a line of text
(benchmarks/floor_pages.py), by a click on its link, and by opening its second page.
"""

import argparse
import statistics

from benchmarks.serving import browser, server, settle

# Notes the time of the last click, or that the page was opened, and of the frame after the first in
# which `sought` is there.
WATCH = """
(() => {
  const seen = window.seen = { from: 0, drawn: 0 }
  addEventListener("click", () => Object.assign(seen, { from: performance.now(), drawn: 0 }), true)
  const rootsBelow = (each) => each.shadowRoot ? roots(each.shadowRoot) : []
  const roots = (within) => [within, ...[...within.querySelectorAll("*")].flatMap(rootsBelow)]
  const sought = {
    curves: () => {
      const place = document.querySelector(".st-key-learning")
      const panelsIn = (root) => [...root.querySelectorAll(".panel")]
      const panels = place ? roots(place).flatMap(panelsIn) : []
      return panels.length === 2 && panels.every((each) => each.querySelector("path[stroke]"))
    },
    text: () => document.body?.textContent.includes("Arrived"),
  }
  const look = () => {
    if (!seen.drawn && sought.SOUGHT()) {
      seen.drawn = -1
      requestAnimationFrame(() => { seen.drawn = performance.now() })
    }
    requestAnimationFrame(look)
  }
  look()
})()
"""
FLOOR = "[data-testid=stPageLink] a"
CELL = ".st-key-home_matrix svg a"


def open_watched(chromium, address: str, sought: str):
    """Open a page in a fresh browser, with the script that times "curves" or "text". Return it."""
    page = chromium.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.add_init_script(WATCH.replace("SOUGHT", sought))
    page.goto(address)
    settle(page)
    return page


def waited(page) -> float:
    """Return the milliseconds from the click, or the opening of the page, to the drawing."""
    page.wait_for_function("window.seen.drawn > 0", timeout=60_000)
    times = page.evaluate("window.seen")
    return times["drawn"] - times["from"]


def clicked(page, target, back) -> float:
    """Click the target and return the milliseconds to the drawing; then go back."""
    target.click()
    took = waited(page)
    settle(page)
    back()
    settle(page)
    return took


def opened(chromium, address: str, sought: str) -> float:
    """Open a link in a fresh browser. Return the milliseconds to the drawing of `sought`."""
    page = open_watched(chromium, address, sought)
    took = waited(page)
    page.context.close()
    return took


def line(name: str, took: list[float], floor: float):
    """Print median, 90th percentile and range of times in ms, and their ratio to the floor."""
    took = sorted(took)
    middle = statistics.median(took)
    print(
        f"{name:40} median {middle:5.0f} ms, {middle / floor:4.1f} floors   90th"
        f" {took[int(0.9 * (len(took) - 1))]:5.0f}   {took[0]:.0f} to {took[-1]:.0f} over"
        f" {len(took)}",
        flush=True,
    )


def main():
    """Print the times of clicked cells and opened links, with those of the floor."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--cells", type=int, default=15)
    cells = args.parse_args().cells
    with (
        browser() as chromium,
        server() as (address, _),
        server(app="benchmarks/floor_pages.py") as (simple, _),
    ):
        page = open_watched(chromium, address, "curves")
        floor = open_watched(chromium, simple, "text")
        page.wait_for_timeout(4000)  # the server's workers have started
        menu = page.locator("[data-testid=stSidebar]").get_by_text("Start", exact=True)
        links = page.locator(CELL).evaluate_all("all => all.map(a => a.getAttribute('href'))")
        chosen = [n * len(links) // (cells + 1) for n in range(cells + 1)]
        clicks = []
        plain = []
        for n in chosen:
            clicks.append(clicked(page, page.locator(CELL).nth(n), menu.click))
            plain.append(clicked(floor, floor.locator(FLOOR), floor.locator(FLOOR).click))
        middle = statistics.median(plain[1:])
        line("a click to a page with a line of text", plain[1:], middle)
        line("a click on a cell to its curves", clicks[1:], middle)
        print(
            f"the first of them, which loads the page    {clicks[0]:.0f} ms; of the floor"
            f" {plain[0]:.0f} ms"
        )
        fresh = [
            (
                opened(chromium, f"{address}/{links[n]}", "curves"),
                opened(chromium, f"{simple}/second", "text"),
            )
            for n in chosen
        ]
        took, plain = zip(*fresh[1:])
        middle = statistics.median(plain)
        line("a page with a line of text, opened", list(plain), middle)
        line("a link to a cell, opened", list(took), middle)


if __name__ == "__main__":
    main()
