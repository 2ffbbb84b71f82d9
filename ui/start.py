"""The start page: what can be done, an experiment of each kind at one click, and what each part was measured to be for."""

from pathlib import Path

import pandas as pd
import streamlit as st

from core.experiments.training.showcase import showcase
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.study.plan import StudyError
from core.study.summary import read_summary
from ui.kit import controls
from ui.kit.page import capital, in_words, page
from ui.pictures.matrix import matrix
from ui.shared.models import SHIPPED
from ui.shared.models import reader as reader_of

RESULTS = Path(__file__).parent.parent / "results"
BLOCK, DEPTH, TRAINING = "pages/1_One_block.py", "pages/2_Depth.py", "pages/3_Training.py"
MODEL = "pages/5_Trained_model.py"
EXPERIMENTS = (  # title, what to look for, the page, the link's parameters
    (
        "Take the residual out",
        "Cut the stream around attention. How much of each word is left in the output?",
        BLOCK,
        {"view": "change", "residual_attention": "off"},
    ),
    (
        "Stop scaling the scores",
        "Without 1/√d_k the softmax sharpens. Watch the entropy fall.",
        BLOCK,
        {"view": "steps", "step": "7", "scale": "off"},
    ),
    (
        "One head, four, eight",
        "The same width cut into fewer or more heads. What does each one look at?",
        BLOCK,
        {"view": "heads", "compare": "on"},
    ),
    (
        "Dog bites man",
        "Without positions the block cannot know who bit whom. See the difference, in numbers.",
        BLOCK,
        {"view": "positions", "text": "The dog bites the man"},
    ),
    (
        "Half the neurons are silent",
        "ReLU sets about every second hidden unit to exactly zero. Which ones, for which word?",
        BLOCK,
        {"view": "neurons", "activation": "relu"},
    ),
    (
        "Hide the future",
        "The causal mask: each word may only look back. Where does its attention go?",
        BLOCK,
        {"view": "attention", "mask": "causal"},
    ),
    (
        "Ten passes without a norm",
        "Feed a block its own output, with and without LayerNorm. Who grows, and how fast?",
        DEPTH,
        {},
    ),
    (
        "All words become one",
        "Cut the residuals. After how many passes do all words point the same way?",
        DEPTH,
        {"variants": "residual_attention-off__residual_ffn-off", "show": "attention", "matrix": "alike"},
    ),
    (
        "Where the gradient goes",
        "64 blocks deep: what of the error still arrives at the first one, without residuals, or with the norm moved?",
        DEPTH,
        {
            "passes": "64",
            "blocks": "separate",
            "variants": "residual_attention-off__residual_ffn-off~placement-post",
            "show": "gradients",
        },
    ),
    (
        "96 blocks at once",
        "Every combination of norm, placement, residual, activation and heads, in one picture. Which part matters most?",
        DEPTH,
        {"show": "grid"},
    ),
)


WRAPPED = "<style>[data-testid='stMain'] [data-testid='stPageLink'] p { white-space: normal; overflow: visible; line-height: 1.25; } [data-testid='stMain'] [data-testid='stPageLink'] a { padding-left: 0; }</style>"


def of_the_model() -> list:
    """Experiments on the model that ships; they name the head that its own file names. Raises where it cannot be opened."""
    reader = ".".join(map(str, reader_of(SHIPPED)))
    return [
        ("Who is liable?", "Words in between, and the verb still looks back at its subject. Which head does that?", {}),
        ("Remove that head", "How much worse does the model get on 256 held-out sentences, and does another part make up for it?", {"taken": "knockout", "out": reader}),
        ("Every part, one by one", "Each head and each sub-layer taken out by itself, ranked by what it costs.", {"taken": "sweep"}),
        ("What comes next?", "Probabilities, temperature, a text that goes on; click a word to see what it read.", {"taken": "words"}),
        ("When does it know?", "The next word as each layer would have it: the logit lens.", {"taken": "layers"}),
    ]  # fmt: skip


def card(path: str, name: str, icon: str, about: str, experiments):
    """A page and its experiments: a list, or a call that makes one."""
    with st.container(border=True, height="stretch", gap="small"):
        with st.container(gap=None):
            st.page_link(path, label=f"**{name}**", icon=icon)
            st.caption(about)
        with in_words():
            for title, text, params in experiments() if callable(experiments) else experiments:
                with st.container(gap=None):
                    st.page_link(path, label=f":primary[**{title}**]", query_params=params)
                    st.caption(text)


PAGES = (  # the page, its name, what it does, its experiments
    (
        BLOCK,
        "One block",
        ":material/view_agenda:",
        "One pass of random weights, every step of it.",
        [e[:2] + e[3:] for e in EXPERIMENTS if e[2] == BLOCK],
    ),
    (
        DEPTH,
        "Depth",
        ":material/layers:",
        "The same block again and again, or a stack.",
        [e[:2] + e[3:] for e in EXPERIMENTS if e[2] == DEPTH],
    ),
    (
        TRAINING,
        "Training",
        ":material/model_training:",
        "With and without a part, live, several seeds.",
        [
            (showcase.label(name), capital(showcase.help(name)), each() | {"begin": "on"})
            for name, each in showcase.items()
        ],
    ),
    (
        MODEL,
        "Trained model",
        ":material/neurology:",
        "A small language model, taken apart.",
        of_the_model,
    ),
)


def measured():
    """The ablation matrix that ships: what each part costs on each task."""
    st.subheader("What each part is for, measured", anchor=False)
    try:
        made = matrix_table()
    except (OSError, StudyError):
        raise ConfigError("results", "The table of the ablation matrix, results/ablation_matrix.csv, is missing or damaged; make matrix makes it again.") from None  # fmt: skip
    st.caption(
        f"Each part taken out by itself, on {count(made.task.nunique(), 'task')}, {count(made.seeds.max(), 'seed')} each: change of accuracy in percentage points, "
        "mean and 95 % interval (paired t, corrected for the parts of a task by Holm's method). Pale: not distinguishable from seed noise. Click a cell to train it here, now. "
        "All of it: `results/ablation_matrix.csv`, made by `make matrix`."
    )
    matrix(made, "home_matrix", begin=True)


@st.cache_data
def matrix_table() -> pd.DataFrame:
    """Raises OSError or StudyError for a file that is not there, or not whole."""
    return read_summary(RESULTS / "ablation_matrix.csv")


def start():
    with page("Start"):
        controls.settings("start")  # no controls here, but whoever comes back to a page finds it as it was
        st.html(WRAPPED)
        st.title("Ablation Lab", anchor=False)
        st.markdown(
            "A transformer block is a handful of parts: attention, a feed-forward network, norms, residuals, positions. "
            "Here you take one out, or change it, and see in numbers what it was for. "
            "Type a sentence, move a slider, and every picture follows; train a small model without the part, and watch what it cannot learn; or open a trained one, remove a head, and read off how much worse it gets."
        )
        for column, each in zip(st.columns(len(PAGES), gap="small"), PAGES):
            with column:
                card(*each)
        with in_words():
            measured()
