"""Reading safetensors, and saying what else a file is."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import safetensors.torch
import torch

from core.settings.errors import without_paths
from core.settings.memory import MemoryLimit, max_mb
from core.settings.panics import panics_as
from core.settings.wording import printable, shorten

LONGEST_HEADER = 1 << 20  # bytes; that of GPT-2 XL has 60,000
MOST_TENSORS = 10_000
LONGEST_NAME = 80  # letters of the name of a tensor, or a file, that are shown
MOST_SIDES = 8
LARGEST = 1 << 40  # numbers in one tensor; and of any number in a header
TYPES = "F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 I32 I16 I8 U64 U32 U16 U8 BOOL".split()
TAKEN = {"F64": 8 + 4, "I64": 8, "U64": 8}  # bytes of a number: as it is read, and as it is kept


class CheckpointError(ValueError):
    """A file that is no model, or not one that can be opened here: which, what is wrong, and what is allowed."""


@dataclass(frozen=True)
class File:
    """One file of a model: on this machine's disk, or sent by somebody."""

    name: str
    path: Path | None = None
    data: bytes = b""  # where it has no path

    @property
    def size(self) -> int:
        return len(self.data) if self.path is None else self.path.stat().st_size

    def head(self, many: int) -> bytes:
        """The first bytes."""
        if self.path is None:
            return self.data[:many]
        with self.path.open("rb") as opened:
            return opened.read(many)

    def read(self) -> bytes:
        return self.data if self.path is None else self.path.read_bytes()


