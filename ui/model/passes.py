"""Views of the page "One block", of a trained model."""

import streamlit as st

from ui.model.base import views, with_knockout
from ui.views import heads as one_block_heads
from ui.views import pairs as one_block_pairs
from ui.views import steps as one_block_steps


@views
def steps(looked, look):
    """Step by step: one head by hand."""
    one_block_steps.steps(with_knockout(looked), look)


@views
def heads(looked, look):
    """Heads: what each head does differently."""
    one_block_heads.heads(with_knockout(looked), look)


@views
def pairs(looked, look):
    """Marked pairs: how much attention falls on words that belong together."""
    one_block_pairs.pairs(with_knockout(looked), look, st.session_state.prompt)
