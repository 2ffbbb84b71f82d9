import math

import torch

from core.experiments.depth.findings import finding
from core.model.text import shown
from core.settings.wording import number
from ui.depth.context import matrices, view
from ui.depth.views.attention import head_choice, padded, pattern, said_of
from ui.depth.views.statistics import panel
from ui.kit import pins
from ui.kit.page import figure
from ui.kit.panel.control import tabs
from ui.kit.panel.panel import bar
from ui.pictures.curves import curves
from ui.pictures.heatmaps import Frames, in_one_frame, played

BESIDE = ("entropy", "cosine", "rms")  # the curves on which the pass that is shown is marked


@view
def play(context):
    """Play: one pass after another, attention and curves together."""
    of_words = context.look.matrix == "alike"
    bar("lens", [tabs("Matrix", matrices, "matrix"), *([] if of_words else [head_choice(context)])])
    journeys = context.played
    figure(
        "How alike do the words become, pass after pass?" if of_words else "Who reads from whom, pass after pass?",
        finding("cosine" if of_words else "entropy", journeys),
    )
    pins.legend(context.variants, {}, context.pins)
    context.say_rounding(journeys)
    _picture(context, journeys, of_words)
    curves(
        "played_curves",
        [panel(meter, context.variants, journeys, {}) for meter in BESIDE],
        {each.colour: each.name for each in context.variants},
        height=150,
    )


def _picture(context, journeys, of_words):
    """A matrix per variant, one pass at a time."""
    tokens = [shown(word) for word in (context.tokens if of_words else padded(journeys))]
    passes = context.passes_played
    cells, titles, words = [], [], []
    for at in passes:
        seen = [journeys[each.name] for each in context.variants]
        said = [said_of(context.look, each, at, of_words) for each in seen]
        now = [each.alike.get(at) if of_words else pattern(context.look, each, at) for each in seen]
        cells.append(in_one_frame(now, len(tokens)))
        titles.append([f"{each.name}: {one}" for each, one in zip(context.variants, said)])
        words.append(_words(context, journeys, at))
    head = context.look.map_head
    played(
        "played", torch.stack(cells), tokens, tokens,
        Frames("Pass", passes, [f"pass {at} of {context.depth.passes}" for at in passes], words, titles, "pass_after_pass_animated", context.weights),
        what="cosine similarity" if of_words else f"attention weight, row reads column (above: entropy in bits{', mean over heads' * (not head)})",
        alt=f"{'Likeness of words' if of_words else f'Attention of head {head}' if head else 'Attention'}, pass after pass.",
        diverging=of_words, blank="diverged" if of_words else "masked, diverged or switched off", height=400, arrow="and" if of_words else "→",
    )  # fmt: skip


def _words(context, journeys, at: int) -> str:
    """What the numbers of one pass say."""
    said = []
    for each in context.variants:
        journey = journeys[each.name]
        gone = journey.diverged is not None and journey.diverged <= at
        numbers = [(label, journey.of(meter)[at]) for label, meter in (("RMS", "rms"), ("likeness of words", "cosine"))]
        told = ", ".join(f"{label} {number(value)}" for label, value in numbers if math.isfinite(value))
        said.append(f"{each.name}: {f'diverged at pass {journey.diverged}' if gone else told}.")
    return " ".join(said)
