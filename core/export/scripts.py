"""Settings -> the script that computes what a page shows of them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.training.plan import Arm, Plan
from core.export.script import (
    Script,
    Table,
    call,
    changed_config,
    enclose,
    literal,
    machine_call,
    quoted,
    settings_call,
    split_text,
    variants_text,
)
from core.model.config import Config
from core.model.generate import Sampling
from core.model.knockout import Cut, write_cuts
from core.model.variants import Variant
from core.settings.device import Machine

CONFIG = "from core import Config\nfrom core.settings.device import Machine\n"
FORWARD = CONFIG + "from core.experiments.forward import forward\n"

# One block

PASS = "forward_pass = forward(CONFIG, TOKENS, MACHINE, DROPOUT, WEIGHTS)\n"
PASSES = """\
passes = {
    name: forward(config, TOKENS, MACHINE, DROPOUT, WEIGHTS) for name, config in VARIANTS.items()
}
"""
STAGES = Table(
    "stages",
    "mean, standard deviation and more of every tensor of the block, layer by layer",
    """\
stages_table = forward_pass.statistics
stages_table["layer"] += 1
""",
)
TOKENS = Table(
    "tokens",
    "how far each token moves from the input of the first block to the output of the last",
    """\
tokens_table = per_token(forward_pass)
tokens_table["token"] += 1
""",
)
ATTENTION = Table(
    "attention",
    "the weight that every query gives to every key that it may see, head by head",
    "attention_table = weight_table(forward_pass)\n",
)
HEADS = Table(
    "heads",
    "entropy (bits), distance (tokens) and weight on the token itself, head by head",
    """\
tables = {layer + 1: heads(forward_pass, layer) for layer in forward_pass.layers}
heads_table = pd.concat(tables, names=["layer"]).reset_index("layer")
""",
)
SILENT = Table(
    "silent",
    "the share of hidden units that are exactly zero (value) or nearly so (small)",
    """\
tables = {layer + 1: sparsity(forward_pass, layer) for layer in forward_pass.layers}
silent_table = pd.concat(tables, names=["layer"]).reset_index("layer")
""",
)
ORDER = Table(
    "order",
    "the largest difference between two orders of the same words, by position encoding",
    "order_table = order(forward_pass)\n",
)
COST = Table(
    "cost",
    "parameters, operations and memory of one pass, part by part",
    """\
amounts = {
    "parameters": cost.parameters(CONFIG),
    "operations": cost.flops(CONFIG, len(forward_pass.tokens)),
    "bytes": cost.activations(CONFIG, len(forward_pass.tokens), MACHINE.dtype),
}
rows = [(amount, *item) for amount, parts in amounts.items() for item in parts.items()]
cost_table = pd.DataFrame(rows, columns=["amount", "part", "value"])
""",
)
COMPARED = Table(
    "compared",
    "what leaves each model in numbers, and how far it is from what leaves the baseline",
    "compared_table = compare(passes)\n",
)
RECUT_HEADS = Table(
    "heads",
    "how spread out each head's attention is, in bits, averaged over the tokens that read",
    """\
rows = [
    (name, layer + 1, row.head, row.value)
    for name, forward_pass in passes.items()
    for layer in forward_pass.layers
    for row in heads(forward_pass, layer).query("meter == 'entropy'").itertuples()
]
heads_table = pd.DataFrame(rows, columns=["variant", "layer", "head", "entropy"])
""",
)
RECUT_ATTENTION = Table(
    "attention",
    ATTENTION.about,
    """\
