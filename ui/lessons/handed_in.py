"""A visitor's lab report: what they typed for it, how it is made, and how one that was saved is taken over again."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import parse_qsl, urlencode

from core.teaching.lessons.lessons import lesson, read_lesson
from core.teaching.lessons.reader import PAGES as EXPERIMENTS
from core.teaching.lessons.report import Report, write
from ui.kit.pages import PAGES, Page
from ui.kit.panel.menu import link_to
from ui.kit.store import session
from ui.lessons.progress import progress, restore

KEPT = "report"
# Seconds. A click on the button ends what is typed in a field: the browser tells of both at once, and the file is asked for
# before the run begins that takes down what was typed.
ON_ITS_WAY = 1.0


@dataclass
class Typed:
    """What the visitor typed for it; taken_over: the report that was taken over last."""

    name: str = ""
    conclusion: str = ""
    taken_over: Report | None = None


def typed() -> Typed:
    """Of this visitor; it lasts as long as the visit."""
    return session().kept.setdefault(KEPT, Typed())


def take_down(field: str, text: str):
    """Keep what was typed in a field of the report."""
    setattr(typed(), field, text)


def maker(language: str):
    """What makes the file when it is asked for: with what is typed by then, and the settings as they are now."""
    held, entries = typed(), progress().entries
    links = {_name(page): urlencode(params) for page in _experiments() if (params := link_to(page.key))}
    return partial(_made, held, entries, links, language)


def _made(held: Typed, entries: dict, links: dict[str, str], language: str) -> bytes:
    ordered = {name: entries[name] for name in lesson if name in entries}
    return write(Report(ordered, held.name, held.conclusion, links), language, datetime.now(UTC)).encode()


def take_over(found: Report):
    """Predictions of a file go before those that are there; what was typed comes along (a callback)."""
    restore(dict(found.entries))
    held = typed()
    held.name, held.conclusion = found.name or held.name, found.conclusion or held.conclusion
    held.taken_over = found


# What a link does, and not what it shows: of a file that somebody else has written it is left out.
ACTS = ("only", "embed", "embed_options", "begin", "key", "menu", "teacher")


def pages_of(found: Report) -> list[tuple[Page, dict[str, str]]]:
    """The pages whose settings a report holds, and those settings."""
    known = {_name(page): page for page in _experiments()}
    return [
        (
            known[name],
            {each: value for each, value in parse_qsl(link, keep_blank_values=True) if each.lower() not in ACTS},
        )
        for name, link in found.links.items()
        if name in known
    ]


def to_predict() -> list[str]:
    """The lessons that ask for a prediction."""
    return [name for name in lesson if read_lesson(name).prediction]


def _experiments() -> list[Page]:
    """Where experiments are set up. The others tell of people, and are no part of what is handed in."""
    return [page for page in PAGES if page.key in EXPERIMENTS]


def _name(page: Page) -> str:
    """As an address has it."""
    return page.name.replace(" ", "_")
