"""What may stand as a name in a study, and what may have been meant by one that is not known."""

import difflib
import functools
from collections.abc import Iterable

LONGEST_NAME = 200  # characters
CALLED = f"it must be printable, on one line, {LONGEST_NAME} characters at most"


def can_be_called(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and len(name) <= LONGEST_NAME


def meant(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that is not known, as a question; or nothing."""
    return _meant(name[:LONGEST_NAME], tuple(known))


@functools.lru_cache(maxsize=1024)
def _meant(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {near[0]}?" if near else ""