tables = {name: weight_table(forward_pass) for name, forward_pass in passes.items()}
attention_table = pd.concat(tables, names=["variant"]).reset_index("variant")
""",
)


def block_script(
    config: Config,
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    kind: str = "random",
    view: str = "",
) -> Script:
    """Write the script of one pass through a model: tables stages, tokens, attention.

    Args:
        tokens: the text, without padding.
        kind: of weights, among core.experiments.weights.
        view: of the page, the numbers of which are a table besides.
    """
    imports = FORWARD + "from core.experiments.block.compare import per_token\n"
    attention = ["weight_table"]
    tables = [STAGES, TOKENS, ATTENTION]
    if view == "heads" and config.attention:
        attention = ["heads", "weight_table"]
        tables.append(HEADS)
    elif view == "neurons" and config.ffn:
        imports += "from core.experiments.block.neurons import sparsity\n"
        tables.append(SILENT)
    elif view == "positions" and config.attention:
        imports += "from core.experiments.block.positions import order\n"
        tables.append(ORDER)
    elif view == "cost":
        imports += "from core.model import cost\n"
        tables.append(COST)
    settings = {"CONFIG": settings_call(config, before=len("CONFIG = "))}
    return Script(
        "What every part of a transformer block makes of a text.",
        machine,
        f"{imports}from core.experiments.block.attention import {', '.join(attention)}\n",
        settings | _pass(tokens, machine, dropout, kind),
        tables,
        PASS,
        libraries=() if tables[-1] in (ATTENTION, ORDER) else ("pandas as pd",),
    )


def compare_script(
    variants: Sequence[Variant],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    kind: str = "random",
) -> Script:
    """Write the script of baseline and variants on the same text: the table compared."""
    configs = {variant.name: variant.config for variant in variants}
    return Script(
        "What each part changes in the output of a transformer block.",
        machine,
        FORWARD + "from core.experiments.block.compare import compare\n",
        _models(variants[0].config, configs) | _pass(tokens, machine, dropout, kind),
        [COMPARED],
        PASSES,
        libraries=(),
    )


def heads_script(
    baseline: Config,
    configs: Mapping[str, Config],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    kind: str = "random",
) -> Script:
    """Write the script of one model with other numbers of heads: tables heads, attention."""
    return Script(
        "What the number of heads changes in a transformer block.",
        machine,
        FORWARD + "from core.experiments.block.attention import heads, weight_table\n",
        _models(baseline, configs) | _pass(tokens, machine, dropout, kind),
        [RECUT_HEADS, RECUT_ATTENTION],
        PASSES,
    )


def _models(baseline: Config, configs: Mapping[str, Config]) -> dict[str, str]:
    return {
        "BASELINE": settings_call(baseline, before=len("BASELINE = ")),
        "VARIANTS": variants_text(configs, baseline),
    }


def _pass(tokens: Iterable[str], machine: Machine, dropout: bool, kind: str) -> dict[str, str]:
    settings = {"DROPOUT": repr(dropout), "WEIGHTS": quoted(kind)}
    return _text(tokens) | settings | {"MACHINE": machine_call(machine)}


def _text(tokens: Iterable[str]) -> dict[str, str]:
    return {"TOKENS": split_text(list(tokens), before=len("TOKENS = "))}


# Depth

STATISTICS = Table(
    "statistics",
    "what is left in the stream after every pass (0: what enters the first)",
    "statistics_table = table(journeys)\n",
)
GRADIENTS = Table(
    "gradients",
    "the norm of ∂loss/∂stream before pass 1, 2, … and after the last",
    """\
rows = [
    (name, number, value)
    for name, of_variant in backward.items()
    for number, value in enumerate(of_variant.stream.tolist())
]
gradients_table = pd.DataFrame(rows, columns=["variant", "pass", "value"])
""",
)
WEIGHTS = Table(
    "weights",
    "the same with respect to every weight of the blocks",
    """\
rows = [
    (name, *row)
    for name, of_variant in backward.items()
    for row in of_variant.weights.itertuples(index=False)
]
weights_table = pd.DataFrame(rows, columns=["variant", "layer", "weight", "value"])
""",
)
MEAN_ATTENTION = Table(
    "attention",
    "weights averaged over heads, in the first, middle and last pass",
    """\
