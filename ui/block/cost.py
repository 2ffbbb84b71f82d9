import pandas as pd
import streamlit as st

from core.experiments.forward import known_to, timed_stream
from core.figures import charts
from core.model import cost as formulas
from core.model.text import vocabulary
from core.settings.device import median_ms
from core.settings.wording import count
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.shared.base import weights

MB = 10**6
LENGTHS = (128, 1024)  # tokens of a text, beside this one


@view
def cost(context):
    """Cost: parameters, operations, memory, time."""
    forward_pass = context.forward_pass
    left, right = beside.columns(2)
    with left:
        _parameters(forward_pass)
        _operations(forward_pass)
    with right:
        _memory(forward_pass)
        _kept(forward_pass)
        _growth(forward_pass)
    if not beside.second() and st.button("Time this pass 15 times", icon=":material/timer:", key="time_it"):
        _time(forward_pass)


def _parameters(forward_pass):
    config = forward_pass.config
    block = sum(formulas.parameters(config).values())
    figure(
        "Where are the parameters?",
        f"{block:,} in the block{'s' * (config.n_layers > 1)}; embedding and unembedding depend on the words that are known.",
        weights(forward_pass),
    )
    every = formulas.parameters(config, len(known_to(forward_pass.kind, vocabulary(list(forward_pass.tokens)))[0]))
    _bars(every, "numbers to learn", "Parameters by part.")


def _operations(forward_pass):
    tokens = len(forward_pass.tokens)
    operations = formulas.flops(forward_pass.config, tokens)
    figure(
        "What does one pass compute?",
        f"{sum(operations.values()):,} floating point operations in matrix products, for {count(tokens, 'token')}.",
        "Formulas",
    )
    _bars(operations, "operations", "Operations by part.")


def _memory(forward_pass):
    memory = formulas.activations(forward_pass.config, len(forward_pass.tokens), forward_pass.machine.dtype)
    figure(
        "What does one pass remember?",
        f"{sum(memory.values()) / MB:.3g} MB if every stage is kept ({forward_pass.machine.dtype}).",
        "Formulas",
    )
    _bars(memory, "bytes", "Memory of activations by part.")


def _kept(forward_pass):
    """Keys and values; nothing without attention."""
    config, dtype = forward_pass.config, forward_pass.machine.dtype
    lengths = sorted({len(forward_pass.tokens), *LENGTHS})
    kept = {count(length, "token"): formulas.kept_bytes(config, length, dtype) for length in lengths}
    if not config.attention:
        return
    if config.part("mask").looks_ahead:
        figure(
            "What is kept while a text goes on?",
            "Nothing: without a causal mask every token sees the new one. Keys and values are computed again each time.",
            "Formulas",
        )
        return
    per_token = formulas.kept_bytes(config, 1, dtype)
    shared = f", {config.n_heads // config.n_kv_heads} times less than with keys of its own for each head" * (
        config.n_kv_heads < config.n_heads
    )
    figure(
        "What is kept while a text goes on?",
        f"Keys and values: {per_token:,} bytes for each token{shared} ({dtype})."
        + f" A layer with a window keeps no more than {count(config.window, 'token')}." * (config.window > 0),
        "Formulas",
    )
    _bars(kept, "bytes", "Memory of keys and values by length of text.")


def _growth(forward_pass):
    """Operations by length of text; nothing where both sub-layers are off."""
    growth = formulas.by_length(forward_pass.config)
    if len(growth):
        square = "Scores and weighted sum grow with the square of the length: twice the text, four times the work."
        figure(
            "How does it grow with the text?",
            square if forward_pass.config.attention else "In proportion to its length.",
            "Formulas",
        )
        chart(charts.growth(), growth, "Operations against length of text.", height=360)


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
