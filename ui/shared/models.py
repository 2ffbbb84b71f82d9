"""Models of a session: shipped ones, folders, and those trained or uploaded here."""

import functools
import os
import threading
import time
import weakref
from contextlib import suppress

import streamlit as st

from core.checkpoints import CheckpointError, Opened, family, files
from core.experiments.trained import knockout, tables
from core.experiments.trained.questions import questions
from core.settings.device import Machine
from core.settings.environment import read_whole_number
from core.settings.memory import MemoryLimitError, max_mb
from core.settings.setting import ConfigError

# held-out texts; floating point operations that a pass through all of them may take
TEXTS = 256
WORK = 8e10
ENGLISH = (
    ("Intervening clause", "The defendant, who had filed a motion to dismiss, was liable."),
    ("Distractor noun", "The keys to the cabinet are on the table."),
    ("Unfinished sentence", "The court held that the tenants of the building"),
    ("Repeated pattern", "Mr. Smith was late. Mrs. Jones was early. Mr."),
)


def example_prompts(model_name: str) -> list[tuple[str, str]]:
    """Return (title, text) of example prompts for a model; English ones if it has no task."""
    opened = open_model(model_name)
    if opened.learnt and opened.learnt.texts:
        return list(opened.learnt.texts)
    if not opened.task:
        return list(ENGLISH)

    def make() -> tuple[list[tuple[str, str]], int]:
        rows = questions(opened, 64).tokens[:6].tolist()
        texts = dict.fromkeys(
            " ".join(opened.model.vocabulary[token] for token in row) for row in rows
        )
        return [(f"Text {n}", text) for n, text in enumerate(texts, 1)], 10_000

    return opened.results.get("prompts", make)


def best_reader(model_name: str) -> tuple[int, int]:
    """Return (layer, head), from 1: the model's best subject reader, or (1, 1) without any."""
    opened = open_model(model_name)
    if "reader" in opened.about:
        return tuple(opened.about["reader"])
    if opened.learnt and opened.learnt.agreement:

        def make() -> tuple[tuple[int, int], int]:
            best = tables.attention_to_subject(knockout.bench(opened, n_texts(model_name)))[:1]
            return next(((head.layer + 1, head.head + 1) for head in best), (1, 1)), 100

        return opened.results.get("reader", make)
    return 1, 1


