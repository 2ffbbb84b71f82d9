"""Text to tokens and back, for models that bring their own vocabulary."""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from core.checkpoints.tensors import CheckpointError
from core.model.text import PAD, UNKNOWN, split_words
from core.settings.wording import replace_unprintable, shorten

if TYPE_CHECKING:  # it need not be installed
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
VOCABULARY = ("vocab.json", "merges.txt")  # the same in two files, as it was first published
END = "<|endoftext|>"  # GPT-2's special token
LARGEST = 8 << 20  # bytes of a file; GPT-2's tokenizer.json has 1,355,256
# Components that GPT-2's tokenizer may have. Others can double a text, or run a pattern that never
# ends.
COMPONENTS: dict[str, tuple[str | None, ...]] = {
    "model": ("BPE",),
    "pre_tokenizer": ("ByteLevel",),
    "decoder": ("ByteLevel",),
    "normalizer": (None,),
    "post_processor": (None, "ByteLevel", "TemplateProcessing"),
}
UNUSED = (
    "dropout",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)


class Encoded(NamedTuple):
    """Token ids of a text, with the tokens that the model does not know."""

    ids: list[int]
    labels: list[str]  # as typed, one for each id
    unknown: list[int]  # numbers of the tokens that the model does not know, from 0
    left_out: list[str]  # words that it cannot read at all


class Tokens(Protocol):
    """Interface of a tokenizer."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Tokens of the model, in the order of their ids."""

    def encode(self, text: str) -> Encoded:
        """Encode a text: ids, a label for each, and words that are unknown or left out."""

    def label(self, token: int) -> str:
        """Return the text of a token id, as shown on screen."""


@dataclass(frozen=True)
class Words:
    """Tokenizer with one token per word or punctuation mark, as on the other pages.

    A word that the vocabulary lacks is looked up in lower case, then read as <unk> where the model
    has that token, else left out.
    """

    vocabulary: tuple[str, ...]
    _number: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact = {word: index for index, word in enumerate(self.vocabulary)}
        composed = {
            unicodedata.normalize("NFC", word): index for word, index in exact.items()
        }  # as split_words() gives them
        object.__setattr__(self, "_number", composed | exact)

    def encode(self, text: str) -> Encoded:
        """Encode by word, if need be in lower case; unknown ones become <unk> or are left out."""
        encoded = Encoded([], [], [], [])
        for word in split_words(text):
            index = self.token_id(word)
            if index is None and UNKNOWN not in self._number:
                encoded.left_out.append(word)
                continue
            if index is None:
                encoded.unknown.append(len(encoded.ids))
                index = self._number[UNKNOWN]
            encoded.ids.append(index)
            encoded.labels.append(word)
        return encoded

    def token_id(self, word: str) -> int | None:
        """Return the id of a word, as typed or in lower case; None if unknown or padding."""
        return next(
            (
                self._number[form]
                for form in (word, word.lower())
                if form in self._number and form != PAD
            ),
            None,
        )

    def label(self, token: int) -> str:
        """Return the word of a token id."""
        return self.vocabulary[token]


@dataclass(frozen=True)
class Pieces:
    """Tokenizer of the `tokenizers` library; its tokens are pieces of words."""

    tokenizer: "Tokenizer"
    vocabulary: tuple[str, ...]  # as the model's file has them: "Ġjudge"

    def encode(self, text: str) -> Encoded:
        """Encode a text as token ids with their labels; no text has unknown tokens."""
        ids = self.tokenizer.encode(
            text.encode("utf-8", "replace").decode()
        ).ids  # half a character is none
        return Encoded(ids, [self.label(token) for token in ids], [], [])

    def label(self, token: int) -> str:
        """Return a token id's text, with ␣, ↵; as in the vocabulary for part of a character."""
        text = self.tokenizer.decode([token], skip_special_tokens=False)
        if not text.strip("\N{REPLACEMENT CHARACTER}") and token < len(self.vocabulary):
            text = self.vocabulary[token]  # a part of a character, or nothing that shows
        return text.replace(" ", "␣").replace("\n", "↵")


