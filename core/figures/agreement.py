"""What a head looks at while a word is chosen, as a picture (SVG): the sentence in a row, an arc to each word that it reads.

Classes carry the meaning, the page's style sheet the colours: `arc` a share of attention, `off` where the head is removed,
`slot` the word that is chosen, `wrong` where it is the wrong one.
"""

from collections.abc import Sequence
from html import escape

from core.figures.svg import text

LETTER, GAP = 9.4, 14  # width of a letter, and between two words
TOP, LINE, ROOM = 24, 132, 36  # y of the highest arc, of the words, and what is below them
FAINT = 0.02  # of attention, that is not drawn
WRITTEN = 0.1  # of attention, that has its figure


def agreement_svg(words: Sequence[str], weights: Sequence[float], chosen: str, wrong: bool, removed: bool) -> str:
    """words: those that are there; weights: how much of its attention the head gives to each; chosen: the word that comes next."""
    middles, x = [], 6.0
    for word in [*words, chosen]:
        width = LETTER * len(word) + GAP
        middles.append(x + width / 2)
        x += width
    slot = middles[-1]
    shapes = []
    for at, weight in sorted(zip(middles, weights), key=lambda each: each[1]):
        if weight < FAINT:
            continue
        top = LINE - 20 - (LINE - 20 - TOP) * ((slot - at) / (slot - middles[0])) ** 0.9
        shapes.append(
            f'<path class="arc{" off" * removed}" d="M {slot:.1f} {LINE - 20} Q {(slot + at) / 2:.1f} {2 * top - LINE + 20:.1f} {at:.1f} {LINE - 20}" '
            f'stroke-width="{1 + 7 * weight:.2f}" stroke-opacity="{0.2 + 0.8 * weight:.2f}"/>'
        )
        if weight >= WRITTEN:
            shapes.append(
                text((slot + at) / 2, top - 5 - 3.5 * weight, f"{weight:.2f}", "figure middle" + " off" * removed)
            )
    for at, word in zip(middles, words):
        shapes.append(text(at, LINE, word, "word middle"))
    width = LETTER * len(chosen) + GAP
    kind = "slot" + " wrong" * wrong
    shapes.append(
        f'<rect class="{kind}" x="{slot - width / 2:.1f}" y="{LINE - 20}" width="{width:.1f}" height="28" rx="5"/>'
    )
    shapes.append(text(slot, LINE, chosen, f"word middle chosen{' wrong' * wrong}"))
    shapes.append(text(slot, LINE + 26, "wrong" if wrong else "right", f"verdict middle{' wrong' * wrong}"))
    shown = escape(describe(words, weights, chosen, wrong, removed), quote=True)
    return f'<svg viewBox="0 0 {x + 6:.0f} {LINE + ROOM}" role="img" aria-label="{shown}" xmlns="http://www.w3.org/2000/svg">{"".join(shapes)}</svg>'


def describe(words: Sequence[str], weights: Sequence[float], chosen: str, wrong: bool, removed: bool) -> str:
    """The picture in two sentences, for those who cannot see it."""
    at = max(range(len(words)), key=lambda n: weights[n])
    does = (
        f"is removed; it gave {weights[at]:.2f} of its attention to"
        if removed
        else f"gives {weights[at]:.2f} of its attention to"
    )
    return f"After “{' '.join(words)}” the model chooses “{chosen}”, which is {'wrong' if wrong else 'right'}. The head {does} “{words[at]}”."
