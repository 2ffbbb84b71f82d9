import math

import pandas as pd

from core.experiments.block import attention as experiment
from core.figures.charts import attention as charts
from core.figures.spec import word
from core.settings.wording import count
from ui.kit import beside
from ui.kit.page import capital, chart, figure
from ui.kit.panel.control import tabs
from ui.kit.store import change
from ui.pictures.heatmaps import heatmaps, lines
from ui.shared.base import maps as menu
from ui.shared.base import needs, pick, sure, weights

ALTAIR_UP_TO = 64  # tokens; a picked head larger than this stays on the canvas


def attention(forward_pass, look):
    """Who reads from whom, head by head."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    patterns = experiment.patterns(forward_pass, layer)
    one = ["head"] if look.maps in ("one", "lines") else []
    pick("layer", *one, forward_pass=forward_pass, before=[tabs("Picture", menu, "maps")])
    SHOWN[look.maps](forward_pass, patterns, layer, head)


def sharpest(forward_pass, layer, patterns, first: int = 0) -> str:
    """The weight that stands out most from an even spread, in words."""
    even = 1 / forward_pass.allowed_in(layer).sum(-1).clamp_min(1)
    above = (patterns[:, : forward_pass.n_real] - even[: forward_pass.n_real, None]).nan_to_num_(-1)
    head, rest = divmod(int(above.argmax()), above[0].numel())
    reader, source = divmod(rest, above.shape[2])
    left = "" if forward_pass.config.part("softmax").sums_to_one else ", with nothing left over,"
    if above[head, reader, source] < 0.0005:
        return "No weight stands out from an even spread."
    return sure(
        f"Stands out most: in {forward_pass.head_name(layer, first + head)}, “{forward_pass.labels[reader]}” puts {patterns[head, reader, source]:.3f} of its "
        f"attention on “{forward_pass.labels[source]}”; an even spread{left} would be {even[reader]:.3f}.",
        patterns[head, reader, source],
    )


def all_heads(forward_pass, patterns, layer, head):
    at_most = "" if forward_pass.config.part("softmax").sums_to_one else "at most "
    figure(
        "Who reads from whom?"
        + f" Each row is one word reading, and adds up to {at_most}1. Click a head to open it." * beside.alone(),
        sharpest(forward_pass, layer, patterns),
        weights(forward_pass),
    )
    heatmaps(
        "all_heads",
        patterns,
        forward_pass.labels,
        forward_pass.labels,
        titles=[forward_pass.head_name(layer, n) for n in range(len(patterns))],
        what="attention weight, row reads column",
        blank="masked",
        alt=f"Attention maps of {count(len(patterns), 'head')} over {count(len(forward_pass.tokens), 'token')}.",
        height=500,
        on_pick=lambda panel, row, column: change(maps="one", head=panel + 1),
    )


def one_head(forward_pass, patterns, layer, head):
    """The picked head, large."""
    name = forward_pass.head_name(layer, head)
    figure(
        f"{capital(name)}: who reads from whom?",
        sharpest(forward_pass, layer, patterns[head : head + 1], head),
        weights(forward_pass),
    )
    if len(forward_pass.tokens) > ALTAIR_UP_TO:
        heatmaps(
            "one_head",
            patterns[head : head + 1],
            forward_pass.labels,
            forward_pass.labels,
            what="attention weight, row reads column",
            blank="masked",
            alt=f"Attention map of {name}.",
            height=620,
        )
        return
    rows = [
        (
            word(q, forward_pass.labels[q]),
            word(k, forward_pass.labels[k]),
            value,
            forward_pass.tokens[q],
            forward_pass.tokens[k],
        )
        for q, row in enumerate(patterns[head].tolist())
        for k, value in enumerate(row)
        if not math.isnan(value)
    ]
    table = pd.DataFrame(rows, columns=["query", "key", "weight", "reader", "source"])
    dense = len(forward_pass.tokens) <= 32
    chart(charts.attention_map(dense), table, f"Attention map of {name}", height=470)


def averaged(forward_pass, patterns, layer, head):
    figure(f"Who reads from whom, on average over {count(len(patterns), 'head')}?", "", weights(forward_pass))
    heatmaps("average", patterns.mean(0, keepdim=True), forward_pass.labels, forward_pass.labels, what="mean attention weight, row reads column", blank="masked", alt="Attention averaged over the heads.", height=520, numbers=True)  # fmt: skip


def as_lines(forward_pass, patterns, layer, head):
    name = forward_pass.head_name(layer, head)
    figure(f"{capital(name)}: thicker means more attention. Point at a word on the left.", "", weights(forward_pass))
    lines(
        "lines",
        patterns[head],
        forward_pass.labels,
        alt=f"Lines from each token to those it reads, {name}.",
        height=470,
    )


SHOWN = {"heads": all_heads, "one": one_head, "average": averaged, "lines": as_lines}
