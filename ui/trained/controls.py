"""The row with the text that the model reads, and which of its words the model does not know."""

from contextlib import suppress
from functools import partial
from html import escape

import streamlit as st

from core.checkpoints import Opened, files, own
from core.checkpoints.tokens import Words
from core.experiments.trained import knockout, sentences
from core.experiments.trained import prompt as experiment
from core.experiments.trained.comparison import compared
from core.experiments.trained.prompt import Prompt
from core.export.script import Script
from core.export.scripts import ELSEWHERE, family_script, folder_call, knockout_script, member_call
from core.export.sheets import slug
from core.model import knockout as lesion
from core.model.text import words
from core.settings.memory import MemoryLimit
from core.settings.setting import ConfigError
from core.settings.wording import KEY, count
from ui.kit.page import capital, literal
from ui.kit.panel.control import Control, lexicon, press
from ui.kit.store import bind, change, value
from ui.shared import models
from ui.shared.base import unknown_words
from ui.trained.context import TrainedContext


def script(context: TrainedContext) -> Script:
    """Write the script of the open view."""
    look = context.look
    if look.taken == "without":
        return family_script(look.compared, look.part if compared[look.compared].split else "")
    token = context.after + 1 if look.taken == "words" else 1
    reads = {"text": look.prompt, "token": token, "sampling": context.sampling}
    return knockout_script(opening_call(look.model), context.cuts, look.mode, look.texts, look.taken, **reads)


def opening_call(name: str) -> str:
    """Write the call that opens a model; the place of one that does not ship stays private."""
    member = models.of_the_family().get(name)
    if member:
        return member_call(*member)
    folder = files.folders().get(name)
    if folder and folder.is_relative_to(files.ROOT):
        return folder_call(folder.relative_to(files.ROOT).as_posix())
    return ELSEWHERE


def model_file(opened: Opened) -> dict:
    """A model of the lab's own as a file: label -> (name of the file, what makes it)."""
    if not isinstance(opened.tokens, Words):
        return {}
    write = lambda: own.zipped(own.write(opened.model, opened.name, opened.task, **opened.about))  # noqa: E731
    return {"This model: weights and configuration": (f"{slug(opened.name)}.zip", write)}


def knockout_row(look, config, cuts: tuple[lesion.Cut, ...]):
    """Draw what is knocked out, and what takes its place."""
    there = {cut.write(): cut for cut in lesion.cuts(config)}
    take_out_these = lambda chosen: change(out="~".join(chosen))  # noqa: E731
    left, middle, right = st.columns([4, 2, 3], vertical_alignment="center")
    with left:
        st.multiselect(
            "Knock out", list(there), **bind("cut_list", [cut.write() for cut in cuts], take_out_these), format_func=lambda text: f"− {there[text].name}",
            placeholder="Knock out a head, a sub-layer or a layer …", label_visibility="collapsed",
        )  # fmt: skip
    with middle:
        about = "\n".join(f"- **{lesion.mode.label(each)}**: {lesion.mode.help(each)}" for each in lesion.mode)
        st.selectbox(
            "What takes its place", list(lesion.mode), **bind("mode", look.mode), help=about, label_visibility="collapsed",
            format_func=lambda each: f"{lesion.mode.label(each).lower()} in its place",
        )  # fmt: skip
    with right:
        words = {"icon": ":material/undo:", "width": "stretch"}
        st.button("Put everything back", on_click=change, kwargs={"out": ""}, disabled=not cuts, **words)
    st.caption(f"{capital(KEY)}.")  # what the names of heads mean, which stand in this row from the first


def summary(context: TrainedContext) -> str:
    """As HTML."""
    opened, config = context.opened, context.opened.config
    heads = f"× {count(config.n_heads, 'head')}" if config.attention else "without attention"
    return (
        f"<b>{opened.parameters:,} parameters</b>, {count(config.n_layers, 'layer')} {heads}<br>"
        f"{len(opened.model.vocabulary):,} words · {count(len(context.prompt.ids), 'token')} · {context.whole.timing} on {escape(context.whole.machine.name)}<br>"
        f"<i>Trained weights: {escape(opened.task or 'from a file')}</i>"
    )


def words_row(look, opened: Opened) -> list[Control]:
    """The words of its grammar to write with, and what ends the text; none for a model that has learnt something else."""
    if not (opened.task == "sentences" and isinstance(opened.tokens, Words)):
        return []
    written = words(look.prompt)
    groups = sentences.offered(written)
    about = "The whole model writes on, the likeliest word each time, up to its full stop."
    if written and written[-1] == sentences.END:
        about += " This text has its full stop: there is nothing to add."
    return [
        press("Complete it", "complete", about, partial(_complete, look, opened), "playlist_add_check"),
        lexicon("Words it knows", "lexicon", "prompt", ("Can come next", "All others"), groups),
    ]


def _complete(look, opened: Opened):
    """Write the text to its end, as it stands by now: it may have been typed just before (a callback)."""
    text = value("prompt")
    if not words(text) or words(text)[-1] == sentences.END:
        return
    with suppress(ConfigError, MemoryLimit):  # as the page says itself of a text that cannot be read
        read = experiment.read(opened, text)
        ending = experiment.completed(knockout.bench(opened, look.texts), read)
        change(prompt=" ".join([text.strip(), *ending]))


def as_read(prompt: Prompt):
    """Draw what of the text the model does not read as it stands: what was left out, and which words it does not know."""
    for note in prompt.notes:
        st.caption(literal(note))
    unknown_words(prompt.labels, prompt.unknown)