def read_pieces(files: Mapping[str, Path], n_words: int) -> tuple[Pieces, tuple[str, ...]]:
    """Read a GPT-2 tokenizer of n_words tokens, and notes on left-out ones; or CheckpointError.

    Args:
        files: Name to path of tokenizer.json, or of vocab.json and merges.txt.
        n_words: Size of the model's vocabulary.

    Returns:
        The tokenizer, and sentences that say which tokens of its file are left out.

    Raises:
        CheckpointError: It is missing, or has a component that GPT-2's has not, or tokens that
            the model lacks.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CheckpointError(
            "To open GPT-2, install its tokenizer: pip install tokenizers."
        ) from None
    name = TOKENIZER if TOKENIZER in files else VOCABULARY[0]
    document = _read_tokenizer(files, n_words)
    added = document.get("added_tokens") or []
    try:
        left_out = [token["content"] for token in added if token["id"] >= n_words]
        added_words = [token for token in added if token["id"] < n_words]
        tokenizer = Tokenizer.from_str(json.dumps(document | {"added_tokens": added_words}))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode(
            "A text, é \N{SMILING FACE WITH OPEN MOUTH}"
        )  # some mistakes show only here
        number = tokenizer.get_vocab(with_added_tokens=True)
    except (
        Exception
    ) as error:  # the library raises plain Exception for whatever is wrong with a file
        why = replace_unprintable(error)[:120]
        raise CheckpointError(
            f"{name} is not a tokenizer of the tokenizers library ({why})."
        ) from None
    if max(number.values(), default=-1) >= n_words:
        raise CheckpointError(
            f"{name} has token IDs up to {max(number.values()):,}; the model has {n_words:,}"
            " tokens. Use the tokenizer that was saved with this model."
        )
    words_by_number = {token: word for word, token in number.items()}
    pieces = Pieces(
        tokenizer,
        tuple(words_by_number.get(token, f"<unused {token}>") for token in range(n_words)),
    )
    if not left_out:
        return pieces, ()
    named = ", ".join(shorten(token) for token in left_out[:3])
    suffix = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return pieces, (
        (
            f"{name} adds {named}{suffix}, for which the model has no weights; treated as ordinary"
            " text."
        ),
    )


def _read_tokenizer(files: Mapping[str, Path], n_words: int) -> dict[str, Any]:
    """Read tokenizer.json, or build it from older files; CheckpointError if unlike GPT-2's."""
    if TOKENIZER not in files:
        return _merge_files(files, n_words)
    document = read_json(files[TOKENIZER], LARGEST)
    for component, allowed in COMPONENTS.items():
        value = document.get(component)
        kind = (
            value.get("type", "BPE") if isinstance(value, dict) else value
        )  # the oldest files have no type of model
        if kind not in allowed or isinstance(value, str):
            either = ", ".join(name or "null" for name in allowed)
            raise CheckpointError(
                f"{TOKENIZER}: {component} is {shorten(kind)}; GPT-2's is {either}."
            )
    different = [key for key in UNUSED if document["model"].get(key)]
    if different or document["pre_tokenizer"].get("use_regex", True) is not True:
        problem = f"model has {different[0]}" if different else "pre_tokenizer has no use_regex"
        raise CheckpointError(f"{TOKENIZER}: {problem}, unlike GPT-2's.")
    return document


def _merge_files(files: Mapping[str, Path], n_words: int) -> dict[str, Any]:
    """Build a tokenizer.json's content from vocab.json and merges.txt; CheckpointError if bad."""
    if not set(VOCABULARY) <= set(files):
        raise CheckpointError(
            f"{TOKENIZER} is missing. It defines the {n_words:,} tokens of this GPT-2. "
            f"Add it, or {' and '.join(VOCABULARY)}."
        )
    vocabulary, merges = (files[name] for name in VOCABULARY)
    number = read_json(vocabulary, LARGEST)
    check_size(merges, LARGEST)
    try:
        lines = merges.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise CheckpointError(f"{merges.name} is not UTF-8 text.") from None
    pairs = [line for line in lines if line.strip() and not line.startswith("#version")]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": number[END], "content": END, "special": True, **flags}] if END in number else []
    bytes_ = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    model = {"type": "BPE", "vocab": number, "merges": pairs}
    return {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": bytes_,
        "decoder": bytes_,
        "model": model,
    }


def check_size(path: Path, limit: int) -> None:
    """Raise CheckpointError for a file of more than `limit` bytes."""
    size = path.stat().st_size
    if size > limit:
        raise CheckpointError(f"{path.name} is {size:,} bytes; the limit is {limit:,}.")


def read_json(path: Path, limit: int) -> dict[str, Any]:
    """Read a JSON object of at most `limit` bytes. Raise CheckpointError for anything else."""
    check_size(path, limit)
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is not valid JSON ({str(error)[:80]}).") from None
    if not isinstance(document, dict):
        raise CheckpointError(f"{path.name} does not contain a JSON object.")
    return document
