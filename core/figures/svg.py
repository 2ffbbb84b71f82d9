"""Boxes, lines and words as SVG, in pixels from the upper left corner."""

import re
from html import escape

Point = tuple[float, float]


def picture(width: float, height: float, shapes: str, description: str, role: str = "img") -> str:
    """Wrap shapes in an SVG of this size, with a description for screen readers."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="{role}" aria-label="{escape(description)}" '
        f'xmlns="http://www.w3.org/2000/svg">{shapes}</svg>'
    )


def in_own_size(svg: str) -> str:
    """Wrap a picture in a div of its own width, so that its text keeps its size."""
    match = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    return f'<div style="flex: none; width: {match[1] if match else 0}px">{svg}</div>'


def box(
    x: float, y: float, width: float, height: int, lines: list[str], kind: str, below: int = 0
) -> str:
    """Return a box with lines of text as SVG; (x, y) is the middle of its upper edge.

    Args:
        x: x of the box's centre.
        y: y of its upper edge.
        width: Its width.
        height: Its height.
        lines: Its text; the first line is its name.
        kind: CSS class of the box.
        below: Height at its foot that stays free of text.
    """
    drawn = (
        f'<rect class="{kind}" x="{x - width / 2}" y="{y}" width="{width}" height="{height}"'
        ' rx="5"/>'
    )
    step = 15
    first = y + (height - below) / 2 - 7.5 * (len(lines) - 1) + 4
    for index, line in enumerate(lines):
        style = "small changed" if line.startswith("✕") else "small"
        if index == 0:
            style = "name"
        drawn += text(x, first + index * step, line, f"middle {style}")
    return drawn


def text(x: float, y: float, words: str, kind: str, turn: Point | None = None) -> str:
    """Return words as an SVG text of CSS class `kind`, rotated by −90° around `turn` if given."""
    turned = f' transform="rotate(-90 {turn[0]} {turn[1]})"' if turn else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{turned}>{escape(words)}</text>'


def line(kind: str, *points: Point) -> str:
    """Return an SVG polyline of a CSS class through these points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def arrow(x: float, y: float, way: str = "down") -> str:
    """Return an SVG arrow head with its tip at (x, y), pointing "down" or "left"."""
    corners = {"down": ((-4, -7), (4, -7), (0, 0)), "left": ((7, -4), (7, 4), (0, 0))}[way]
    return (
        f'<polygon class="head" points="{" ".join(f"{x + dx},{y + dy}" for dx, dy in corners)}"/>'
    )


def part(place: str, name: str, words: str, shapes: str) -> str:
    """Group shapes into a clickable part of a block, as SVG with place, name and words as data.

    Args:
        place: Key of the part, whether or not it is present.
        name: What a click does, as in a link.
        words: The same in words.
        shapes: SVG of the part.
    """
    description = "".join(
        f' data-{key}="{escape(value, quote=True)}"'
        for key, value in (("place", place), ("part", name), ("words", words))
    )
    return f'<g class="part"{description}>{shapes}</g>'
