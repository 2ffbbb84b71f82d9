"""Boxes, lines and words as SVG, at pixels counted from the left upper corner."""

import re
from html import escape

Point = tuple[float, float]


def picture(width: float, height: float, shapes: str, description: str, role: str = "img") -> str:
    """Return shapes as an SVG of this size. description: the picture in words."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="{role}" aria-label="{escape(description)}" '
        f'xmlns="http://www.w3.org/2000/svg">{shapes}</svg>'
    )


def in_own_size(svg: str) -> str:
    """Return a picture at its own width, so that its text has the size it was given."""
    match = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    return f'<div style="flex: none; width: {match[1] if match else 0}px">{svg}</div>'


def box(
    x: float, y: float, width: float, height: int, lines: list[str], kind: str, below: int = 0
) -> str:
    """Draw lines of text in a box.

    Args:
        x: Of the box's centre.
        below: Height at its foot that stays free of text.
    """
    drawn = (
        f'<rect class="{kind}" x="{x - width / 2}" y="{y}" width="{width}" height="{height}"'
        ' rx="5"/>'
    )
    step = 15
    first = y + (height - below) / 2 - 7.5 * (len(lines) - 1) + 4
    for index, line in enumerate(lines):
        kind = " name" if index == 0 else " small changed" if line.startswith("✕") else " small"
        drawn += text(x, first + index * step, line, f"middle{kind}")
    return drawn


def text(x: float, y: float, words: str, kind: str, turn: Point | None = None) -> str:
    turned = f' transform="rotate(-90 {turn[0]} {turn[1]})"' if turn else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{turned}>{escape(words)}</text>'


def line(kind: str, *points: Point) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def arrow(x: float, y: float, way: str = "down") -> str:
    corners = {"down": ((-4, -7), (4, -7), (0, 0)), "left": ((7, -4), (7, 4), (0, 0))}[way]
    return (
        f'<polygon class="head" points="{" ".join(f"{x + dx},{y + dy}" for dx, dy in corners)}"/>'
    )


def part(place: str, name: str, words: str, shapes: str) -> str:
    """Group shapes into one clickable part of a block.

    Args:
        place: Which part, whether or not it is present.
        name: What a click does, as in a link.
        words: The same in words.
    """
    description = "".join(
        f' data-{key}="{escape(value, quote=True)}"'
        for key, value in (("place", place), ("part", name), ("words", words))
    )
    return f'<g class="part"{description}>{shapes}</g>'
