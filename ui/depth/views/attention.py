import math

import torch

from core.experiments.depth.findings import finding
from core.measure.stream_statistics import row_entropy
from core.model.text import shown
from core.settings.wording import fixed
from ui.depth.context import matrices, view
from ui.kit import pins
from ui.kit.page import figure
from ui.kit.panel.control import Control, choice, tabs
from ui.kit.panel.panel import bar
from ui.pictures.heatmaps import heatmaps, in_one_frame


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
