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
from ui.kit.panel.control import Control, choice, tabs
from ui.kit.panel.panel import bar
from ui.pictures.curves import Line, Panel, curves
from ui.pictures.heatmaps import Frames, heatmaps, in_one_frame, played


@view
def attention(context):
    """First, middle, last: attention and likeness of the words at three passes."""
    of_words = context.look.matrix == "alike"
    bar("lens", [tabs("Matrix", matrices, "matrix"), *([] if of_words else [head_choice(context)])])
    passes = dict.fromkeys(context.depth.shown.values())  # one or two passes have no middle of their own
    variants_across = len(context.variants) > 2
    cells, titles = [], []
    pairs = (
        [(v, at) for at in passes for v in context.variants]
        if variants_across
        else [(v, at) for v in context.variants for at in passes]
    )
    for variant, at in pairs:
        journey = context.journeys[variant.name]
        cells.append(journey.alike.get(at) if of_words else pattern(context.look, journey, at))
        said = said_of(context.look, journey, at, of_words)
        titles.append(f"{variant.name} · {at}: {said}" if variants_across else f"{variant.name}, pass {at}: {said}")
    head = context.look.map_head
    labels = [shown(word) for word in (context.tokens if of_words else padded(context.journeys))]
    figure(
        "How alike are the words?" if of_words else "Who reads from whom, pass after pass?",
        finding("cosine" if of_words else "entropy", context.journeys),
    )
    pins.legend(context.variants, {}, context.pins)
    context.say_rounding(context.journeys)
    heatmaps(
        "three_passes", in_one_frame(cells, len(labels)), labels, labels, titles=titles, height=520,
        what="cosine similarity" if of_words else f"attention weight, row reads column (above: variant, pass, entropy in bits{', mean over heads' * (not head)})",
        alt=f"{'Likeness of words' if of_words else f'Attention of head {head}' if head else 'Attention'} at passes {', '.join(map(str, passes))}.",
        diverging=of_words, blank="diverged" if of_words else "masked, diverged or switched off",
        arrow="and" if of_words else "→", across=len(context.variants) if variants_across else len(passes),
    )  # fmt: skip


def head_choice(context) -> Control:
    most = max(v.config.n_heads for v in context.variants)
    words = ["average over heads", *(f"head {n}" for n in range(1, most + 1))]
    return choice("Head", "map_head", min(context.look.map_head, most), range(most + 1), words)


def padded(journeys):
    return max((journey.tokens for journey in journeys.values()), key=len)


def _head(look, journey) -> int:
    """The chosen head; a model with fewer heads shows its last. 0: the average."""
    return min(look.map_head, journey.config.n_heads)


def pattern(look, journey, at) -> torch.Tensor | None:
    """(T, T), NaN where the mask or padding forbids looking; None where there is nothing to look at."""
    if at not in journey.patterns:
        return None
    weights, head = journey.patterns[at], _head(look, journey)
    return (weights[head - 1] if head else weights.mean(0)).masked_fill(~journey.allowed_in(at), math.nan)


def said_of(look, journey, at, of_words) -> str:
    """What of a matrix is put into one number."""
    if journey.diverged is not None and journey.diverged <= at:
        return f"diverged at {journey.diverged}"
    if of_words:
        return fixed(journey.of("cosine")[at]) if journey.n_real > 1 else "one word"
    if at not in journey.patterns:
        return "none"
    head = _head(look, journey)
    bits = row_entropy(journey.patterns[at][:, : journey.n_real]).mean(-1)
    said = fixed(bits[head - 1].item() if head else bits.mean().item())
    return f"{said} (head {head})" if head != look.map_head else said


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


ORDER = ("rms", "cosine", "rank", "entropy", "std", "largest", "mean")


@view
def statistics(context):
    """Statistics: how the stream changes, pass after pass."""
    journeys = context.journeys
    ended = {n: None if j.diverged is None else f"diverged at pass {j.diverged}" for n, j in journeys.items()}
    pins.legend(context.variants, ended, context.pins)
    context.say_rounding(journeys)
    order = [*ORDER, *[name for name in statistic if name not in ORDER]]
    panels = [panel(meter, context.variants, journeys, ended) for meter in order]
    curves("statistics", panels, {v.colour: v.name for v in context.variants})


def panel(meter: str, variants, journeys, ended: dict[str, str | None]) -> Panel:
    """One statistic of all variants, pass by pass. ended: name -> what is said where a line breaks off."""
    known = statistic[meter]
    lines = [Line(v.colour, journeys[v.name].of(meter).tolist(), ended.get(v.name)) for v in variants]
    return Panel(
        title=known.question,
        label=statistic.label(meter),
        help=statistic.help(meter),
        log=known.log,
        sentence=finding(meter, journeys),
        lines=lines,
    )
