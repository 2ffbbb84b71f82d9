"""What a teacher's link leaves of the app: pages, views, and which settings can be moved. All else stays as the link has it.

It is the parameter `only` of a link. Once a session has been opened with one it holds for as long as that session lives, whatever its
address says later; the values of what cannot be moved are those of that first link. So neither the address nor a forged message
moves them: settings are read through applied(), wherever they come from.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ui.kit.session.visitor import calm_visitor

PARAMETER, KEPT = "only", "limits"
FIELDS = ("pages", "views", "moved", "locked")
NEXT, ITEM, LARGE = "~", "-", "large"
MOST, LONGEST = 200, 4000  # names of a field; characters of the whole
NAME = re.compile(r"[\w.]{1,60}")
LOOK = "Look"  # the group of settings that say what is looked at, which may always be moved
VIEWS = ("view", "show", "trained", "shown", "taken")  # of them those that say which view is open


@dataclass(frozen=True)
class Limits:
    """pages: their keys; views: "block.attention"; moved, locked: names of settings; large: presenter size. Where a page has no
    view here, all of its views are there. link: the other parameters with which it came."""

    pages: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    large: bool = False
    link: dict[str, str] = field(default_factory=dict, compare=False)

    def write(self) -> str:
        """As it stands in a link."""
        parts = [ITEM.join((name, *getattr(self, name))) for name in FIELDS if getattr(self, name)]
        return NEXT.join([*parts, *[LARGE] * self.large])

    def views_of(self, page: str) -> list[str]:
        """Those of a page that are left; empty where all are."""
        return [each.removeprefix(f"{page}.") for each in self.views if each.startswith(f"{page}.")]


def read(text: str, link: dict[str, str] | None = None) -> Limits | None:
    """What a link says; None where that cannot be read. Names that mean nothing are harmless: nothing goes by them."""
    found: dict[str, tuple[str, ...]] = {}
    parts = text.split(NEXT) if len(text) <= LONGEST else []
    for part in parts:
        name, *items = part.split(ITEM)
        if part == LARGE:
            continue
        if name not in FIELDS or name in found or len(items) > MOST or not all(map(NAME.fullmatch, items)):
            return None
        found[name] = tuple(dict.fromkeys(items))
    return Limits(**found, large=LARGE in parts, link=link or {}) if found.get("pages") else None


def limits() -> Limits | None:
    """Of this session; None where there are none."""
    return calm_visitor().kept.get(KEPT)


def take(link: dict[str, str]):
    """At the beginning of a page: the first link with limits sets them."""
    if PARAMETER in link and limits() is None:
        made = read(link[PARAMETER], {name: value for name, value in link.items() if name != PARAMETER})
        if made:
            calm_visitor().kept[KEPT] = made


def parameter() -> dict[str, str]:
    """What every link of a session with limits holds."""
    held = limits()
    return {PARAMETER: held.write()} if held else {}


def allows(page: str) -> bool:
    held = limits()
    return held is None or page in held.pages


def is_moved(name: str) -> bool:
    """Whether a setting can be moved."""
    held = limits()
    return held is None or name in held.moved


def is_seen(name: str) -> bool:
    """Whether it has a place among the controls: to be moved, or only to be read."""
    held = limits()
    return held is None or name in held.moved or name in held.locked


def applied(page: str, asked: dict[type, dict]) -> dict[type, dict]:
    """What is asked for (kind of settings -> name -> value), with the values of the link where nothing else may be chosen."""
    held = limits()
    if held is None:
        return asked
    return {kind: _applied(held, page, kind, values) for kind, values in asked.items()}


def _applied(held: Limits, page: str, kind: type, values: dict) -> dict:
    known, fixed = kind.settings(), kind.values(held.link)[0]
    free = {name: value for name, value in values.items() if name in held.moved or known[name].group == LOOK}
    for name in _views(known):
        left = [each for each in held.views_of(page) if each in known[name].menu]
        if left and free.get(name, known_default(kind, name)) not in left:
            free[name] = left[0]
    return {name: value for name, value in fixed.items() if name not in held.moved and known[name].group != LOOK} | free


def _views(known: dict) -> Iterable[str]:
    return (name for name in VIEWS if name in known and known[name].menu)


def known_default(kind: type, name: str):
    return kind.__dataclass_fields__[name].default
