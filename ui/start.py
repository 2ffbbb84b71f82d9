"""Start page: a first experiment, three cards, the ablation matrix, presets."""

from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd
import streamlit as st

from core.checkpoints import CheckpointError
from core.experiments.trained.prompt import SUBJECT, Side, flip
from core.experiments.training.plan import showcase
from core.figures.palette import BASELINE, VARIANTS
from core.figures.small_pictures import (
    BLOCK_PICTURE,
    CURVES_PICTURE,
    LESSONS_PICTURE,
    agreement_svg,
)
from core.figures.svg import in_own_size
from core.settings.memory import MemoryLimitError
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import capitalise, count, explain_head_name, head_name
from core.study.plan import StudyError
from core.study.shipped import name_in_links, shipped, table_of
from core.study.summary import beside_one_rate, is_sparse, read_summary
from core.teaching.lessons.reader import lesson
from ui.kit.guard import show_errors
from ui.kit.page import draw_notice, explain_terms, page
from ui.kit.pages import DEPTH, LESSONS, ONE_BLOCK, START, STUDIES, TRAINED_MODEL, TRAINING, Page
from ui.kit.panel.control import tabs
from ui.kit.panel.panel import draw_bar
from ui.kit.server.scripts import component
from ui.kit.store import bind
from ui.pictures import drawing
from ui.pictures.ablation_matrix import draw_matrix
from ui.shared.models import SHIPPED, best_reader, open_model

CSS = f"""
.root {{ font-family: var(--st-font); overflow-x: auto; }}
svg {{ width: 100%; height: auto; display: block; }} text {{ fill: var(--st-text-color); }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.word {{ font-size: 16px; }} .chosen {{ font-weight: 700; }} .verdict {{ font-size: 12px; }}
.figure {{ font-size: 12px; fill: color-mix(in srgb, {BASELINE} 55%, var(--st-text-color));
  font-weight: 600; }}
.arc {{ fill: none; stroke: {BASELINE}; stroke-linecap: round; }}
.arc.off {{ stroke: var(--st-text-color); stroke-dasharray: 3 6; stroke-width: 1.5;
  stroke-opacity: 0.4; }}
.figure.off {{ fill: var(--st-text-color); opacity: 0.5; text-decoration: line-through; }}
.slot {{ fill: color-mix(in srgb, {BASELINE} 14%, transparent); stroke: {BASELINE};
  stroke-width: 1.5; }}
.hero {{ display: flex; flex-wrap: wrap; gap: 24px 40px; color: var(--st-text-color);
  font-size: 14px; }}
.hero > div:last-child {{ flex: 0 1 260px; }}
@media (max-width: 640px) {{ .hero > div:first-child {{ width: 100% !important; }}
  .word, .figure, .verdict {{ font-size: 21px; }} }} /* 12 px on the screen */
.prediction {{ display: grid; grid-template-columns: auto 1fr auto; gap: 4px 12px;
  align-items: center; margin: 8px 0; }}
.hero small {{ font-size: 12px; }}
.prediction i {{ height: 12px; border-radius: 2px;
  background: linear-gradient(to right, {BASELINE} var(--share),
    var(--st-secondary-background-color) var(--share)); }}
.prediction span:nth-child(3n) {{ text-align: right; font-variant-numeric: tabular-nums; }}
.slot.wrong {{ fill: color-mix(in srgb, {VARIANTS[0]} 16%, transparent); stroke: {VARIANTS[0]};
  stroke-width: 2; }}
.verdict.wrong {{ font-weight: 700; }}
"""
HTML = '<div class="root"><div class="picture"></div><div hidden></div></div>'
_picture = component("hero", drawing.SCRIPT, CSS, HTML)


@dataclass(frozen=True)
class StartLook(Settings):
    """View settings of Start."""

    removed: bool = setting(
        False, "Remove the head", "Remove the head that attends to the subject.", group="Look"
    )
    parts: str = setting("ablation_matrix", "Parts", "Study shown.", group="Look", menu=shipped)


