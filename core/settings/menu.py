"""Menu: an ordered table of interchangeable parts."""

from collections.abc import Callable
from typing import Any, TypeVar

Part = TypeVar("Part")  # what can be done with every entry of a menu
Entered = TypeVar("Entered")  # a part keeps its own type, which may be able to do more


class Menu(dict[str, Part]):
    """Key to part, in the order of definition.

    Keys stand in links, run hashes and files, so they never change. Labels and help texts are
    shown.
    """

    def __init__(self, title: str, check: Callable[[Any], object] | None = None, **facts: Any):
        """Make an empty menu.

        Args:
            title: What the menu is about.
            check: Raises ValueError for what cannot be a part.
            facts: What is to be known about every part, with the value for one that does not say.
        """
        super().__init__()
        self.title = title
        self.check = check
        self.facts = facts
        self._words: dict[str, tuple[str, str]] = {}
        self._unlisted: dict[str, Part] = {}  # found by key, but not among the menu's entries

    def __missing__(self, key: str) -> Part:
        return self._unlisted[key]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._unlisted

    def register(
        self, key: str, *, label: str, help: str, **facts: Any
    ) -> Callable[[Entered], Entered]:
        """Return a decorator that adds its object under a key, as add() does, and returns it."""

        def enter(part: Entered) -> Entered:
            self.add(key, part, label=label, help=help, **facts)
            return part

        return enter

    def add(
        self,
        key: str,
        part: Any = None,
        *,
        label: str,
        help: str,
        listed: bool = True,
        **facts: Any,
    ) -> None:
        """Add `part` (None: key); facts or defaults become attributes; ValueError if taken, bad.

        An unlisted part is found by its key, but the menu does not offer it.

        Raises:
            ValueError: The key is taken, or the part is none for this menu.
        """
        if key in self:
            raise ValueError(f"{self.title}: there is a part called {key} already")
        part = key if part is None else part
        for fact, value in (self.facts | facts).items():
            setattr(part, fact, value)
        if self.check:
            self.check(part)
        (self if listed else self._unlisted)[key] = part
        self._words[key] = (label, help)

    def arrange(self, keys: str) -> None:
        """Reorder the entries like `keys`, "a b c"; ValueError unless these are all its keys."""
        if set(keys.split()) != set(self):
            raise ValueError(f"{self.title}: its keys are {', '.join(self)}, and not {keys}")
        for key in keys.split():
            self[key] = self.pop(key)

    def label(self, key: str) -> str:
        """Return the short name of an entry on a control, such as "ReLU"."""
        return self._words[key][0]

    def help(self, key: str) -> str:
        """Return the help text of an entry, in one or two sentences."""
        return self._words[key][1]
