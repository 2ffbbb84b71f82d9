"""Small pictures (SVG): a head's attention, one interval, votes.

CSS classes carry the meaning; the page's style sheet gives the colours.
"""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import NamedTuple

from core.figures.palette import BASELINE, VARIANTS
from core.figures.svg import picture, text

# width of a letter, and between two words of the sentence
LETTER = 9.4
GAP = 14
# y of the highest arc, and of the end of all arcs
TOP = 24
FOOT = 112
SPREAD_WIDTH = 260
# of attention
LEAST_DRAWN = 0.02
LEAST_WRITTEN = 0.1

# For the cards of the start page: thin lines, what is there, what is removed.
_LINE = "fill='none' stroke='currentColor' stroke-width='1.5'"
_BLUE = f"fill='none' stroke='{BASELINE}' stroke-width='3.5'"
_ORANGE = f"fill='none' stroke='{VARIANTS[0]}' stroke-width='2.5'"
BLOCK_PICTURE = (
    f"<svg viewBox='0 0 90 90' aria-hidden='true'><path {_BLUE} d='M14 4V86'/><path {_LINE} d='M14"
    f" 14H58V24M58 42V52'/><rect {_LINE} x='32' y='24' width='54' height='18' rx='3'/><rect"
    f" {_ORANGE} stroke-dasharray='5 4' x='32' y='52' width='54' height='20' rx='3'/><path"
    f" {_ORANGE} d='M54 57l10 10M64 57l-10 10'/></svg>"
)
CURVES_PICTURE = (
    f"<svg viewBox='0 0 90 90' aria-hidden='true'><path {_LINE} d='M6 6V84H88'/>"
    f"<path {_BLUE} d='M6 82C30 82 28 18 44 14S70 12 86 12'/>"
    f"<path {_ORANGE} stroke-dasharray='5 4' d='M6 83C40 82 60 76 86 68'/></svg>"
)
LESSONS_PICTURE = (
    f"<svg viewBox='0 0 90 90' aria-hidden='true'><path {_LINE} stroke-opacity='0.4' d='M16"
    f" 70H45V45H74V20'/><g fill='{VARIANTS[1]}'><circle cx='16' cy='70' r='11'/><circle cx='45'"
    f" cy='45' r='11'/></g><circle {_BLUE} cx='74' cy='20' r='11'/><path fill='none' stroke='white'"
    " stroke-width='2.5' d='M11 70l4 4 7-8M40 45l4 4 7-8'/></svg>"
)

VOTES_STYLE = (
    f".bar{{fill:{BASELINE}}}.bar.before{{opacity:.4}}.bar.right{{fill:{VARIANTS[1]}}}"
    "text{fill:currentColor;font-size:15px}.end{text-anchor:end}.right{font-weight:700}"
)


def agreement_svg(
    words: Sequence[str], weights: Sequence[float], chosen: str, wrong: bool, removed: bool
) -> str:
    """Return a sentence, predicted word, its verdict and arcs of a head's attention as SVG.

    The arcs lead from the last given word, from which the next one is predicted, to the words
    before it.

    Args:
        words: The words that are given.
        weights: Attention weight, 0 to 1, of the head on each of them.
        chosen: The predicted next word.
        wrong: Whether the prediction is incorrect.
        removed: Whether the head is ablated, and so its arcs are dashed.
    """
    middles = []
    x = 6.0
    for word in [*words, chosen]:
        width = LETTER * len(word) + GAP
        middles.append(x + width / 2)
        x += width
    *read_words, query, slot = middles
    line = FOOT + 20
    off = " off" * removed
    bad = " wrong" * wrong
    shapes = []
    for index, weight in sorted(zip(read_words, weights), key=lambda pair: pair[1]):
        if weight < LEAST_DRAWN:
            continue
        top = FOOT - (FOOT - TOP) * ((query - index) / (query - middles[0])) ** 0.9
        middle = (query + index) / 2
        shapes.append(
            f'<path class="arc{off}" d="M {query:.1f} {FOOT} '
            f'Q {middle:.1f} {2 * top - FOOT:.1f} {index:.1f} {FOOT}" '
            f'stroke-width="{1 + 7 * weight:.2f}" stroke-opacity="{0.2 + 0.8 * weight:.2f}"/>'
        )
        if weight >= LEAST_WRITTEN:
            y = top - 5 - 3.5 * weight
            shapes.append(text(middle, y, f"{weight:.2f}", f"figure middle{off}"))
    for index, word in zip(middles, words):
        shapes.append(text(index, line, word, "word middle"))
    shapes.append(
        f'<rect class="slot{bad}" x="{slot - width / 2:.1f}" y="{FOOT}" width="{width:.1f}"'
        ' height="28" rx="5"/>'
    )
    shapes.append(text(slot, line, chosen, f"word middle chosen{bad}"))
    verdict = "incorrect" if wrong else "correct"
    shapes.append(text(slot + width / 2, line + 26, verdict, f"verdict end{bad}"))
    description = describe_agreement(words, weights, chosen, wrong, removed)
    return picture(round(x + 6), line + 36, "".join(shapes), description)


