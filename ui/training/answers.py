"""Views of one test sequence: each model's answers and attention."""

import html
import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st
import torch

from core.experiments.training.trained import contrast, read, untrained
from core.model.text import PAD, shorten_token
from core.settings.wording import fixed
from core.tasks import IGNORE, Task, task
from core.train import held_out
from ui.kit.page import figure
from ui.kit.pins import COLOURS
from ui.kit.store import bind
from ui.kit.takeaway import offer_table
from ui.pictures.heatmaps import draw_heatmaps, in_one_frame
from ui.shared.trainings import arms_shown, label_of
from ui.training.context import TrainingContext, view

MOST = 64  # sequences of the test that can be looked at


def warn_without_models(context: TrainingContext) -> bool:
    """Draw a notice and return True if the trainings have no weights (stored results)."""
    if context.trainings.states:
        return False
    st.info(
        "Precomputed results do not include weights. Retrain to see predictions and attention.",
        icon=":material/model_training:",
    )
    return True


def selected_sequence(
    context: TrainingContext,
) -> tuple[Task, torch.Tensor, torch.Tensor]:
    """Return (task, tokens (T,), targets (T,)) of the selected test sequence of the first seed.

    Longest first; index 0 is one on which the models differ most. Targets are IGNORE where nothing
    is asked.
    """
    plan = context.trainings.plan
    look = context.look
    training = plan.training
    seed = plan.seeds[0]
    learnt = task[training.task]
    tokens, targets = held_out(training.task, seed, training.length)
    empty = tokens == (learnt.vocabulary.index(PAD) if PAD in learnt.vocabulary else -1)
    order = empty.sum(1).argsort(stable=True)[:MOST]
    if look.sequence:
        index = order[min(look.sequence, len(order)) - 1]
    else:
        states = [context.trainings.states[arm.name, seed] for arm in arms_shown(context.trainings)]
        index = order[contrast(states, tokens[order], targets[order])]
    return learnt, tokens[index, ~empty[index]], targets[index, ~empty[index]]


def draw_sequence_menu(context: TrainingContext):
    """Draw the menu of at most 64 test sequences; first: one where the models disagree."""
    offered = range(min(MOST, task[context.trainings.plan.training.task].test) + 1)
    words = lambda n: f"test sequence {n}" if n else "an example where the models disagree"  # noqa: E731
    bound = bind("sequence", min(context.look.sequence, offered[-1]))
    st.selectbox("Sequence", offered, format_func=words, label_visibility="collapsed", **bound)


@view.register(
    "attention", label="Attention", help="attention before training and now, on one sequence."
)
def attention(context: TrainingContext):
    """Draw each model's attention on a sequence, before training and now, if there are weights."""
    if warn_without_models(context):
        return
    look = context.look
    arms = arms_shown(context.trainings)
    seed = context.trainings.plan.seeds[0]
    layers = max(arm.config.n_layers for arm in arms)
    heads = max(arm.config.n_heads for arm in arms)
    layer = min(look.trained_layer, layers)
    head = look.trained_head
    sequences, of_layer, of_head = st.columns(3)
    with sequences:
        draw_sequence_menu(context)
    with of_layer:
        st.selectbox(
            "Layer",
            range(1, layers + 1),
            format_func=lambda n: f"layer {n} of {layers}",
            label_visibility="collapsed",
            **bind("trained_layer", layer),
        )
    with of_head:
        st.selectbox(
            "Head",
            range(heads + 1),
            format_func=lambda n: f"head {n}" if n else "mean over heads",
            label_visibility="collapsed",
            **bind("trained_head", min(head, heads)),
        )
    learnt, tokens, targets = selected_sequence(context)
    if len(arms) <= 2:  # one row: each model before and now
        pairs = [(arm, now) for arm in arms for now in (False, True)]
        across = 2 * len(arms)
    else:  # two rows: all before, all now
        pairs = [(arm, now) for now in (False, True) for arm in arms]
        across = len(arms)
    cells = []
    titles = []
    bits = {}
    for arm, now in pairs:
        state = context.trainings.states[arm.name, seed]
        reading = read(state if now else untrained(state), tokens, targets)
        weights, bits[arm, now] = _pattern_of(reading, layer, head, arm.config)
        cells.append(weights)
        titles.append(f"{arm.name}, {f'step {state.step}' if now else 'before'}: {bits[arm, now]}")
    with_entropy = [arm for arm in arms if bits[arm, False] != "none"]
    phrases = [
        f"{arm.name} {_format_change(bits[arm, False], bits[arm, True])} bits"
        for arm in with_entropy
    ]
    sentence = f"{'Attention entropy' if head else 'Mean attention entropy'}: {'; '.join(phrases)}."
    figure(
        "Attention before and after training",
        sentence if with_entropy else "None of the models has attention.",
    )
    labels = [shorten_token(learnt.vocabulary[token]) for token in tokens]
    mean = "" if head else ", mean over heads"
    draw_heatmaps(
        "trained_attention",
        in_one_frame(cells, len(labels)),
        labels,
        labels,
        titles=titles,
        height=470,
        across=across,
        quantity=f"Attention weight (row = query, column = key){mean}",
        alt="Attention before training and now.",
        blank="masked or removed",
    )


