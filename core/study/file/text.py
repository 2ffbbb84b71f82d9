"""The text of a study: what stands in it, if it is not too long to be read."""

import re
import tomllib
from pathlib import Path
from typing import Any

from core.settings.wording import printable
from core.study.file.lines import DEEPEST, counted
from core.study.file.reader import Reader
from core.study.plan import Study, StudyError

MOST_KEYS = 50_000
LONGEST = 500_000  # characters of a file
NO_BREAK = "\u00a0\u2007\u202f"  # spaces at which no line may break
SPACES = str.maketrans(dict.fromkeys(NO_BREAK, " "))
# What a word processor makes of quotation marks: “a”, „a“, ‘a’. Within straight ones, and in comments, they are left as they are.
QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)' r"|\'\'\'.*?(?:\'\'\'|\Z)" r'|"(?:[^"\\\n]|\\.)*+"?' r"|'[^'\n]*+'?" r"|#[^\n]*+"
    r'|[“”„](?P<double>[^“”„"\n]*+)[“”"]' r"|[‘’‚](?P<single>[^‘’‚'\n]*+)[‘’']",
    re.DOTALL,
)  # fmt: skip


def read(path: str | Path) -> Study:
    """Raises StudyError with everything that is wrong, and OSError for a file that is not there."""
    try:
        with Path(path).open(encoding="utf-8") as opened:
            text = opened.read(LONGEST + 1)
    except UnicodeDecodeError:
        raise StudyError([f"{path} is no text in UTF-8."]) from None
    return parse(text)


def parse(text: str) -> Study:
    """The study that a text stands for. Raises StudyError with everything that is wrong."""
    text = plain(text)
    check_lengths(text)
    try:
        return Reader(text, document(text)).study()
    except RecursionError:
        raise StudyError(["This is no study: tables or lists stand in each other hundreds deep."]) from None


def plain(text: str) -> str:
    """Return a text as TOML has it: without a byte-order mark, no-break spaces, and quotation marks of a word processor."""
    if len(text) > LONGEST:
        return text  # it is refused, and need not be looked through
    return QUOTED.sub(_straight, text.removeprefix("\ufeff").translate(SPACES))


def _straight(quoted: re.Match[str]) -> str:
    for name, mark in (("double", '"'), ("single", "'")):
        if quoted[name] is not None:
            return f"{mark}{quoted[name]}{mark}"
    return quoted[0]


def document(text: str) -> dict[str, Any]:
    """What stands in a TOML text. Raises StudyError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).replace("at end of document", f"at the end, line {max(1, len(text.splitlines()))}")
        raise StudyError([f"This is not TOML: {printable(words)[:300]}."]) from None
    except ValueError:
        raise StudyError(
            ["This is no study: it has a number of thousands of digits, or a date that there is not."]
        ) from None


def check_lengths(text: str) -> None:
    """Raises StudyError for a text that would take too long to read, before it is read."""
    if len(text) > LONGEST:
        raise StudyError([f"This is too long: a study may have {LONGEST:,} characters."])
    keys, deepest, line = counted(text)
    if deepest > DEEPEST:
        raise StudyError(
            [f"Line {line}: a key has {deepest:,} parts joined by dots; in a study it may have {DEEPEST}."]
        )
    if keys > MOST_KEYS:
        raise StudyError([f"This is too long: it has {keys:,} keys; a study may have {MOST_KEYS:,}."])
