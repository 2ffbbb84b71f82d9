"""Views of the activations inside the block: stages, norms, and change per token."""

import math
from decimal import Decimal
from typing import Any

import streamlit as st

from core.experiments.block import compare as experiment
from core.experiments.block.stages import (
    apply_every_norm,
    moments,
    norm_placements,
    read_vector,
    token_through_norm,
)
from core.experiments.block.stages import stages as table_of
from core.experiments.forward import Pass
from core.figures.charts import stream as charts
from core.figures.spec import word_label
from core.measure.tensor_meters import meter
from core.model.parts import MENUS
from core.settings.setting import ConfigError
from core.settings.wording import capitalise, count, fixed, number
from ui.block.context import BlockContext, BlockLook, view
from ui.kit import side_by_side
from ui.kit.page import chart, figure, literal, small_table, style_numbers
from ui.kit.page import table as show_table
from ui.kit.store import bind
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared.base import draw_picks, finite_sentence


@view.register("norm", label="Norm", help="the effect of the norm on one token.")
def norm(context: BlockContext):
    """Draw one token's vector before and after each norm, and a vector that the user types."""
    _draw_token_norms(context.forward_pass, context.look)
    if not side_by_side.is_second_side():
        _draw_vector_norms(context.look, context.forward_pass.config.norm_eps)


def _draw_token_norms(forward_pass: Pass, look: BlockLook):
    """Draw a token's vector before and after each norm of one layer."""
    sites = norm_placements(forward_pass)
    if not sites and forward_pass.config.part("norm").normalises:
        st.info(
            "Both sub-layers are removed, and their norms with them.", icon=":material/toggle_off:"
        )
        return
    if not sites:
        st.info(
            "This block has no norm. Choose one under Components.", icon=":material/toggle_off:"
        )
        return
    draw_picks("token", "layer", forward_pass=forward_pass)
    for site, (sublayer, place) in sites.items():
        table, numbers = token_through_norm(
            forward_pass, look.layer_of(forward_pass), site, look.token_of(forward_pass)
        )
        where = "attention" if sublayer == "attention" else "FFN"
        stream = "input" if place == "before" else "output"
        called = f"Norm {site[2]}" if site[3:] == "" else f"Second norm {site[2]}"
        biased = "bias" in dict(
            forward_pass.config.part("norm")("", 1, forward_pass.config.bias).named_parameters()
        )
        gain = f"Gain 1{', bias 0' if biased else ''} before training."
        if forward_pass.kind != "random":
            gain = (
                "The learned gain and bias are then applied."
                if biased
                else "The learned gain is then applied."
            )
        figure(
            f"{called} ({where} {stream}):"
            f" “{forward_pass.labels[look.token_of(forward_pass)]}” before and after normalisation",
            finite_sentence(
                f"{_describe_formula(forward_pass.config.norm, numbers)} {gain}",
                numbers["variance"],
            ),
            forward_pass.weights,
        )
        chart(
            charts.before_after(),
            table,
            f"The token's vector before and after {called.lower()}.",
            height=260,
        )


def _describe_formula(norm_name: str, statistics: dict[str, float]) -> str:
    """Return a norm's formula with these numbers in it; its help for a norm that has no formula."""
    return _fill_in_formula(
        norm_name, "formula", statistics, mean=number(statistics["mean"], 4)
    ) or capitalise(MENUS["norm"].help(norm_name))


def _write_calculation(norm_name: str, value: float, statistics: dict[str, float]) -> str:
    """Return a norm's calculation for one number of a vector, up to "="; "" if it has no text."""
    mean = number(statistics["mean"], 4)
    return _fill_in_formula(
        norm_name,
        "worked",
        statistics,
        x=number(value, 4),
        mean=f"({mean})" if statistics["mean"] < 0 else mean,
    )


def _fill_in_formula(norm_name: str, which: str, statistics: dict, **other_values) -> str:
    """Return a norm's "formula" or "worked" text with the numbers filled in; "" if it has none.

    Args:
        norm_name: Key of the norm.
        which: Attribute of the norm that holds the text, "formula" or "worked".
        statistics: Statistics of the vector, by name.
        **other_values: Further values to fill in.
    """
    part = MENUS["norm"][norm_name]
    if not getattr(part, which):
        return ""
    scale = statistics[part.divides_by]
    epsilon = statistics["epsilon"]
    size = number(math.sqrt(scale + epsilon), 4)
    return getattr(part, which).format(
        scale=number(scale, 4), epsilon=f"{Decimal(str(epsilon)):f}", size=size, **other_values
    )


