"""Views of the passes: statistics, attention at three passes, and an animation of all."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch

from core.experiments.depth.depth import Journey
from core.experiments.depth.findings import describe_finding
from core.measure.stream_statistics import row_entropy, statistic
from core.model.text import shorten_token
from core.settings.wording import capitalise, count, fixed, number
from ui.depth.context import DepthContext, DepthLook, matrices, view
from ui.kit import pins
from ui.kit.page import figure
from ui.kit.panel.control import choice, tabs
from ui.kit.panel.panel import draw_bar
from ui.kit.store import bind, is_movable
from ui.pictures.curves import Line, Panel, draw_curves
from ui.pictures.heatmaps import Frames, draw_animation, draw_heatmaps, in_one_frame

ORDER = ("rms", "cosine", "rank", "entropy", "std", "largest", "mean")
PLAYED = ("entropy", "cosine", "rms")  # the curves on which the pass that is played is marked


@view.register(
    "statistics", label="Statistics", help="statistics of the residual stream, pass by pass."
)
def statistics(context: DepthContext):
    """Draw curves of residual-stream statistics over passes, one panel each."""
    journeys = context.journeys
    ended = {
        n: None if j.diverged is None else f"diverged at pass {j.diverged}"
        for n, j in journeys.items()
    }
    # Columns: the switch stays where it is when the legend needs a second line.
    left, right = st.columns([3, 1])
    with left:
        about = _question(context)
        if len(context.variants) == 1 and is_movable("variants"):
            about += " Remove a component under “Compare with” to see what it does."
        pins.draw_legend(context.variants, ended, context.pins, line_above=about)
    with right, st.container(horizontal_alignment="right"):
        st.toggle("Zoom axes to the data", **bind("zoom", context.look.zoom))
    context.draw_rounding_note(journeys)
    order = [*ORDER, *[name for name in statistic if name not in ORDER]]
    _draw_curves("statistics", order, context, journeys, ended)


def _question(context: DepthContext) -> str:
    """Return the question that the page answers, as a sentence."""
    passes = context.depth.passes
    if passes == 1:
        return "What does one block do to the tokens?"
    if context.depth.blocks == "same":
        return f"What happens to the tokens when one block is applied {count(passes, 'time')}?"
    return f"What happens to the tokens in a stack of {count(passes, 'block')}?"


def _draw_curves(
    key: str,
    names: Sequence[str],
    context: DepthContext,
    journeys: dict[str, Journey],
    ended: dict[str, str | None],
    **size,
):
    """Draw curves of statistics over passes, a panel each, with a line for each variant.

    Args:
        key: Key of the component.
        names: Keys of the statistics, one panel each.
        context: Variants and view settings of the page.
        journeys: Journey of each variant, by name.
        ended: Text at the end of a line, by variant name; None if the line did not diverge.
        **size: Passed on to `curves`.
    """
    panels = []
    for name in names:
        lines = [
            Line(v.colour, journeys[v.name].values_of(name).tolist(), ended.get(v.name))
            for v in context.variants
        ]
        about = {"log": statistic[name].log, "help": capitalise(statistic.help(name))}
        if not context.look.zoom:
            about["bounds"] = _natural_range(name, journeys)
        sentence = describe_finding(name, journeys)
        panels.append(
            Panel(statistic[name].question, statistic.label(name), sentence, lines, **about)
        )
    draw_curves(key, panels, {v.colour: v.name for v in context.variants}, **size)


def _natural_range(name: str, journeys: dict[str, Journey]) -> tuple[float, float] | None:
    """Return (low, high) of a statistic's natural range, widened to the data; None without one."""
    if statistic[name].most is None:
        return None
    values = np.concatenate([journey.values_of(name) for journey in journeys.values()])
    finite = values[np.isfinite(values)]
    tokens = max(len(journey.tokens) for journey in journeys.values())
    low = float(finite.min(initial=0.0))
    high = float(finite.max(initial=statistic[name].most(tokens)))
    return low, high or 1.0


@view.register(
    "attention",
    label="Snapshots",
    help="attention and token similarity at the first, middle and last pass.",
)
def attention(context: DepthContext):
    """Draw each variant's attention or token similarity at the first, middle and last pass."""
    journeys = context.journeys
    labels = _draw_matrix_controls(context, journeys)
    passes = dict.fromkeys(
        context.depth.shown_passes.values()
    )  # one or two passes have no middle of their own
    if len(context.variants) > 2:
        pairs = [(variant, pass_index) for pass_index in passes for variant in context.variants]
        across = len(context.variants)
    else:
        pairs = [(variant, pass_index) for variant in context.variants for pass_index in passes]
        across = len(passes)
    shown_at = [
        _matrix(context.look, journeys[variant.name], pass_index) for variant, pass_index in pairs
    ]
    cells = in_one_frame([matrix for matrix, _ in shown_at], len(labels))
    names = {
        variant: f"{variant.name} · " if len(context.variants) > 1 else ""
        for variant in context.variants
    }
    titles = [
        f"{names[variant]}pass {pass_index} · {sentence}"
        for (variant, pass_index), (_, sentence) in zip(pairs, shown_at)
    ]
    words = _matrix_arguments(context.look, f" at passes {', '.join(map(str, passes))}.")
    draw_heatmaps(
        "three_passes", cells, labels, labels, titles=titles, height=520, across=across, **words
    )


