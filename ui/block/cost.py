"""View of a block's cost: parameters, FLOPs, memory and measured time."""

import pandas as pd
import streamlit as st

from core.experiments.forward import Pass, build_plain_run, look_up_words
from core.figures.charts import stream as charts
from core.model import cost as formulas
from core.model.config import Config
from core.model.text import vocabulary
from core.settings.device import median_ms
from core.settings.wording import count
from ui.block.context import BlockContext, view
from ui.kit import side_by_side
from ui.kit.page import chart, figure

MB = 10**6
LENGTHS = (128, 1024)  # tokens of a text, beside this one


@view.register("cost", label="Cost", help="parameters, FLOPs, memory and time.")
def cost(context: BlockContext):
    """Draw parameters, FLOPs, memory, KV cache, growth with length, and a button to time passes."""
    forward_pass = context.forward_pass
    config = forward_pass.config
    tokens = len(forward_pass.tokens)
    machine = forward_pass.machine
    left, right = side_by_side.columns(2)
    with left:
        block = sum(formulas.parameters(config).values())
        blocks = "blocks" if config.n_layers > 1 else "block"
        sentence = (
            f"{block:,} in the {blocks}; embedding and unembedding depend on vocabulary size."
        )
        figure("Parameters by component", sentence, forward_pass.weights)
        vocabulary_size = len(
            look_up_words(forward_pass.kind, vocabulary(list(forward_pass.tokens)))[0]
        )
        _draw_bars(
            formulas.parameters(config, vocabulary_size), "parameters", "Parameters by component."
        )
        operations = formulas.flops(config, tokens)
        every = sum(operations.values())
        sentence = (
            f"{every:,} FLOPs in the matrix products of the blocks, for {count(tokens, 'token')}"
            " (unembedding not counted)."
        )
        figure("FLOPs per forward pass", sentence, "Formulas")
        _draw_bars(operations, "FLOPs", "FLOPs by component.")
    with right:
        memory = formulas.activation_bytes(config, tokens, machine.dtype)
        sentence = (
            f"{sum(memory.values()) / MB:.3g} MB if all activations of the blocks are stored"
            f" ({machine.dtype})."
        )
        figure("Activation memory", sentence, "Formulas")
        _draw_bars(memory, "bytes", "Activation memory by component.")
        if config.attention:
            _draw_kv_cache(config, tokens, machine.dtype)
        growth = formulas.flops_by_length(config)
        if len(growth):
            sentence = "Linear in sequence length."
            if config.attention:
                sentence = (
                    "Scores and weighted sum are quadratic in sequence length; the rest is linear."
                )
            figure("FLOPs by sequence length", sentence, "Formulas")
            chart(
                charts.growth(),
                growth.replace("ffn", "FFN"),
                "FLOPs by sequence length.",
                height=360,
            )
    if not side_by_side.is_second_side() and st.button(
        "Benchmark (15 runs)", icon=":material/timer:", key="time_it"
    ):
        _draw_timing(forward_pass)


def _draw_kv_cache(config: Config, tokens: int, dtype: str):
    """Draw the size of the KV cache by sequence length, or why there is none."""
    title = "KV cache"
    if config.part("mask").looks_ahead:
        none = (
            "None: without a causal mask every token attends to the new one, so nothing can be"
            " cached."
        )
        figure(title, none, "Formulas")
        return
    sentence = f"{formulas.kv_cache_bytes(config, 1, dtype):,} bytes per token"
    if config.n_kv_heads < config.n_heads:
        sentence += (
            f", {config.n_heads // config.n_kv_heads} × smaller than full multi-head attention"
        )
    sentence += f" ({dtype})."
    if config.window:
        sentence += f" Layers with a window store at most {count(config.window, 'token')}."
    figure(title, sentence, "Formulas")
    lengths = sorted({tokens, *LENGTHS})
    bytes_by_length = {
        count(length, "token"): formulas.kv_cache_bytes(config, length, dtype) for length in lengths
    }
    _draw_bars(bytes_by_length, "bytes", "KV cache by sequence length.")


def _draw_timing(forward_pass: Pass):
    """Time the forward pass now, on each call, and draw the median of 15 passes in ms."""
    machine = forward_pass.machine
    tokens = forward_pass.tokens[: forward_pass.n_real]
    call = build_plain_run(forward_pass.config, tokens, machine, forward_pass.kind)
    how = "device events" if machine.torch_device != "cpu" else "wall clock"
    st.success(
        f"{median_ms(call, machine.torch_device):.3f} ms: median of 15 passes on {machine.name},"
        f" {machine.dtype}, by {how}; no recording, no dropout."
    )


def _draw_bars(value_by_component: dict[str, int], axis_title: str, alt: str):
    """Draw one bar per component with a nonzero value; a caption if there are none.

    Args:
        value_by_component: Value by component.
        axis_title: Title of the axis.
        alt: Alternative text.
    """
    table = pd.DataFrame(
        [
            (f"{part.replace('ffn', 'FFN')}: {value:,}", value)
            for part, value in value_by_component.items()
            if value
        ],
        columns=["part", "value"],
    )
    if len(table):
        chart(charts.amounts(axis_title), table, alt, height=34 * len(table) + 60)
    else:
        st.caption("None: both sub-layers are removed.")
