"""Models of the family that were trained on this server: one file each, for all users.

A file is named by the hash of its member and seed, so it is found again after a restart. All files
together take at most ABLATION_TRAINED_MB (100); the oldest are deleted first.
"""

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from core.checkpoints import files
from core.settings.environment import read_whole_number

DEFAULT_MB = 100


def folder() -> Path:
    """Return the folder of these models: ABLATION_TRAINED, else models/trained."""
    return Path(os.environ.get("ABLATION_TRAINED") or files.ROOT / "trained")


def file_of(member: str, seed: int) -> Path:
    """Return the path of a model's file, given its member in link form; it may not exist."""
    name = hashlib.sha256(f"{member}.{seed}".encode()).hexdigest()[:24]
    return folder() / f"{name}.safetensors"


def list_trained() -> dict[tuple[str, int], str]:
    """Return {(member, seed): time of change} of all models trained here."""
    trained = {}
    for path in sorted(folder().glob("*.safetensors")):
        try:
            changed = path.stat().st_mtime_ns
            member = _read_member(path, changed)
        except (OSError, SafetensorError, KeyError, ValueError):
            continue  # deleted meanwhile, or no model of this server
        if file_of(*member) == path:
            trained[member] = str(changed)
    return trained


@lru_cache(maxsize=1024)
def _read_member(path: Path, changed: int) -> tuple[str, int]:
    """Return the (member, seed) of a file; `changed`, its time, is only part of the cache key."""
    about = read_about(path)
    return str(about["member"]), int(about["seed"])


def read_about(path: Path) -> dict[str, Any]:
    """Return the facts in a model's file."""
    with safe_open(path, "pt") as file:
        about: dict[str, Any] = json.loads(file.metadata()["about"])
        return about


def save(member: str, seed: int, content: bytes) -> None:
    """Write a model's file and delete the oldest beyond the limit; OSError if it cannot be."""
    path = file_of(member, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_suffix(".part")
    begun.write_bytes(content)
    begun.replace(path)
    limit = read_whole_number("ABLATION_TRAINED_MB", DEFAULT_MB) << 20
    by_age = sorted(path.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
    size = sum(file.stat().st_size for file in by_age)
    for oldest in by_age:
        if size <= limit or oldest == path:
            break
        size -= oldest.stat().st_size
        oldest.unlink()
