"""What a teacher's link leaves of the app: pages, views, and which settings can be moved. All else stays as the link has it.

It is the parameter `only` of a link, which holds the values of what cannot be moved, too, and a seal: one that was changed by hand is
none. Once a session has been opened with one it holds for as long as that session lives, whatever its address says later. So neither the
address nor a forged message moves what is locked: settings are read through applied(), wherever they come from.
"""

import base64
import functools
import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ui.kit.session.visitor import calm_visitor

PARAMETER, KEPT = "only", "limits"
FIELDS = ("pages", "views", "moved", "locked")
NEXT, ITEM, LARGE, KEPT_AS, SEAL = "~", "-", "large", "kept", "seal"
MOST, LONGEST = 200, 40_000  # names of a field; characters of the whole
SECRET = "ABLATION_KEY"  # of whoever runs the server: with it nobody else can make a seal
NAME = re.compile(r"[\w.]{1,60}")
LOOK = "Look"  # the group of settings that say what is looked at, which may always be moved
VIEWS = ("view", "show", "trained", "shown", "taken")  # of them those that say which view is open


@dataclass(frozen=True)
class Limits:
    """pages: their keys; views: "block.attention"; moved, locked: names of settings; large: presenter size. Where a page has no
    view here, all of its views are there. link: the parameters of the page as it was set, by which what cannot be moved stays."""

    pages: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    large: bool = False
    link: dict[str, str] = field(default_factory=dict)

    def write(self) -> str:
        """As it stands in a link."""
        parts = [ITEM.join((name, *getattr(self, name))) for name in FIELDS if getattr(self, name)]
        fixed = {name: value for name, value in self.link.items() if name not in self.moved}
        kept = [f"{KEPT_AS}{ITEM}{_packed(fixed)}"] * bool(fixed)
        text = NEXT.join([*parts, *kept, *[LARGE] * self.large])
        return f"{text}{NEXT}{SEAL}{ITEM}{_seal(text)}"

    def views_of(self, page: str) -> list[str]:
        """Those of a page that are left; empty where all are."""
        return [each.removeprefix(f"{page}.") for each in self.views if each.startswith(f"{page}.")]


def _packed(link: dict[str, str]) -> str:
    """Parameters in letters that stand in an address as they are."""
    return base64.urlsafe_b64encode(json.dumps(link).encode()).decode().rstrip("=").replace("-", ".")


def _unpacked(text: str) -> dict[str, str]:
    """Raises ValueError for what _packed() has not written."""
    given = json.loads(base64.urlsafe_b64decode(text.replace(".", "-") + "=" * (-len(text) % 4)))
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise ValueError(text)
    return given


def _seal(text: str) -> str:
    secret = os.environ.get(SECRET, "")
    key = _stretched(secret) if secret else b""
    return hashlib.blake2b(text.encode(errors="replace"), key=key, digest_size=6).hexdigest()


@functools.lru_cache(1)
def _stretched(secret: str) -> bytes:
    """Everybody has links with a seal, and could try words at home until one makes the same: each try is to take long (RFC 7914)."""
    return hashlib.scrypt(secret.encode(errors="replace"), salt=b"ablation lab", n=1 << 14, r=8, p=1, dklen=64)


def read(text: str) -> Limits | None:
    """What a link says; None where that cannot be read, or was changed. Names that mean nothing are harmless: nothing goes by them."""
    whole, _, seal = text.rpartition(f"{NEXT}{SEAL}{ITEM}") if len(text) <= LONGEST else ("", "", "")
    if not hmac.compare_digest(seal.encode(errors="replace"), _seal(whole).encode()):
        return None
    found: dict[str, tuple[str, ...]] = {}
    link: dict[str, str] = {}
    parts = whole.split(NEXT)
    for part in parts:
        name, *items = part.split(ITEM)
        if name == KEPT_AS and len(items) == 1:
            try:
                link = _unpacked(items[0])
            except (ValueError, RecursionError):
                return None
        elif part != LARGE:
            if name not in FIELDS or name in found or len(items) > MOST or not all(map(NAME.fullmatch, items)):
                return None
            found[name] = tuple(dict.fromkeys(items))
    return Limits(**found, large=LARGE in parts, link=link) if found.get("pages") else None


def limits() -> Limits | None:
    """Of this session; None where there are none."""
    return calm_visitor().kept.get(KEPT)


def take(link: dict[str, str]):
    """At the beginning of a page: the first link with limits sets them."""
    if PARAMETER in link and limits() is None:
        made = read(link[PARAMETER])
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
        if left and free.get(name, kind.__dataclass_fields__[name].default) not in left:
            free[name] = left[0]
    return {name: value for name, value in fixed.items() if name not in held.moved and known[name].group != LOOK} | free


def _views(known: dict) -> Iterable[str]:
    return (name for name in VIEWS if name in known and known[name].menu)
