"""Limits of a teacher's link: pages, views, and settings that can be changed.

It is the parameter `only` of a link, which also holds the values of what is locked. Once a session
was opened with one, it holds for as long as the session lives, whatever its address says later.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.settings.setting import Settings

PARAMETER = "only"
FIELDS = ("pages", "views", "moved", "locked")
NEXT = "~"
ITEM = "-"
LARGE = "large"
KEPT_AS = "kept"
SEAL = "seal"
LONGEST = 40_000  # characters of the whole
NAME = re.compile(r"[\w.]{1,60}")
LOOK = "Look"  # the group of settings that say what is looked at, which may always be moved
VIEWS = ("view", "show", "trained", "shown", "taken")  # those of them that say which view is open


@dataclass(frozen=True)
class Limits:
    """Limits of a session opened by a teacher's link.

    Args:
        pages: Keys of the pages that can be opened.
        views: Views that can be opened, as "block.attention"; a page without any here has all.
        moved: Settings that have a control.
        locked: Settings that are shown as text.
        large: Whether to begin in presentation mode.
        link: Parameters of the page as it was set; locked settings keep these values.
    """

    pages: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    large: bool = False
    link: dict[str, str] = field(default_factory=dict)

    def write(self) -> str:
        """Return the limits as text, the value of the link's parameter `only`."""
        parts = [ITEM.join((name, *getattr(self, name))) for name in FIELDS if getattr(self, name)]
        fixed = {name: text for name, text in self.link.items() if name not in self.moved}
        if fixed:
            parts.append(f"{KEPT_AS}{ITEM}{_pack(fixed)}")
        if self.large:
            parts.append(LARGE)
        return NEXT.join(parts)

    def views_of(self, page_key: str) -> list[str]:
        """Return the views of a page that can be opened; [] if all can.

        A page that the limits do not name has all views.
        """
        return [
            view.removeprefix(f"{page_key}.")
            for view in self.views
            if view.startswith(f"{page_key}.")
        ]

    def names_locked_by_link(self, kinds: tuple[type[Settings], ...]) -> set[str]:
        """Return the settings of these classes that the link locks: all but freed and look ones."""
        settings = {name: setting for kind in kinds for name, setting in kind.settings().items()}
        return {
            name
            for name, setting in settings.items()
            if setting.group != LOOK and name not in self.moved
        }

    def apply(
        self, page_key: str, params: Mapping[str, str], kinds: tuple[type[Settings], ...]
    ) -> dict[str, str]:
        """Return a copy of a page's parameters, with the link's values where locked.

        Settings that are not locked keep theirs; a locked view becomes the first allowed one.
        """
        locked = self.names_locked_by_link(kinds)
        params = {name: text for name, text in params.items() if name not in locked}
        params |= {name: text for name, text in self.link.items() if name in locked}
        for kind in kinds:
            for name in VIEWS:
                menu = kind.settings()[name].menu if name in kind.settings() else None
                left = [view for view in self.views_of(page_key) if view in (menu or ())]
                if left and params.get(name, kind.__dataclass_fields__[name].default) not in left:
                    params[name] = left[0]
        return params


def read_limits(text: str) -> Limits | None:
    """Parse the value of a link's parameter `only`; None if malformed or without pages."""
    if len(text) > LONGEST:
        return None
    entries: dict[str, tuple[str, ...]] = {}
    link: dict[str, str] = {}
    parts = text.split(NEXT)
    for part in parts:
        name, *items = part.split(ITEM)
        if name in (LARGE, SEAL):
            continue
        if name == KEPT_AS and len(items) == 1:
            try:
                link = _unpack(items[0])
            except (ValueError, RecursionError):
                return None
        elif name in FIELDS and name not in entries and all(map(NAME.fullmatch, items)):
            entries[name] = tuple(dict.fromkeys(items))
        else:
            return None
    return Limits(**entries, large=LARGE in parts, link=link) if entries.get("pages") else None


def _pack(link: dict[str, str]) -> str:
    """Return parameters as text that needs no escaping in a URL."""
    return (
        base64.urlsafe_b64encode(json.dumps(link).encode()).decode().rstrip("=").replace("-", ".")
    )


def _unpack(text: str) -> dict[str, str]:
    """Return the parameters that _pack encoded; ValueError if they are malformed."""
    link = json.loads(base64.urlsafe_b64decode(text.replace(".", "-") + "=" * (-len(text) % 4)))
    if not isinstance(link, dict):
        raise ValueError(text)
    return {str(name): str(value) for name, value in link.items()}
