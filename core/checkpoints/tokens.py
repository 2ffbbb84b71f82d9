"""Text to tokens and back, for models that bring their own vocabulary."""

import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from core.checkpoints.tensors import CheckpointError
from core.model.text import PAD, UNKNOWN, words
from core.settings.panics import panics_as

if TYPE_CHECKING:  # it need not be installed
    from tokenizers import Tokenizer

PANIC = "The tokenizer of this model has failed at this text."


class Encoded(NamedTuple):
    """What a model reads of a text."""

    ids: list[int]
    labels: list[str]  # as typed, one for each id
    unknown: list[int]  # numbers of the tokens that the model does not know, from 0
    left_out: list[str]  # words that it cannot read at all


class Tokens(Protocol):
    """What the rest of the lab asks of a tokenizer."""

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    def encode(self, text: str) -> Encoded: ...

    def label(self, token: int) -> str: ...


@dataclass(frozen=True)
class Words:
    """One token per word or mark, as on the other pages. A word in another case than the vocabulary's is taken for it; one that is
    not there at all is read as <unk> where the model has that, else left out."""

    vocabulary: tuple[str, ...]
    _number: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact = {word: at for at, word in enumerate(self.vocabulary)}
        composed = {unicodedata.normalize("NFC", word): at for word, at in exact.items()}  # as words() gives them
        object.__setattr__(self, "_number", composed | exact)

    def encode(self, text: str) -> Encoded:
        encoded = Encoded([], [], [], [])
        for word in words(text):
            at = self.number(word)
            if at is None and UNKNOWN not in self._number:
                encoded.left_out.append(word)
                continue
            if at is None:
                encoded.unknown.append(len(encoded.ids))
                at = self._number[UNKNOWN]
            encoded.ids.append(at)
            encoded.labels.append(word)
        return encoded

    def number(self, word: str) -> int | None:
        """Of a word in the vocabulary; None where it is not there."""
        return next((self._number[each] for each in (word, word.lower()) if each in self._number and each != PAD), None)

    def label(self, token: int) -> str:
        return self.vocabulary[token]


@dataclass(frozen=True)
class Pieces:
    """Pieces of words, by a tokenizer of the `tokenizers` library, as its tokenizer.json says."""

    tokenizer: "Tokenizer"
    vocabulary: tuple[str, ...]  # as the model's file has them: "Ġjudge"

    def encode(self, text: str) -> Encoded:
        with panics_as(CheckpointError, PANIC):
            ids = self.tokenizer.encode(text.encode("utf-8", "replace").decode()).ids  # half a character is none
        return Encoded(ids, [self.label(token) for token in ids], [], [])

    def label(self, token: int) -> str:
        """As it reads; a space in front is drawn, for " judge" and "judge" are two tokens."""
        with panics_as(CheckpointError, PANIC):
            text = self.tokenizer.decode([token], skip_special_tokens=False)
        if not text.strip("\N{REPLACEMENT CHARACTER}") and token < len(self.vocabulary):
            text = self.vocabulary[token]  # a part of a character, or nothing that shows
        return text.replace(" ", "␣").replace("\n", "↵")
