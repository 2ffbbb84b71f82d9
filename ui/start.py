"""The start page: what can be done, an experiment of each kind at one click, and what each part was measured to be for."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from core.checkpoints import CheckpointError
from core.experiments.trained.prompt import RIGHT, SUBJECT, Side, flip
from core.experiments.training.plan import showcase
from core.figures.palette import BASELINE, VARIANTS
from core.figures.small_pictures import agreement_svg
from core.settings.memory import MemoryLimit
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import KEY, count, head_name
from core.study.plan import StudyError
from core.study.shipped import shipped, table_of
from core.study.summary import beside_one_rate, is_sparse, read_summary
from ui.kit.page import capital, explained, in_words, notice, page
from ui.kit.pages import DEPTH, LESSONS, ONE_BLOCK, START, TRAINED_MODEL, TRAINING, Page
from ui.kit.panel.control import tabs
from ui.kit.panel.panel import bar
from ui.kit.server.scripts import component
from ui.kit.store import bind
from ui.pictures import drawing
from ui.pictures.ablation_matrix import matrix
from ui.shared.models import SHIPPED, known, reader

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
HTML = '<div class="root"><div class="picture"></div><div hidden></div></div>'
_picture = component("hero", drawing.SCRIPT, CSS, HTML)


@dataclass(frozen=True)
class StartLook(Settings):
    """What is looked at on the start page."""

    removed: bool = setting(
        False, "Remove the head", "Whether the head that reads the subject is removed from the model.", group="Look"
    )
    parts: str = setting("ablation_matrix", "Parts", "Which study is shown.", group="Look", menu=shipped)


def hero(removed: bool):
    """Draw the first picture, where the model that ships can be opened; its card says why where it cannot."""
    with suppress(ConfigError, CheckpointError, MemoryLimit):
        layer, head = reader(SHIPPED)
        flipped = flip(known(SHIPPED), layer - 1, head - 1)
        name = head_name(layer - 1, head - 1)
        st.markdown(
            f"A small language model has learnt to write legal sentences. One of its parts, {name}, looks back from "
            f"the verb to its subject, **{SUBJECT}**. Remove it, and read what happens. :gray[({capital(KEY)}.)]"
        )
        st.toggle(f"Remove {name}", **bind("removed", removed))
        side = flipped.without if removed else flipped.whole
        picture = agreement_svg(flipped.words, flipped.weights, side.chosen, side.wrong, removed)
        _picture(key="hero", data={"picture": picture, "clicked": False})
        st.markdown(told(flipped.whole, flipped.without, removed))
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
    """Return the chances of the next word, and how often it is the right one."""
    side = without if removed else whole
    chances = {word: f"{word} {chance:.2f}" for word, chance in side.chances.items()}
    chances[side.chosen] = f"**{chances[side.chosen]}**"
    others = 1 - sum(side.chances.values())
    compared = f"; with the head {whole.right} of {whole.of}" if removed else ""
    return (
        f"Next word: {', '.join(chances.values())}, all other words {others:.2f} ({RIGHT} is right). "
        f"Right in **{side.right} of {side.of}** held-out sentences{compared}."
    )


EXPERIMENTS = {  # page -> title, what to look for, the link's parameters
    ONE_BLOCK: (
        ("Take the residual out", "Cut the stream around attention. How much of each word is left in the output?",
         {"view": "change", "variants": "residual_attention-off"}),
        ("Stop scaling the scores", "Without 1/√d_k the softmax sharpens. Watch the entropy fall.",
         {"weights": "random", "view": "steps", "step": "7", "variants": "scale-off"}),
        ("One head, four, eight", "The same width cut into fewer or more heads. What does each one look at?",
         {"weights": "random", "view": "heads", "compare": "on"}),
        ("Dog bites man", "Without positions the block cannot know who bit whom. See the difference, in numbers.",
         {"weights": "random", "view": "positions", "text": "The dog bites the man"}),
        ("Half the neurons are silent",
         "ReLU sets about every second hidden unit to exactly zero. Which ones, for which word?",
         {"weights": "random", "view": "neurons", "variants": "activation-relu"}),
        ("Hide the future", "The causal mask: each word may only look back. Where does its attention go?",
         {"weights": "random", "view": "attention", "variants": "mask-causal"}),
    ),
    DEPTH: (
        ("Ten passes without a norm", "Feed a block its own output, with and without LayerNorm. Who grows, and how fast?",
         {"variants": "norm-none"}),
        ("All words become one", "Cut the residuals. After how many passes do all words point the same way?",
         {"variants": "residual_attention-off__residual_ffn-off", "show": "attention", "matrix": "alike"}),
        ("Where the gradient goes",
         "64 blocks deep: what of the error still arrives at the first one, without residuals, or with the norm moved?",
         {"passes": "64", "blocks": "separate", "variants": "residual_attention-off__residual_ffn-off~placement-post",
          "show": "gradients"}),
        ("96 blocks at once",
         "Every combination of norm, placement, residual, activation and heads, in one picture. Which part matters most?",
         {"show": "grid"}),
    ),
}  # fmt: skip


WRAPPED = """<style>
[data-testid='stMain'] [data-testid='stPageLink'] p { white-space: normal; overflow: visible; line-height: 1.25; }
[data-testid='stMain'] [data-testid='stPageLink'] a { padding-left: 0; }
[data-testid='stMain'] [data-testid='stPageLink'] a:focus-visible { outline: 2px solid; outline-offset: 2px; }
</style>"""


def experiments_on(there: Page) -> list:
    """Return the experiments of a page: title, what to look for, the link's parameters."""
    if there is TRAINED_MODEL:
        head = ".".join(map(str, reader(SHIPPED)))
        return [
            ("Who is liable?", "Words in between, and the verb still looks back at its subject. Which head does that?", {}),
            ("Remove that head", "How much worse does the model get on 256 held-out sentences, and does another part make up for it?", {"taken": "knockout", "out": head}),
            ("Cut it, or never have it", "Cut a part out of a trained model, or train without it from the start: which does more harm?", {"taken": "without"}),
            ("Every part, one by one", "Each head and each sub-layer taken out by itself, ranked by what it costs.", {"taken": "sweep"}),
            ("What comes next?", "Probabilities, temperature, a text that goes on; click a word to see what it read.", {"taken": "words"}),
            ("When does it know?", "The next word as each layer would have it: the logit lens.", {"taken": "layers"}),
        ]  # fmt: skip
    if there is TRAINING:  # begun at once
        return [
            (showcase.label(name), capital(showcase.help(name)), link() | {"begin": "on"})
            for name, link in showcase.items()
        ]
    return EXPERIMENTS[there]


