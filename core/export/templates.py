"""What the scripts are made of: what each says of itself, and those that import core, with places for the settings ($NAME)."""

BLOCK = """\
# stages: mean, standard deviation and more of every tensor that the block computes, layer by layer
# tokens: how far each token was moved from what enters the first block to what leaves the last one
# attention: the weight that every query gives to every key that it may see, head by head"""
DEPTH = """\
# statistics: what is left in the stream after every pass (0: what enters the first)
# gradients: the norm of the gradient of the loss with respect to the stream before pass 1, 2, … and after the last
# weights: the same with respect to every weight of the blocks
# attention: weights averaged over heads, in the first, middle and last pass"""
COMPARED = """\
# compared: what leaves each model in numbers (the baseline first), and how far it is from what leaves the baseline"""
HEADS = """\
# heads: how spread out each head's attention is, in bits, averaged over the tokens that read
# attention: the weight that every query gives to every key that it may see, head by head"""
GRID = "# grid: what is left in the stream after every pass (0: what enters the first), for every combination of parts"

CORE_BLOCK = """\
import sys

import pandas as pd

from core import Config
from core.settings.device import Machine
from core.experiments.block.change import per_token
from core.experiments.forward import forward

CONFIG = $CONFIG
MACHINE = $MACHINE
TOKENS = $TOKENS


$SHOW
seen = forward(CONFIG, TOKENS, MACHINE, $HOW)

stages = seen.statistics
stages["layer"] += 1
show("stages", stages)

tokens = per_token(seen)
tokens["token"] += 1
show("tokens", tokens)

rows = [
    (layer, head, query + 1, key + 1, pattern[query, key].item())
    for layer, patterns in enumerate(seen.sites.get("pattern", []), 1)
    for head, pattern in enumerate(patterns, 1)
    for query, key in seen.allowed_in(layer - 1).nonzero().tolist()
]
show("attention", pd.DataFrame(rows, columns=["layer", "head", "query", "key", "weight"]))
"""

CORE_DEPTH = """\
import sys

import pandas as pd

from core import Config
from core.settings.device import Machine
from core.experiments.depth.depth import Depth, table, travel
from core.experiments.depth.gradients import gradients

BASELINE = $CONFIG
VARIANTS = $VARIANTS
DEPTH = $DEPTH
MACHINE = $MACHINE
TOKENS = $TOKENS


$SHOW
journeys = {name: travel(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}
found = {name: gradients(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}

show("statistics", table(journeys))

rows = [(name, at, value) for name, each in found.items() for at, value in enumerate(each.stream.tolist())]
show("gradients", pd.DataFrame(rows, columns=["variant", "pass", "value"]))

rows = [(name, *row) for name, each in found.items() for row in each.weights.itertuples(index=False)]
show("weights", pd.DataFrame(rows, columns=["variant", "layer", "weight", "value"]))

rows = [
    (name, number, query, key, weight)
    for name, journey in journeys.items()
    for number, pattern in journey.patterns.items()
    for query, row in enumerate(pattern.mean(0).tolist(), 1)
    for key, weight in enumerate(row, 1)
]
show("attention", pd.DataFrame(rows, columns=["variant", "pass", "query", "key", "weight"]))
"""

CORE_COMPARED = """\
import sys

from core import Config
from core.settings.device import Machine
from core.experiments.block.compare import compare
from core.experiments.forward import forward

BASELINE = $CONFIG
VARIANTS = $VARIANTS
MACHINE = $MACHINE
TOKENS = $TOKENS


$SHOW
passes = {name: forward(config, TOKENS, MACHINE, $HOW) for name, config in VARIANTS.items()}
show("compared", compare(passes))
"""

CORE_HEADS = """\
import sys

import pandas as pd

from core import Config
from core.settings.device import Machine
from core.experiments.block.attention import heads
from core.experiments.forward import forward

BASELINE = $CONFIG
VARIANTS = $VARIANTS
MACHINE = $MACHINE
TOKENS = $TOKENS


$SHOW
passes = {name: forward(config, TOKENS, MACHINE, $HOW) for name, config in VARIANTS.items()}

rows = [
    (name, layer + 1, row.head, row.value)
    for name, seen in passes.items()
    for layer in seen.layers
    for row in heads(seen, layer).query("meter == 'entropy'").itertuples()
]
show("heads", pd.DataFrame(rows, columns=["variant", "layer", "head", "entropy"]))

rows = [
    (name, layer, head, query + 1, key + 1, pattern[query, key].item())
    for name, seen in passes.items()
    for layer, patterns in enumerate(seen.sites["pattern"], 1)
    for head, pattern in enumerate(patterns, 1)
    for query, key in seen.allowed_in(layer - 1).nonzero().tolist()
]
show("attention", pd.DataFrame(rows, columns=["variant", "layer", "head", "query", "key", "weight"]))
"""

CORE_GRID = """\
import sys

import pandas as pd

from core import Config
from core.settings.device import Machine
from core.experiments.depth.depth import Depth
from core.experiments.depth.axes import Axes
from core.experiments.depth.grid import grid
from core.measure.stream_statistics import statistic

BASELINE = $CONFIG
AXES = $AXES
DEPTH = $DEPTH
MACHINE = $MACHINE
TOKENS = $TOKENS


$SHOW
found = grid(BASELINE, AXES, TOKENS, MACHINE, DEPTH)
rows = [
    (*entries.values(), number, meter, value)
    for entries, passes in zip(found.entries, found.values.tolist())
    for number, row in enumerate(passes)
    for meter, value in zip(statistic, row)
]
show("grid", pd.DataFrame(rows, columns=[*found.axes, "pass", "meter", "value"]))
"""
