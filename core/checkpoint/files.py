"""Finding the files of a model: in a folder, in an upload, on the Hugging Face Hub."""

import io
import os
import zipfile
from pathlib import Path

from core.checkpoint import gpt2, own
from core.checkpoint.opened import CheckpointError, Opened
from core.checkpoint.tensors import ONLY, File, sizes
from core.memory import MemoryLimit, max_mb

ROOT = Path(__file__).parent.parent.parent / "models"
SHIPPED = "legal"
WANTED = (own.SETTINGS, own.WEIGHTS, gpt2.TOKENIZER)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def folders() -> dict[str, Path]:
    """Name -> folder of every model that lies in models/ or in the folder that ABLATION_MODELS names; that which ships first."""
    places = [ROOT, *([Path(given)] if (given := os.environ.get("ABLATION_MODELS", "").strip()) else [])]
    found = [each for place in places if place.is_dir() for each in sorted(place.iterdir())]
    made = {each.name: each for each in found if (each / own.SETTINGS).is_file()}
    return {name: made[name] for name in sorted(made, key=lambda name: (name != SHIPPED, name))}


def from_folder(folder: Path | str, name: str = "") -> Opened:
    """Raises CheckpointError for a folder that holds no model."""
    folder = Path(folder)
    if folder.is_file():
        folder = folder.parent
    if not folder.is_dir():
        raise CheckpointError(f"There is no folder {folder.name}.")
    return opened(
        [File(each.name, path=each) for each in sorted(folder.iterdir()) if each.is_file()], name or folder.name
    )


def from_upload(files: dict[str, bytes]) -> Opened:
    """Files that somebody sent: {name: content}; a zip archive stands for the files in it."""
    made = []
    for name, data in files.items():
        made += _unzipped(name, data) if name.lower().endswith(".zip") else [File(Path(name).name, data=data)]
    return opened(made, "")


def zipped(written: dict[str, bytes]) -> bytes:
    """Files as one zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in written.items():
            archive.writestr(name, data)
    return made.getvalue()


def _unzipped(name: str, data: bytes) -> list[File]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inside = [each for each in archive.infolist() if Path(each.filename).name in WANTED and not each.is_dir()]
            size = sum(each.file_size for each in inside)
            if size > 2 * max_mb() << 20:
                raise MemoryLimit(f"{name} unpacks to {size / 2**20:,.0f} MB; a model here may have {max_mb():,} MB (set by ABLATION_MAX_MB).")  # fmt: skip
            return [File(Path(each.filename).name, data=archive.read(each)) for each in inside]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise CheckpointError(f"{name} is no zip archive that can be unpacked ({str(error)[:80]}).") from None


def opened(files: list[File], name: str) -> Opened:
    """The model that these files are. Raises CheckpointError where they are none; other files are left alone."""
    by = {file.name: file for file in files}
    weights = [file for file in files if file.name.endswith(".safetensors")]
    if not weights:
        pickles = [file.name for file in files if file.name.lower().endswith(PICKLES)]
        if pickles:
            raise CheckpointError(
                f"{pickles[0]} is a pickle of PyTorch's. {ONLY} Models are published as {own.WEIGHTS}, too."
            )
        raise CheckpointError(
            f"There is no safetensors file among these; a model is {own.WEIGHTS} with {own.SETTINGS}."
        )
    if len(weights) > 1 and own.WEIGHTS not in by:
        raise CheckpointError(f"There are {len(weights)} safetensors files ({', '.join(each.name for each in weights[:3])}); one is opened at a time.")  # fmt: skip
    file = by.get(own.WEIGHTS, weights[0])
    sizes(file)  # what is no safetensors at all is told first
    if own.SETTINGS not in by:
        raise CheckpointError(
            f"{own.SETTINGS} is missing beside {file.name}: it says what the tensors are. Bring both."
        )
    settings = gpt2.settings_of(by[own.SETTINGS])
    if settings.get("format") == own.FORMAT:
        return own.read(settings, file)
    if gpt2.is_gpt2(settings):
        return gpt2.read(settings, file, by.get(gpt2.TOKENIZER), name or "GPT-2")
    kind = settings.get("model_type", settings.get("format"))
    what = (
        f"describes a model of the kind {str(kind)[:30]!r}"
        if kind
        else "says neither of which format nor of which kind"
    )
    raise CheckpointError(f"{own.SETTINGS} {what}; opened are models saved here (format {own.FORMAT}) and GPT-2 (model_type gpt2).")  # fmt: skip


def from_hub(name: str) -> Opened:
    """Downloads a model by its name on the Hugging Face Hub, e.g. openai-community/gpt2, and opens it.

    Only the three files that are needed, and only after a look at their size. Raises CheckpointError in words.
    """
    try:
        import huggingface_hub as hub
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        raise CheckpointError("To download from the Hugging Face Hub: pip install huggingface_hub.") from None
    try:
        there = {each.rfilename: each.size or 0 for each in hub.HfApi().model_info(name, files_metadata=True).siblings}
        missing = [each for each in WANTED[:2] if each not in there]
        if missing:
            raise CheckpointError(f"{name} on the Hub has no {missing[0]}; needed are {', '.join(WANTED)}.")
        size = sum(there.get(each, 0) for each in WANTED)
        if size > 2 * max_mb() << 20:
            raise MemoryLimit(f"{name} on the Hub has {size / 2**20:,.0f} MB; a model here may have {max_mb():,} MB (set by ABLATION_MAX_MB).")  # fmt: skip
        folder = hub.snapshot_download(name, allow_patterns=list(WANTED))
    except (CheckpointError, MemoryLimit):
        raise
    except HFValidationError:
        raise CheckpointError(
            f"{name[:60]!r} is no name of a model on the Hub; they read like openai-community/gpt2."
        ) from None
    except Exception as error:  # the network, a name that is not there, a full disk: each has an exception of its own
        raise CheckpointError(f"{name[:60]!r} could not be downloaded from the Hub ({type(error).__name__}: {str(error)[:160]}).") from None  # fmt: skip
    return from_folder(folder, name)