def n_texts(model_name: str) -> int:
    """Return how many held-out texts to measure a model on: 256, or fewer (16 at least) if slow."""
    opened = open_model(model_name)
    return max(16, min(TEXTS, int(WORK / (2 * opened.parameters * 20)) // 16 * 16))


# FAMILY: before a member and its seed, "family/norm-none.0"
SHIPPED = files.SHIPPED
FAMILY = "family/"
# keys in the session; OPEN: the model to go to
OWN = "_models"
OPEN = "_open_model"
KEPT = 4  # models of one visitor at most; all together may have as much memory as one run
LARGE = 5_000_000  # parameters

kept_by_all: "weakref.WeakSet" = (
    weakref.WeakSet()
)  # models that visitors brought along, or took from a training
_counting = threading.Lock()  # of them: two visitors may open theirs at the same moment


@st.cache_resource(max_entries=3, show_spinner="Opening the model …")
def _from_folder(folder: bytes, changed: float) -> Opened:
    """Open the model in a folder, cached; `changed`, its time, is only part of the key."""
    return _move_to_device(files.from_folder(os.fsdecode(folder)))


def _move_to_device(opened: Opened) -> Opened:
    """Move a model of more than LARGE parameters to the GPU, in place, if any; return it."""
    if opened.parameters > LARGE:
        opened.model.to(Machine().torch_device)
    return opened


def model_folders() -> dict[str, tuple[bytes, float]]:
    """Return name -> (folder as bytes, time of change) of models on disk (no family members).

    At most a second old.
    """
    return _list_folders(int(time.monotonic()), os.environ.get("ABLATION_MODELS"))


@functools.lru_cache(maxsize=2)
def _list_folders(second: int, place: str | None) -> dict[str, tuple[bytes, float]]:
    """Return name -> (folder, time of change) of models on disk; arguments are the cache key."""
    return {
        name: (os.fsencode(folder), files.last_written(folder))
        for name, folder in files.model_folders().items()
    }


def family_models() -> dict[str, tuple[str, int]]:
    """Return name -> (member, seed) of the family: models that ship or were trained here."""
    return {f"{FAMILY}{member}.{seed}": (member, seed) for member, seed in family.list_available()}


def model_names() -> list[str]:
    """Return the names of all models that this user can open."""
    return [*model_folders(), *family_models(), *st.session_state.get(OWN, {})]


def open_model(model_name: str) -> Opened:
    """Return a model by name, cached and shared: do not change it; ConfigError, CheckpointError.

    Raises:
        ConfigError: Unknown or unreadable name; carries another model.
        CheckpointError: No other model is available.
    """
    own_models = st.session_state.get(OWN, {})
    if model_name in own_models:
        return own_models[model_name]
    shipped = model_folders()
    of_family = family_models()
    if model_name in of_family:
        try:
            return family.open_cached(*of_family[model_name])
        except CheckpointError as error:
            raise _error_with_alternative(
                model_name, f"model is {model_name}, which cannot be opened: {error}"
            ) from None
    if model_name not in shipped:
        known_to = (
            "Models that you upload or train are visible only to you, and are discarded when the"
            " tab is closed."
        )
        why = f"The folder models/{SHIPPED} is missing." if model_name == SHIPPED else known_to
        others = [*shipped, *own_models]  # and the family, of which there are many
        raise _error_with_alternative(
            model_name,
            f"There is no model “{model_name[:40]}”. Available: {', '.join(others) or 'none'}."
            f" {why}",
        )
    try:
        return _from_folder(*shipped[model_name])
    except (CheckpointError, MemoryLimitError) as error:
        raise _error_with_alternative(
            model_name, f"model is {model_name}, which cannot be opened: {error}"
        ) from None


def _error_with_alternative(model_name: str, message: str) -> ConfigError | CheckpointError:
    """Return the error for a model that cannot be opened: a ConfigError with another as `instead`.

    CheckpointError if no other can be opened.
    """
    for other in model_names():
        with suppress(CheckpointError, MemoryLimitError):
            if other != model_name and (
                other in st.session_state.get(OWN, {})
                or other in model_folders()
                and _from_folder(*model_folders()[other])
            ):
                return ConfigError("model", message, other)
    return CheckpointError(message[:1].upper() + message[1:])


def check_room(size: int):
    """Raise MemoryLimitError unless `size` more bytes fit with all users' models; free none."""
    limit = read_whole_number("ABLATION_MODELS_MB", 4 * max_mb())
    with _counting:
        used = sum(model.size for model in kept_by_all)
    if used + size > limit << 20:
        raise MemoryLimitError(
            f"All open models together may take {limit:,} MB (set by ABLATION_MODELS_MB), and this"
            " one would exceed that. Try again later: unused models are released after a few"
            " minutes."
        )


def add_model(opened: Opened) -> str:
    """Add a model to the session (the oldest may go); return its unique name; MemoryLimitError.

    An equal one is not added again.

    Raises:
        MemoryLimitError: All open models together would take too much memory.
    """
    opened = _move_to_device(opened)
    own_models = st.session_state.setdefault(OWN, {})
    same = next((name for name, model in own_models.items() if model.key == opened.key), None)
    if same:
        return same
    check_room(opened.size)
    with _counting:
        kept_by_all.add(opened)
    name = opened.name
    n = 1
    while name in own_models or name in model_folders():
        n += 1
        name = f"{opened.name} ({n})"
    own_models[name] = opened
    while len(own_models) > KEPT or (
        len(own_models) > 1 and sum(model.size for model in own_models.values()) > max_mb() << 20
    ):
        own_models.pop(next(iter(own_models)))
    return name