@view.register(
    "play", label="Play", help="animation over the passes, attention and curves together."
)
def play(context: DepthContext):
    """Draw an animation of attention or token similarity over passes, with curves below."""
    journeys = context.played
    labels = _draw_matrix_controls(context, journeys)
    passes = context.depth.passes_to_play(context.cells_per_pass)
    cells = []
    titles = []
    words = []
    for pass_index in passes:
        shown_at = [
            _matrix(context.look, journeys[variant.name], pass_index)
            for variant in context.variants
        ]
        cells.append(in_one_frame([matrix for matrix, _ in shown_at], len(labels)))
        titles.append(
            [
                f"{variant.name} · {sentence}"
                for variant, (_, sentence) in zip(context.variants, shown_at)
            ]
        )
        words.append(_describe_pass(context, journeys, pass_index))
    moments = [f"pass {moment_index} of {context.depth.passes}" for moment_index in passes]
    frames = Frames(
        "Pass", passes, moments, words, titles, "pass_after_pass_animated", context.weights
    )
    about = _matrix_arguments(context.look, ", pass by pass.")
    draw_animation("played", torch.stack(cells), labels, labels, frames, height=400, **about)
    _draw_curves("played_curves", PLAYED, context, journeys, {}, height=150)


def _draw_matrix_controls(context: DepthContext, journeys: dict[str, Journey]) -> list[str]:
    """Draw controls, title and legend of matrices; return the label of each token, for them."""
    controls = [tabs("Matrix", matrices, "matrix")]
    tokens = context.tokens
    title = "Token similarity"
    statistic_name = "cosine"
    if context.look.matrix != "alike":
        n_heads = max(v.config.n_heads for v in context.variants)
        words = ["mean over heads", *(f"head {n}" for n in range(1, n_heads + 1))]
        controls.append(
            choice(
                "Head", "map_head", min(context.look.map_head, n_heads), range(n_heads + 1), words
            )
        )
        tokens = max((journey.tokens for journey in journeys.values()), key=len)  # with padding
        title = "Attention pattern"
        statistic_name = "entropy"
    draw_bar("lens", controls)
    figure(title, describe_finding(statistic_name, journeys))
    pins.draw_legend(context.variants, {}, context.pins)
    context.draw_rounding_note(journeys)
    return [shorten_token(word) for word in tokens]


def _matrix_arguments(look: DepthLook, alt_end: str) -> dict:
    """Return the heatmap arguments for the matrix shown; `alt_end` ends the alternative text.

    Args:
        look: View settings of the page.
        alt_end: End of the alternative text.
    """
    if look.matrix == "alike":
        words = {
            "quantity": "cosine similarity",
            "diverging": True,
            "blank": "diverged",
            "arrow": "and",
        }
        return words | {"alt": f"Token similarity{alt_end}"}
    mean = "" if look.map_head else ", mean over heads"
    of_head = f" of head {look.map_head}" if look.map_head else ""
    description = f"Attention weight (row = query, column = key){mean}"
    words = {
        "quantity": description,
        "diverging": False,
        "blank": "masked, diverged or removed",
        "arrow": "→",
    }
    return words | {"alt": f"Attention{of_head}{alt_end}"}


def _matrix(look: DepthLook, journey: Journey, pass_index: int) -> tuple[torch.Tensor | None, str]:
    """Return the matrix after a pass, (T, T) or None where diverged or without, and a note.

    The note is such as "0.52 bits".
    """
    is_gone = journey.diverged is not None and journey.diverged <= pass_index
    note = f"diverged at pass {journey.diverged}"
    if look.matrix == "alike":
        sentence = (
            fixed(journey.values_of("cosine")[pass_index]) if journey.n_real > 1 else "one token"
        )
        return journey.alike.get(pass_index), note if is_gone else sentence
    if pass_index not in journey.patterns:
        return None, note if is_gone else "none"
    weights = journey.patterns[pass_index]  # (head, query, key)
    bits = row_entropy(weights[:, : journey.n_real]).mean(-1)
    head = min(look.map_head, journey.config.n_heads)  # a model with fewer heads shows its last
    matrix = (weights[head - 1] if head else weights.mean(0)).masked_fill(
        ~journey.allowed_in(pass_index), math.nan
    )
    sentence = f"{fixed((bits[head - 1] if head else bits.mean()).item())} bits"
    if head != look.map_head:
        sentence += f" (head {head})"
    return matrix, note if is_gone else sentence


def _describe_pass(context: DepthContext, journeys: dict[str, Journey], pass_index: int) -> str:
    """Return sentences on RMS and similarity of every variant at a pass; 0 is the input."""
    sentences = []
    for variant in context.variants:
        journey = journeys[variant.name]
        numbers = [
            (label, journey.values_of(name)[pass_index])
            for label, name in (("RMS", "rms"), ("similarity", "cosine"))
        ]
        words = ", ".join(
            f"{label} {number(value)}" for label, value in numbers if math.isfinite(value)
        )
        if journey.diverged is not None and journey.diverged <= pass_index:
            words = f"diverged at pass {journey.diverged}"
        sentences.append(f"{variant.name}: {words}.")
    return " ".join(sentences)
