"""Downloads from the Hugging Face Hub: public models, one revision of each, within limits of size, of time, and of room on the disk.

A visitor names the model, and the server fetches it. So nothing of the operator's goes along: no token (unless
ABLATION_HUB_TOKEN says so), and none of the files that other programs have downloaded here.
"""

import importlib.util
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from core.checkpoints.tensors import CheckpointError, room
from core.settings.environment import is_on, whole_number
from core.settings.memory import MemoryLimit

if TYPE_CHECKING:  # it need not be installed
    from huggingface_hub import HfApi

DEFAULT_MB = 4096  # of all downloads that are kept
PATIENCE = 10.0  # seconds for which the Hub may be silent
SLOWEST = 250_000  # bytes a second, on average, once that time is over

_one_at_a_time = threading.Lock()


def cache() -> Path:
    """Where downloads are kept, a folder for each model and revision."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ablation-lab" / "hub"


Choose = Callable[[Collection[str]], list[str]]  # the names of all files of a model -> those that are needed


def download(name: str, choose: Choose) -> Path:
    """Return the folder with the files of a model that are needed, as they are in its newest revision now.

    Raises CheckpointError, where one of them is not there too, or MemoryLimit, in words.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        raise CheckpointError("To download from the Hugging Face Hub: pip install huggingface_hub.")
    if not _one_at_a_time.acquire(timeout=PATIENCE):
        raise CheckpointError("Another model is being downloaded at the moment; try again in a minute.")
    try:
        with _in_words(name):
            revision, sizes = _look(name, choose)
            room(sum(sizes.values()), f"{name} on the Hub has")
            return _kept(name, revision, sizes)
    finally:
        _one_at_a_time.release()


def _token() -> bool | None:
    """False: none is sent; None: the one that the operator has set up."""
    return None if is_on("ABLATION_HUB_TOKEN") else False


def _api() -> "HfApi":
    from huggingface_hub import HfApi

    return HfApi(token=_token())


def _look(name: str, choose: Choose) -> tuple[str, dict[str, int]]:
    """-> (the newest revision, bytes of each file that is needed)"""
    info = _api().model_info(name, files_metadata=True, timeout=PATIENCE)
    size_of = {each.rfilename: each.size for each in info.siblings or []}
    chosen = choose(size_of)
    missing = [each for each in chosen if each not in size_of]
    if missing:
        raise CheckpointError(f"{name} on the Hub has no {missing[0]}; needed are {', '.join(chosen)}.")
    size_of = {each: size_of[each] for each in chosen}
    sizes = {each: size for each, size in size_of.items() if type(size) is int and size >= 0}
    unknown, revision = [each for each in size_of if each not in sizes], info.sha or ""
    if unknown or not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise CheckpointError(
            f"The Hub does not say how large {unknown[0] if unknown else name} is, and of which revision."
        )
    return revision, sizes


def _kept(name: str, revision: str, sizes: dict[str, int]) -> Path:
    """The folder of what was downloaded before, or is now."""
    into = cache() / f"{name.replace('/', '--')}@{revision}"
    if not all((into / file).is_file() and (into / file).stat().st_size == size for file, size in sizes.items()):
        _make_room(name, sum(sizes.values()))
        part = Path(tempfile.mkdtemp(prefix="part-", dir=cache()))
        try:
            for file, size in sizes.items():
                _fetch(name, revision, file, size, part / file)
            shutil.rmtree(into, ignore_errors=True)
            part.rename(into)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    os.utime(into)  # it has been used
    return into


def _make_room(name: str, needed: int) -> None:
    """Forget what was used longest ago, until there is room for so many bytes."""
    most = whole_number("ABLATION_HUB_MB", DEFAULT_MB)
    if needed > most << 20:
        raise MemoryLimit(f"{name} on the Hub has {needed / 2**20:,.0f} MB; all downloads together may have {most:,} MB (set by ABLATION_HUB_MB).")  # fmt: skip
    cache().mkdir(parents=True, exist_ok=True)
    there = sorted((each for each in cache().iterdir() if each.is_dir()), key=lambda each: each.stat().st_mtime)
    sizes = [sum(file.stat().st_size for file in each.iterdir()) for each in there]
    taken = sum(sizes)
    for folder, size in zip(there, sizes):
        if taken + needed <= most << 20:
            break
        shutil.rmtree(folder)
        taken -= size


def _fetch(name: str, revision: str, file: str, size: int, into: Path) -> None:
    """One file, byte by byte as it is there. Raises CheckpointError for more, fewer or too few a second."""
    from huggingface_hub.utils import build_hf_headers, get_session  # type: ignore[attr-defined]  # lists neither

    address = f"{_api().endpoint}/{name}/resolve/{revision}/{file}"
    headers = build_hf_headers(token=_token()) | {"accept-encoding": "identity"}
    come, begun = 0, time.monotonic()
    with get_session().stream("GET", address, headers=headers, timeout=PATIENCE) as answer, into.open("wb") as opened:
        if answer.status_code != 200:
            raise CheckpointError(f"The Hub does not give {file} of {name} (it answers {answer.status_code}).")
        for piece in answer.iter_raw():
            come, passed = come + len(piece), time.monotonic() - begun
            if come > size:
                break
            if passed > PATIENCE and come < SLOWEST * passed:
                raise CheckpointError(f"The Hub sends {file} of {name} too slowly; try again later.")
            opened.write(piece)
    if come != size:
        raise CheckpointError(f"The Hub did not send {file} of {name} whole; try again later.")


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """What the library, the network or the disk raise, as a CheckpointError that tells nothing of this server."""
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        yield
    except (CheckpointError, MemoryLimit):
        raise
    except HFValidationError:
        raise CheckpointError(
            f"{name[:60]!r} is no name of a model on the Hub; they read like openai-community/gpt2."
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(f"There is no model {name[:60]!r} on the Hub that everybody may read.") from None
    except Exception as error:  # the network, a full disk: each has an exception of its own
        logging.warning("a download from the Hub has failed", exc_info=True)
        kind = type(error).__name__
        why = (
            f"it was silent for {PATIENCE:.0f} seconds"
            if "Timeout" in kind
            else getattr(error, "strerror", None) or kind
        )
        raise CheckpointError(f"{name[:60]!r} could not be downloaded from the Hub ({why}).") from None
