"""Views of the passes: statistics, attention at three passes, and all passes played."""

import math

import torch

from core.experiments.depth.findings import finding
from core.measure.stream_statistics import row_entropy, statistic
from core.model.text import shown
from core.settings.wording import fixed, number
from ui.depth.context import matrices, view
from ui.kit import pins
from ui.kit.page import figure
from ui.kit.panel.control import choice, tabs
from ui.kit.panel.panel import bar
from ui.pictures.curves import Line, Panel, curves
from ui.pictures.heatmaps import Frames, heatmaps, in_one_frame, played

ORDER = ("rms", "cosine", "rank", "entropy", "std", "largest", "mean")
PLAYED = ("entropy", "cosine", "rms")  # the curves on which the pass that is played is marked


@view.register("statistics", label="Statistics", help="how the stream changes, pass after pass.")
def statistics(context):
    journeys = context.journeys
    ended = {n: None if j.diverged is None else f"diverged at pass {j.diverged}" for n, j in journeys.items()}
    pins.legend(context.variants, ended, context.pins)
    context.say_rounding(journeys)
    order = [*ORDER, *[name for name in statistic if name not in ORDER]]
    _draw_curves("statistics", order, context, journeys, ended)


def _draw_curves(key: str, names, context, journeys, ended: dict[str, str | None], **size):
    """Draw statistics of all variants, pass by pass. ended: name -> what is said where a line breaks off."""
    panels = []
    for name in names:
        lines = [Line(v.colour, journeys[v.name].of(name).tolist(), ended.get(v.name)) for v in context.variants]
        about = {"log": statistic[name].log, "help": statistic.help(name)}
        said = finding(name, journeys)
        panels.append(Panel(statistic[name].question, statistic.label(name), said, lines, **about))
    curves(key, panels, {v.colour: v.name for v in context.variants}, **size)


@view.register("attention", label="First, middle, last", help="attention and likeness of the words at three passes.")
def attention(context):
    journeys = context.journeys
    labels = _head_matrices(context, journeys, "How alike are the words?")
    passes = dict.fromkeys(context.depth.shown.values())  # one or two passes have no middle of their own
    if len(context.variants) > 2:
        pairs = [(variant, at) for at in passes for variant in context.variants]
        title, across = "{} · {}: {}", len(context.variants)
    else:
        pairs = [(variant, at) for variant in context.variants for at in passes]
        title, across = "{}, pass {}: {}", len(passes)
    shown_at = [_matrix(context.look, journeys[variant.name], at) for variant, at in pairs]
    cells = in_one_frame([matrix for matrix, _ in shown_at], len(labels))
    titles = [title.format(variant.name, at, said) for (variant, at), (_, said) in zip(pairs, shown_at)]
    words = _matrix_words(context.look, "variant, pass, ", f" at passes {', '.join(map(str, passes))}.")
    heatmaps("three_passes", cells, labels, labels, titles=titles, height=520, across=across, **words)


@view.register("play", label="Play", help="one pass after another, attention and curves together.")
def play(context):
    journeys = context.played
    labels = _head_matrices(context, journeys, "How alike do the words become, pass after pass?")
    passes = context.depth.played(context.cells)
    cells, titles, words = [], [], []
    for at in passes:
        shown_at = [_matrix(context.look, journeys[variant.name], at) for variant in context.variants]
        cells.append(in_one_frame([matrix for matrix, _ in shown_at], len(labels)))
        titles.append([f"{variant.name}: {said}" for variant, (_, said) in zip(context.variants, shown_at)])
        words.append(_describe_pass(context, journeys, at))
    moments = [f"pass {at} of {context.depth.passes}" for at in passes]
    frames = Frames("Pass", passes, moments, words, titles, "pass_after_pass_animated", context.weights)
    about = _matrix_words(context.look, "", ", pass after pass.")
    played("played", torch.stack(cells), labels, labels, frames, height=400, **about)
    _draw_curves("played_curves", PLAYED, context, journeys, {}, height=150)


def _head_matrices(context, journeys, question: str) -> list[str]:
    """Draw what stands above matrices. Return the labels of their rows.

    Args:
        question: What the matrices of likeness answer.
    """
    controls = [tabs("Matrix", matrices, "matrix")]
    tokens = context.tokens
    statistic_name = "cosine"
    if context.look.matrix != "alike":
        most = max(v.config.n_heads for v in context.variants)
        words = ["average over heads", *(f"head {n}" for n in range(1, most + 1))]
        controls.append(choice("Head", "map_head", min(context.look.map_head, most), range(most + 1), words))
        tokens = max((journey.tokens for journey in journeys.values()), key=len)  # with padding
        question, statistic_name = "Who reads from whom, pass after pass?", "entropy"
    bar("lens", controls)
    figure(question, finding(statistic_name, journeys))
    pins.legend(context.variants, {}, context.pins)
    context.say_rounding(journeys)
    return [shown(word) for word in tokens]


def _matrix_words(look, above: str, end: str) -> dict:
    """Return the words of a picture of matrices. above: what stands above each beside the entropy; end: of its name."""
    if look.matrix == "alike":
        words = {"what": "cosine similarity", "diverging": True, "blank": "diverged", "arrow": "and"}
        return words | {"alt": f"Likeness of words{end}"}
    mean = "" if look.map_head else ", mean over heads"
    of_head = f" of head {look.map_head}" if look.map_head else ""
    what = f"attention weight, row reads column (above: {above}entropy in bits{mean})"
    words = {"what": what, "diverging": False, "blank": "masked, diverged or switched off", "arrow": "→"}
    return words | {"alt": f"Attention{of_head}{end}"}


def _matrix(look, journey, at: int) -> tuple[torch.Tensor | None, str]:
    """Return the matrix of one pass, (T, T) or None where there is none, and what of it is one number."""
    is_gone = journey.diverged is not None and journey.diverged <= at
    gone = f"diverged at {journey.diverged}"
    if look.matrix == "alike":
        said = fixed(journey.of("cosine")[at]) if journey.n_real > 1 else "one word"
        return journey.alike.get(at), gone if is_gone else said
    if at not in journey.patterns:
        return None, gone if is_gone else "none"
    weights = journey.patterns[at]  # (head, query, key)
    bits = row_entropy(weights[:, : journey.n_real]).mean(-1)
    head = min(look.map_head, journey.config.n_heads)  # a model with fewer heads shows its last
    matrix = (weights[head - 1] if head else weights.mean(0)).masked_fill(~journey.allowed_in(at), math.nan)
    said = fixed((bits[head - 1] if head else bits.mean()).item())
    if head != look.map_head:
        said += f" (head {head})"
    return matrix, gone if is_gone else said


def _describe_pass(context, journeys, at: int) -> str:
    """Return what the numbers of one pass say."""
    said = []
    for variant in context.variants:
        journey = journeys[variant.name]
        numbers = [(label, journey.of(name)[at]) for label, name in (("RMS", "rms"), ("likeness of words", "cosine"))]
        words = ", ".join(f"{label} {number(value)}" for label, value in numbers if math.isfinite(value))
        if journey.diverged is not None and journey.diverged <= at:
            words = f"diverged at pass {journey.diverged}"
        said.append(f"{variant.name}: {words}.")
    return " ".join(said)