def draw_first_experiment(is_removed: bool):
    """Draw a model's choice of a verb, one head removed or not; nothing if no model opens."""
    with suppress(ConfigError, CheckpointError, MemoryLimitError):
        layer, head = best_reader(SHIPPED)
        flipped = flip(open_model(SHIPPED), layer - 1, head - 1)
        name = head_name(layer - 1, head - 1)
        st.markdown(
            "This small language model was trained on synthetic legal sentences. To predict the"
            f" verb, one attention head ({name}) attends to the verb's subject, **{SUBJECT}**."
            f" Remove the head and watch the prediction. :gray[({explain_head_name()}.)]"
        )
        side = flipped.without if is_removed else flipped.whole
        svg = agreement_svg(flipped.words, flipped.weights, side.chosen, side.wrong, is_removed)
        _picture(
            key="hero",
            data={
                "picture": f"<div class='hero'>{in_own_size(svg)}{prediction_html(side)}</div>",
                "clicked": False,
            },
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.toggle(f"Remove {name}", **bind("removed", is_removed), width="content")
            st.markdown(describe_accuracy(flipped.whole, flipped.without, is_removed))
            st.page_link(TRAINED_MODEL.path, label="Explore this model ›", width="content")


def describe_accuracy(baseline: Side, without: Side, is_removed: bool) -> str:
    """Describe the model's accuracy on held-out sentences, with or without the head (Markdown)."""
    side = without if is_removed else baseline
    with_head = f" ({100 * baseline.right / baseline.of:.0f} % with the head)" if is_removed else ""
    return (
        f"Accuracy on {side.of} held-out sentences: **{100 * side.right / side.of:.0f}"
        f" %**{with_head}."
    )


def format_probability(chance: float) -> str:
    """Format a probability as a percentage: 0.42 becomes "42 %", less than 0.1 two digits."""
    return f"{100 * chance:.0f} %" if chance >= 0.1 else f"{100 * chance:.2g} %"


def prediction_html(side: Side) -> str:
    """Return HTML: the likeliest tokens as bars, and whether the likelier of was/were is right."""
    rows = "".join(
        f"<span>{escape(token)}</span><i"
        f" style='--share:{100 * chance:.2f}%'></i><span>{format_probability(chance)}</span>"
        for token, chance in side.likeliest.items()
    )
    top = next(iter(side.likeliest))
    verdict = "incorrect" if side.wrong else "correct"
    forms = " and ".join(f"“{escape(form)}”" for form in side.chances)
    note = f"Between {forms}, the model prefers “{escape(side.chosen)}” ({verdict})."
    if top != side.chosen:
        note += f" Most likely token: “{escape(top)}”."
    return (
        "<div><b>Next-token probability</b><div"
        f" class='prediction'>{rows}</div><small>{note}</small></div>"
    )


WAYS = (  # title, what can be done there, page, picture
    (
        "Explore a block",
        "Remove the norm, residuals, heads or the FFN and see how the activations change.",
        ONE_BLOCK,
        BLOCK_PICTURE,
    ),
    (
        "Train without a component",
        "Learning curves with and without a component, over several seeds.",
        TRAINING,
        CURVES_PICTURE,
    ),
    (
        "Lessons",
        f"Predict, then see the result. {len(lesson) - 1} lessons of 3 to 5 minutes.",
        LESSONS,
        LESSONS_PICTURE,
    ),
)


def draw_page_cards():
    """Draw three cards that link to other pages."""
    with st.container(key="ways"):
        for column, (title, text, target_page, picture) in zip(
            st.columns(len(WAYS), gap="medium"), WAYS
        ):
            with column, st.container(border=True, height="stretch"):
                left, right = st.columns([1, 2], vertical_alignment="top")
                with left:
                    _picture(
                        key=f"picture_{target_page.key}",
                        data={"picture": picture, "clicked": False},
                    )
                with right, st.container(gap=None):
                    st.page_link(target_page.path, label=f"**{title}**")
                    st.markdown(text)


EXPERIMENTS = {  # page -> title, what to look for, the link's parameters
    ONE_BLOCK: (
        (
            "Remove the residual",
            "Remove the attention residual. How much of each token survives?",
            {"view": "change", "variants": "residual_attention-off"},
        ),
        (
            "Remove 1/√d_k",
            "Without this scaling the softmax sharpens. Watch the entropy fall.",
            {"weights": "random", "view": "steps", "step": "7", "variants": "scale-off"},
        ),
        (
            "1, 4 or 8 heads",
            "The same width split into fewer or more heads. What does each one attend to?",
            {"weights": "random", "view": "heads", "compare": "on"},
        ),
        (
            "Dog bites man",
            (
                "Without position information the block cannot tell who bit whom. See the"
                " difference in numbers."
            ),
            {"weights": "random", "view": "positions", "text": "The dog bites the man"},
        ),
        (
            "Half the neurons are inactive",
            "ReLU zeroes about half of the hidden units. Which ones, for which token?",
            {"weights": "random", "view": "neurons", "variants": "activation-relu"},
        ),
        (
            "Hide the future",
            "A causal mask hides later tokens. Where does attention go without it?",
            {"weights": "random", "view": "attention", "variants": "mask-causal"},
        ),
    ),
    DEPTH: (
        (
            "Ten passes without a norm",
            "Feed a block its own output, with and without LayerNorm. What grows, and how fast?",
            {"variants": "norm-none"},
        ),
        (
            "Token collapse",
            "Without residuals, how soon do all tokens become identical?",
            {
                "variants": "residual_attention-off__residual_ffn-off",
                "show": "attention",
                "matrix": "alike",
            },
        ),
        (
            "Where the gradient goes",
            (
                "How much gradient reaches the first of 64 blocks, without residuals or with"
                " post-norm?"
            ),
            {
                "passes": "64",
                "blocks": "separate",
                "variants": "residual_attention-off__residual_ffn-off~placement-post",
                "show": "gradients",
            },
        ),
        (
            "All combinations at once",
            (
                "All combinations of norm, placement, residual, activation and heads. Which"
                " component matters most?"
            ),
            {"show": "grid"},
        ),
    ),
}


WRAPPED = """<style>
[data-testid='stMain'] [data-testid='stPageLink'] p { white-space: normal; overflow: visible;
  line-height: 1.25; }
[data-testid='stMain'] [data-testid='stPageLink'] a { padding-left: 0; }
:root .st-key-ways [data-testid='stPageLink'] a p { font-size: 20px; line-height: 28px; }
.st-key-ways [data-testid='stColumn'] [data-testid='stColumn'] { min-width: 0; flex: 1 1 0; }
.st-key-ways [data-testid='stColumn'] [data-testid='stColumn'] + [data-testid='stColumn'] {
  flex: 2 1 0; }
</style>"""


def experiments_on(page_shown: Page) -> list[tuple[str, str, dict[str, str]]]:
    """Return the experiments of a page as tuples: title, question, link parameters (a dict)."""
    if page_shown is TRAINED_MODEL:
        head = ".".join(map(str, best_reader(SHIPPED)))
        return [
            (
                "Subject–verb agreement",
                "Long-distance agreement: which head links verb and subject?",
                {},
            ),
            (
                "Remove that head",
                (
                    "How much worse does the model get on 256 held-out sentences, and does another"
                    " component compensate?"
                ),
                {"taken": "knockout", "out": head},
            ),
            (
                "Ablate after training, or train without?",
                "Remove a component after training, or train without it: which does more harm?",
                {"taken": "without"},
            ),
            (
                "Single-component sweep",
                "Each head and sub-layer removed in turn, ranked by effect.",
                {"taken": "sweep"},
            ),
            (
                "What comes next?",
                "Probabilities, temperature, generated text; click a word to see its attention.",
                {"taken": "words"},
            ),
            (
                "Logit lens",
                "The prediction after each layer, read from the residual stream.",
                {"taken": "layers"},
            ),
        ]
    if page_shown is TRAINING:  # begun at once
        return [
            (showcase.label(name), capitalise(showcase.help(name)), link | {"begin": "on"})
            for name, link in showcase.items()
        ]
    return list(EXPERIMENTS[page_shown])


AT_ITS_OWN_RATE = (
    "Left: all models share one learning rate. Right: each uses the best of three (÷3, ×1, ×3),"
    " chosen by training loss. Each component is shown on the task where its effect was largest, so"
    " the left column overestimates effects. "
)
CARDS = (ONE_BLOCK, DEPTH, TRAINING, TRAINED_MODEL)


def draw_card(target_page: Page):
    """Draw a card with a page and links to its experiments."""
    with st.container(border=True, height="stretch", gap="small"):
        with st.container(gap=None):
            st.page_link(target_page.path, label=f"**{target_page.name}**", icon=target_page.icon)
            st.caption(target_page.about)
        with show_errors():
            for title, text, params in experiments_on(target_page):
                with st.container(gap=None):
                    st.page_link(
                        target_page.path, label=f":primary[**{title}**]", query_params=params
                    )
                    st.caption(text)


def count_seeds(seeds: pd.Series) -> str:
    """Return the least and most seeds of models in words: "5 seeds", "5 to 20 seeds"."""
    fewest = int(seeds.min())
    largest = count(int(seeds.max()), "seed")
    return largest if fewest == seeds.max() else f"{fewest} to {largest}"


def draw_presets():
    """Draw the experiments of all pages in an expander."""
    with st.expander("One-click experiments", icon=":material/experiment:"):
        for column, target_page in zip(st.columns(len(CARDS), gap="small"), CARDS):
            with column:
                draw_card(target_page)


def draw_shipped_matrix(look: StartLook):
    """Draw a choice of shipped studies and the one's ablation matrix; ConfigError without table."""
    st.header("What does each component contribute?", anchor=False)
    draw_bar("studies", [tabs("Parts", shipped, "parts")])
    path = table_of(look.parts)
    try:
        cells = _read_summary(path, path.stat().st_mtime_ns)
        searched = is_sparse(cells)
        if searched:  # beside the same cells where all have one rate
            paths = [table_of(name) for name in shipped]
            cells = beside_one_rate(
                cells, [_read_summary(path, path.stat().st_mtime_ns) for path in paths]
            )
    except (OSError, StudyError):
        raise ConfigError(
            "results",
            f"The table of this study, results/{path.name}, is missing or damaged; make matrix"
            " recreates it.",
        ) from None
    st.markdown(f"**{shipped.help(look.parts)}**")
    about = AT_ITS_OWN_RATE if searched else ""
    shortened = ""
    if cells.task.str.contains(r"\d steps").any():
        shortened = (
            " Tasks with a step count in their name were trained for that many steps, most of them"
            " fewer than usual."
        )
    seeds = count_seeds(cells.seeds + cells.diverged)
    st.caption(
        f"{about}Change in percentage points, mean of {seeds}. "
        f"“=”: equivalent within the margin. Faded: undecided.{shortened} "
        "Click a cell for its learning curves.",
        help=explain_terms("Holm", "paired t"),
    )
    draw_matrix(cells, "home_matrix", intervals=False)
    st.page_link(
        STUDIES.path,
        label="Full matrix with confidence intervals",
        query_params={"study": name_in_links(look.parts)},
    )


@st.cache_data
def _read_summary(path: Path, stamp: int) -> pd.DataFrame:
    """Read a study's summary, cached by path and `stamp`; OSError if missing, or StudyError."""
    return read_summary(path)


def start():
    """Draw the start page."""
    with page(START):
        (look,), notes = START.settings(StartLook)
        draw_notice(*notes)
        st.html(WRAPPED)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            st.title("Ablation Lab", anchor=False, width="content")
            st.markdown(
                "Remove a component of a transformer and measure what it contributes.",
                width="content",
            )
        draw_first_experiment(look.removed)
        draw_page_cards()
        with show_errors():
            draw_shipped_matrix(look)
        draw_presets()
