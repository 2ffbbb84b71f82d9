"""Model family: the language model that ships, retrained with another part or in another size.

What differs between two of them is the part or the size alone: the same sentences in the same
order, and the same first weights wherever a weight has the same name and shape
(core/model/parts/init.py). `make family` trains those that ship (scripts/family.py); users train
others, which stay on their server (core/checkpoints/trained_here.py).
"""

import hashlib
import itertools
import json
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cachetools
import safetensors.torch
import torch

from core.checkpoints import files, trained_here
from core.checkpoints.native import build_blank_model, read_model
from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tokens import Words
from core.model.config import Config
from core.model.transformer import Transformer
from core.model.variants import ablation, apply, decode, difference, encode, name_of
from core.settings.process import versions
from core.tasks import task
from core.train import State, Training
from core.train import model as model_of
from core.train.dial import DIAL, model_size
from core.train.settings import decay

FOLDER = files.ROOT / "family"
SUMS = "SHA256SUMS"  # as sha256sum writes it: what is opened is what was trained
TASK = "sentences"


@dataclass(frozen=True)
class FamilyTraining(Training):
    """Training of a member. The learning rate falls from the first step after warm-up on."""

    def rate(self, step: int) -> float:
        """Return the learning rate of a step (from 1), by warm-up and decay."""
        if step <= self.warmup:
            return super().rate(step)
        progress = (step - self.warmup) / (self.steps - self.warmup)
        return self.learning_rate * decay[self.decay](progress)


TRAINING = FamilyTraining("legal", weight_decay=0.1, clip=1.0)
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
SIZES = ("d_model", "n_heads", "d_ff", "n_layers")
GRID = {"d_model": (16, 32, 64, 128), "n_heads": (1, 2, 4, 8), "n_layers": (1, 2, 3, 4)}
FOLLOW_SIZES = ("n_kv_heads", "d_head")  # with which they mostly change
FFN_WIDTHS = (64, 128)  # once and twice d_model; d_ff is four times d_model in every other size


def members() -> list[str]:
    """List members of the usual size, as in links: "baseline", removals, replacements."""
    return [WHOLE, *(encode(part) for part in ablation.values()), *SWAPS]


@cache
def sizes() -> list[str]:
    """List the members of other sizes, as in links; those in which one size differs come first."""
    grid = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    all_sizes = [*grid, *map(model_size, DIAL), *({"d_ff": width} for width in FFN_WIDTHS)]
    changes = [difference(apply({**size}, BASELINE), BASELINE) for size in all_sizes]
    names = dict.fromkeys(encode(change) for change in sorted(changes, key=len) if change)
    return [name for name in names if name not in members()]


def models(seeds: Iterable[int] = SEEDS) -> list[tuple[str, int]]:
    """List all (member, seed): every part at each seed, every size at the first seed only."""
    of_parts = [(member, seed) for seed in seeds for member in members()]
    return of_parts + [(size, seed) for size in sizes() for seed in seeds if seed == SEEDS[0]]


def config_of(member: str, seed: int) -> Config:
    """Return BASELINE with this seed and a change in link form; ConfigError if it is invalid."""
    return apply({} if member == WHOLE else decode(member, "member"), BASELINE).replace(seed=seed)


def label(member: str) -> str:
    """Return the screen name of "baseline" or a change in link form; ConfigError if undecodable."""
    return WHOLE if member == WHOLE else name_of(decode(member, "member"))


def vocabulary() -> tuple[str, ...]:
    """Return the words that all members know: those of the task "sentences", then <unk>."""
    return task[TRAINING.task].vocabulary


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
    return {model: digests[file_of(*model)] for model in models() if file_of(*model) in digests}


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
    return _open_file(path, member, seed)


def _open_file(path: Path, member: str, seed: int) -> Opened:
    """Open a member's file; CheckpointError if it is damaged."""
    # The caller may be in inference mode, but other users of the model need gradients.
    with torch.inference_mode(False):
        model = read_model(config_of(member, seed), vocabulary(), [path])
    ends = (vocabulary().index(task[TASK].ends),)
    about = trained_here.read_about(path)
    return Opened(f"{label(member)}, seed {seed}", model, Words(vocabulary()), TASK, about, ends)


