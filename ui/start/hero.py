"""The first screen: one sentence, one head, one switch, and what it costs."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from core.checkpoints import CheckpointError
from core.experiments.trained.prompt import RIGHT, SUBJECT, Side, flip
from core.figures.palette import BASELINE, VARIANTS
from core.figures.small_pictures import agreement_svg
from core.settings.memory import MemoryLimit
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import KEY, head_name
from core.study.shipped import shipped
from ui.kit.page import capital
from ui.kit.pages import LESSONS, ONE_BLOCK, TRAINED_MODEL, TRAINING
from ui.kit.panel.script import with_store
from ui.kit.store import bind
from ui.shared.model_defaults import reader
from ui.shared.models import SHIPPED, known

CSS = f"""
.root {{ font-family: var(--st-font); overflow-x: auto; }} .picture {{ max-width: 800px; }}
svg {{ width: 100%; height: auto; display: block; }} text {{ fill: var(--st-text-color); }} .middle {{ text-anchor: middle; }}
.word {{ font-size: 17px; }} .chosen {{ font-weight: 700; }} .verdict {{ font-size: 12px; }}
.figure {{ font-size: 12px; fill: color-mix(in srgb, {BASELINE} 55%, var(--st-text-color)); font-weight: 600; }}
.arc {{ fill: none; stroke: {BASELINE}; stroke-linecap: round; }} .arc.off {{ stroke: var(--st-text-color); stroke-dasharray: 3 6; stroke-width: 1.5; stroke-opacity: 0.4; }}
.figure.off {{ fill: var(--st-text-color); opacity: 0.5; text-decoration: line-through; }}
.slot {{ fill: color-mix(in srgb, {BASELINE} 14%, transparent); stroke: {BASELINE}; stroke-width: 1.5; }}
.slot.wrong {{ fill: color-mix(in srgb, {VARIANTS[0]} 16%, transparent); stroke: {VARIANTS[0]}; stroke-width: 2; }} .verdict.wrong {{ font-weight: 700; }}
"""
_picture = st.components.v2.component(
    "ablation_hero",
    html='<div class="root"><div class="picture"></div><div hidden></div></div>',
    css=CSS,
    js=with_store((Path(__file__).parent.parent / "pictures" / "drawing.js").read_text()),
)


@dataclass(frozen=True)
class StartLook(Settings):
    """What is looked at on the start page."""

    removed: bool = setting(
        False, "Remove the head", "Whether the head that reads the subject is removed from the model.", group="Look"
    )
    parts: str = setting("ablation_matrix", "Parts", "Which study is shown.", group="Look", menu=shipped)


def hero(removed: bool):
    """Drawn where the model that ships can be opened; its card says why where it cannot."""
    with suppress(ConfigError, CheckpointError, MemoryLimit):
        layer, head = reader(SHIPPED)
        _hero(flip(known(SHIPPED), layer - 1, head - 1), layer, head, removed)


def _hero(made, layer: int, head: int, removed: bool):
    name = head_name(layer - 1, head - 1)
    st.markdown(
        f"A small language model has learnt to write legal sentences. One of its parts, {name}, looks back from "
        f"the verb to its subject, **{SUBJECT}**. Remove it, and read what happens. :gray[({capital(KEY)}.)]"
    )
    st.toggle(f"Remove {name}", **bind("removed", removed))
    side = made.without if removed else made.whole
    picture = agreement_svg(made.words, made.weights, side.chosen, side.wrong, removed)
    _picture(key="hero", data={"picture": picture, "clicked": False})
    st.markdown(told(made.whole, made.without, removed))
    ways = (
        ("Take a block apart", ONE_BLOCK, {}),
        ("Train without a part", TRAINING, {}),
        ("What else is in this model?", TRAINED_MODEL, {"taken": "sweep"}),
        ("A lesson, five minutes", LESSONS, {"shown": "one", "lesson": "heads"}),
    )
    with st.container(horizontal=True, gap="medium"):
        for words, there, params in ways:
            st.page_link(there.path, label=f"**{words}**", icon=there.icon, query_params=params)


def told(whole: Side, without: Side, removed: bool) -> str:
    """The next word, and how often it is the right one."""
    side = without if removed else whole
    words = ", ".join(
        f"{'**' * (word == side.chosen)}{word} {side.chances[word]:.2f}{'**' * (word == side.chosen)}"
        for word in side.chances
    )
    right = f"Right in **{side.right} of {side.of}** held-out sentences"
    return (
        f"Next word: {words}, all other words {1 - sum(side.chances.values()):.2f} ({RIGHT} is right). {right}"
        + f"; with the head {whole.right} of {whole.of}." * removed
        + "." * (not removed)
    )
