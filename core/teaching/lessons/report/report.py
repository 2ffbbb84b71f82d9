"""What a report holds of its author, and how it is read from a file that anybody may have made.

A file holds it as JSON beside the text that is read by people. Only that is looked at, and what cannot be is left out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from core.settings.setting import ConfigError
from core.settings.wording import shorten
from core.teaching.lessons.entry import Entry, clean, entries_of

FORMAT, VERSION = "ablation-lab-report", 1
BEGIN, END = f'<script type="application/json" id="{FORMAT}">', "</script>"
LARGEST = 5 << 20  # bytes of a file
LONGEST = 1_000_000  # letters of the JSON in it: what is made of more would take too much memory
NAME, CONCLUSION = 80, 2_000  # letters
LINKS, LINK, VALUES = 20, 20_000, 200  # of a report; letters of one, and values in it
PAGE = re.compile(r"[A-Za-z_]{1,40}")


class ReportError(ConfigError):
    """A file that is no report: what is wrong with it, and what is allowed."""

    def __init__(self, message: str) -> None:
        super().__init__("report", message)


@dataclass(frozen=True)
class Report:
    """entries: lesson -> prediction. links: page, as an address has it -> the settings there, as a link has them.

    What was typed is cleaned, whoever makes one. left_out: how many predictions of a file cannot be.
    """

    entries: Mapping[str, Entry]
    name: str = ""
    conclusion: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    left_out: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        entries = {name: replace(entry, because=clean(entry.because)) for name, entry in self.entries.items()}
        good = {page: link for page, link in self.links.items() if _is_link(page, link)}
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "name", clean(self.name, NAME))
        object.__setattr__(self, "conclusion", clean_lines(self.conclusion))
        object.__setattr__(self, "links", dict(list(good.items())[:LINKS]))


def clean_lines(text: str) -> str:
    """Lines that can be shown and written anywhere: no more than one empty line stands between two others."""
    lines = "\n".join(clean(line, CONCLUSION) for line in text[: 4 * CONCLUSION].splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines).strip()[:CONCLUSION].rstrip()


def _is_link(page: Any, link: Any) -> bool:
    """Whether it can be a page and its settings. Links are percent-encoded, and so ASCII without blanks."""
    if not (isinstance(page, str) and isinstance(link, str) and PAGE.fullmatch(page)):
        return False
    plain = link.isascii() and link.isprintable() and " " not in link
    return plain and 0 < len(link) <= LINK and link.count("&") < VALUES


def data(report: Report, **beside: Any) -> str:
    """As JSON in an HTML page. beside: what else it holds, which nobody reads back."""
    held = {
        "format": FORMAT,
        "version": VERSION,
        "name": report.name,
        "conclusion": report.conclusion,
        "entries": {name: asdict(entry) for name, entry in report.entries.items()},
        "links": dict(report.links),
        **beside,
    }
    text = json.dumps(held, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":  # no text in it can end the element, or begin a comment
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return f"{BEGIN}{text}{END}"


def read(file: bytes | memoryview) -> Report:
    """The report that a file holds. Raises ReportError."""
    if len(file) > LARGEST:
        raise ReportError(
            f"The file has {len(file):,} bytes; a lab report has at most {LARGEST:,} ({LARGEST >> 20} MB)."
        )
    held = _held(file)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise ReportError("The data in the file are not those of a lab report. Choose a file that was saved here.")
    if type(held.get("version")) is not int or held["version"] != VERSION:
        found = shorten(held.get("version"))
        raise ReportError(f"The file is a lab report of version {found}; this app reads version {VERSION}.")
    entries = entries_of(held.get("entries"))
    given, links = held.get("entries"), held.get("links")
    return Report(
        entries,
        _text(held.get("name")),
        _text(held.get("conclusion")),
        links if isinstance(links, dict) else {},
        (len(given) if isinstance(given, dict) else 0) - len(entries),
    )


def _held(file: bytes | memoryview) -> Any:
    """What JSON there is in it."""
    try:
        _, begun, rest = str(file, "utf-8").partition(BEGIN)
    except UnicodeDecodeError:
        raise ReportError("The file is no text. Choose a lab report: one HTML file that was saved here.") from None
    if not begun:
        raise ReportError("The file holds no lab report. Choose one HTML file that was saved here.")
    text, ended, _ = rest.partition(END)
    if not ended:
        raise ReportError("The file ends too early: it was not saved as a whole. Save the report once more.")
    if len(text) > LONGEST:
        raise ReportError(f"The data in the file have {len(text):,} letters; a lab report has at most {LONGEST:,}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ReportError("The data in the file cannot be read: it was changed. Save the report once more.") from None


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""
