"""Menu: an ordered table of interchangeable parts, filled by decorating them."""

import inspect


class Menu(dict):
    """Name -> part, in the order of definition. Used as a decorator on a function or class.

    A part's name is its `__name__`. Its docstring is its text on screen and starts "Label: what it does"; both
    halves are shown, so a part without them is refused, as is a second part of the same name.
    """

    def __init__(self, title: str):
        super().__init__()
        self.title = title
        self._words: dict[str, tuple[str, str]] = {}

    def __call__(self, part):
        name = part.__name__
        if name in self:
            raise ValueError(f"{self.title}: there is a part called {name} already")
        label, colon, text = inspect.cleandoc(part.__doc__ or "").partition(": ")
        if not (label and colon and text):
            raise ValueError(f"{self.title}: {name} needs a docstring of the form 'Label: what it does'")
        self[name] = part
        self._words[name] = (label, " ".join(text.split()))
        return part

    def label(self, name: str) -> str:
        """The short name on a control, e.g. "GELU (exact)"."""
        return self._words[name][0]

    def help(self, name: str) -> str:
        """What the part does, in one or two sentences."""
        return self._words[name][1]
