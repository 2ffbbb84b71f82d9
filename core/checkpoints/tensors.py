"""Weights in safetensors files: names and shapes are checked before any number is read."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from core.settings.environment import remove_paths
from core.settings.memory import MemoryLimitError, max_mb
from core.settings.wording import replace_unprintable

ONLY = "Only safetensors files are opened, because a pickle can run arbitrary code."
LONGEST_HEADER = 1 << 20  # bytes; that of GPT-2 XL has 60,000
LONGEST_NAME = 80  # letters of a tensor's name in a message
FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
WORD = 100  # bytes that a word of a vocabulary takes, beside its weights
# What wrappers of PyTorch put into the names of a module's tensors: torch.compile, data parallel,
# FSDP, checkpointing.
WRAPPERS = ("_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")

SizeCheck = Callable[
    [int], None
]  # gets the bytes of a model before its weights are read, and may raise


class CheckpointError(ValueError):
    """File that is not a model or cannot be opened: which file, what is wrong, what is allowed."""


@dataclass(frozen=True)
class Stored:
    """Location and shape of one tensor in a file."""

    path: Path
    key: str
    shape: tuple[int, ...]


def check_bytes(needed_bytes: int, sentence_start: str) -> None:
    """Raise MemoryLimitError, "{sentence_start} … MB; …", for more bytes than ABLATION_MAX_MB."""
    if needed_bytes > max_mb() << 20:
        limit = f"the limit for a model is {max_mb():,} MB (set by ABLATION_MAX_MB)"
        raise MemoryLimitError(f"{sentence_start} {needed_bytes / 2**20:,.0f} MB; {limit}.")


def size_of(parameters: int, n_words: int) -> int:
    """Return the bytes of an open model: float32 weights, and n_words vocabulary entries."""
    return 4 * parameters + WORD * n_words


def check_room(parameters: int, n_words: int, file: str, check: SizeCheck | None) -> None:
    """Raise MemoryLimitError for a model above the limit; else call `check` with its bytes.

    file: name of its file in the message.
    """
    check_bytes(size_of(parameters, n_words), f"{file} describes a model of")
    if check is not None:
        check(size_of(parameters, n_words))


def read_shapes(paths: Sequence[Path], ignored_endings: tuple[str, ...] = ()) -> dict[str, Stored]:
    """Read tensors' names and shapes; CheckpointError unless floats, MemoryLimitError if large.

    Args:
        paths: The parts of one model.
        ignored_endings: Endings of names that are left out.

    Returns:
        Name without wrappers to tensor.

    Raises:
        CheckpointError: A file is no safetensors file, or a tensor is not of floating-point
            numbers.
        MemoryLimitError: The tensors take more than a model may have.
    """
    tensors: dict[str, Stored] = {}
    for path in paths:
        with path.open("rb") as file:
            header = int.from_bytes(file.read(8), "little")
        if LONGEST_HEADER < header < path.stat().st_size:
            raise CheckpointError(
                f"{path.name} has a header of {header:,} bytes; the limit is {LONGEST_HEADER:,}."
            )
        try:
            with safe_open(path, "pt") as file:
                keys = file.keys()
                entries = [(key, file.get_slice(key)) for key in keys]
                shapes = {
                    key: (tuple(entry.get_shape()), entry.get_dtype()) for key, entry in entries
                }
        except SafetensorError as error:
            why = replace_unprintable(remove_paths(str(error)))[:120]
            raise CheckpointError(
                f"{path.name} is not a complete safetensors file ({why}). {ONLY}"
            ) from None
        for key, (shape, kind) in shapes.items():
            name = ".".join(part for part in key.split(".") if part not in WRAPPERS) or key
            if name.endswith(ignored_endings):
                continue
            if kind not in FLOATS:
                raise CheckpointError(
                    f"{path.name}: the tensor {name[:LONGEST_NAME]} has dtype {kind}; supported:"
                    f" {', '.join(FLOATS)}."
                )
            if name in tensors:
                raise CheckpointError(
                    f"{path.name} contains the tensor {name[:LONGEST_NAME]} twice."
                )
            tensors[name] = Stored(path, key, shape)
    numbers = sum(math.prod(tensor.shape) for tensor in tensors.values())
    check_bytes(4 * numbers, f"The tensors of {paths[0].name} take")
    return tensors


def check_fit(
    tensors: Mapping[str, Stored], shapes: Mapping[str, Sequence[int]], file: str
) -> None:
    """Raise CheckpointError unless the tensors have exactly the required names and shapes."""
    missing = [name for name in shapes if name not in tensors]
    if missing:
        raise CheckpointError(
            f"{file} lacks {_join_names(missing)} of the {len(shapes)} tensors that its"
            " configuration requires."
        )
    for name, shape in shapes.items():
        if tensors[name].shape != tuple(shape):
            raise CheckpointError(
                f"{file}: the tensor {name} is {_format_shape(tensors[name].shape)}; its"
                f" configuration requires {_format_shape(shape)}."
            )
    unexpected = [name for name in tensors if name not in shapes]
    if unexpected:
        raise CheckpointError(
            f"{file} contains {_join_names(unexpected)}, which its configuration does not use."
        )


def load(stored_tensors: Mapping[str, Stored]) -> dict[str, torch.Tensor]:
    """Read tensors as float32 copies. Raise CheckpointError for infinite or NaN values."""
    tensors: dict[str, torch.Tensor] = {}
    for path in dict.fromkeys(tensor.path for tensor in stored_tensors.values()):
        with safe_open(path, "pt") as file:
            for name, tensor in stored_tensors.items():
                if tensor.path != path:
                    continue
                # A copy: what safe_open gives is mapped from the file, which may be deleted.
                tensors[name] = file.get_tensor(tensor.key).to(torch.float32, copy=True)
                if not bool(tensors[name].isfinite().all()):
                    raise CheckpointError(
                        f"{path.name}: the tensor {name[:LONGEST_NAME]} contains infinite or NaN"
                        " values."
                    )
    return tensors


def _join_names(names: Sequence[str]) -> str:
    """Join at most three names, and say how many more there are."""
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(name[:LONGEST_NAME] for name in names[:3]) + suffix


def _format_shape(shape: Iterable[int]) -> str:
    """Write a shape: "3 × 4", or "a single number"."""
    return " × ".join(map(str, shape)) or "a single number"