def write_member(state: State, dtype: torch.dtype = torch.float32) -> bytes:
    """Return the content of a member's safetensors file, from the state after its training."""
    member = member_of(state.config)
    weights = {
        name: x.detach().to("cpu", dtype).contiguous()
        for name, x in model_of(state).state_dict().items()
    }
    about = {
        "member": member,
        "seed": state.seed,
        "steps": state.step - state.diverged,
        "seconds": round(state.seconds),
        "versions": versions(),
    }
    return safetensors.torch.save(weights, {"about": json.dumps(about)})


@cachetools.cached(cachetools.TTLCache(maxsize=1, ttl=1.0), lock=threading.Lock())
def list_shipped() -> dict[tuple[str, int], str]:
    """Return {(member, seed): listed hash} of what ships, read at most once a second; or {}."""
    return read_shipped()


_here: cachetools.TTLCache[Any, Any] = cachetools.TTLCache(maxsize=1, ttl=1.0)


@cachetools.cached(_here, lock=threading.Lock())
def _list_trained_here() -> dict[tuple[str, int], str]:
    """Return trained_here.list_trained(), read at most once a second."""
    return trained_here.list_trained()


def list_available() -> dict[tuple[str, int], str]:
    """Return {(member, seed): its version} of all that can be opened: shipped, trained here."""
    shipped = list_shipped()
    return _list_trained_here() | shipped if shipped else {}


def save_trained(state: State) -> None:
    """Store a model that was trained here, for all users; OSError if it cannot be written."""
    trained_here.save(member_of(state.config), state.seed, write_member(state))
    _here.clear()


@lru_cache(maxsize=256)
def _open_cached(member: str, seed: int, version: str) -> Opened:
    """Open a member, cached; `version`, as in list_available(), is only part of the cache key."""
    if (member, seed) not in list_shipped() and trained_here.file_of(member, seed).exists():
        return _open_file(trained_here.file_of(member, seed), member, seed)
    return open_member(member, seed)


def open_cached(member: str, seed: int) -> Opened:
    """Return a member, cached and not to be modified; CheckpointError if missing or changed."""
    return _open_cached(member, seed, list_available().get((member, seed), ""))


def strip_config(config: Config) -> Config:
    """Return a config with BASELINE's seed and with no padding and no dropout (0, off).

    No member was trained with other values of these, and every member can be run with them.
    """
    return config.replace(seed=BASELINE.seed, padding=0, dropout=0.0, ffn_dropout=False)


def values(field: str) -> list[Any]:
    """Return the sorted values that a field of Config has in any model that can be opened."""
    return _values(field, tuple(member for member, _ in list_available()))


@lru_cache(maxsize=256)
def _values(field: str, available: tuple[str, ...]) -> list[Any]:
    """Return the sorted values that a field of Config has in these members."""
    return sorted({getattr(config_of(member, 0), field) for member in {WHOLE, *available}})


@lru_cache(maxsize=4096)
def member_of(config: Config) -> str:
    """Return the member with these settings in link form, ignoring seed, padding, dropout."""
    return encode(difference(strip_config(config), BASELINE)) or WHOLE


def find_nearest(config: Config) -> Config:
    """Return the config of the model that is most like this one, of those that can be opened.

    Parts count before sizes and sizes before the seed. A model's padding and dropout are those of
    the config.
    """
    member, seed = _find_nearest(config, tuple(list_available()))
    as_read = {name: getattr(config, name) for name in ("padding", "dropout", "ffn_dropout")}
    return config_of(member, seed).replace(**as_read)


@lru_cache(maxsize=1024)
def _find_nearest(config: Config, available: tuple[tuple[str, int], ...]) -> tuple[str, int]:
    """Return the (member, seed), of those available, that is most like a config."""
    stripped = strip_config(config)
    names = [name for name in Config.settings() if name not in (*SIZES, *FOLLOW_SIZES, "seed")]

    def distance(model: tuple[str, int]) -> tuple[int, float, bool, int]:
        member, seed = model
        other = config_of(member, BASELINE.seed)
        parts = sum(getattr(stripped, name) != getattr(other, name) for name in names)
        ratios = [getattr(stripped, name) / getattr(other, name) for name in SIZES]
        sizes_apart = sum(abs(math.log(ratio)) for ratio in ratios)
        return parts, sizes_apart, seed != config.seed, abs(seed - config.seed)

    return min(available, key=distance)


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
