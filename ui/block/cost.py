import pandas as pd
import streamlit as st

from core.experiments.forward import known_to, timed_stream
from core.figures.charts import stream as charts
from core.model import cost as formulas
from core.model.text import vocabulary
from core.settings.device import median_ms
from core.settings.wording import count
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure

MB = 10**6
LENGTHS = (128, 1024)  # tokens of a text, beside this one


@view.register("cost", label="Cost", help="parameters, operations, memory, time.")
def cost(context):
    forward_pass = context.forward_pass
    config, tokens, machine = forward_pass.config, len(forward_pass.tokens), forward_pass.machine
    left, right = beside.columns(2)
    with left:
        block = sum(formulas.parameters(config).values())
        blocks = "blocks" if config.n_layers > 1 else "block"
        said = f"{block:,} in the {blocks}; embedding and unembedding depend on the words that are known."
        figure("Where are the parameters?", said, forward_pass.weights)
        vocabulary_size = len(known_to(forward_pass.kind, vocabulary(list(forward_pass.tokens)))[0])
        _bars(formulas.parameters(config, vocabulary_size), "numbers to learn", "Parameters by part.")
        operations = formulas.flops(config, tokens)
        every = sum(operations.values())
        said = f"{every:,} floating point operations in matrix products, for {count(tokens, 'token')}."
        figure("What does one pass compute?", said, "Formulas")
        _bars(operations, "operations", "Operations by part.")
    with right:
        memory = formulas.activations(config, tokens, machine.dtype)
        said = f"{sum(memory.values()) / MB:.3g} MB if every stage is kept ({machine.dtype})."
        figure("What does one pass remember?", said, "Formulas")
        _bars(memory, "bytes", "Memory of activations by part.")
        if config.attention:
            _kept(config, tokens, machine.dtype)
        growth = formulas.by_length(config)
        if len(growth):
            said = "In proportion to its length."
            if config.attention:
                said = (
                    "Scores and weighted sum grow with the square of the length: twice the text, four times the work."
                )
            figure("How does it grow with the text?", said, "Formulas")
            chart(charts.growth(), growth, "Operations against length of text.", height=360)
    if not beside.second() and st.button("Time this pass 15 times", icon=":material/timer:", key="time_it"):
        _time(forward_pass)


def _kept(config, tokens: int, dtype: str):
    """Draw the memory of keys and values."""
    title = "What is kept while a text goes on?"
    if config.part("mask").looks_ahead:
        none = (
            "Nothing: without a causal mask every token sees the new one. Keys and values are computed again each time."
        )
        figure(title, none, "Formulas")
        return
    said = f"Keys and values: {formulas.kept_bytes(config, 1, dtype):,} bytes for each token"
    if config.n_kv_heads < config.n_heads:
        said += f", {config.n_heads // config.n_kv_heads} times less than with keys of its own for each head"
    said += f" ({dtype})."
    if config.window:
        said += f" A layer with a window keeps no more than {count(config.window, 'token')}."
    figure(title, said, "Formulas")
    lengths = sorted({tokens, *LENGTHS})
    kept = {count(length, "token"): formulas.kept_bytes(config, length, dtype) for length in lengths}
    _bars(kept, "bytes", "Memory of keys and values by length of text.")


def _time(forward_pass):
    machine = forward_pass.machine
    tokens = forward_pass.tokens[: forward_pass.n_real]
    call = timed_stream(forward_pass.config, tokens, machine, forward_pass.kind)
    how = "device events" if machine.torch_device != "cpu" else "the clock"
    st.success(
        f"{median_ms(call, machine.torch_device):.3f} ms: median of 15 passes on {machine.name}, {machine.dtype}, by {how}; nothing recorded, no dropout."
    )


def _bars(parts, title, alt):
    table = pd.DataFrame(
        [(f"{part}: {value:,}", value) for part, value in parts.items() if value], columns=["part", "value"]
    )
    if len(table):
        chart(charts.amounts(title), table, alt, height=34 * len(table) + 60)
    else:
        st.caption("Nothing: both sub-layers are off.")
