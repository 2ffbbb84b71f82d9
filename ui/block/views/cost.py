import pandas as pd
import streamlit as st

from core.experiments.forward import timed_stream
from core.figures import charts
from core.model import cost as formulas
from core.model.text import vocabulary
from core.settings.device import median_ms
from core.settings.wording import count
from ui.block.context import view
from ui.kit.page import chart, figure
from ui.shared.base import weights

MB = 10**6


@view
def cost(context):
    """Cost: parameters, operations, memory, time."""
    forward_pass = context.forward_pass
    tokens, config = len(forward_pass.tokens), forward_pass.config
    parameters = formulas.parameters(config, len(vocabulary(list(forward_pass.tokens))))
    operations, memory = (
        formulas.flops(config, tokens),
        formulas.activations(config, tokens, forward_pass.machine.dtype),
    )
    block = sum(formulas.parameters(config).values())
    left, right = st.columns(2)
    with left:
        figure(
            "Where are the parameters?",
            f"{block:,} in the block{'s' * (config.n_layers > 1)}; embedding and unembedding depend on the words.",
            weights(forward_pass),
        )
        _bars(parameters, "numbers to learn", "Parameters by part.")
        figure(
            "What does one pass compute?",
            f"{sum(operations.values()):,} floating point operations in matrix products, for {count(tokens, 'token')}.",
            "Formulas",
        )
        _bars(operations, "operations", "Operations by part.")
    with right:
        figure(
            "What does one pass remember?",
            f"{sum(memory.values()) / MB:.3g} MB if every stage is kept ({forward_pass.machine.dtype}).",
            "Formulas",
        )
        _bars(memory, "bytes", "Memory of activations by part.")
        growth = formulas.by_length(config)
        if len(growth):
            square = "Scores and weighted sum grow with the square of the length: twice the text, four times the work."
            figure(
                "How does it grow with the text?",
                square if config.attention else "In proportion to its length.",
                "Formulas",
            )
            chart(charts.growth(), growth, "Operations against length of text.", height=360)
    if st.button("Time this pass 15 times", icon=":material/timer:", key="time_it"):
        call = timed_stream(config, forward_pass.tokens[: forward_pass.n_real], forward_pass.machine)
        how = "device events" if forward_pass.machine.place != "cpu" else "the clock"
        st.success(
            f"{median_ms(call, forward_pass.machine.place):.3f} ms: median of 15 passes on {forward_pass.machine.name}, {forward_pass.machine.dtype}, by {how}; nothing recorded, no dropout."
        )


def _bars(parts, title, alt):
    table = pd.DataFrame(
        [(f"{part}: {value:,}", value) for part, value in parts.items() if value], columns=["part", "value"]
    )
    if len(table):
        chart(charts.amounts(title), table, alt, height=34 * len(table) + 60)
    else:
        st.caption("Nothing: both sub-layers are off.")