def _draw_vector_norms(look: BlockLook, eps: float):
    """Draw a field for a vector, and what the user typed before and after every norm."""
    st.markdown("**Try your own numbers**")
    st.text_input(
        "Vector",
        **bind("vector", look.vector),
        placeholder="3.2, −1.5, 0.8, 2.1 …",
        label_visibility="collapsed",
    )
    try:
        values = read_vector(look.vector)
    except ConfigError as error:
        st.error(literal(error))
        return
    if not values:
        st.caption("Enter comma-separated numbers to see each norm's output.")
        return
    numbers = moments(values, eps)
    table = apply_every_norm(values, eps)
    figure(
        f"Output of each norm for {count(len(values), 'number')}",
        f"Mean {number(numbers['mean'], 4)}, variance {number(numbers['variance'], 4)} (divided by"
        f" {len(values)}), mean square {number(numbers['mean square'], 4)}. Gain 1, bias 0.",
    )
    for name in MENUS["norm"]:
        calculation = _write_calculation(name, values[0], numbers)
        worked = f"First number: {calculation}{number(table[name][0], 4)}."
        st.markdown(
            f"**{literal(MENUS['norm'].label(name))}.**"
            f" {literal(f'{_describe_formula(name, numbers)} {worked}')}"
        )
    labels = {name: MENUS["norm"].label(name) for name in MENUS["norm"]}
    formatted = table.astype({"place": str}).rename(columns=labels)
    for name in ("typed", *labels.values()):
        formatted[name] = [number(value, 4) for value in formatted[name]]
    small_table(
        formatted,
        "Your numbers, and the output of every norm.",
        exported=table.rename(columns=labels),
    )


@view.register("change", label="Tokens", help="how much each token vector changed.")
def change(context: BlockContext):
    """Draw each token vector's distance and cosine from input to output, and token similarity."""
    forward_pass = context.forward_pass
    table = experiment.per_token(forward_pass)
    table["label"] = [word_label(index, text) for index, text in enumerate(table.word)]
    row: Any = table.loc[[table.distance.fillna(0).idxmax()]].iloc[0]
    farthest = (
        f"Largest change: “{row.word}” ({row.distance:.3g})."
        if row.distance > 0
        else "No token changed."
    )
    left, right = side_by_side.columns(2)
    with left:
        figure(
            "Change per token (L2)",
            finite_sentence(farthest, *table.distance),
            forward_pass.weights,
        )
        chart(
            charts.per_token(forward_pass.n_real <= 24, "Euclidean distance, output − input"),
            table.rename(columns={"distance": "value"}),
            "Distance from input to output, by token.",
            height=250,
        )
    with right:
        summary_line = f"Does a token keep its direction? Mean {fixed(table.cosine.mean(), 3)}."
        figure(
            "Cosine similarity, input and output",
            finite_sentence(summary_line, table.cosine.mean()),
            forward_pass.weights,
        )
        chart(
            charts.per_token(forward_pass.n_real <= 24, "cosine similarity"),
            table.rename(columns={"cosine": "value"}),
            "Cosine similarity of output and input, by token.",
            height=250,
        )
    both = experiment.token_similarity(forward_pass)
    before, after = (experiment.mean_similarity(matrix) for matrix in both)
    sentence = "There is only one token."
    if forward_pass.n_real > 1:
        sentence = finite_sentence(
            f"Mean over pairs of tokens: {fixed(before, 3)} before, {fixed(after, 3)} after.",
            before,
            after,
        )
    figure("Token similarity before and after", sentence, forward_pass.weights)
    labels = forward_pass.labels[: forward_pass.n_real]
    draw_heatmaps(
        "similarity",
        both,
        labels,
        labels,
        titles=["before: input", "after: output"],
        quantity="cosine similarity",
        alt="Cosine similarity between tokens, before and after.",
        diverging=True,
        arrow="and",
        height=380,
    )


@view.register("stages", label="Stages", help="activations at each stage of the block.")
def stages(context: BlockContext):
    """Draw a chart and a table of activation statistics at every stage of the block."""
    forward_pass = context.forward_pass
    draw_picks("layer", forward_pass=forward_pass)
    table = table_of(forward_pass, context.look.layer_of(forward_pass))
    first = table.iloc[0]
    last = table.iloc[-1]
    before = number(first["std"])
    after = number(last["std"])
    sentence = f"Standard deviation goes from {before} at the input to {after} at the output. "
    if before == after:
        sentence = f"Standard deviation is {after} at the input and at the output. "
    sentence = finite_sentence(sentence, first["std"], last["std"])
    if forward_pass.config.padding:
        sentence += "Includes padding tokens. "
    sentence += "Whiskers: min–max. Bar: mean ± SD."
    figure("Activation scale by stage", sentence, forward_pass.weights)
    drawn = table.assign(
        stage=[word_label(index, name) for index, name in enumerate(table.stage)],
        **{"from": table["mean"] - table["std"], "to": table["mean"] + table["std"]},
    )
    chart(
        charts.stages(),
        drawn,
        "Activations at every stage of the block.",
        height=26 * len(table) + 46,  # all stages in sight in presentation mode
    )
    width = 54 if side_by_side.has_full_width() else 70
    numbers = {}
    for name in meter:
        numbers[name] = st.column_config.NumberColumn(
            meter.label(name), help=meter.help(name), width=width
        )
    words = {  # as wide as all of them have room for beside the drawing, on a page of 1280 pixels
        "stage": st.column_config.TextColumn("Stage", width=152),
        "site": st.column_config.TextColumn("Site", help="TransformerLens's name", width=66),
        "shape": st.column_config.TextColumn("Shape", width=60),
    }
    # Beside another the numbers come first.
    order = None if side_by_side.has_full_width() else ["stage", *meter, "site", "shape"]
    formatted = style_numbers(table, dict.fromkeys(meter, ".3g") | {"zeros": ".1%"})
    columns = numbers | words
    show_table(
        formatted,
        "Statistics of every stage.",
        exported=table,
        column_config=columns,
        column_order=order,
    )