def _pattern_of(reading, layer: int, head: int, config) -> tuple[torch.Tensor | None, str]:
    """Return a head's pattern (T, T; NaN: masked) and its entropy as text; or (None, "none").

    Layers and heads count from 1; head 0 is the mean over heads. A model with fewer layers or heads
    shows its last one. Padding does not count.
    """
    if not reading.patterns:
        return None, "none"
    index = min(layer, len(reading.patterns)) - 1
    weights = reading.patterns[index]
    entropy = reading.entropy(index)
    if head:
        last = min(head, config.n_heads) - 1
        weights = weights[last]
        entropy = entropy[last]
    else:
        weights = weights.mean(0)
        entropy = entropy.mean()
    return weights.masked_fill(~reading.allowed[index], math.nan), fixed(entropy.item())


def _format_change(before: str, now: str) -> str:
    """Return "a → b", or "still a" if they are equal."""
    return f"still {now}" if before == now else f"{before} → {now}"


# characters in a line, and what the shortest word takes of it
LINE = 100
SHORTEST = 5
CELL = "padding:2px 7px;text-align:center;white-space:nowrap;border-radius:4px;"
HEAD = "text-align:left;padding-right:14px;font-weight:400;white-space:nowrap;min-width:9.5rem"
RIGHT = "background:rgba(0,158,115,.22)"
WRONG = "background:rgba(213,94,0,.28);font-weight:600"


@view.register("answers", label="Answers", help="predictions of all models on one sequence.")
def answers(context: TrainingContext):
    """Draw each model's predictions on a sequence, right and wrong coloured, if it has weights."""
    if warn_without_models(context):
        return
    trainings = context.trainings
    draw_sequence_menu(context)
    learnt, tokens, targets = selected_sequence(context)
    words = learnt.vocabulary
    seed = trainings.plan.seeds[0]
    readings = {
        arm: read(trainings.states[arm.name, seed], tokens, targets)
        for arm in arms_shown(trainings)
    }
    phrases = []
    for arm, reading in readings.items():
        marks = [right for right in reading.right if right is not None]
        phrases.append(f"{arm.name} {sum(marks)} of {len(marks)}")
    figure("Predictions", f"Correct: {'; '.join(phrases)}.")
    tables = "".join(
        _line_html(words, tokens, targets, readings, places)
        for places in _split_lines(words, tokens)
    )
    st.html(f"<div style='overflow-x:auto'>{tables}</div>")
    st.caption(
        "Green is correct, orange is wrong, faded or · is not scored. "
        f"Greedy predictions of seed {seed} at the latest checkpoint."
    )
    offer_table("answers", lambda: _answer_table(readings, words, tokens, targets))


def _split_lines(vocabulary: Sequence[str], token_ids: torch.Tensor) -> list[list[int]]:
    """Split the indices of token ids, from 0, into lists: one per line that fits on the page."""
    lines: list[list[int]] = [[]]
    used = 0
    for place, token in enumerate(token_ids):
        width = max(SHORTEST, len(vocabulary[token]) + 3)
        if lines[-1] and used + width > LINE:
            lines.append([])
            used = 0
        lines[-1].append(place)
        used += width
    return lines


def _line_html(vocabulary, token_ids, targets, readings, indices: Sequence[int]) -> str:
    """Return these indices (from 0) as an HTML table: input, target, each model's answers.

    `readings` has them by arm.
    """
    expected_words = [vocabulary[targets[n]] if targets[n] != IGNORE else "·" for n in indices]
    rows = {
        "input": [_cell_html(vocabulary[token_ids[n]]) for n in indices],
        "target": [_cell_html(word, "opacity:.75") for word in expected_words],
    }
    for arm, reading in readings.items():
        dot = f"<span style='color:{COLOURS[arm.colour]}'>●</span> {html.escape(label_of(arm))}"
        styles = {True: RIGHT, False: WRONG, None: "opacity:.45"}
        answered = [
            _cell_html(vocabulary[reading.answers[n]], styles[reading.right[n]]) for n in indices
        ]
        rows[dot] = [
            cell if targets[n] != IGNORE else _cell_html("") for n, cell in zip(indices, answered)
        ]
    shown_rows = [
        f"<tr><th style='{HEAD}'>{name}</th>{''.join(cells)}</tr>" for name, cells in rows.items()
    ]
    style = "border-spacing:2px;border-collapse:separate;margin-bottom:12px"
    return f"<table class='answers' style='{style}'>{''.join(shown_rows)}</table>"


def _cell_html(text: str, style: str = "") -> str:
    """Return an HTML table cell."""
    return f"<td style='{CELL}{style}'>{html.escape(shorten_token(text))}</td>"


def _answer_table(readings, vocabulary, token_ids, targets) -> pd.DataFrame:
    """Return answers: variant, place (from 1), reads, target, answer, right, probability_of_target.

    A row for each model and scored position.
    """
    rows = []
    for arm, reading in readings.items():
        for n, target in enumerate(targets):
            if target != IGNORE:
                row = (arm.name, n + 1, vocabulary[token_ids[n]], vocabulary[target])
                rows.append(
                    (*row, vocabulary[reading.answers[n]], reading.right[n], reading.probability[n])
                )
    columns = ["variant", "place", "reads", "target", "answer", "right", "probability_of_target"]
    return pd.DataFrame(rows, columns=columns)
