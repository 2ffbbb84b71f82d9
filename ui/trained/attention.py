"""Views of attention in the model's prompt; most are those of the page "One block"."""

from collections.abc import Sequence

import streamlit as st
import torch

from core.experiments.trained import prompt
from core.experiments.trained import prompt as experiment
from core.model.knockout import Cut
from core.settings.wording import count, head_name, number
from ui.kit.page import figure, literal
from ui.kit.takeaway import offer_table
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared import attention as shared
from ui.shared.base import draw_picks
from ui.trained.context import WHOLE, TrainedContext, view
from ui.trained.words import (
    compute_logits,
    describe_change,
    describe_top_token,
    next_token_of,
)


@view.register(
    "layers",
    label="Logit lens",
    help="prediction after each layer (logit lens), and attention rollout through all layers.",
)
def layers(context: TrainedContext):
    """Draw the prediction after each layer (logit lens), and attention rollout."""
    forward_pass = context.shown_pass
    draw_picks("token", "layer", forward_pass=forward_pass)
    labels = forward_pass.labels
    lens = experiment.logit_lens(context.bench.model, forward_pass, context.word)
    depth = forward_pass.config.n_layers + 1
    cells = torch.tensor(lens.of_last.to_numpy()).view(1, depth, -1)
    rows = ["embedding", *[f"layer {n}" for n in range(1, depth)]]
    rows_here = lens[lens.token == context.after + 1].reset_index()
    last = rows_here.iloc[-1]
    others = rows_here[rows_here.word_id != last.word_id]
    since = int(others.depth.max() + 1) if len(others) else 0
    figure(
        "Logit lens",
        f"{'After' if context.predicts_next_token else 'At'} “{labels[context.after]}”: final"
        f" prediction “{last.word}” ({number(100 * last.probability)} %), top-1 from {rows[since]}"
        " onwards. Each row shows the prediction read out after that layer.",
        forward_pass.weights,
    )
    draw_heatmaps(
        "logit_lens",
        cells,
        rows,
        labels,
        quantity="probability of the final prediction",
        square=False,
        height=90 + 40 * depth if depth <= 6 else 420,
        alt="Logit lens: probability of the final prediction at each layer and token.",
        texts=[lens.word.tolist()],
    )
    offer_table("logit lens", lambda: lens)
    if not forward_pass.sites.get("pattern"):
        return
    rolled = experiment.rollout(
        forward_pass, context.cuts if forward_pass is context.ablated_pass else ()
    )
    layer = context.look.layer_of(forward_pass)
    figure(
        "Attention rollout",
        _describe_rollout(context, rolled),
        f"Mean over heads{', residual weighted 0.5' * forward_pass.config.residual_attention}"
        " (Abnar and Zuidema, 2020): a rough estimate of information flow; it ignores values and"
        " the FFN",
    )
    reached = experiment.reachable(forward_pass)
    chosen = [layer, -1] if layer < len(rolled) - 1 else [-1]
    matrices = torch.stack(
        [rolled[index].masked_fill(~reached[index], torch.nan) for index in chosen]
    )
    titles = [f"up to layer {layer + 1}", f"up to layer {len(rolled)}"][-len(matrices) :]
    draw_heatmaps(
        "rollout",
        matrices,
        labels,
        labels,
        titles=titles,
        quantity="rollout weight (row = query, column = source)",
        blank="masked",
        alt="Attention rollout.",
        height=400,
    )


def _describe_rollout(context: TrainedContext, rolled: Sequence[torch.Tensor]) -> str:
    """Return a sentence on the largest rollout source of the selected token."""
    label = context.full_pass.labels[context.after]
    row = rolled[-1][context.after].clone()
    own_weight = row[context.after].item()
    row[context.after] = 0
    if not row.any():
        return (
            f"“{label}” attends only to itself." if own_weight else f"No token reaches “{label}”."
        )
    source = int(row.argmax())
    return (
        f"Largest source for “{label}” besides itself: “{context.full_pass.labels[source]}”"
        f" ({number(row[source].item())})."
    )


@view.register(
    "attention", label="Attention", help="which token attends to which, in the trained model."
)
def attention(context: TrainedContext):
    """Draw the attention patterns of a layer, the prediction and the head's statistics."""
    shared.attention(context.shown_pass, context.look)
    _draw_prediction(context)
    _draw_head_behaviour(context)


def _draw_prediction(context: TrainedContext):
    """Draw a sentence on the prediction at the selected token, with the ablation's effect."""
    label = context.prompt.labels[context.after]
    place = "After" if context.predicts_next_token else "At"
    logits = compute_logits(context)
    text = f"{place} “{label}”"
    if context.cuts:
        text += f": {describe_change(context, logits)}"
    else:
        top_token = describe_top_token(context, logits[WHOLE], next_token_of(context))
        text += f", the top prediction is {top_token}"
    st.markdown(literal(text))


def _draw_head_behaviour(context: TrainedContext):
    """Draw the head's attention to the subject on held-out sentences, if it is measured."""
    if not context.readings:
        return
    layer = context.look.layer_of(context.full_pass)
    head = context.look.head_of(context.full_pass)
    reading_here = next(
        reading for reading in context.readings if (reading.layer, reading.head) == (layer, head)
    )
    best = context.readings[0]
    sentence = (
        f"**{Cut(layer, 'head', head).name}** was measured in"
        f" {count(reading_here.verb.n, 'held-out sentence')} with a distractor noun between subject"
        f" and verb. The token before the verb puts **{reading_here.before.mean:.2f}** of its"
        f" attention on the subject, on average. The verb itself puts"
        f" **{reading_here.verb.mean:.2f}** (95 % CI {reading_here.verb.low:.2f} to"
        f" {reading_here.verb.high:.2f}); uniform attention would give {reading_here.even:.2f}."
    )
    if reading_here is not best:
        sentence += (
            f" Strongest: {head_name(best.layer, best.head)} ({best.before.mean:.2f} and"
            f" {best.verb.mean:.2f})."
        )
    sentence += " " + literal(_describe_in_this_text(context, layer, head))
    st.markdown(sentence)


def _describe_in_this_text(context: TrainedContext, layer: int, head: int) -> str:
    """Return a sentence on the head's attention from this text's verb; "" without a verb."""
    verb = prompt.verb_of(context.prompt)
    if verb is None:
        return ""
    row = context.full_pass.sites["pattern"][layer][head, verb]
    source = int(row.argmax())
    labels = context.full_pass.labels
    return f"Here: {labels[verb]} → {labels[source]} {row[source]:.2f}."


@view.register("steps", label="Step by step", help="one head, from queries to output.")
def steps(context: TrainedContext):
    """Draw one step of a head's computation as a matrix, and controls of layer, head and step."""
    shared.steps(context.shown_pass, context.look)


@view.register("heads", label="Heads", help="differences between heads.")
def heads(context: TrainedContext):
    """Draw how the heads of a layer differ."""
    shared.heads(context.shown_pass, context.look)


@view.register("pairs", label="Marked pairs", help="attention on words that depend on each other.")
def pairs(context: TrainedContext):
    """Draw marked pairs of words: arcs, a layer's mean pattern, weights by head; and the editor."""
    shared.pairs(context.shown_pass, context.look, context.look.prompt)
