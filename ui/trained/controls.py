"""Controls of Trained model: ablated components, words of the prompt, and exports."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from core.checkpoints import Opened, family, files, native
from core.checkpoints.tokens import Words
from core.experiments.trained import knockout, sentences
from core.experiments.trained import prompt as experiment
from core.experiments.trained.comparison import compared
from core.experiments.trained.prompt import Prompt
from core.export.script import Script
from core.export.scripts import (
    ELSEWHERE,
    folder_call,
    make_family_script,
    make_knockout_script,
    member_call,
)
from core.export.sheets import slug
from core.model import knockout as lesion
from core.model.config import Config
from core.model.text import split_words
from core.settings.memory import MemoryLimitError
from core.settings.setting import ConfigError
from core.settings.wording import count, explain_head_name
from core.tasks import task
from ui.kit.page import literal
from ui.kit.panel.control import Control, lexicon, pills, press
from ui.kit.store import change, value
from ui.shared import models
from ui.shared.base import draw_unknown_words
from ui.trained.context import TrainedContext, TrainedLook, ablate_part, restore_part


def script(context: TrainedContext) -> Script:
    """Return the Python script that reproduces the open view."""
    look = context.look
    if look.taken == "without":
        return make_family_script(look.compared, look.part if compared[look.compared].split else "")
    token = context.after + 1 if look.taken == "words" else 1
    reads: dict[str, Any] = {"text": look.prompt, "token": token, "sampling": context.sampling}
    return make_knockout_script(
        opening_call(look.model), context.cuts, look.mode, look.texts, look.taken, **reads
    )


def opening_call(model_name: str) -> str:
    """Return the Python call that opens a model, a placeholder for folders outside the project."""
    member = models.family_models().get(model_name)
    if member in family.list_shipped():
        return member_call(*member)
    folder = files.model_folders().get(model_name)
    if folder and folder.is_relative_to(files.ROOT):
        return folder_call(folder.relative_to(files.ROOT).as_posix())
    return ELSEWHERE


def list_model_files(opened: Opened) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return {label: (file name, function -> zip)} for export; {} for other projects' models."""
    if not isinstance(opened.tokens, Words):
        return {}

    def write() -> bytes:
        return native.zip_files(
            native.model_files(opened.model, opened.name, opened.task, **opened.about)
        )

    return {"This model: weights and configuration": (f"{slug(opened.name)}.zip", write)}


def knockout_menu(config: Config, cuts: tuple[lesion.Cut, ...]) -> list[Control]:
    """Return the menu of components to remove (a click toggles); for two or more, "Restore all"."""
    offered = lesion.list_cuts(config)
    chosen = [cut.write() for cut in cuts]
    keys = [cut.write() for cut in offered]
    labels = [f"− {cut.name}" for cut in offered]
    menu = pills(
        "Remove component",
        "cut_list",
        chosen,
        keys,
        labels,
        on_toggle=_toggle_ablation,
        search="Search heads and layers",
    )
    if len(cuts) < 2:
        return [menu]
    restore = press(
        "Restore all",
        "restore",
        "Restore every removed component.",
        partial(change, out=""),
        icon="undo",
    )
    return [menu, restore]


def remove_head_button(
    look: TrainedLook, opened: Opened, cuts: tuple[lesion.Cut, ...]
) -> list[Control]:
    """Return [the button that ablates the head on view], or [] if ablated, or none is on view."""
    is_of_one_head = look.taken in ("words", "steps") or (
        look.taken == "attention" and look.maps in ("one", "lines")
    )
    if not (is_of_one_head and opened.config.attention):
        return []
    cut = lesion.Cut(look.layer_of(opened), "head", look.head_of(opened))
    if cut in cuts:
        return []
    about = "Remove this head and measure the effect."
    view = {} if look.taken == "words" else {"taken": "knockout"}
    return [
        press(
            f"Remove {cut.name}",
            "remove_head",
            about,
            partial(ablate_part, cut.write(), **view),
            "content_cut",
        )
    ]


def _toggle_ablation(text: str, is_removed: bool):
    """Ablate a component ("2.3") if it is to be removed now, else restore it (a callback)."""
    (ablate_part if is_removed else restore_part)(text)


def summary_html(context: TrainedContext) -> str:
    """Return HTML on the model: parameters, layers, heads, vocabulary, tokens, time, source."""
    opened = context.opened
    config = opened.config
    source = (
        f"Trained on: {task.label(opened.task)}" if opened.task in task else "Weights from a file"
    )
    heads = f"× {count(config.n_heads, 'head')}" if config.attention else "without attention"
    return (
        f"<b>{opened.parameters:,} parameters</b>, {count(config.n_layers, 'layer')} {heads}<br>"
        f"vocabulary {len(opened.model.vocabulary):,} · {count(len(context.prompt.ids), 'token')} ·"
        f" {context.full_pass.timing} on {escape(context.full_pass.machine.name)}<br>"
        f"<i>{escape(source)}</i><br>"
        f"<i>{explain_head_name(config.n_layers, config.n_heads)}</i>"
    )


def word_controls(look: TrainedLook, opened: Opened) -> list[Control]:
    """Return a button that completes the text, and the vocabulary; [] for models of other tasks."""
    if not (opened.task == "sentences" and isinstance(opened.tokens, Words)):
        return []
    written = split_words(look.prompt)
    groups = sentences.group_words(written)
    about = "Greedy decoding to the end of the sentence."
    if written and written[-1] == sentences.END:
        about += " This text already ends with a full stop."
    return [
        press(
            "Complete", "complete", about, partial(_complete, look, opened), "playlist_add_check"
        ),
        lexicon("Vocabulary", "lexicon", "prompt", ("Likely next", "Other"), groups),
    ]


def _complete(look: TrainedLook, opened: Opened):
    """Complete the prompt's sentence, unless it has ended or cannot be read (a callback)."""
    text = value("prompt")
    if not split_words(text) or split_words(text)[-1] == sentences.END:
        return
    with suppress(
        ConfigError, MemoryLimitError
    ):  # as the page says itself of a text that cannot be read
        read = experiment.read(opened, text)
        ending = experiment.complete_text(knockout.bench(opened, look.texts), read)
        change(prompt=" ".join([text.strip(), *ending]))


def draw_reading_notes(prompt: Prompt):
    """Draw notes on how the prompt is read: what was left out, and unknown tokens."""
    for note in prompt.notes:
        st.caption(literal(note))
    draw_unknown_words(prompt.labels, prompt.unknown)
