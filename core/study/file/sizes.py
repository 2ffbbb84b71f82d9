"""How much may be asked for in one study: runs, trainings, and memory of each."""

from collections.abc import Iterable, Sized
from typing import Any

from core.settings.memory import max_mb
from core.settings.wording import count, shorten
from core.study.file.mistakes import Mistakes
from core.study.plan import Arms
from core.train import budget
from core.train.search import search

MOST_RUNS = 100_000
MOST_TRAININGS = 20_000  # that differ in more than the seed: each is looked at, eight thousand in a second
MOST_FITTED = 1_000  # of those where all are to have as much of something: for each, widths are tried, 250 in a second
ENDLESS = 10**15


def check_count(document: dict[str, Any], mistakes: Mistakes) -> None:
    """Raises StudyError for more runs than a study may have: by multiplication, before any is made."""
    axes, seeds = document.get("axes"), document.get("seeds", 5)
    values = [each for each in axes.values() if isinstance(each, list)] if isinstance(axes, dict) else []
    # An empty one is a mistake, and counts as one: the others are multiplied out all the same.
    lengths = [max(1, len(each)) for each in values]
    variants = _length(document, "variants", dict) + (_product(lengths) if lengths else 0)
    many = {
        "task": max(1, _length(document, "tasks", list)),
        "variant": (1 + variants) * (1 + _rates(document.get("search"))),  # the baseline, too, each at every rate
        "seed": seeds if isinstance(seeds, int) else _length(document, "seeds", list),
    }
    _check_many(mistakes, "run", many, MOST_RUNS)
    del many["seed"]
    _check_many(mistakes, "training", many, MOST_TRAININGS, " that differ in more than the seed")
    if document.get("equal", "nothing") != "nothing":
        _check_many(
            mistakes, "training", many, MOST_FITTED, " that differ in more than the seed and hold something equal"
        )


def _check_many(mistakes: Mistakes, what: str, many: dict[str, int], most: int, how: str = "") -> None:
    whole = _product(many.values())
    if whole > most:
        parts = ", ".join(_plural(each, name) for name, each in many.items())
        words = f"these are {_plural(whole, what)}{how} ({parts}); a study may have {most:,}."
        mistakes.add(("seeds",) if "seed" in many else ("axes",), words)
        raise mistakes.error()


def _rates(given: Any) -> int:
    """At how many rates each model is trained besides its own: of a list, or of an entry of the menu."""
    if isinstance(given, str) and given in search:
        return len(search[given](1.0))
    return len(given) if isinstance(given, list) else 0


def _length(document: dict[str, Any], key: str, kind: type[Sized]) -> int:
    """How much stands in a list or a table; 0 for what is none."""
    value = document.get(key)
    return len(value) if isinstance(value, kind) else 0


def check_size(arms: dict[str, Arms], mistakes: Mistakes) -> None:
    """That no run needs more memory than it may have."""
    for name, several in arms.items():
        for variant, arm in several.items():
            needed = budget.memory(*arm)
            if needed > max_mb() << 20:
                words = f"{variant} of {shorten(name)} would need about {needed / 2**20:,.0f} MB; a run here may use "
                mistakes.add(("task", name), f"{words}{max_mb():,} MB (set by ABLATION_MAX_MB).")


def _product(numbers: Iterable[int]) -> int:
    """Of whole numbers; ENDLESS where it is larger than anybody can want."""
    product = 1
    for each in numbers:
        product = min(product * each, ENDLESS)
    return product


def _plural(many: int, word: str) -> str:
    return count(many, word) if many < ENDLESS else f"endlessly many {word}s"
