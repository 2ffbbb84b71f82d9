"""Numbers, names and given values in sentences: one way of writing each."""

import math
import re
from collections.abc import Iterable

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PROPER = ("Xavier",)  # names that keep their capital inside a sentence


def head_name(layer: int, head: int) -> str:
    """Return the label of a head, such as "L2H3"; layer and head are given from 0."""
    return f"L{layer + 1}H{head + 1}"


def explain_head_name(n_layers: int = 2, n_heads: int = 3) -> str:
    """Explain head labels by one that exists: "L2H3: layer 2, head 3, numbered from 1"."""
    layer = min(2, n_layers)
    head = min(3, n_heads)
    return f"L{layer}H{head}: layer {layer}, head {head}, numbered from 1"


def number(value: float, digits: int = 3) -> str:
    """Format at most `digits` significant digits; 10ⁿ from 10⁷ or below 10⁻⁴; NaN "undefined".

    "12,300", "7.5 × 10³⁶".
    """
    if math.isnan(value):
        return "undefined"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    if exponent and value and not -4 <= int(exponent) < 7:
        return f"{float(mantissa):g} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}".replace(
            "-", "−"
        )
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.15g}".replace("-", "−")


def fixed(value: float, digits: int = 2) -> str:
    """Format a number with so many decimals: "−1.50", "12300.00"; "undefined" for NaN."""
    if math.isnan(value):
        return "undefined"
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def format_aligned(values: Iterable[float], digits: int = 3) -> list[str]:
    """Format a column with equal decimals; by number() if the largest is < 0.001 or ≥ 100,000."""
    values = list(values)
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not 1e-3 <= largest < 1e5:
        return [number(value, digits) for value in values]
    decimals = max(0, digits - 1 - math.floor(math.log10(largest)))
    return [fixed(value, decimals) for value in values]


def lower_first(label: str) -> str:
    """Lower a label's first letter, unless it is a name or has more capitals ("KL divergence")."""
    is_word = label[1:2].isalpha() and label[1:].islower()
    return label.lower() if is_word and not label.startswith(PROPER) else label


def capitalise(text: str) -> str:
    """Capitalise a text's first letter, unless it starts with a formula like "max(0, x)", "x²"."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+([\s,.:;’'-]|$)", text) else text


def count(n: int, singular: str, plural: str = "") -> str:
    """Format a number of things: "1 token", "2,000 tokens"; plural: singular + "s" unless given."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def distinct(labels: Iterable[str]) -> list[str]:
    """Number equal labels, "a", "a (2)", as widgets and dictionaries would merge them."""
    labels = list(labels)
    used: set[str] = set()
    result = []
    for label in labels:
        name = label
        n = 1
        while name in used or (n > 1 and name in labels):
            n += 1
            name = f"{label} ({n})"
        used.add(name)
        result.append(name)
    return result


def shorten(value: object, width: int = 40) -> str:
    """Format a value for a sentence: text in “…”, printable, cut to `width` characters and "…"."""
    if isinstance(value, int) and abs(value) >= 10**width:
        return f"a number with more than {width} digits"
    try:
        text = value if isinstance(value, str) else repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # it holds a number of thousands of digits, or lists in lists in lists
        return "a value too large to show"
    cut = replace_unprintable(text[:width]) + ("…" if len(text) > width else "")
    return f"“{cut}”" if isinstance(value, str) else cut


def replace_unprintable(text: object) -> str:
    """Replace characters that cannot be printed or encoded, line breaks too, by �."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def some_of(sentences: list[str], limit: int = 3) -> str:
    """Join the first 3 (`limit`) sentences with spaces, and say how many more there are, if any."""
    remaining = len(sentences) - limit
    return " ".join(sentences[:limit]) + (
        f" And {remaining:,} more like this." if remaining > 0 else ""
    )