def describe_agreement(
    words: Sequence[str], weights: Sequence[float], chosen: str, wrong: bool, removed: bool
) -> str:
    """Describe the picture of agreement_svg in two sentences, for screen readers."""
    weight, word = max(zip(weights, words), key=lambda pair: pair[0])
    does = "is removed; it put" if removed else "puts"
    return (
        f"After “{' '.join(words)}” the model predicts “{chosen}”, which is"
        f" {'incorrect' if wrong else 'correct'}. The head {does} {weight:.2f} of its attention on"
        f" “{word}”."
    )


def spread_svg(
    interval: tuple[float, float, float],
    smallest: float,
    alike: bool,
    label: Callable[[float], str],
    values: Sequence[float] = (),
) -> str:
    """Return mean, interval, seeds as SVG; marks what counts: > smallest, or ± it if alike.

    Args:
        interval: Mean, low, high.
        smallest: The effect that counts, in the same unit.
        alike: Whether the interval has to lie within ± it, and not above it.
        label: Formats a value for a tick.
        values: One for each seed, shown as a dot.
    """
    width = SPREAD_WIDTH
    height = 46
    margin = 14
    line = 16
    mean, low, high = interval
    least = min(0.0, low, mean, *values, -smallest if alike else 0.0)
    highest = max(0.0, high, mean, smallest, *values)

    def to_x(value: float) -> float:
        return margin + (width - 2 * margin) * (value - least) / (highest - least)

    edges = [-smallest, smallest] if alike else [smallest]
    left = to_x(edges[0])
    right = to_x(smallest) if alike else float(width)
    shapes = [
        f'<rect class="zone" x="{left:.1f}" y="2" width="{max(0.0, right - left):.1f}"'
        f' height="{2 * line - 4}"/>'
    ]
    for edge in edges:
        x = f"{to_x(edge):.1f}"
        shapes.append(f'<line class="edge" x1="{x}" x2="{x}" y1="2" y2="{2 * line - 2}"/>')
    shapes.append(
        f'<line class="axis" x1="{margin}" x2="{width - margin}" y1="{line}" y2="{line}"/>'
    )
    shapes += [
        f'<circle class="seed" cx="{to_x(value):.1f}" cy="{line}" r="3"/>' for value in values
    ]
    shapes.append(
        f'<line class="reach" x1="{to_x(low):.1f}" x2="{to_x(high):.1f}" y1="{line}" y2="{line}"/>'
    )
    shapes.append(f'<circle class="mean" cx="{to_x(mean):.1f}" cy="{line}" r="5"/>')
    ticks: list[float] = []
    for tick in (*edges, 0.0):
        if all(abs(to_x(tick) - to_x(other)) >= 34 for other in ticks):  # both can be read
            ticks.append(tick)
            shapes.append(text(round(to_x(tick), 1), height - 4, label(tick), "tick middle"))
    return (
        f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(shapes)}</svg>'
    )


class Count(NamedTuple):
    """Votes for one answer.

    Args:
        label: The answer in words.
        rounds: Votes in the first round, and in the second if there was one.
        right: Whether the answer is right.
    """

    label: str
    rounds: Sequence[int]
    right: bool = False


def tally_svg(counts: Sequence[Count], votes_word: str) -> str:
    """Return a bar for each answer and round as SVG, the first round above the next.

    Args:
        counts: The votes for each answer.
        votes_word: The word for votes, in the language of the page.
    """
    width = 640
    margin = 8
    row = 50
    bar = 16
    highest = max([1, *(votes for count in counts for votes in count.rounds)])
    label = width * 0.46
    room = width - label - 2 * margin - 60
    shapes = []
    for index, count in enumerate(counts):
        right = " right" * count.right
        top = index * row + row / 2
        lines = wrap(count.label, int((label - margin) / 7.6), max_lines=2, placeholder="…")
        for n, line in enumerate(lines):
            y = top + 5 + 17 * (n - (len(lines) - 1) / 2)
            shapes.append(text(label, round(y, 1), line, f"end{right}"))
        last = len(count.rounds) - 1
        for n, n_votes in enumerate(count.rounds):
            y = top + (n - last / 2) * (bar + 3) - bar / 2
            length = max(1.5, room * n_votes / highest)
            before = " before" if n < last else ""
            shapes.append(
                f'<rect class="bar{before}{right}" x="{label + 10:.1f}" '
                f'y="{y:.1f}" width="{length:.1f}" height="{bar}" rx="3"/>'
            )
            end = round(label + length + 16, 1)
            shapes.append(text(end, round(y + bar - 3, 1), str(n_votes), right.strip()))
    phrases = [f"{count.label}: {' → '.join(map(str, count.rounds))}" for count in counts]
    words = ". ".join([votes_word.capitalize(), *phrases])
    return picture(
        width, row * len(counts), f"<style>{VOTES_STYLE}</style>{''.join(shapes)}", words
    )
