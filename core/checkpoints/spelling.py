"""The tokenizer.json of GPT-2: which words its tokens are. Whatever else the tokenizers library could be asked for is refused.

That library runs what a file says: replacements that double a text, patterns that never end. So the file is taken apart, only what
GPT-2's has is kept (byte-level byte-pair encoding, Sennrich et al., 2016; Radford et al., 2019), and the library gets that.
"""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from core.checkpoints.tensors import CheckpointError, File
from core.settings.panics import panics_as
from core.settings.wording import printable, shorten

if TYPE_CHECKING:  # it need not be installed
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
VOCABULARY = ("vocab.json", "merges.txt")  # the same in two files, as it was first published
END = "<|endoftext|>"  # GPT-2's special token
LARGEST = 8 << 20  # bytes; the published one has 1,355,256, and written in another way 3.6 million
LONGEST = 1000  # letters of a token; in GPT-2's 128
MOST_ADDED = 1000  # tokens beside those of the model
KEYS = (
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
)
FIXED = {  # of the model: the only values with which it spells as GPT-2 does
    "type": ("BPE",), "dropout": (None,), "continuing_subword_prefix": ("", None),
    "end_of_word_suffix": ("", None), "fuse_unk": (False,), "byte_fallback": (False,), "ignore_merges": (False,),
}  # fmt: skip
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # of an added token
NOTHING_ADDED = [  # templates with which other files say that nothing is put before or behind a text
    [{"Sequence": {"id": "A", "type_id": 0}}],
    [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
]


def tokenizer(file: File, words: int) -> tuple["Tokenizer", list[str]]:
    """Read the tokenizer of a model with so many words, and the added tokens that it leaves out: the model has no weights for them.

    Raises CheckpointError for any that is not GPT-2's kind.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CheckpointError("To open GPT-2, install its tokenizer: pip install tokenizers.") from None
    kept, left_out = _kept(file, words)
    cleaned = json.dumps(kept)
    try:
        with panics_as(CheckpointError, f"{file.name} is no tokenizer of the tokenizers library."):
            return Tokenizer.from_str(cleaned), left_out
    except CheckpointError:
        raise
    except Exception as error:  # the library raises plain Exception for whatever is wrong with a file
        raise CheckpointError(
            f"{file.name} is no tokenizer of the tokenizers library ({printable(error)[:120]})."
        ) from None


def in_one_file(vocabulary: File, merges: File) -> File:
    """Write vocab.json and merges.txt as one tokenizer.json. Raises CheckpointError where they cannot be read."""
    for file in (vocabulary, merges):
        if file.size > LARGEST:
            raise CheckpointError(f"{file.name} has {file.size:,} bytes; it may have {LARGEST:,}.")
    try:
        words = json.loads(vocabulary.read())
        lines = merges.read().decode("utf-8-sig").split("\n")
    except (ValueError, RecursionError):
        raise CheckpointError(f"{vocabulary.name} is no JSON, or {merges.name} no text in UTF-8.") from None
    pairs = [line.rstrip("\r") for line in lines if line.strip() and not line.startswith("#version")]
    added = []
    if isinstance(words, dict) and END in words:
        added = [{"id": words[END], "content": END, "special": True}]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False}
    model = {"type": "BPE", "vocab": words, "merges": pairs}
    written = {"added_tokens": added, "pre_tokenizer": bytes_, "decoder": bytes_, "model": model}
    return File(vocabulary.name, data=json.dumps(written, ensure_ascii=False).encode("utf-8", "replace"))


def _kept(file: File, words: int) -> tuple[dict[str, Any], list[str]]:
    """-> (what of the file makes a difference here, every part of it checked; added tokens that were left out)"""
    given = _document(file)
    model, space = _model(file.name, given["model"], words), _space(file.name, given.get("pre_tokenizer"))
    _check(file.name, "normalizer", given.get("normalizer") is None, "null")
    decoder = given.get("decoder")
    _check(file.name, "decoder", isinstance(decoder, dict) and decoder.get("type") == "ByteLevel", "of type ByteLevel")
    _check(file.name, "post_processor", _adds_nothing(given.get("post_processor")), "null, or one that adds nothing")
    bytes_ = {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": True}
    added = _added(file.name, given.get("added_tokens"))
    kept = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [each for each in added if each["id"] < words], "pre_tokenizer": bytes_,
        "decoder": bytes_, "model": model,
    }  # fmt: skip
    return kept, [each["content"] for each in added if each["id"] >= words]


def _document(file: File) -> dict[str, Any]:
    if file.size > LARGEST:
        raise CheckpointError(
            f"{file.name} has {file.size:,} bytes; it may have {LARGEST:,} (that of GPT-2 has 1,355,256)."
        )
    try:
        given = json.loads(file.read())
    except (ValueError, RecursionError):
        raise CheckpointError(f"{file.name} is no tokenizer: it is no JSON.") from None
    if not isinstance(given, dict) or not isinstance(given.get("model"), dict):
        raise CheckpointError(f"{file.name} is no tokenizer of the tokenizers library (it has no object named model).")
    unknown = [name for name in given if name not in KEYS]
    if unknown:
        raise CheckpointError(
            f"{file.name} holds {shorten(unknown[0])}, which GPT-2's does not; that has {', '.join(KEYS)}."
        )
    return given


def _check(file: str, what: str, good: bool, allowed: str) -> None:
    if not good:
        raise CheckpointError(f"{file}: {what} is not as GPT-2's; it must be {allowed}.")


def _space(file: str, given: Any) -> bool:
    """Whether a text is read with a space before it."""
    good = isinstance(given, dict) and given.get("type") == "ByteLevel" and given.get("use_regex", True) is True
    space = given.get("add_prefix_space", True) if good else None
    _check(file, "pre_tokenizer", isinstance(space, bool), "of type ByteLevel, with use_regex")
    return bool(space)


def _adds_nothing(given: object) -> bool:
    """Whether a post-processor leaves the tokens of a text as they are."""
    if given is None:
        return True
    if not isinstance(given, dict):
        return False
    if given.get("type") == "TemplateProcessing":
        return [given.get("single"), given.get("pair")] == NOTHING_ADDED and not given.get("special_tokens")
    return given.get("type") == "ByteLevel"


def _model(file: str, given: dict[str, Any], words: int) -> dict[str, Any]:
    for name, value in given.items():
        if name in ("vocab", "merges", "unk_token"):
            continue
        if name not in FIXED:
            raise CheckpointError(
                f"{file}: model holds {shorten(name)}, which GPT-2's does not; that has {', '.join((*FIXED, 'unk_token'))}."
            )
        if not any(value is each or (isinstance(each, str) and value == each) for each in FIXED[name]):
            raise CheckpointError(
                f"{file}: {name} of the model is {shorten(value)}; for GPT-2 it is {FIXED[name][0]!r}."
            )
    vocabulary: Any = given.get("vocab")
    merges: Any = given.get("merges")
    _check(file, "vocab of the model", isinstance(vocabulary, dict) and all(map(_is_token, vocabulary)), f"an object of words of at most {LONGEST} letters and their numbers")  # fmt: skip
    _check_numbers(file, vocabulary.values(), words)
    _check(file, "vocab of the model", len(set(vocabulary.values())) == len(vocabulary), "different numbers for different words")  # fmt: skip
    unknown = given.get("unk_token")
    known = unknown is None or (isinstance(unknown, str) and unknown in vocabulary)
    _check(file, "unk_token of the model", known, "null, or a word of its vocab")
    merges = [each.split(" ") if isinstance(each, str) else each for each in merges] if isinstance(merges, list) else []
    good = all(isinstance(each, list) and len(each) == 2 and all(map(_is_token, each)) for each in merges)
    _check(file, "merges of the model", isinstance(given.get("merges"), list) and good, "a list of pairs of tokens")
    return {
        "type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": "", "end_of_word_suffix": "",
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": merges,
    }  # fmt: skip


def _added(file: str, given: Any) -> list[dict[str, Any]]:
    given = [] if given is None else given
    good = isinstance(given, list) and len(given) <= MOST_ADDED and all(map(_is_added, given))
    _check(file, "added_tokens", good, f"a list of at most {MOST_ADDED:,} tokens, each with its id, content and flags")
    return [
        {"id": each["id"], "content": each["content"], **{flag: each.get(flag, False) for flag in FLAGS}}
        for each in given
    ]


def _is_added(given: object) -> bool:
    return (
        isinstance(given, dict)
        and set(given) <= {"id", "content", *FLAGS}
        and type(given.get("id")) is int
        and given["id"] >= 0
        and _is_token(given.get("content"))
        and all(isinstance(given.get(flag, False), bool) for flag in FLAGS)
    )


def _is_token(given: object) -> bool:
    return isinstance(given, str) and 0 < len(given) <= LONGEST


def _check_numbers(file: str, numbers: Collection[Any], words: int) -> None:
    """Raises CheckpointError unless these are numbers of tokens that the model has."""
    for number in numbers:
        if type(number) is not int or number < 0:
            raise CheckpointError(
                f"{file}: the number of a token is {shorten(number)}; it must be a whole number from 0."
            )
    if max(numbers, default=-1) >= words:
        raise CheckpointError(
            f"{file} has tokens up to number {shorten(max(numbers))}; the model has {words:,} of them. "
            "Bring the tokenizer that was saved with this model."
        )
