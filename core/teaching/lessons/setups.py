"""Small pictures of a lesson's setup, drawn from settings. They show no result."""

from collections.abc import Callable, Sequence
from math import erf, sqrt

from core.figures.svg import text
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.readings import TURNED

WIDTH = 170
HEIGHT = 80
TOKENS = 18  # boxes that stand for the longest text


def setup_svg(lesson: Lesson) -> str:
    """Return the setup of a lesson as SVG; "" where its readings have no picture."""
    draw = SETUPS.get(lesson.values[lesson.shown[0]].reading)
    if draw is None:
        return ""
    return (
        f'<svg class="setup" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{draw(lesson)}</svg>'
    )


def _box_svg(x: float, y: float, width: float, height: float, css_class: str = "") -> str:
    """Return a rounded SVG rectangle; x and y are its upper left corner."""
    return (
        f'<rect class="{css_class}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}" rx="2"/>'
    )


def _row_svg(y: float, boxes: int, height: float, css_class: str, width: float = WIDTH) -> str:
    """Return a row of boxes as SVG; `width` is that of the row."""
    step = width / boxes
    return "".join(_box_svg(step * index, y, step - 2, height, css_class) for index in range(boxes))


def _read_parameter(lesson: Lesson, name: str) -> list[str]:
    """Return one parameter of each value that a lesson shows, in order; "" where one lacks it."""
    return [lesson.values[value].params.get(name, "") for value in lesson.shown]


def _heads_svg(lesson: Lesson) -> str:
    """Return a row of boxes, one per head, for each of the first two values: an SVG fragment."""
    kinds = ("first", "base")
    rows = enumerate(zip(_read_parameter(lesson, "n_heads"), kinds))
    return "".join(_row_svg(16 + 28 * index, int(heads), 20, kind) for index, (heads, kind) in rows)


def _tokens_svg(lesson: Lesson) -> str:
    """Return the first two texts as rows of boxes, longer if of more tokens: an SVG fragment."""
    lengths = [int(tokens) for tokens in _read_parameter(lesson, "tokens")]
    counts = [max(4, TOKENS * length // max(lengths)) for length in lengths]
    rows = zip(counts, ("first", "base"))
    return "".join(
        _row_svg(20 + 24 * index, n, 12, kind, WIDTH * n / TOKENS)
        for index, (n, kind) in enumerate(rows)
    )


def _activations_svg(_: Lesson) -> str:
    """Return the curves of ReLU and GELU: an SVG fragment."""

    def curve(values: Callable[[float], float], kind: str) -> str:
        xs = [-3 + 6 * index / 40 for index in range(41)]
        points = " ".join(f"{85 + 25 * x:.1f},{60 - 17 * values(x):.1f}" for x in xs)
        return f'<polyline class="{kind}" points="{points}"/>'

    axes = '<path class="axis" d="M10 60H160M85 6V72"/>'
    gelu = curve(lambda x: x * (1 + erf(x / sqrt(2))) / 2, "base")
    return axes + gelu + curve(lambda x: max(0.0, x), "first")


def _orders_svg(_: Lesson) -> str:
    """Return a sentence and its words in another order: an SVG fragment."""

    def sentence(y: int, words: Sequence[str]) -> str:
        return text(WIDTH / 2, y, " ".join(words), "middle")

    return sentence(34, TURNED) + sentence(60, TURNED[::-1])


def _removed_heads_svg(lesson: Lesson) -> str:
    """Return the heads of two layers, removed ones dashed: an SVG fragment."""
    removed = set(_read_parameter(lesson, "head"))
    drawn = []
    for layer in (1, 2):
        for head in range(1, 5):
            kind = "cut" if f"{layer}.{head}" in removed else "base"
            drawn.append(_box_svg(12 + 38 * (head - 1), 46 - 34 * (layer - 1), 30, 24, kind))
    return "".join(drawn)


def _make_formula(words: str) -> Callable[[Lesson], str]:
    """Return a function that draws this text as the formula of any lesson, as part of an SVG."""
    return lambda _: text(WIDTH / 2, 46, words, "middle formula")


SETUPS: dict[str, Callable[[Lesson], str]] = {
    "parameters": _heads_svg,
    "attention_work": _tokens_svg,
    "silent": _activations_svg,
    "turned": _orders_svg,
    "without_head": _removed_heads_svg,
    "largest_weight": _make_formula("softmax(q·k ∕ √d)"),
    "next_word": _make_formula("softmax(logits ∕ T)"),
}