KNOWN = (  # how files begin that people take for models
    (b"PK\x03\x04", "a zip archive; PyTorch's .bin and .pt are such archives with a pickle inside"),
    (b"\x80\x02", "a pickle"), (b"\x80\x03", "a pickle"), (b"\x80\x04", "a pickle"), (b"\x80\x05", "a pickle"),
    (b"GGUF", "a GGUF file"), (b"\x89HDF", "an HDF5 file"), (b"\x1f\x8b", "a gzip file"),
    (b"version https://git-lfs", "a pointer of Git LFS in place of the file itself"),
)  # fmt: skip
WORD = 100  # bytes that a word takes by itself, beside its weights
# What wrappers of PyTorch put into the names of a module's tensors: torch.compile, data parallel, FSDP, checkpointing.
WRAPPERS = ("_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
ONLY = "Only safetensors are opened: a pickle can run any program while it is read."


def room(needed: int, what: str) -> None:
    """Raises MemoryLimit where that many bytes are more than a model may have."""
    if needed > max_mb() << 20:
        raise MemoryLimit(
            f"{what} {needed / 2**20:,.0f} MB; a model here may have {max_mb():,} MB (set by ABLATION_MAX_MB)."
        )


Check = Callable[[int], None]  # is given the bytes of a model before its weights are read, and may raise


def size_of(parameters: int, words: int) -> int:
    """Bytes of a model that is open: its weights in float32, and the words that it knows."""
    return 4 * parameters + WORD * words


def room_for_model(parameters: int, words: int, what: str, check: Check | None) -> None:
    """Raises MemoryLimit where a model of so many parameters and words may not be opened. what: describes it."""
    room(size_of(parameters, words), f"{what} describes a model of")
    if check is not None:
        check(size_of(parameters, words))


def tensors(*files: File, ignored: tuple[str, ...] = ()) -> dict[str, torch.Tensor]:
    """Read the tensors of one model, by their names without wrappers; floating types become float32.

    Args:
        files: the parts of the model, each a safetensors file.
        ignored: endings of names that are left out, whatever they hold.

    Raises:
        CheckpointError: for anything but complete safetensors with finite numbers.
        MemoryLimit: for more bytes than a model may have, before they are read.
    """
    needed = sum(sum(sizes(file)) for file in files)
    room(needed, f"The tensors of {files[0].name} take (while they are read, and as float32)")
    found: dict[str, torch.Tensor] = {}
    for file in files:
        for name, x in _read(file, ignored).items():
            if name in found:
                raise CheckpointError(f"{file.name} holds the tensor {printable(name)[:LONGEST_NAME]} a second time.")
            found[name] = x
    return found


def without_wrappers(name: str) -> str:
    """Return the name that a tensor has in the module that was wrapped."""
    parts = name.split(".")
    return ".".join(part for part in parts if part not in WRAPPERS) or name


def _read(file: File, ignored: tuple[str, ...]) -> dict[str, torch.Tensor]:
    try:
        with panics_as(CheckpointError, f"{file.name} is no complete safetensors file."):
            loaded = safetensors.torch.load(file.data) if file.path is None else safetensors.torch.load_file(file.path)
    except CheckpointError:
        raise
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        why = printable(without_paths(str(error).replace(str(file.path), file.name)))[:120]
        raise CheckpointError(f"{file.name} is no complete safetensors file ({why}).") from None
    found: dict[str, torch.Tensor] = {}
    while loaded:
        given, x = loaded.popitem()  # so that of each tensor only one form is in memory
        name = without_wrappers(given)
        if name.endswith(ignored):
            continue
        if name in found:
            raise CheckpointError(f"{file.name} holds the tensor {printable(name)[:LONGEST_NAME]} a second time.")
        found[name] = x = x.float() if x.is_floating_point() else x
        if x.is_floating_point() and not bool(x.isfinite().all()):
            raise CheckpointError(
                f"{file.name}: the tensor {printable(name)[:LONGEST_NAME]} holds numbers that are infinite, or no numbers at all."
            )
    return found


def sizes(file: File) -> list[int]:
    """Bytes of every tensor while it is read, and as float32, from the header alone. Raises CheckpointError for what is no whole safetensors file."""
    begin = file.head(64)
    for mark, what in KNOWN:
        if begin.startswith(mark):
            raise CheckpointError(f"{file.name} is {what}. {ONLY}")
    length = int.from_bytes(begin[:8], "little")
    if len(begin) < 9 or begin[8:9] != b"{":
        raise CheckpointError(f"{file.name} is no safetensors file. {ONLY}")
    if 8 + length > file.size:
        raise CheckpointError(f"{file.name} is cut short: it has {file.size:,} bytes, and its header alone takes {8 + length:,}.")  # fmt: skip
    if length > LONGEST_HEADER:
        raise CheckpointError(f"{file.name} has a header of {length:,} bytes; one may have {LONGEST_HEADER:,}.")
    entries = _entries(file, length)
    end = max((entry["data_offsets"][1] for entry in entries), default=0)
    if 8 + length + end > file.size:
        raise CheckpointError(
            f"{file.name} is cut short: it has {file.size:,} bytes, and its header announces {8 + length + end:,}."
        )
    return [TAKEN.get(entry["dtype"], 4) * math.prod(entry["shape"]) for entry in entries]


def _entries(file: File, length: int) -> list[dict[str, Any]]:
    """What the header says of each tensor: only numbers that can be multiplied and added without harm."""
    try:
        header = json.loads(file.head(8 + length)[8:], object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise CheckpointError(f"{file.name} is no safetensors file: its header cannot be read. {ONLY}") from None
    header.pop("__metadata__", None)
    if len(header) > MOST_TENSORS:
        raise CheckpointError(f"{file.name} has {len(header):,} tensors; a model may have {MOST_TENSORS:,}.")
    for name, entry in header.items():
        if not _is_entry(entry):
            raise CheckpointError(
                f"{file.name}: the header does not say of the tensor {shorten(name)} what it must. It needs a type of {', '.join(TYPES)}, "
                f"a shape of at most {MOST_SIDES} sides, and its place."
            )
    return list(header.values())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name stands twice")
    return entries


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    kind, shape, offsets = (entry.get(name) for name in ("dtype", "shape", "data_offsets"))
    return (
        isinstance(kind, str)
        and kind in TYPES
        and _is_numbers(shape, MOST_SIDES)
        and math.prod(shape) <= LARGEST
        and _is_numbers(offsets, 2)
        and len(offsets) == 2
        and offsets[0] <= offsets[1]
    )


def _is_numbers(given: object, most: int) -> TypeGuard[list[int]]:
    """Whether this is a list of at most so many whole numbers from 0 to LARGEST; true and false are none."""
    return (
        isinstance(given, list)
        and len(given) <= most
        and all(type(each) is int and 0 <= each <= LARGEST for each in given)
    )


def fit(loaded: dict[str, torch.Tensor], wanted: dict[str, torch.Size], file: str) -> None:
    """Raises CheckpointError unless the tensors found are those wanted, each of its shape; names the first that are not."""
    missing = [name for name in wanted if name not in loaded]
    if missing:
        raise CheckpointError(
            f"{file} lacks {_named(missing)} of the {len(wanted)} tensors that its configuration asks for."
        )
    for name, shape in wanted.items():
        if not loaded[name].is_floating_point():
            raise CheckpointError(
                f"{file}: the tensor {name} holds {str(loaded[name].dtype).removeprefix('torch.')}; weights are floating point numbers."
            )
        if loaded[name].shape != shape:
            raise CheckpointError(
                f"{file}: the tensor {name} is {_shape(loaded[name].shape)}; its configuration asks for {_shape(shape)}."
            )
    more = [name for name in loaded if name not in wanted]
    if more:
        raise CheckpointError(f"{file} holds {_named(more)}, for which a model of its configuration has no use.")


def _named(names: Sequence[str]) -> str:
    return ", ".join(printable(name)[:LONGEST_NAME] for name in names[:3]) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )


def _shape(shape: torch.Size) -> str:
    return " × ".join(map(str, shape)) or "a single number"
