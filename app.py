"""Ablation Lab: find out what each part of a transformer block is for, by taking it out."""

import streamlit as st

from core.config import Config
from core.experiments.forward import forward
from core.text import DEFAULT_TEXT, words
from ui import controls, drawing
from ui.page import page

PAGE = "pages/1_One_block.py"
EXPERIMENTS = (  # title, what to look for, the link's parameters
    (
        "Take the residual out",
        "Cut the stream around attention. How much of each word is left in the output?",
        {"view": "change", "residual_attention": "off"},
    ),
    (
        "Stop scaling the scores",
        "Without 1/√d_k the softmax sharpens. Watch the entropy fall.",
        {"view": "steps", "step": "7", "scale": "off"},
    ),
    (
        "One head, four, eight",
        "The same width cut into fewer or more heads. What does each one look at?",
        {"view": "heads", "compare": "on"},
    ),
    (
        "Dog bites man",
        "Without positions the block cannot know who bit whom. See the difference, in numbers.",
        {"view": "positions", "text": "The dog bites the man"},
    ),
    (
        "Half the neurons are silent",
        "ReLU sets about every second hidden unit to exactly zero. Which ones, for which word?",
        {"view": "neurons", "activation": "relu"},
    ),
    (
        "Hide the future",
        "The causal mask: each word may only look back. Where does its attention go?",
        {"view": "attention", "mask": "causal"},
    ),
)


def picture():
    """The block with one residual cut: what the lab is about, drawn from a real pass."""
    seen = forward(Config(residual_attention=False), words(DEFAULT_TEXT))
    drawing.block(seen, 0, key="home_drawing", width=460)


if __name__ == "__main__":  # worker processes import this file again and must do nothing
    with page("Start", ":material/home:"):
        controls.settings("start")  # no controls here, but whoever comes back to a page finds it as it was
        left, right = st.columns([3, 2], gap="large")
        with left:
            st.title("Ablation Lab", anchor=False)
            st.markdown(
                "A transformer block is a handful of parts: attention, a feed-forward network, norms, residuals, positions. "
                "Here you take one out, or change it, and see in numbers what it was for. "
                "Type a sentence, move a slider, and every picture follows."
            )
            st.page_link(PAGE, label="Open the block", icon=":material/play_arrow:")
            st.markdown("**Or start with an experiment**")
            with st.grid("auto", min_column_width=270):
                for title, text, params in EXPERIMENTS:
                    with st.container(border=True, height="stretch"):
                        st.page_link(PAGE, label=f"**{title}**", icon=":material/science:", query_params=params)
                        st.caption(text)
        with right:
            picture()
            st.caption("One block, drawn from what really ran: here the residual around attention is cut.")
