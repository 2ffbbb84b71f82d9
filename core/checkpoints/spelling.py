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
    "type": ("BPE",), "dropout": (None,), "unk_token": (None,), "continuing_subword_prefix": ("", None),
    "end_of_word_suffix": ("", None), "fuse_unk": (False,), "byte_fallback": (False,), "ignore_merges": (False,),
}  # fmt: skip
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # of an added token
NOTHING_ADDED = [  # templates with which other files say that nothing is put before or behind a text
    [{"Sequence": {"id": "A", "type_id": 0}}],
    [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
]


def tokenizer(file: File, words: int) -> "Tokenizer":
    """That of a model with so many words. Raises CheckpointError for any that is not GPT-2's kind."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CheckpointError("To open GPT-2, install its tokenizer: pip install tokenizers.") from None
    cleaned = json.dumps(_kept(file, words))
    try:
        with panics_as(CheckpointError, f"{file.name} is no tokenizer of the tokenizers library."):
            return Tokenizer.from_str(cleaned)
    except CheckpointError:
        raise
    except Exception as error:  # the library raises plain Exception for whatever is wrong with a file
        raise CheckpointError(
            f"{file.name} is no tokenizer of the tokenizers library ({printable(error)[:120]})."
        ) from None


def _kept(file: File, words: int) -> dict[str, Any]:
    """What of the file makes a difference here, every part of it checked."""
    given = _document(file)
    model, space = _model(file.name, given["model"], words), _space(file.name, given.get("pre_tokenizer"))
    _check(file.name, "normalizer", given.get("normalizer") is None, "null")
    decoder = given.get("decoder")
    _check(file.name, "decoder", isinstance(decoder, dict) and decoder.get("type") == "ByteLevel", "of type ByteLevel")
    _check(file.name, "post_processor", _adds_nothing(given.get("post_processor")), "null, or one that adds nothing")
    bytes_ = {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": _added(file.name, given.get("added_tokens"), words), "pre_tokenizer": bytes_,
        "decoder": bytes_, "model": model,
    }  # fmt: skip


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
        if name in ("vocab", "merges"):
            continue
        if name not in FIXED:
            raise CheckpointError(
                f"{file}: model holds {shorten(name)}, which GPT-2's does not; that has {', '.join(FIXED)}."
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
    merges = [each.split(" ") if isinstance(each, str) else each for each in merges] if isinstance(merges, list) else []
    good = all(isinstance(each, list) and len(each) == 2 and all(map(_is_token, each)) for each in merges)
    _check(file, "merges of the model", isinstance(given.get("merges"), list) and good, "a list of pairs of tokens")
    return {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": merges,
    }  # fmt: skip


def _added(file: str, given: Any, words: int) -> list[dict[str, Any]]:
    given = [] if given is None else given
    good = isinstance(given, list) and len(given) <= MOST_ADDED and all(map(_is_added, given))
    _check(file, "added_tokens", good, f"a list of at most {MOST_ADDED:,} tokens, each with its id, content and flags")
    _check_numbers(file, [each["id"] for each in given], words)
    return [
        {"id": each["id"], "content": each["content"], **{flag: each.get(flag, False) for flag in FLAGS}}
        for each in given
    ]


def _is_added(given: object) -> bool:
    return (
        isinstance(given, dict)
        and set(given) <= {"id", "content", *FLAGS}
        and type(given.get("id")) is int
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
            f"{file} has tokens up to number {shorten(max(numbers))}; the model has {words:,} of them."
        )
