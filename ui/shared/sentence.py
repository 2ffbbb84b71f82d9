"""The sentence on top of a page: a field to type in, and the list of examples beside it."""

from collections.abc import Callable

from core.model.text import EXAMPLES
from ui.kit.panel.control import Control, choice, field
from ui.kit.session import values

OWN = "Your own text"
NO_WORD = "There is no word to work on. Type a sentence above, or choose an example."


def sentence() -> list[Control]:
    """The controls of both."""
    return typed("Sentence", "text", "Type a sentence …", {example.name: example.text for example in EXAMPLES})


def typed(label: str, name: str, hint: str, examples: dict[str, str]) -> list[Control]:
    """The controls of a text, a setting of that name, and of examples for it: their names -> the texts."""
    text = values.value(name)
    chosen = next((example for example, words in examples.items() if words == text), OWN)
    offered = [*examples, OWN]
    return [
        field(label, name, hint, on=_moved),
        choice("Example", f"example_of_{name}", chosen, offered, offered, on=_take(name, examples)),
    ]


def _take(name: str, examples: dict[str, str]) -> Callable:
    def take(example: str):
        if example in examples:
            values.put(**{name: examples[example]})
            _moved()

    return take


def _moved(text: str = ""):
    """Another text: what was marked in the old one means nothing in it."""
    values.put(pairs="")
