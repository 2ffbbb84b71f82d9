"""Model family: the language model that ships, retrained without or with another part.

What differs between two of them is the part alone: the same sentences in the same order, and the
same first weights wherever a weight has the same name and shape (core/model/parts/init.py). `make
family` trains them (scripts/family.py).
"""

import hashlib
import json
import threading
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cachetools
import torch
from safetensors import safe_open

from core.checkpoints import files
from core.checkpoints.native import build_blank_model, read_model
from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tokens import Words
from core.model.config import Config
from core.model.text import UNKNOWN
from core.model.transformer import Transformer
from core.model.variants import ablation, apply, decode, encode, name_of
from core.tasks import task

FOLDER = files.ROOT / "family"
SUMS = "SHA256SUMS"  # as sha256sum writes it: what is opened is what was trained
TASK = "sentences"
BASELINE = Config(d_model=64, n_heads=4, n_layers=2, position="rope", mask="causal", seed=0)
SEEDS = (0, 1, 2)
SWAPS = (
    "residual_attention-off",
    "residual_ffn-off",
    "norm-RMSNorm",
    "activation-relu",
    "activation-swiglu",
    "position-sinusoidal",
)
WHOLE = "baseline"  # the member from which nothing is taken


def members() -> list[str]:
    """List all members as in links: "baseline", then removals such as "norm-none", replacements."""
    return [WHOLE, *(encode(part) for part in ablation.values()), *SWAPS]


def config_of(member: str, seed: int) -> Config:
    """Return BASELINE with this seed and a change in link form; ConfigError if it is invalid."""
    return apply({} if member == WHOLE else decode(member, "member"), BASELINE).replace(seed=seed)


def label(member: str) -> str:
    """Return the screen name of "baseline" or a change in link form; ConfigError if undecodable."""
    return WHOLE if member == WHOLE else name_of(decode(member, "member"))


def vocabulary() -> tuple[str, ...]:
    """Return the words that all members know: those of the task "sentences", then <unk>."""
    return (*task[TASK].vocabulary, UNKNOWN)


def file_of(member: str, seed: int) -> str:
    """Return a member's file name in models/family: "{member}.{seed}.safetensors"."""
    return f"{member}.{seed}.safetensors"


def read_shipped(folder: Path = FOLDER) -> dict[tuple[str, int], str]:
    """Read SHA256SUMS as {(member, seed): hash}, not looking for the files; {} if unreadable."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    all_of_them = ((member, seed) for seed in SEEDS for member in members())
    return {
        member: digests[file_of(*member)] for member in all_of_them if file_of(*member) in digests
    }


def open_member(member: str, seed: int, folder: Path = FOLDER) -> Opened:
    """Load a member; CheckpointError if it is missing, or its hash is not that in SHA256SUMS."""
    name = file_of(member, seed)
    expected = read_shipped(folder).get((member, seed))
    if expected is None:
        raise CheckpointError(f"models/family/{name} is not included.")
    path = folder / name
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise CheckpointError(
            f"models/family/{name} is missing; make family retrains it."
        ) from None
    if digest != expected:
        raise CheckpointError(
            f"models/family/{name} has changed: its hash differs from the one in {SUMS}."
        )
    with safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["about"])
    # The caller may be in inference mode, but other users of the model need gradients.
    with torch.inference_mode(False):
        model = read_model(config_of(member, seed), vocabulary(), [path])
    ends = (vocabulary().index(task[TASK].ends),)
    return Opened(f"{label(member)}, seed {seed}", model, Words(vocabulary()), TASK, about, ends)


@cachetools.cached(cachetools.TTLCache(maxsize=1, ttl=1.0), lock=threading.Lock())
def list_shipped() -> dict[tuple[str, int], str]:
    """Return {(member, seed): listed hash} of what ships, read at most once a second; or {}."""
    return read_shipped()


@lru_cache(maxsize=64)
def _open_cached(member: str, seed: int, digest: str) -> Opened:
    """Open a member, cached; `digest`, its listed hash, is only part of the cache key."""
    return open_member(member, seed)


def open_cached(member: str, seed: int) -> Opened:
    """Return a member, cached and not to be modified; CheckpointError if missing or changed."""
    return _open_cached(member, seed, list_shipped().get((member, seed), ""))


def strip_config(config: Config) -> Config:
    """Return a config with BASELINE's seed and with no padding and no dropout (0, off).

    No member was trained with other values of these, and every member can be run with them.
    """
    return config.replace(seed=BASELINE.seed, padding=0, dropout=0.0, ffn_dropout=False)


@cache
def values(field: str) -> list[Any]:
    """Return the sorted values that a field of Config has in any member, the baseline included."""
    return sorted({getattr(config, field) for config in _names_by_config()})


@cache
def _names_by_config() -> dict[Config, str]:
    """Return the name of each member by its config with the baseline's seed."""
    return {config_of(member, BASELINE.seed): member for member in members()}


def member_of(config: Config) -> str | None:
    """Return the member with these settings, ignoring seed, padding, dropout; None if none."""
    return _names_by_config().get(strip_config(config))


@lru_cache(maxsize=4096)
def _weight_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return {name: shape} of the weights of a config's model with the family's vocabulary."""
    return {
        name: tuple(x.shape)
        for name, x in build_blank_model(config, vocabulary()).state_dict().items()
    }


def can_use_weights_of(config: Config, baseline: Config = BASELINE) -> bool:
    """Return whether `baseline` has the same init and every weight of `config` in its shape.

    The baseline may have more weights. How weights were drawn does not matter otherwise.
    """
    if config.init != baseline.init:
        return False
    has = _weight_shapes(strip_config(baseline))
    return all(
        has.get(name) == shape for name, shape in _weight_shapes(strip_config(config)).items()
    )


def build_with_weights(config: Config, baseline: Opened) -> Transformer | None:
    """Build a model that shares the baseline's tensors; None unless init and all shapes fit."""
    if not can_use_weights_of(config, baseline.config):
        return None
    has = baseline.model.state_dict()
    model = build_blank_model(config, vocabulary())
    model.load_state_dict(
        {name: has[name] for name in _weight_shapes(strip_config(config))}, assign=True
    )
    return model


def ablate_after_training(member: str, baseline: Opened) -> Opened | None:
    """Return the trained baseline with a member's change applied; None if weights do not fit."""
    model = build_with_weights(config_of(member, baseline.config.seed), baseline)
    if model is None:
        return None
    return replace(
        baseline, name=f"{label(member)}, removed after training", model=model, key="", about={}
    )
