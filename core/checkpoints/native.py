"""Models of this lab as two files: model.safetensors (weights), config.json (all else)."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tensors import SizeCheck, check_fit, check_room, load, read_shapes
from core.checkpoints.tokens import Words
from core.model.config import Config
from core.model.cost import parameters
from core.model.parts.init import Blank
from core.model.transformer import Transformer
from core.settings.process import versions
from core.settings.setting import ConfigError
from core.settings.wording import replace_unprintable, shorten
from core.tasks import task
from core.train import State
from core.train import model as model_of

FORMAT = "ablation-lab"
VERSION = 1
WEIGHTS = "model.safetensors"
SETTINGS = "config.json"
# of a vocabulary, of a word
MOST_WORDS = 100_000
MOST_LETTERS = 200
LONGEST_NAME = 80  # letters


def model_files(
    model: Transformer, name: str, trained_on: str = "", /, **about: object
) -> dict[str, bytes]:
    """Return a model as {"model.safetensors": …, "config.json": … with `about`}, not on disk.

    Args:
        model: The model to be saved.
        name: Its name on screen.
        trained_on: Key of the task that it was trained on, or "".
        about: Further facts for config.json, as JSON.
    """
    settings = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "config": dataclasses.asdict(model.config),
        "vocabulary": model.vocabulary,
        "task": trained_on,
        "about": {**about, "versions": versions()},
    }
    weights = {name: x.detach().cpu().contiguous() for name, x in model.state_dict().items()}
    return {
        WEIGHTS: safetensors.torch.save(weights),
        SETTINGS: (
            (json.dumps(settings, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")
        ),
    }


def trained_model_files(state: State, name: str, accuracy: float) -> dict[str, bytes]:
    """Return a training's model as {"model.safetensors": …, "config.json": … with accuracy}."""
    return model_files(
        model_of(state), name, state.training.task, **_describe_training(state), accuracy=accuracy
    )


def zip_files(written: dict[str, bytes]) -> bytes:
    """Pack files, {name: content}, into a ZIP archive for one download; return its bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in written.items():
            file.writestr(name, data)
    return archive.getvalue()


def open_training(state: State, name: str) -> Opened:
    """Copy a training's model to the CPU, at its current step; return it as Opened."""
    return _wrap_model(name, model_of(state).cpu(), state.training.task, _describe_training(state))


def _describe_training(state: State) -> dict[str, Any]:
    """Return {"training": settings as a dict, "seed": …, "step": …} for config.json."""
    return {"training": dataclasses.asdict(state.training), "seed": state.seed, "step": state.step}


def read(
    settings: dict[str, Any], weights: Sequence[Path], check: SizeCheck | None = None
) -> Opened:
    """Open this lab's model from config.json's content; CheckpointError, MemoryLimitError."""
    if settings.get("version") != VERSION:
        version = shorten(settings.get("version"))
        raise CheckpointError(
            f"{SETTINGS}: version is {version}; only version {VERSION} is supported."
        )
    config = _read_config(settings.get("config"))
    vocabulary: Any = settings.get("vocabulary")
    is_list = isinstance(vocabulary, list) and 0 < len(vocabulary) <= MOST_WORDS
    is_good = is_list and all(
        isinstance(word, str) and 0 < len(word) <= MOST_LETTERS for word in vocabulary
    )
    if not is_good or len(set(vocabulary)) < len(vocabulary):
        raise CheckpointError(
            f"{SETTINGS}: vocabulary must be a list of 1 to {MOST_WORDS:,} different words, each of"
            f" 1 to {MOST_LETTERS} characters."
        )
    check_room(sum(parameters(config, len(vocabulary)).values()), len(vocabulary), SETTINGS, check)
    learnt = settings.get("task", "")
    if not isinstance(learnt, str) or (learnt and learnt not in task):
        raise CheckpointError(
            f"{SETTINGS}: task is {shorten(learnt)}; it must be one of {', '.join(task)}, or"
            " absent."
        )
    if learnt and not set(task[learnt].vocabulary) <= set(vocabulary):
        raise CheckpointError(
            f"{SETTINGS}: task is {learnt}, but the vocabulary lacks some of its words."
        )
    about = settings.get("about", {})
    if not isinstance(about, dict):
        raise CheckpointError(f"{SETTINGS}: about must be an object.")
    # the head with which the page opens
    reader = about.get("reader", [1, 1])
    counts = (config.n_layers, config.n_heads)
    is_pair = isinstance(reader, list) and len(reader) == 2
    if not is_pair or not all(
        type(n) is int and 1 <= n <= limit for n, limit in zip(reader, counts)
    ):
        raise CheckpointError(
            f"{SETTINGS}: about.reader is {shorten(reader)}; it must be a layer and a head of the"
            f" model, from 1 to {config.n_layers} and from 1 to {config.n_heads}."
        )
    name = replace_unprintable(settings.get("name", ""))[:LONGEST_NAME].strip() or "a model"
    return _wrap_model(name, read_model(config, tuple(vocabulary), weights), learnt, about)


def read_model(config: Config, vocabulary: Sequence[str], weights: Sequence[Path]) -> Transformer:
    """Build a model with stored weights; CheckpointError unless all fit, MemoryLimitError."""
    tensors = read_shapes(weights)
    positions = tensors["position.weight"].shape if "position.weight" in tensors else ()
    model = build_blank_model(config, vocabulary, positions[0] if len(positions) == 2 else 0)
    check_fit(
        tensors, {name: x.shape for name, x in model.state_dict().items()}, weights_name(weights)
    )
    model.load_state_dict(load(tensors), assign=True)
    return model


def build_blank_model(config: Config, vocabulary: Sequence[str], positions: int = 0) -> Transformer:
    """Build a model on the meta device; `positions`: rows of a learned table, 0 for the default."""
    draw: Any = Blank()  # takes the place of a Draw
    model = Transformer(config, vocabulary, draw)
    if positions and hasattr(model.position, "weight"):
        model.position.weight = nn.Parameter(torch.empty(positions, config.d_model, device="meta"))
    return model


def weights_name(weights: Sequence[Path]) -> str:
    """Return how a message names the weights: the file's name, or "model.safetensors" for parts."""
    return weights[0].name if len(weights) == 1 else WEIGHTS


def _wrap_model(name: str, model: Transformer, task_key: str, about: dict[str, Any]) -> Opened:
    """Wrap a model with its tokens, its task ("" for none) and the end token of the task."""
    end = task[task_key].ends if task_key in task else ""
    ends = (model.vocabulary.index(end),) if end else ()
    return Opened(name, model, Words(model.vocabulary), task_key, about, ends)


def _read_config(document: object) -> Config:
    """Check the settings in config.json and build the Config; CheckpointError if invalid."""
    if not isinstance(document, dict):
        raise CheckpointError(
            f"{SETTINGS} has no object named config with the settings of the model."
        )
    names = [field.name for field in dataclasses.fields(Config)]
    unknown = [name for name in document if name not in names]
    if unknown:
        raise CheckpointError(
            f"{SETTINGS}: config contains {shorten(unknown[0])}, which is not a setting; settings"
            f" are {', '.join(names)}."
        )
    try:
        return Config(**document)
    except ConfigError as error:
        raise CheckpointError(f"{SETTINGS}: config is inconsistent: {error}") from None
