"""Zip archives: what is unpacked is counted as it comes, for an archive may say anything about itself."""

import io
import zipfile
import zlib
from pathlib import PurePosixPath

from core.checkpoints.tensors import LONGEST_NAME, CheckpointError, File
from core.settings.memory import MemoryLimit, max_mb
from core.settings.wording import printable

PIECE = 1 << 20  # bytes that are read at once
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
    """How many bytes the files of one upload may still have: all together as many as a model."""

    def __init__(self):
        self.left = max_mb() << 20

    def take(self, many: int):
        """Raises MemoryLimit where that many are no longer left."""
        self.left -= many
        if self.left < 0:
            raise MemoryLimit(f"These files have, unpacked, more than {max_mb():,} MB in all (set by ABLATION_MAX_MB).")


class InPieces(io.BytesIO):
    """An archive of which no more than a PIECE is read at once. Its directory is read in one go: so that cannot be larger."""

    def __init__(self, data: bytes):
        super().__init__(data)
        self.size = len(data)

    def read(self, size=-1):
        left = self.size - self.tell()
        if (left if size is None or size < 0 else min(size, left)) > PIECE:
            raise zipfile.BadZipFile("its directory is too large")
        return super().read(size)


def zipped(written: dict[str, bytes]) -> bytes:
    """Files as one zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in written.items():
            archive.writestr(name, data)
    return made.getvalue()


def unzipped(name: str, data: bytes, wanted, budget: Budget) -> list[File]:
    """The files of these names in an archive, in whatever folder, each once. Raises CheckpointError, in words, for an
    archive that is broken, encrypted, or holds two of a name; MemoryLimit where the budget does not reach."""
    name = printable(name)[:LONGEST_NAME]
    try:
        with zipfile.ZipFile(InPieces(data)) as archive:
            inside = {}
            for entry in archive.infolist():
                file = PurePosixPath(entry.filename.replace("\\", "/")).name
                if file in wanted and not entry.is_dir():
                    if file in inside:
                        raise CheckpointError(f"{name} holds {file} more than once; one model is opened at a time.")
                    inside[file] = entry
            return [File(file, data=_read(archive, entry, name, budget)) for file, entry in inside.items()]
    except (CheckpointError, MemoryLimit):
        raise
    except BROKEN as error:
        why = printable(error)[:80]
        raise CheckpointError(f"{name} is no zip archive that can be unpacked ({why}).") from None


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, budget: Budget) -> bytes:
    if entry.flag_bits & ENCRYPTED:
        raise CheckpointError(f"{name} is encrypted; send it without a password.")
    if entry.compress_type not in METHODS:
        raise CheckpointError(f"{name} is packed in an unusual way; only stored and deflated files are unpacked.")
    made = io.BytesIO()
    with archive.open(entry) as opened:
        while piece := opened.read(PIECE):
            budget.take(len(piece))
            made.write(piece)
    return made.getvalue()
