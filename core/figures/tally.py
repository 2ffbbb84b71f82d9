"""How many chose what, as a picture (SVG): a bar for each answer, of two rounds one below the other.

Classes as in core/figures/predicted.py: `bar` the newest round, `bar before` the one before it, `bar right` the answer that is right.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from core.figures.palette import BASELINE, VARIANTS
from core.figures.svg import text

WIDTH, MARGIN, LETTER = 640, 8, 7.6
ROW, BAR = 50, 16
LINES = 2  # of an answer's words
STYLE = (
    f".bar{{fill:{BASELINE}}}.bar.before{{opacity:.4}}.bar.right{{fill:{VARIANTS[1]}}}"
    "text{fill:currentColor;font-size:15px}.end{text-anchor:end}.right{font-weight:700}"
)


class Count(NamedTuple):
    """label: the answer in words; rounds: votes in the first round, and in the second where there was one."""

    label: str
    rounds: Sequence[int]
    right: bool = False


def tally_svg(counts: Sequence[Count], votes: str) -> str:
    """votes: the word for them."""
    most = max([1, *(each for count in counts for each in count.rounds)])
    label = WIDTH * 0.46
    room = WIDTH - label - 2 * MARGIN - 60
    shapes = []
    for at, count in enumerate(counts):
        lines = _lines(count.label, int((label - MARGIN) / LETTER))
        top = at * ROW + ROW / 2
        for n, line in enumerate(lines):
            y = top + 5 + 17 * (n - (len(lines) - 1) / 2)
            shapes.append(text(label, round(y, 1), line, f"end{' right' * count.right}"))
        for n, many in enumerate(count.rounds):
            y = top + (n - (len(count.rounds) - 1) / 2) * (BAR + 3) - BAR / 2
            kind = "bar" + " before" * (n < len(count.rounds) - 1) + " right" * count.right
            width = max(1.5, room * many / most)
            shapes.append(f'<rect class="{kind}" x="{label + 10:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" rx="3"/>')  # fmt: skip
            shapes.append(text(round(label + width + 16, 1), round(y + BAR - 3, 1), f"{many}", "right" * count.right))
    said = escape(described(counts, votes), quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {ROW * len(counts)}" role="img" aria-label="{said}" '
        f'xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{"".join(shapes)}</svg>'
    )


def described(counts: Sequence[Count], votes: str) -> str:
    """The picture in words."""
    told = (f"{each.label}: {' → '.join(map(str, each.rounds))}" for each in counts)
    return ". ".join([votes.capitalize(), *told])


def _lines(words: str, width: int) -> list[str]:
    """Words in at most LINES lines."""
    lines: list[str] = [""]
    for word in words.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    shown = [line if len(line) <= width else line[: width - 1] + "…" for line in lines[:LINES]]
    if len(lines) > LINES:
        shown[-1] = shown[-1][: width - 1] + "…"
    return shown
