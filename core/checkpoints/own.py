"""Our own models as two files: model.safetensors (the weights under core's names) and config.json (everything else)."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import safetensors.torch
import torch
from torch import nn

from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tensors import Check, File, fit, room_for_model, tensors
from core.checkpoints.tokens import Words
from core.model.config import Config
from core.model.cost import parameters
from core.model.parts.init import Blank
from core.model.transformer import Transformer
from core.settings.process import versions
from core.settings.setting import ConfigError
from core.settings.wording import printable, shorten
from core.tasks import task
from core.train import State
from core.train import model as model_of

FORMAT, VERSION = "ablation-lab", 1
WEIGHTS, SETTINGS = "model.safetensors", "config.json"
LONGEST = 100_000  # words of a vocabulary
LETTERS = 200  # of a word
LONGEST_NAME = 80
LEVELS, MOST_ABOUT = 8, 50_000  # of objects in objects, and bytes, that a file may say about its model


def write(model: Transformer, name: str, of: str = "", /, **about: object) -> dict[str, bytes]:
    """A model as files: {name of the file: its content}. of: the task it was trained on; about: whatever else is to be kept, as JSON."""
    settings = {
        "format": FORMAT, "version": VERSION, "name": name, "config": dataclasses.asdict(model.config),
        "vocabulary": model.vocabulary, "task": of, "about": {**about, "versions": versions()},
    }  # fmt: skip
    weights = {name: x.detach().cpu().contiguous() for name, x in model.state_dict().items()}
    return {
        WEIGHTS: safetensors.torch.save(weights),
        SETTINGS: (json.dumps(settings, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace"),
    }


def write_trained(state: State, name: str, accuracy: float) -> dict[str, bytes]:
    """The same of a training, as far as it came."""
    about = {
        "training": dataclasses.asdict(state.training), "seed": state.seed, "step": state.step,
        "accuracy": accuracy,
    }  # fmt: skip
    return write(model_of(state), name, state.training.task, **about)


def of_training(state: State, name: str) -> Opened:
    """A training's model as it is now, without a file between."""
    model = model_of(state)
    about = {"seed": state.seed, "step": state.step, "training": dataclasses.asdict(state.training)}
    return _opened(name, model.cpu(), state.training.task, about)


def read(settings: dict[str, Any], weights: Sequence[File], check: Check | None = None) -> Opened:
    """What write() wrote. Raises CheckpointError for anything else, MemoryLimit for what is too large to be opened."""
    of = SETTINGS
    if type(settings.get("version")) is not int or settings["version"] != VERSION:
        raise CheckpointError(f"{of}: version is {shorten(settings.get('version'))}; this lab reads version {VERSION}.")
    config = _config(settings.get("config"))
    vocabulary = _vocabulary(settings.get("vocabulary"))
    room_for_model(sum(parameters(config, len(vocabulary)).values()), len(vocabulary), of, check)
    learnt = settings.get("task", "")
    if not isinstance(learnt, str) or (learnt and learnt not in task):
        raise CheckpointError(f"{of}: task is {shorten(learnt)}; it must be one of {', '.join(task)}, or nothing.")
    if learnt and not set(task[learnt].vocabulary) <= set(vocabulary):
        raise CheckpointError(f"{of}: task is {learnt}, but its words are not all in the vocabulary.")
    name = settings.get("name", "")
    if not isinstance(name, str):
        raise CheckpointError(f"{of}: name is {shorten(name)}; it must be text.")
    about = _about(settings.get("about", {}), config)
    model = filled(config, vocabulary, tensors(*weights), name_of(weights))
    return _opened(printable(name[:LONGEST_NAME]).strip() or "a model", model, learnt, about)


def name_of(weights: Sequence[File]) -> str:
    """Return what a message calls the weights: the name of their file, or of the file that they are parts of."""
    return weights[0].name if len(weights) == 1 else WEIGHTS


def filled(config: Config, vocabulary: Sequence[str], loaded: dict[str, torch.Tensor], file: str) -> Transformer:
    """A model with these weights, by core's names. Raises CheckpointError for one that is missing, too many or misshaped."""
    blank: Any = Blank()  # takes the place of a Draw
    model = Transformer(config, vocabulary, blank)
    table = loaded.get("position.weight")
    if table is not None and table.dim() == 2 and len(table) and hasattr(model.position, "weight"):
        model.position.weight = nn.Parameter(torch.empty_like(table, device="meta"))  # of its own length
    fit(loaded, {name: x.shape for name, x in model.state_dict().items()}, file)
    model.load_state_dict(loaded, assign=True)
    return model


def _opened(name: str, model: Transformer, learnt: str, about: dict[str, Any]) -> Opened:
    end = task[learnt].ends if learnt in task else ""
    ends = (model.vocabulary.index(end),) if end else ()
    return Opened(name, model, Words(model.vocabulary), learnt, about, ends)


def _config(given: object) -> Config:
    if not isinstance(given, dict):
        raise CheckpointError(f"{SETTINGS} has no object named config, which holds the settings of the model.")
    known = [each.name for each in dataclasses.fields(Config)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise CheckpointError(f"{SETTINGS}: config holds {shorten(unknown[0])}, which is no setting; known are {', '.join(known)}.")  # fmt: skip
    try:
        return Config(**given)
    except ConfigError as error:
        raise CheckpointError(f"{SETTINGS}: config does not hold together: {error}") from None


def _about(given: Any, config: Config) -> dict[str, Any]:
    """What a file says of where its model comes from: whatever can be shown, and written again."""
    good = isinstance(given, dict) and _no_deeper(given, LEVELS)
    try:
        good = good and len(json.dumps(given, ensure_ascii=False).encode()) <= MOST_ABOUT
    except UnicodeEncodeError:  # half a character
        good = False
    if not good:
        raise CheckpointError(
            f"{SETTINGS}: about must be an object of numbers and texts, at most {LEVELS} levels deep, {MOST_ABOUT:,} bytes in all."
        )
    reader = given.get("reader")
    if "reader" in given and not (
        isinstance(reader, list)
        and len(reader) == 2
        and all(type(n) is int and 1 <= n <= most for n, most in zip(reader, (config.n_layers, config.n_heads)))
    ):
        raise CheckpointError(
            f"{SETTINGS}: about.reader is {shorten(reader)}; it must be a layer and a head of the model, "
            f"from 1 to {config.n_layers} and from 1 to {config.n_heads}."
        )
    about: dict[str, Any] = given
    return about


def _no_deeper(value: object, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inside is None or (levels > 0 and all(_no_deeper(each, levels - 1) for each in inside))


def _vocabulary(given: Any) -> tuple[str, ...]:
    good = isinstance(given, list) and 0 < len(given) <= LONGEST and all(map(_is_word, given))
    if not good or len(set(given)) < len(given):
        raise CheckpointError(
            f"{SETTINGS}: vocabulary must be a list of 1 to {LONGEST:,} different words, each of 1 to {LETTERS} letters."
        )
    return tuple(given)


def _is_word(given: object) -> bool:
    """Half a character (a lone surrogate) is no letter: it can neither be shown nor written."""
    return isinstance(given, str) and 0 < len(given) <= LETTERS and not any("\ud800" <= c <= "\udfff" for c in given)
