"""Settings that two kinds have in common: what is chosen of one holds for the other as well, and goes along from page to page."""

from collections.abc import Callable, Iterable

from ui.kit.session.visitor import Visitor

_kin: dict[type, list[tuple[type, Callable]]] = {}


def go_along(kind: type, other: type, made: Callable):
    """Whenever settings of this kind are chosen, those of the other become made(chosen, other's or None); None: they stay."""
    _kin.setdefault(kind, []).append((other, made))


def take_along(held: Visitor, chosen: Iterable):
    """To be called when these have been settled."""
    for each in chosen:
        for other, made in _kin.get(type(each), ()):
            its = made(each, held.settled.get(other))
            if its is not None:
                held.settled[other] = its
                wanted = held.wanted.get(type(each), {})
                held.wanted[other] = {name: value for name, value in wanted.items() if name in other.settings()}
