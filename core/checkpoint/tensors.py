"""Reading safetensors, and saying what else a file is."""

import json
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch

from core.memory import MemoryLimit, max_mb

LONGEST_HEADER = 100 << 20  # as the safetensors library has it


class CheckpointError(ValueError):
    """A file that is no model, or not one that can be opened here: which, what is wrong, and what is allowed."""


@dataclass(frozen=True)
class File:
    """One file of a model: on this machine's disk, or sent by somebody."""

    name: str
    path: Path | None = None
    data: bytes | None = None

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
ONLY = "Only safetensors are opened: a pickle can run any program while it is read."


def tensors(file: File, most: int | None = None) -> dict[str, torch.Tensor]:
    """Name -> tensor, float32 where it is a floating type. Raises CheckpointError for anything but complete safetensors
    with finite numbers, MemoryLimit for more bytes than `most` (ABLATION_MAX_MB if None); either before it is read."""
    most = max_mb() << 20 if most is None else most
    needed = sum(sizes(file))
    if needed > most:
        raise MemoryLimit(
            f"{file.name} holds {needed / 2**20:,.0f} MB of tensors (as float32); a model here may have "
            f"{most / 2**20:,.0f} MB (set by ABLATION_MAX_MB)."
        )
    try:
        if file.path is None:
            made = safetensors.torch.load(file.data)
        else:
            made = safetensors.torch.load_file(file.path)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{file.name} is no complete safetensors file ({error}).") from None
    made = {name: x.float() if x.is_floating_point() else x for name, x in made.items()}
    for name, x in made.items():
        if x.is_floating_point() and not bool(x.isfinite().all()):
            raise CheckpointError(
                f"{file.name}: the tensor {name} holds numbers that are infinite, or no numbers at all."
            )
    return made


def sizes(file: File) -> list[int]:
    """Bytes of every tensor as float32, from the header alone. Raises CheckpointError for what is no whole safetensors file."""
    begin = file.head(64)
    for mark, what in KNOWN:
        if begin.startswith(mark):
            raise CheckpointError(f"{file.name} is {what}. {ONLY}")
    length = int.from_bytes(begin[:8], "little")
    if len(begin) < 9 or length > LONGEST_HEADER or begin[8:9] != b"{":
        raise CheckpointError(f"{file.name} is no safetensors file. {ONLY}")
    if 8 + length > file.size:
        raise CheckpointError(f"{file.name} is cut short: it has {file.size:,} bytes, and its header alone takes {8 + length:,}.")  # fmt: skip
    try:
        header = json.loads(file.head(8 + length)[8:])
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        sizes = [_numbers(entry["shape"]) * 4 for entry in entries.values()]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise CheckpointError(f"{file.name} is no safetensors file: its header cannot be read. {ONLY}") from None
    if not isinstance(end, int) or 8 + length + end > file.size:
        raise CheckpointError(
            f"{file.name} is cut short: it has {file.size:,} bytes, and its header announces {8 + length + end:,}."
        )
    return sizes


def _numbers(shape) -> int:
    made = 1
    for side in shape:
        made *= side
    return made


def fit(found: dict[str, torch.Tensor], wanted: dict[str, torch.Size], file: str):
    """Raises CheckpointError unless the tensors found are those wanted, each of its shape; names the first that are not."""
    missing = [name for name in wanted if name not in found]
    if missing:
        raise CheckpointError(
            f"{file} lacks {_named(missing)} of the {len(wanted)} tensors that its configuration asks for."
        )
    for name, shape in wanted.items():
        if not found[name].is_floating_point():
            raise CheckpointError(
                f"{file}: the tensor {name} holds {str(found[name].dtype).removeprefix('torch.')}; weights are floating point numbers."
            )
        if found[name].shape != shape:
            raise CheckpointError(
                f"{file}: the tensor {name} is {_shape(found[name].shape)}; its configuration asks for {_shape(shape)}."
            )
    more = [name for name in found if name not in wanted]
    if more:
        raise CheckpointError(f"{file} holds {_named(more)}, for which a model of its configuration has no use.")


def _named(names) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _shape(shape) -> str:
    return " × ".join(map(str, shape)) or "a single number"
