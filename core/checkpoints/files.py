"""Finding the files of a model: in a folder, in an upload, on the Hugging Face Hub."""

import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from core.checkpoints import gpt2, own
from core.checkpoints.hub import download
from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.spelling import TOKENIZER, VOCABULARY, in_one_file
from core.checkpoints.tensors import LONGEST_NAME, ONLY, Check, File, sizes
from core.checkpoints.zips import Archive, Budget
from core.settings.wording import printable, shorten

ROOT = Path(__file__).parent.parent.parent / "models"
SHIPPED = "legal"
INDEX = "model.safetensors.index.json"  # says in which parts of a large model its tensors are
PART = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
WANTED = (own.SETTINGS, own.WEIGHTS, INDEX, TOKENIZER, *VOCABULARY)
MOST_FILES = 48  # in one upload
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def is_wanted(name: str) -> bool:
    """Return whether a file of this name can belong to a model."""
    return name in WANTED or PART.fullmatch(name) is not None


def needed(names: Collection[str]) -> list[str]:
    """Return the files that make up a model, given the names of all that there are. Some may be missing."""
    parts = sorted(name for name in names if PART.fullmatch(name))
    weights = [INDEX, *parts] if parts and own.WEIGHTS not in names else [own.WEIGHTS]
    tokenizer = VOCABULARY if TOKENIZER not in names and set(VOCABULARY) <= set(names) else (TOKENIZER,)
    return [own.SETTINGS, *weights, *(name for name in tokenizer if name in names)]


def folders() -> dict[str, Path]:
    """Name -> folder of every model that lies in models/ or in the folder that ABLATION_MODELS names; that which ships first.
    What cannot be read there is left out: it costs that model, and no other."""
    places = [ROOT, *([Path(given)] if (given := os.environ.get("ABLATION_MODELS", "").strip()) else [])]
    model_folders = {printable(each.name): each for place in places for each in _inside(place) if _is_model(each)}
    return {name: model_folders[name] for name in sorted(model_folders, key=lambda name: (name != SHIPPED, name))}


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_model(folder: Path) -> bool:
    try:
        return (folder / own.SETTINGS).is_file()
    except OSError:  # it may not be looked into
        return False


def changed(folder: Path) -> float:
    """When a file of a model was last written, in seconds since 1970; 0 where nothing can be read."""
    times = [0.0]
    for each in _inside(folder):
        with suppress(OSError):  # a link to nothing
            times.append(each.stat().st_mtime)
    return max(times)


def from_folder(folder: Path | str, name: str = "", check: Check | None = None) -> Opened:
    """Raises CheckpointError for a folder that holds no model, or one that cannot be read."""
    folder = Path(folder)
    try:
        if folder.is_file():
            folder = folder.parent
        if not folder.is_dir():
            raise CheckpointError(f"There is no folder {printable(folder.name)}.")
        files = [File(printable(each.name), path=each) for each in sorted(folder.iterdir()) if each.is_file()]
        return opened(files, name or printable(folder.name), check)
    except OSError as error:  # its own words would name the folder's place on this machine
        raise CheckpointError(
            f"The folder {printable(folder.name)} cannot be read ({error.strerror or 'it is damaged'})."
        ) from None


def from_upload(files: dict[str, bytes], check: Check | None = None) -> Opened:
    """Files that somebody sent: {name: content}; a zip archive stands for the files in it.

    All of them together, unpacked, may have as many bytes as a model. check: is given the model's bytes before its weights
    are read. Raises CheckpointError or MemoryLimit, in words; and whatever check raises.
    """
    if len(files) > MOST_FILES:
        raise CheckpointError(f"These are {len(files):,} files; one upload may have {MOST_FILES}. Send those of the model alone.")  # fmt: skip
    budget, parts, names = Budget(), [], set()
    archives = {name: Archive(name, data, is_wanted, budget) for name, data in files.items() if name.lower().endswith(".zip")}  # fmt: skip
    for name, data in files.items():
        if name in archives:
            parts += archives[name].unpacked()
        else:
            budget.take(len(data))
            parts.append(File(printable(Path(name).name), data=data))
    for file in parts:
        if file.name in names:
            raise CheckpointError(
                f"{file.name[:LONGEST_NAME]} is among these files more than once; one model is opened at a time."
            )
        names.add(file.name)
    return opened(parts, "", check)


def opened(files: list[File], name: str, check: Check | None = None) -> Opened:
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
    weights = _weights(by, weights)
    for file in weights:
        sizes(file)  # what is no safetensors at all is told first
    if own.SETTINGS not in by:
        raise CheckpointError(
            f"{own.SETTINGS} is missing beside {weights[0].name}: it says what the tensors are. Bring both."
        )
    settings = gpt2.settings_of(by[own.SETTINGS])
    if settings.get("format") == own.FORMAT:
        return own.read(settings, weights, check)
    if gpt2.is_gpt2(settings):
        spelling = by.get(TOKENIZER)
        if spelling is None and by.keys() >= set(VOCABULARY):
            spelling = in_one_file(*(by[each] for each in VOCABULARY))
        return gpt2.read(settings, weights, spelling, name or "GPT-2", check)
    kind = settings.get("model_type", settings.get("format"))
    said = repr(kind[:30]) if isinstance(kind, str) else shorten(kind)
    what = f"describes a model of the kind {said}" if kind else "says neither of which format nor of which kind"
    raise CheckpointError(f"{own.SETTINGS} {what}; opened are models saved here (format {own.FORMAT}) and GPT-2 (model_type gpt2).")  # fmt: skip


def _weights(by: dict[str, File], weights: list[File]) -> list[File]:
    """Return the file of a model's weights, or all its parts. Raises CheckpointError where one is missing."""
    if own.WEIGHTS in by:
        return [by[own.WEIGHTS]]
    if INDEX in by:
        parts = _parts(by[INDEX])
        missing = [name for name in parts if name not in by]
        if missing:
            raise CheckpointError(
                f"{printable(missing[0])[:LONGEST_NAME]} is missing: {INDEX} names {len(parts)} files. Bring all of them."
            )
        return [by[name] for name in parts]
    if PART.fullmatch(weights[0].name):
        raise CheckpointError(f"{weights[0].name} is one part of a model: bring {INDEX} and every file that it names.")
    if len(weights) > 1:
        raise CheckpointError(f"There are {len(weights)} safetensors files ({', '.join(each.name for each in weights[:3])}); one is opened at a time.")  # fmt: skip
    return weights


def _parts(index: File) -> list[str]:
    """Return the names of the files that an index lists."""
    names = gpt2.settings_of(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(each, str) for each in names.values()):
        raise CheckpointError(f"{INDEX} has no weight_map, which says in which file each tensor is.")
    return sorted(set(names.values()))


def from_hub(name: str, check: Check | None = None) -> Opened:
    """Downloads a model by its name on the Hugging Face Hub, e.g. openai-community/gpt2, and opens it: only the files
    that are needed, and only after a look at their size. Raises CheckpointError or MemoryLimit, in words."""
    return from_folder(download(name, needed), name, check)
