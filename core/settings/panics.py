"""Panics: what libraries written in Rust raise where they have a mistake. No `except Exception` catches one, so it would end
the thread in which somebody's page is made."""

from collections.abc import Iterator
from contextlib import contextmanager


def is_panic(error: BaseException) -> bool:
    return type(error).__module__ == "pyo3_runtime"


@contextmanager
def panics_as(kind: type[Exception], words: str) -> Iterator[None]:
    """Raises kind(words) for a panic; everything else passes as it is, a request to end too."""
    try:
        yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise kind(words) from None