AT_ITS_OWN_RATE = (
    "Each part on the task on which it makes the most difference. Left: all models at the rate that the task sets. Right: each "
    "at the best of three rates: that one, a third of it, three times it. For each seed the one counts that ends with the lowest training loss. "
    "The tasks were picked by the figures on the left, so these are rather too large."
)
CARDS = (ONE_BLOCK, DEPTH, TRAINING, TRAINED_MODEL)


def card(there: Page):
    """Draw a page and its experiments."""
    with st.container(border=True, height="stretch", gap="small"):
        with st.container(gap=None):
            st.page_link(there.path, label=f"**{there.name}**", icon=there.icon)
            st.caption(there.about)
        with in_words():
            for title, text, params in experiments_on(there):
                with st.container(gap=None):
                    st.page_link(there.path, label=f":primary[**{title}**]", query_params=params)
                    st.caption(text)


def measured(look: StartLook):
    """The studies that ship: what each part costs on each task, or gives."""
    st.header("What each part is for, measured", anchor=False)
    bar("studies", [tabs("Parts", shipped, "parts")])
    path = table_of(look.parts)
    try:
        cells = _table(path, path.stat().st_mtime_ns)
        searched = is_sparse(cells)
        if searched:  # beside the same cells where all have one rate
            paths = [table_of(name) for name in shipped]
            cells = beside_one_rate(cells, [_table(each, each.stat().st_mtime_ns) for each in paths])
    except (OSError, StudyError):
        raise ConfigError("results", f"The table of this study, results/{path.name}, is missing or damaged; make matrix makes it again.") from None  # fmt: skip
    st.markdown(f"**{shipped.help(look.parts)}**")
    about = f"One change at a time, on {count(cells.task.nunique(), 'task')}, {count(cells.seeds.max(), 'seed')} each."
    if searched:
        about = AT_ITS_OWN_RATE
    st.caption(
        f"{about} Change of accuracy in percentage points: "
        "mean and 95 % interval (paired t, corrected for the rows of a task by Holm's method). Pale: not distinguishable from seed noise. Click a cell to see how it was learnt. "
        f"All of it: results/{path.name}, made by “make matrix”.",
        help=explained("Holm", "paired t"),
    )
    matrix(cells, "home_matrix")


@st.cache_data
def _table(path: Path, stamp: int) -> pd.DataFrame:
    """Raises OSError or StudyError for a file that is not there, or not whole."""
    return read_summary(path)


def start():
    with page(START):
        (look,), notes = START.settings(StartLook)
        notice(*notes)
        st.html(WRAPPED)
        st.title("What is each part of a transformer for? Take it out and see.", anchor=False)
        hero(look.removed)
        with in_words():
            measured(look)
        st.header("Experiments", anchor=False)
        for column, there in zip(st.columns(len(CARDS), gap="small"), CARDS):
            with column:
                card(there)