rows = [
    (name, number, query, key, weight)
    for name, journey in journeys.items()
    for number, pattern in journey.patterns.items()
    for query, row in enumerate(pattern.mean(0).tolist(), 1)
    for key, weight in enumerate(row, 1)
]
attention_table = pd.DataFrame(rows, columns=["variant", "pass", "query", "key", "weight"])
""",
)
JOURNEYS = """\
journeys = {name: travel(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}
backward = {name: gradients(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}
"""
GRID = Table(
    "grid",
    "what is left in the stream after every pass (0: the input), for every combination of parts",
    """\
variants = grid(BASELINE, AXES, TOKENS, MACHINE, DEPTH)
rows = [
    (*entries.values(), number, meter, value)
    for entries, passes in zip(variants.entries, variants.values.tolist())
    for number, row in enumerate(passes)
    for meter, value in zip(statistic, row)
]
grid_table = pd.DataFrame(rows, columns=[*variants.axes, "pass", "meter", "value"])
""",
)


def depth_script(variants: Sequence[Variant], tokens: Iterable[str], machine: Machine, depth: Depth) -> Script:
    """Write the script of many passes: tables statistics, gradients, weights, attention."""
    configs = {variant.name: variant.config for variant in variants}
    return Script(
        "What a transformer block makes of a text when it is applied again and again.",
        machine,
        CONFIG + "from core.experiments.depth.depth import Depth, table, travel\n"
        "from core.experiments.depth.gradients import gradients\n",
        _models(variants[0].config, configs) | _depth(tokens, machine, depth),
        [STATISTICS, GRADIENTS, WEIGHTS, MEAN_ATTENTION],
        JOURNEYS,
    )


def grid_script(baseline: Config, axes: Axes, tokens: Iterable[str], machine: Machine, depth: Depth) -> Script:
    """Write the script of a grid of variants: the table grid, with a column for every axis."""
    chosen = [quoted(axes.grid)] if axes.grid else []
    settings = {
        "BASELINE": settings_call(baseline, before=len("BASELINE = ")),
        "AXES": "Axes" + enclose(chosen, "()", before=len("AXES = Axes")),
    }
    return Script(
        "What every combination of parts leaves of a text.",
        machine,
        CONFIG + "from core.experiments.depth.axes import Axes\n"
        "from core.experiments.depth.depth import Depth\n"
        "from core.experiments.depth.grid import grid\n"
        "from core.measure.stream_statistics import statistic\n",
        settings | _depth(tokens, machine, depth),
        [GRID],
    )


def _depth(tokens: Iterable[str], machine: Machine, depth: Depth) -> dict[str, str]:
    passes = f"Depth(passes={depth.passes}, blocks={quoted(depth.blocks)})"
    return _text(tokens) | {"DEPTH": passes, "MACHINE": machine_call(machine)}


# Training

TRAINED = """\
torch.set_num_threads(1)  # as in the app: several add the same numbers in another order

runs = {
    (name, seed): list(train(config, how, seed, MACHINE))
    for name, config, how, seed in PLAN.trainings()
}
compared = judged(runs, PLAN)
"""
ROWS = Table(
    "rows",
    "every run. loss: of the batch; gradient_norm: before clipping; update_size: how far the step "
    "moved all weights together, relative to their norm",
    "rows_table = every_row(runs, PLAN)\n",
)
CURVES = Table(
    "curves",
    "means over the seeds that did not diverge, with 95 % intervals; of loss the geometric mean",
    "curves_table = curves(compared.runs, PLAN)\n",
)
ACCURACY = Table(
    "accuracy",
    "where the curves end, the differences from the first model with 95 % intervals and p (paired "
    "t-test, Holm), and what each model costs",
    "accuracy_table = summary(compared.runs, PLAN, rates(PLAN, compared.names))\n",
)


def training_script(plan: Plan) -> Script:
    """Write the script that trains all models of a plan: tables rows, curves, accuracy.

    Raises:
        ConfigError: something in it cannot be trained (Plan.states).
    """
    plan.states()
    baseline = plan.arms[0].config
    return Script(
        "What each part is worth to a small transformer that learns a task.",
        plan.machine,
        CONFIG + "from core.experiments.training.judged import judged, rates\n"
        "from core.experiments.training.plan import Arm, Plan, Trial\n"
        "from core.experiments.training.results import curves, every_row, summary\n"
        "from core.train import Training, train\n",
        {
            "BASELINE": settings_call(baseline, before=len("BASELINE = ")),
            "ARMS": enclose([_arm(arm, baseline) for arm in plan.arms]),
            "TRAINING": settings_call(plan.training, before=len("TRAINING = ")),
            "TRIAL": settings_call(plan.trial, before=len("TRIAL = ")),
            "MACHINE": machine_call(plan.machine),
            "PLAN": "Plan(tuple(ARMS), TRAINING, TRIAL, MACHINE)",
        },
        [ROWS, CURVES, ACCURACY],
        TRAINED,
        "Training makes differences grow: where rounding differs, the curves part after a while.",
        ("torch",),
    )


def _arm(arm: Arm, baseline: Config) -> str:
    """Write Arm(…), with all that is not a default."""
    fields = {}
    for field in dataclasses.fields(arm):
        value = getattr(arm, field.name)
        if field.name == "config":
            fields["config"] = changed_config(value, baseline, 8 + len("config="))
        elif field.name == "training" and value:
            fields["training"] = settings_call(value, 8 + len("training="))
        elif value != field.default:
            fields[field.name] = literal(value)
    return call("Arm", fields, before=4)


# Trained model

BENCH = """\
torch.set_num_threads(1)  # as in the app: several add the same numbers in another order

opened = MODEL
bench = Bench(opened, questions(opened, TEXTS))
cuts, problems = read_cuts(CUTS, opened.config)
assert not problems, problems
"""
READINGS = Table(
    "readings",
    "the share of attention that the verb, and the word before it, put on the subject across a "
    "clause, with 95 % intervals",
    """\
rows = [
    (f"{head.layer + 1}.{head.head + 1}", *head.verb[:3], *head.before[:3], head.even)
    for head in readings(bench)
]
columns = ["head", "verb", "verb_low", "verb_high", "before", "before_low", "before_high", "even"]
readings_table = pd.DataFrame(rows, columns=columns)
""",
)
EFFECTS = Table(
    "effects",
    "what the knock-out costs: means over texts, and the change with its 95 % interval",
    """\
effect = bench.effect(cuts, MODE)
effects_table = told(effect, bench.baseline)
""",
)
DISTANCES = Table(
    "distances",
    "accuracy by what the questions are split by, with its 95 % interval (Wilson)",
    """\
tables = {
    "whole": by_distance(bench.baseline, bench.questions, LEAST),
    "without": by_distance(effect, bench.questions, LEAST),
}
distances_table = pd.concat(tables, names=["model"]).reset_index("model")
""",
)
CONTRIBUTIONS = Table(
    "contributions",
    "what each part adds to the logit difference, with its 95 % interval (Holm)",
    "contributions_table = contributions.table(bench, cuts, MODE)\n",
)
TAKEOVER = Table(
    "takeover",
    "how much more each later part adds with the knock-out, with 95 % intervals (Holm)",
    "takeover_table = contributions.takeover(bench, cuts, MODE)\n",
)
SWEEP = Table(
    "sweep",
    "each head and each sub-layer taken out by itself, with 95 % intervals (Holm)",
    "sweep_table = ranked(list(bench.sweep(MODE)), bench.baseline)\n",
)
NEXT_WORDS = Table(
    "words",
    "the likeliest next words after a token of the text",
    """\
prompt = read(opened, TEXT)
passes = {"whole": look(bench, prompt)}
if cuts:
    passes["without"] = look(bench, prompt, cuts, MODE)
scores = {name: logits(bench, forward_pass, TOKEN - 1) for name, forward_pass in passes.items()}
said = prompt.ids[TOKEN : TOKEN + 1]  # with which the text goes on
words_table = next_words(scores, SAMPLING, opened.tokens.label, also=said)
""",
)
FAMILY = Table(
    "family",
    "each part never trained, and cut afterwards. Intervals (95 %, Holm): of the difference from "
    "the baseline, around the baseline",
    "family_table = comparison.summary(comparison.read(), MEASURE)\n",
)
FAMILY_DISTANCES = Table(
    "family",
    "accuracy by distance with the part, never trained, and cut afterwards. Intervals (95 %, Holm): "
    "of the difference from the baseline",
    "family_table = comparison.by_distance(comparison.read(), PART)\n",
)
ELSEWHERE = 'files.from_folder("FOLDER")  # put in the folder of the model'
TABLES = "from core.experiments.trained.tables import "
IMPORT_CONTRIBUTIONS = "from core.experiments.trained import contributions\n"


def knockout_script(
    model: str,
    cuts: Sequence[Cut],
    mode: str,
    texts: int,
    view: str = "",
    text: str = "",
    token: int = 1,
    sampling: Sampling | None = None,
) -> Script:
    """Write the script of a trained model, as a whole and with a knock-out.

    Args:
        model: the call that opens it: folder_call, member_call or ELSEWHERE.
        texts: on how many the effect is measured.
        view: of the page, the numbers of which are printed.
        text, token, sampling: after which token of a text (from 1) the next word is chosen, and how.
    """
    opens = "family" if model.startswith("family") else "files"
    imports = (
        f"from core.checkpoints import {opens}\n"
        "from core.experiments.trained.knockout import Bench\n"
        "from core.experiments.trained.questions import questions\n"
        "from core.model.knockout import read_cuts\n"
    )
    settings = {
        "MODEL": model,
        "CUTS": f"{quoted(write_cuts(tuple(cuts)))}  # as in a link: 2.3 is head 3 of layer 2",
        "MODE": quoted(mode),
        "TEXTS": repr(texts),
    }
    tables = [READINGS]
    if view == "knockout":
        imports += IMPORT_CONTRIBUTIONS + TABLES + "LEAST, by_distance, told\n"
        tables = [EFFECTS, DISTANCES, TAKEOVER if cuts else CONTRIBUTIONS]
    elif view == "credit":
        imports += IMPORT_CONTRIBUTIONS
        tables = [CONTRIBUTIONS]
    elif view == "sweep":
        imports += TABLES + "ranked\n"
        tables = [SWEEP]
    elif view == "words":
        imports += (
            "from core.experiments.trained.prompt import logits, look, next_words, read\n"
            "from core.model.generate import Sampling\n"
        )
        tables = [NEXT_WORDS]
        settings |= {
            "TEXT": quoted(text),
            "TOKEN": f"{token}  # after which the next one is chosen",
            "SAMPLING": settings_call(sampling or Sampling(), before=len("SAMPLING = ")),
        }
    else:
        imports += TABLES + "readings\n"
    return Script(
        "What the parts of a trained model do, and what it loses without them.",
        Machine("cpu"),
        imports,
        settings,
        tables,
        BENCH,
        libraries=("torch",) if view in ("credit", "sweep", "words") else ("pandas as pd", "torch"),
    )


def folder_call(name: str) -> str:
    """Write the call that opens a model of the folder models, wherever the script is run."""
    return f"files.from_folder(files.ROOT / {quoted(name)})"


def member_call(member: str, seed: int) -> str:
    """Write the call that opens a model of the family."""
    return f"family.opened({quoted(member)}, {seed})"


def family_script(measure: str, part: str = "") -> Script:
    """Write the script of the models that were trained without a part.

    Args:
        measure: of core.experiments.trained.comparison.
        part: of which accuracy by distance is printed instead.
    """
    return Script(
        "Is a part needed to learn, or does the model only come to rely on it?",
        Machine("cpu"),
        "from core.experiments.trained import comparison\n",
        {"PART": quoted(part)} if part else {"MEASURE": quoted(measure)},
        [FAMILY_DISTANCES if part else FAMILY],
        libraries=(),
    )
