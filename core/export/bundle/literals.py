"""Values as they stand in a script."""

from collections.abc import Sequence
from textwrap import indent

WIDTH = 120  # characters in a line


def literal(value: object, before: int = 0, inside: int = 0) -> str:
    """A value as it stands in a script; before: what stands left of it in its line, inside: by how much it is indented."""
    if isinstance(value, dict):
        names = [(quoted(name), each) for name, each in value.items()]
        deeper = inside + 4
        return braces([f"{n}: {literal(each, deeper + len(n) + 2, deeper)}" for n, each in names], before=before)
    if isinstance(value, list | tuple):
        return braces([literal(each, inside + 4, inside + 4) for each in value], "[]", before)
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    """A string in double quotes, unless that would need more backslashes."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def braces(items: list[str], pair: Sequence[str] = "{}", before: int = 0) -> str:
    """Items in brackets: in one line where they fit behind what stands there, else one a line."""
    line = ", ".join(items)
    if before + len(line) + 3 <= WIDTH and "\n" not in line:
        return f"{pair[0]}{line}{pair[1]}"
    inner = indent("".join(f"{each},\n" for each in items), "    ")
    return f"{pair[0]}\n{inner}{pair[1]}"
