"""Menu of published blocks, and a line on the open one, on One block and Training."""

from collections.abc import Callable

import streamlit as st

from core.model.config import Config
from core.model.published import find_published, published
from ui.kit.panel.control import Control, choice
from ui.kit.store import is_movable

DEFAULT = "default"


def published_controls(
    config: Config, open_block: Callable[[dict[str, str]], None], own_mask: bool = True
) -> list[Control]:
    """Return the menu of published blocks, which shows the open one; [] if a setting is locked.

    Args:
        config: Current settings.
        open_block: Called with settings as texts: of the chosen block, or {} for the default one.
        own_mask: Whether the block brings its mask; on Training the mask is the task's.
    """
    fields = {field for entry in published.values() for field in entry.settings}
    if not all(map(is_movable, fields)):
        return []
    name = find_published(config if own_mask else config.replace(mask="causal"))
    menu = choice(
        "Published block",
        "published",
        name or DEFAULT,
        [DEFAULT, *published],
        ["Default block" if name else "Published blocks", *map(published.label, published)],
        on_select=lambda chosen: open_block(_write_settings(chosen, config, own_mask)),
    )
    return [menu]


def _write_settings(name: str, config: Config, own_mask: bool) -> dict[str, str]:
    """Return a block's settings at a config's sizes as texts, sizes included; {} for DEFAULT."""
    if name == DEFAULT:
        return {}
    sizes = {size: getattr(config, size) for size in ("d_model", "n_heads", "n_layers")}
    values = sizes | published[name].settings_at(config)
    if not own_mask:
        values.pop("mask")
    settings = Config.settings()
    return {field: settings[field].write(value) for field, value in values.items()}


def draw_published_note(config: Config, own_mask: bool = True):
    """Draw a line on the open published block: its parts, its source, and what differs here."""
    name = find_published(config if own_mask else config.replace(mask="causal"))
    if not name:
        return
    block = published[name]
    sentences = [f"{published.label(name)}: {published.help(name)}"]
    if config.d_ff == block.width_at(config):
        sentences.append(f"FFN width and key-value heads are in proportion to {block.source}.")
    sentences.append(block.differs)
    if not own_mask and config.mask != "causal":
        sentences.append("The mask is the task's.")
    earlier = "the original transformer's" if name == "gpt2" else "GPT-2's"
    sentences.append(f"“Compare with” first lists its choices, each replaced by {earlier}.")
    with st.container(key="published_note"):  # presentation mode hides it
        st.caption(" ".join(filter(None, sentences)))
