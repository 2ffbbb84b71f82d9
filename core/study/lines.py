"""Where the keys of a TOML text stand, which Python's reader does not tell."""

import tomllib
from contextlib import suppress

from core.dial import shorten


def dotted(path: tuple) -> str:
    """A key as it is written in the file: task."reverse, 12 layers".n_layers"""
    plain = [key.replace("_", "").replace("-", "") for key in path]
    return ".".join(k if p.isascii() and p.isalnum() else f'"{shorten(k)[1:-1]}"' for k, p in zip(path, plain))


def places(text: str) -> dict[tuple, int]:
    """The number of the line on which each key or table first stands, as far as that line alone tells."""
    found, table = {}, ()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("["):
            with suppress(tomllib.TOMLDecodeError):
                table = _path(tomllib.loads(line))
                found.setdefault(table, number)
            continue
        for at in (at for at, sign in enumerate(line) if sign == "="):
            with suppress(tomllib.TOMLDecodeError):
                found.setdefault((*table, *_path(tomllib.loads(line[:at] + "= 0"))), number)
                break
    return found


def _path(document) -> tuple:
    path = ()
    while isinstance(document, dict) and document:
        ((key, document),) = document.items()
        path += (key,)
    return path
