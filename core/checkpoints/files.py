"""Models in a folder, in uploaded files, and on the Hugging Face Hub."""

import logging
import os
import re
import tempfile
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from core.checkpoints import gpt2, native
from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tensors import ONLY, SizeCheck, check_bytes
from core.checkpoints.tokens import TOKENIZER, VOCABULARY, read_json
from core.settings.environment import is_on, read_whole_number
from core.settings.memory import MemoryLimitError
from core.settings.wording import replace_unprintable, shorten

ROOT = Path(__file__).parent.parent.parent / "models"
SHIPPED = "legal"
PART = re.compile(r"model-\d{5}-of-(\d{5})\.safetensors")  # of a large model
LARGEST = 4 << 20  # bytes of a config.json: one of this lab with 100,000 words has about a million
LONGEST_NAME = 80  # letters
READ = (".safetensors", ".json", ".txt")
REFUSED = {".zip": "a zip archive: unpack it and choose the files inside"}
REFUSED |= dict.fromkeys(
    (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"),
    f"a PyTorch pickle. {ONLY} Most models are also published as {native.WEIGHTS}",
)
HUB_MB = 4096  # of all downloads that are kept
PATIENCE = 10.0  # seconds

_one_download = threading.Lock()


def model_folders() -> dict[str, Path]:
    """Return {name: folder} of models in models/ and ABLATION_MODELS, the shipped one first.

    ABLATION_MODELS wins where names are equal. A folder without config.json, or that cannot be
    read, is left out.
    """
    places = [
        ROOT,
        *([Path(extra)] if (extra := os.environ.get("ABLATION_MODELS", "").strip()) else []),
    ]
    models = {
        replace_unprintable(folder.name): folder
        for place in places
        for folder in _list_folder(place)
        if os.path.isfile(folder / native.SETTINGS)
    }
    return {name: models[name] for name in sorted(models, key=lambda name: (name != SHIPPED, name))}


def _list_folder(folder: Path) -> list[Path]:
    """List the entries of a folder, sorted; [] if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def last_written(folder: Path) -> float:
    """Return when a model's newest file was written, in seconds since 1970; 0 if unreadable."""
    times = [0.0]
    for path in _list_folder(folder):
        with suppress(OSError):  # a link to nothing
            times.append(path.stat().st_mtime)
    return max(times)


def from_folder(folder: Path | str, gpt2_name: str = "", check: SizeCheck | None = None) -> Opened:
    """Open the model in a folder or a file's folder; CheckpointError, MemoryLimitError if large.

    Args:
        folder: The folder, or a file in it.
        gpt2_name: Name on screen of a GPT-2, which brings none; "" for the folder's name.
        check: Called with the model's bytes before the weights are read; may raise.

    Raises:
        CheckpointError: The folder holds no model, or cannot be read.
        MemoryLimitError: The model is too large.
    """
    folder = Path(folder)
    try:
        if folder.is_file():
            folder = folder.parent
        if not folder.is_dir():
            raise CheckpointError(f"There is no folder {replace_unprintable(folder.name)}.")
        files = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
        return _open_files(files, gpt2_name or replace_unprintable(folder.name), check)
    except OSError as error:  # its own words would name the folder's place on this machine
        why = error.strerror or "it is damaged"
        raise CheckpointError(
            f"The folder {replace_unprintable(folder.name)} cannot be read ({why})."
        ) from None


def from_upload(files: Mapping[str, bytes], check: SizeCheck | None = None) -> Opened:
    """Open uploaded files' model, {name: content}; CheckpointError, MemoryLimitError if large.

    Its name is the one in config.json, or "GPT-2".
    """
    check_bytes(sum(map(len, files.values())), "These files are")
    with tempfile.TemporaryDirectory(prefix="ablation-lab-") as folder:
        for name, content in files.items():
            path = Path(folder, replace_unprintable(Path(name).name)[-LONGEST_NAME:])
            path.write_bytes(content if path.suffix in READ else b"")
        return from_folder(folder, "GPT-2", check)


def _open_files(files: dict[str, Path], gpt2_name: str, check: SizeCheck | None) -> Opened:
    """Open the model in {file name: path}; CheckpointError, MemoryLimitError if too large."""
    weights = _find_weights(files)
    if native.SETTINGS not in files:
        raise CheckpointError(
            f"{native.SETTINGS} is missing. It describes the tensors in {weights[0].name};"
            " choose both files."
        )
    settings = read_json(files[native.SETTINGS], LARGEST)
    if settings.get("format") == native.FORMAT:
        return native.read(settings, weights, check)
    if settings.get("model_type") == "gpt2":
        return gpt2.read(settings, weights, files, gpt2_name, check)
    kind = settings.get("model_type", settings.get("format"))
    description = (
        f"describes a model of type {shorten(kind)}"
        if kind
        else "has neither a format nor a model type"
    )
    raise CheckpointError(
        f"{native.SETTINGS} {description}; only models saved by this app (format"
        f" {native.FORMAT}) and GPT-2 (model_type gpt2) are supported."
    )


def _find_weights(files: dict[str, Path]) -> list[Path]:
    """Return [weights file], or all shards in order; CheckpointError if missing or ambiguous."""
    weights = [path for path in files.values() if path.suffix == ".safetensors"]
    if not weights:
        for name, path in files.items():
            if path.suffix.lower() in REFUSED:
                raise CheckpointError(f"{name} is {REFUSED[path.suffix.lower()]}.")
        raise CheckpointError(
            f"None of these is a safetensors file; a model is {native.WEIGHTS} with"
            f" {native.SETTINGS}."
        )
    if native.WEIGHTS in files:
        return [files[native.WEIGHTS]]
    part = PART.fullmatch(weights[0].name)
    if part:
        names = [
            f"model-{number:05}-of-{part[1]}.safetensors" for number in range(1, int(part[1]) + 1)
        ]
        missing = [name for name in names if name not in files]
        if missing:
            raise CheckpointError(
                f"{missing[0]} is missing: the weights are in {len(names)} files; choose all of"
                " them."
            )
        return [files[name] for name in names]
    if len(weights) > 1:
        raise CheckpointError(
            f"There are {len(weights)} safetensors files"
            f" ({', '.join(path.name for path in weights[:3])}); choose one."
        )
    return weights


def list_needed_files(names: Collection[str]) -> list[str]:
    """List settings and weights, even if not in `names`, and those tokenizer files that are."""
    parts = sorted(name for name in names if PART.fullmatch(name))
    weights = parts if parts and native.WEIGHTS not in names else [native.WEIGHTS]
    tokenizer = (
        VOCABULARY if TOKENIZER not in names and set(VOCABULARY) <= set(names) else (TOKENIZER,)
    )
    return [native.SETTINGS, *weights, *(name for name in tokenizer if name in names)]


def cache_folder() -> Path:
    """Return the folder for downloads, below XDG_CACHE_HOME or ~/.cache; it may not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ablation-lab" / "hub"


def from_hub(name: str, check: SizeCheck | None = None) -> Opened:
    """Download a Hub model by its ID, and open it; CheckpointError, MemoryLimitError if large.

    One at a time: waits up to 10 s for its turn. Only the files that are needed are downloaded,
    after a look at their size. The operator's token is sent only with ABLATION_HUB_TOKEN=1.
    """
    try:
        from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
    except ImportError:
        raise CheckpointError(
            "To download from the Hugging Face Hub: pip install huggingface_hub."
        ) from None
    if not _one_download.acquire(timeout=PATIENCE):
        raise CheckpointError("Another model is being downloaded. Try again in a minute.")
    try:
        folder = _download(name)
    except (CheckpointError, MemoryLimitError):
        raise
    except HFValidationError:
        raise CheckpointError(
            f"{name[:60]!r} is not a model ID of the Hugging Face Hub, such as"
            " openai-community/gpt2."
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(f"There is no public model {name[:60]!r} on the Hub.") from None
    except Exception as error:  # the network, a full disk: each has an exception of its own
        logging.warning("a download from the Hub has failed", exc_info=True)
        why = getattr(error, "strerror", None) or type(error).__name__
        raise CheckpointError(
            f"{name[:60]!r} could not be downloaded from the Hub ({why})."
        ) from None
    finally:
        _one_download.release()
    return from_folder(folder, name, check)


def _download(name: str) -> Path:
    """Download a model's needed files; return the folder. CheckpointError, MemoryLimitError."""
    from huggingface_hub import HfApi

    api = HfApi(token=None if is_on("ABLATION_HUB_TOKEN") else False)
    info = api.model_info(name, files_metadata=True, timeout=PATIENCE)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    chosen = list_needed_files(sizes)
    missing = [file for file in chosen if file not in sizes]
    if missing:
        raise CheckpointError(
            f"{name} on the Hub has no {missing[0]}; required: {', '.join(chosen)}."
        )
    size = sum(sizes[file] for file in chosen)
    check_bytes(size, f"{name} on the Hub is")
    _make_room(name, size)
    paths = [
        api.hf_hub_download(name, file, revision=info.sha, cache_dir=cache_folder())
        for file in chosen
    ]
    return Path(paths[0]).parent


def _make_room(name: str, size: int) -> None:
    """Delete longest unused others until `size` fits ABLATION_HUB_MB; MemoryLimitError if never."""
    from huggingface_hub import scan_cache_dir

    limit = read_whole_number("ABLATION_HUB_MB", HUB_MB)
    if size > limit << 20:
        raise MemoryLimitError(
            f"{name} on the Hub is {size / 2**20:,.0f} MB; the limit for all downloads is {limit:,}"
            " MB (set by ABLATION_HUB_MB)."
        )
    cache_folder().mkdir(parents=True, exist_ok=True)
    repositories = scan_cache_dir(cache_folder())
    used = repositories.size_on_disk
    for model in sorted(repositories.repos, key=lambda model: model.last_accessed):
        if model.repo_id != name and used + size > limit << 20:
            repositories.delete_revisions(
                *(revision.commit_hash for revision in model.revisions)
            ).execute()
            used -= model.size_on_disk
