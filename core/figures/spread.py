"""One interval on a line of its own, beside the effect that it is judged by, as a picture (SVG).

Classes carry the meaning: `zone` where the interval has to lie, `edge` its bounds, `reach` the interval, `mean`, `seed` one value.
"""

from collections.abc import Callable, Sequence

from core.figures.svg import text

WIDTH, HEIGHT, MARGIN = 260, 46, 14
LINE, APART = 16, 34  # y of the line; pixels between two labels that can both be read


def spread_svg(
    interval: tuple[float, float, float], smallest: float, alike: bool, label: Callable[[float], str], values: Sequence[float] = ()
) -> str:  # fmt: skip
    """interval: (mean, low, high); smallest: the effect that counts; alike: whether the interval has to lie within ± it, and not
    above it; values: one for each seed."""
    mean, low, high = interval
    least = min(0.0, low, mean, *values, -smallest if alike else 0.0)
    most = max(0.0, high, mean, smallest, *values)
    room = WIDTH - 2 * MARGIN

    def at(value: float) -> float:
        return MARGIN + room * (value - least) / (most - least)

    left, right = at(-smallest) if alike else at(smallest), at(smallest) if alike else float(WIDTH)
    shapes = [f'<rect class="zone" x="{left:.1f}" y="2" width="{max(0.0, right - left):.1f}" height="{2 * LINE - 4}"/>']
    edges = [-smallest, smallest] if alike else [smallest]
    shapes += [
        f'<line class="edge" x1="{at(each):.1f}" x2="{at(each):.1f}" y1="2" y2="{2 * LINE - 2}"/>' for each in edges
    ]
    shapes.append(f'<line class="axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{LINE}" y2="{LINE}"/>')
    shapes += [f'<circle class="seed" cx="{at(each):.1f}" cy="{LINE}" r="3"/>' for each in values]
    shapes.append(f'<line class="reach" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{LINE}" y2="{LINE}"/>')
    shapes.append(f'<circle class="mean" cx="{at(mean):.1f}" cy="{LINE}" r="5"/>')
    ticks: list[float] = []
    for each in (*edges, 0.0):
        if all(abs(at(each) - at(other)) >= APART for other in ticks):
            ticks.append(each)
            shapes.append(text(round(at(each), 1), HEIGHT - 4, label(each), "tick middle"))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" xmlns="http://www.w3.org/2000/svg">{"".join(shapes)}</svg>'
