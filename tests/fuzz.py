"""Inputs changed at random, a little and a lot: bytes, and values at every place of a JSON or TOML document. Each from a seed."""

import copy
import json
import random

HOSTILE = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, float("nan"), float("inf"), 10**9, 2**31, 2**63, 10**30, 10**4000, "", "a", "1", "\ud800",
    "\x00", "x" * 5000, "../..", "=1+1", "BPE", "ByteLevel", "none", "gpt2", [], {}, [[]], [0], [1, 1], [True], ["a"], [10**9, "a"], {"a": 1}, {"": {}},
    {"type": "Sequence"}, [None] * 1000, "🦊" * 100,
)  # fmt: skip


def deep(levels: int):
    made = []
    for _ in range(levels):
        made = [made]
    return made


def bytes_changed(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        at = chance.randrange(max(1, min(len(made), chance.choice([16, 300, len(made) or 1]))))
        kind = chance.randrange(5)
        if kind == 0:
            made[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del made[at : at + chance.choice([1, 4, 100])]
        elif kind == 2:
            made[at:at] = chance.choice(
                [b"0", b"9" * 50, b'"', b"[", b"{", b"\\ud800", b"\xff", b"-", b"e999", b",", b"null", bytes(8)]
            )
        elif kind == 3:
            made[at : at + 8] = chance.choice(
                [bytes(8), b"\xff" * 8, chance.randbytes(8), (2**40).to_bytes(8, "little")]
            )
        else:
            made[at : at + 1] = made[at : at + 50] * 2
    return bytes(made)


def json_changed(document, chance: random.Random):
    """The document with one to three values, or names, put in another's place."""
    made = copy.deepcopy(document)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = list(_places(made, chance))
        if not places:
            return made
        inside, key = chance.choice(places)
        kind = chance.randrange(8)
        if kind == 0 and isinstance(inside, dict):
            inside[chance.choice(["", "x", "\ud800", "type", "shape", "__metadata__", "k" * 300])] = inside.pop(key)
        elif kind == 1:
            del inside[key]
        elif kind == 2:
            inside[key] = deep(chance.choice([3, 60, 150]))
        else:
            inside[key] = copy.deepcopy(chance.choice(HOSTILE))
    return made


def _places(document, chance: random.Random):
    """Where values stand; of long lists and tables only some."""
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in chance.sample(list(keys), min(30, len(keys))):
        yield document, key
        yield from _places(document[key], chance)


def dumped(document) -> bytes:
    """JSON, with whatever Python can write of it: numbers that are none, and half characters as they are written in JSON."""
    return json.dumps(document).encode()


def written(document) -> str:
    """A table of tables as TOML."""
    return "\n".join(f"{_key(name)} = {_value(value)}" for name, value in document.items())


def _key(name: str) -> str:
    return json.dumps(name.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "")


def _value(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else _key(str(value))
