"""Zip archives: what is unpacked is counted as it comes, for an archive may say anything about itself."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from core.checkpoints.tensors import LONGEST_NAME, CheckpointError, File
from core.settings.memory import MemoryLimit, max_mb
from core.settings.wording import printable

PIECE = 1 << 20  # bytes that are read at once
ENTRY = b"PK\x01\x02"  # how each entry of a directory begins
PACKED = 100  # times that a file, or a piece, may become larger: a megabyte of zeros must not keep a core busy for half a minute
MOST_ENTRIES = 200  # in all archives of one upload
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others unpack without a limit on what comes of one piece
ENCRYPTED = 1  # a bit among an entry's flags
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
)


class Budget:
    """What the files of one upload may still have: all together as many bytes as a model, and so many entries of archives."""

    def __init__(self) -> None:
        self.left, self.entries = max_mb() << 20, MOST_ENTRIES

    def take(self, many: int) -> None:
        """Raises MemoryLimit where that many are no longer left."""
        self.left -= many
        if self.left < 0:
            raise MemoryLimit(f"These files have, unpacked, more than {max_mb():,} MB in all (set by ABLATION_MAX_MB).")

    def list(self, many: int) -> None:
        """Raises CheckpointError where an archive has more entries than are left."""
        self.entries -= many
        if self.entries < 0:
            raise CheckpointError(
                f"The zip archives of one upload may hold {MOST_ENTRIES} files in all, and these hold more. "
                "Send those of the model alone."
            )


class InPieces(io.BytesIO):
    """An archive of which no more than a PIECE is read at once. Its directory is read in one go: so that cannot be larger;
    and its entries are counted before zipfile makes an object of each: in whatever begins as a directory does, for what else
    zipfile looks at before it can be made to begin so."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        super().__init__(data)
        self.size, self.budget, self.opened = len(data), budget, False

    def read(self, size: int | None = -1) -> bytes:
        left = self.size - self.tell()
        if (left if size is None or size < 0 else min(size, left)) > PIECE:
            raise zipfile.BadZipFile("its directory is too large")
        data = super().read(size)
        if not self.opened and data.startswith(ENTRY):
            self.budget.list(data.count(ENTRY))
        return data


def zipped(written: dict[str, bytes]) -> bytes:
    """Files as one zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in written.items():
            archive.writestr(name, data)
    return file.getvalue()


class Archive:
    """The files of an archive whose names are wanted, in whatever folder, each once. Nothing is unpacked yet. Raises CheckpointError, in
    words, for an archive that is broken, or holds two of a name, or more than the budget has left."""

    def __init__(self, name: str, data: bytes, is_wanted: Callable[[str], bool], budget: Budget) -> None:
        self.name, self.budget = printable(name)[:LONGEST_NAME], budget
        self.inside: dict[str, zipfile.ZipInfo] = {}
        with self._in_words():
            pieces = InPieces(data, budget)
            self.packed = zipfile.ZipFile(pieces)
            pieces.opened = True
            for entry in self.packed.infolist():
                file = PurePosixPath(entry.filename.replace("\\", "/")).name
                if not is_wanted(file) or entry.is_dir():
                    continue
                if file in self.inside:
                    raise CheckpointError(f"{self.name} holds {file} more than once; one model is opened at a time.")
                self.inside[file] = entry

    def unpacked(self) -> list[File]:
        """Raises CheckpointError, in words, for what is broken or encrypted; MemoryLimit where the budget does not reach."""
        with self._in_words(), self.packed as archive:
            return [
                File(file, data=_read(archive, entry, self.name, self.budget)) for file, entry in self.inside.items()
            ]

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (CheckpointError, MemoryLimit):
            raise
        except BROKEN as error:
            why = printable(error)[:80]
            raise CheckpointError(f"{self.name} is no zip archive that can be unpacked ({why}).") from None


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, budget: Budget) -> bytes:
    if entry.flag_bits & ENCRYPTED:
        raise CheckpointError(f"{name} is encrypted; send it without a password.")
    if entry.compress_type not in METHODS:
        raise CheckpointError(f"{name} is packed in an unusual way; only stored and deflated files are unpacked.")
    if entry.file_size > PACKED * max(entry.compress_size, PIECE):
        times = entry.file_size / max(1, entry.compress_size)
        raise CheckpointError(
            f"{name} unpacks to {times:,.0f} times its size; weights that were trained hardly shrink at all."
        )
    content = io.BytesIO()
    with archive.open(entry) as opened:
        while piece := opened.read(PIECE):
            budget.take(len(piece))
            content.write(piece)
    return content.getvalue()
