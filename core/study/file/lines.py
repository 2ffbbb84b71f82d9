"""Where the keys of a TOML text stand, and how many and how deep they are, which Python's reader does not tell.

That reader takes minutes, and gigabytes, for a key of thousands of parts: so they are counted before it is asked. Everything here
takes time in proportion to the text: a string that never ends goes to the end of its line, or of the text, and is not looked at again.
"""

import re
import tomllib
from contextlib import suppress
from typing import Any

from core.settings.wording import shorten

KeyPath = tuple[str, ...]  # of a key, from the outermost table on

LINE = r'[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+(?:"|(?=\n)|\Z)|\'[^\'\n]*+(?:\'|(?=\n)|\Z)'  # a bare word, or a string on one line
DOTTED = rf"(?:{LINE})(?:[ \t]*+\.[ \t]*+(?:{LINE}))*+"
TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)' r"|\'\'\'.*?(?:\'\'\'|\Z)" r"|#[^\n]*+" rf"|(?P<key>{DOTTED})(?P<sign>[ \t]*+=)?",
    re.DOTALL,
)
PART = re.compile(LINE)
KEY = re.compile(rf"({DOTTED})[ \t]*+=")
HEADER = re.compile(rf"\[{{1,2}}[ \t]*+({DOTTED})[ \t]*+\]{{1,2}}[ \t]*+(?:#.*)?")
DEEPEST = 8  # parts of a key, joined by dots; a study has three at most


def dotted(path: KeyPath) -> str:
    """A key as it is written in the file: task."reverse, 12 layers".n_layers"""
    plain = [key.replace("_", "").replace("-", "") for key in path]
    return ".".join(
        shorten(key)[1:-1] if letters.isascii() and letters.isalnum() else f'"{shorten(key)[1:-1]}"'
        for key, letters in zip(path, plain)
    )


def counted(text: str) -> tuple[int, int, int]:
    """-> (how many keys are given a value, the most parts of one, the line of that)"""
    keys, deepest, at = 0, 0, 0
    for token in TOKEN.finditer(text):
        if token["key"]:
            parts = len(PART.findall(token["key"])) if "." in token["key"] else 1
            keys += bool(token["sign"])
            if parts > deepest:
                deepest, at = parts, token.start()
    return keys, deepest, text.count("\n", 0, at) + 1


def places(text: str) -> dict[KeyPath, int]:
    """The number of the line on which each key or table first stands, as far as that line alone tells."""
    numbers: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        header, key = HEADER.fullmatch(line), KEY.match(line)
        if header and (path := _path(header[1])):
            table = path
            numbers.setdefault(table, number)
        elif key and not header and (path := _path(key[1])):
            numbers.setdefault((*table, *path), number)
    return numbers


def _path(key: str) -> KeyPath:
    """The parts of a key; () for one that is none, or too deep for any study."""
    if len(PART.findall(key)) > DEEPEST:
        return ()
    path: KeyPath = ()
    document: Any = {}
    with suppress(tomllib.TOMLDecodeError):
        document = tomllib.loads(key + " = 0")
    while isinstance(document, dict) and document:
        ((name, document),) = document.items()
        path += (name,)
    return path
