"""Settings as they were, after some of them have been moved: what has not been moved goes on as it does."""

from ui.kit.session.values import put, value
from ui.kit.session.visitor import calm_visitor


def put_back(settings):
    """Every setting as in this instance, from a button's callback. What is so already stays as it is, chosen or following others;
    what has been moved since follows again, where that comes to the same."""
    held, back = calm_visitor(), {name: getattr(settings, name) for name in settings.settings()}
    for kind in held.kinds:
        mine, old = back.keys() & kind.settings().keys(), held.settled[kind]
        now = {name: getattr(old, name) for name in kind.settings()}
        then, _ = kind.mended(now | {name: back[name] for name in mine})
        for name in mine:
            follows = then.follows(name)
            if value(name) == back[name] and (follows or not old.follows(name)):
                continue
            put(**{name: back[name]})
            if follows:
                held.freed.add(name)
