"""Menu: an ordered table of interchangeable parts, filled by decorating them."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

Part = TypeVar("Part")  # what can be done with every entry of a menu
Entered = TypeVar("Entered", bound=Callable[..., Any])  # a part keeps its own type, which may be able to do more


class Menu(dict[str, Part]):
    """Name -> part, in the order of definition. Used as a decorator on a function or class, alone or with what others
    must know about the part: `@mask(looks_ahead=False)` becomes its attribute. What its own code reads stands in that code.

    A part's name is its `__name__`. Its docstring is its text on screen and starts "Label: what it does"; both
    halves are shown, so a part without them is refused, as is a second part of the same name.
    """

    def __init__(self, title: str, check: Callable[[Any], object] | None = None, **facts: Any):
        """check: raises ValueError for what cannot be a part; facts: what is to be known about every part, as it is for
        one that does not say."""
        super().__init__()
        self.title, self.check, self.facts = title, check, facts
        self._words: dict[str, tuple[str, str]] = {}

    @overload
    def __call__(self, part: Entered, **facts: Any) -> Entered: ...

    @overload
    def __call__(self, part: None = None, **facts: Any) -> Callable[[Entered], Entered]: ...

    def __call__(self, part: Any = None, **facts: Any) -> Any:
        if part is None:
            return lambda part: self(part, **facts)
        for fact, value in (self.facts | facts).items():
            setattr(part, fact, value)
        name = part.__name__
        if name in self:
            raise ValueError(f"{self.title}: there is a part called {name} already")
        if self.check:
            self.check(part)
        label, colon, text = inspect.cleandoc(part.__doc__ or "").partition(": ")
        if not (label and colon and text):
            raise ValueError(f"{self.title}: {name} needs a docstring of the form 'Label: what it does'")
        self[name] = part
        self._words[name] = (label, " ".join(text.split()))
        return part

    def arrange(self, names: str) -> None:
        """Put the parts into the order of these names, which spaces part."""
        for name in names.split():
            self[name] = self.pop(name)

    def label(self, name: str) -> str:
        """The short name on a control, e.g. "GELU (exact)"."""
        return self._words[name][0]

    def help(self, name: str) -> str:
        """What the part does, in one or two sentences."""
        return self._words[name][1]
