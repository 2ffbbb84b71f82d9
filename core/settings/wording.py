"""Numbers, names and given values in sentences: one way of writing each, everywhere."""

import math
from collections.abc import Iterable

KEY = "head 2.3: layer 2, head 3, counted from 1"  # to be said once on each page that names heads so


def head_name(layer: int, head: int, layered: bool = True) -> str:
    """ "head 2.3" (layer 2, head 3); "head 3" where there is only one layer to speak of. Given from 0, named from 1."""
    return f"head {layer + 1}.{head + 1}" if layered else f"head {head + 1}"


def number(value: float, digits: int = 3) -> str:
    """A number in a sentence: so many significant digits."""
    if math.isnan(value):
        return "no number"
    size = abs(value)
    text = f"{value:.2e}" if size and (size >= 1e5 or size < 1e-3) else f"{value:.{digits}g}"
    return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "−")


def fixed(value: float, digits: int = 2) -> str:
    """A number with so many decimals."""
    if math.isnan(value):
        return "no number"
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def aligned(values: Iterable[float], digits: int = 3) -> list[str]:
    """Write the numbers of one column with the same decimals: those that give the largest so many significant digits."""
    values = list(values)
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not 1e-3 <= largest < 1e5:
        return [number(value, digits) for value in values]
    decimals = max(0, digits - 1 - math.floor(math.log10(largest)))
    return [fixed(value, decimals) for value in values]


def in_sentence(label: str) -> str:
    """A label as it stands within a sentence: "logit difference", but "KL divergence"."""
    return label.lower() if label[1:].islower() else label


def count(n: int, one: str) -> str:
    """A number of things: 1 token, 2 tokens."""
    return f"{n:,} {one}{'' if n == 1 else 's'}"


def distinct(labels: Iterable[str]) -> list[str]:
    """Number the labels that are there more than once: a widget or a dictionary would take them for one."""
    labels = list(labels)
    used: set[str] = set()
    made = []
    for label in labels:
        name, n = label, 1
        while name in used or (n > 1 and name in labels):
            n += 1
            name = f"{label} ({n})"
        used.add(name)
        made.append(name)
    return made


def shorten(value: object, width: int = 40) -> str:
    """A given value as it may be shown in a sentence: quoted if text, one line, printable, not too long."""
    if isinstance(value, int) and abs(value) >= 10**width:
        return f"a number of more than {width} digits"
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # it holds a number of thousands of digits, or lists in lists in lists
        return "something too large to be shown"
    cut = printable(text[:width]) + ("…" if len(text) > width else "")
    return f"“{cut}”" if isinstance(value, str) else cut


def printable(text: object) -> str:
    """Text that can be shown and written anywhere: what is no printable character, or half of one, stands as �."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def some_of(sentences: list[str], most: int = 3) -> str:
    """The first of many sentences, and how many there are besides."""
    rest = len(sentences) - most
    return " ".join(sentences[:most]) + (f" And {rest:,} more like that." if rest > 0 else "")
