"""Benchmark of layout shift: how much of a page moves after it was first seen.

    python -m benchmarks.shift [--visits 5]

The measure is the browser's own (https://web.dev/articles/cls). Each visit is a fresh browser
profile, on a warm server. The largest shift is that with which Streamlit's sidebar comes, on a page
that has nothing else yet; so the sum of the others is printed next to the sum of all. Medians over
the visits.
"""

import argparse
import statistics

from benchmarks.serving import PATHS, browser, server, settle

NOTE = """
  window.shifts = []
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) window.shifts.push(each.value)
  }).observe({ type: "layout-shift", buffered: true })
"""


def shifts(chromium, address: str) -> tuple[float, float]:
    """Return the sum of layout shifts in a fresh browser, with and without the largest."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.add_init_script(NOTE)
    page.goto(address)
    settle(page, 1000)
    sizes = page.evaluate("window.shifts")
    context.close()
    return sum(sizes), sum(sizes) - max(sizes, default=0)


def main():
    """Print the layout shift of every page."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--visits", type=int, default=5)
    visits = args.parse_args().visits
    with browser() as chromium, server() as (address, _):
        for path in PATHS:
            measured = [shifts(chromium, f"{address}/{path}") for _ in range(visits + 1)][1:]
            full, others = (statistics.median(item) for item in zip(*measured, strict=True))
            print(
                f"{path.partition('?')[0] or 'start page':16} layout shift {full:.2f}, without the"
                f" sidebar {others:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
