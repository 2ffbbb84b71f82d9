"""What a model is in figures, below the drawing of its block."""

import streamlit as st

from core.settings.wording import count
from ui.trained.context import TrainedContext


def summary(context: TrainedContext):
    opened, config = context.opened, context.opened.config
    st.markdown(
        f"**{opened.parameters:,} parameters**, {count(config.n_layers, 'layer')} × {count(config.n_heads, 'head')}  \n"
        f"{len(opened.model.vocabulary):,} words · {count(len(context.prompt.ids), 'token')} · {context.whole.timing} on {context.whole.machine.name}  \n"
        f":gray[Trained weights: {opened.task or 'from a file'}]"
    )
