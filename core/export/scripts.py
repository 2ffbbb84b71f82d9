"""Scripts that compute the tables of a page, from its settings."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.training.plan import Arm, Plan
from core.export.script import (
    Code,
    Script,
    enclose,
    quoted,
    read_tables,
    write_call,
    write_changed_config,
    write_literal,
    write_settings_call,
    write_variants,
)
from core.model.config import Config
from core.model.generate import Sampling
from core.model.knockout import Cut, write_cuts
from core.settings.device import Machine

FORWARD = """\
from core import Config
from core.experiments.forward import forward
from core.settings.device import Machine
"""
PASS = f"""\
{FORWARD}
forward_pass = forward(CONFIG, TOKENS, MACHINE, DROPOUT, WEIGHTS)
"""
PASSES = f"""\
{FORWARD}
passes = {{
    name: forward(config, TOKENS, MACHINE, DROPOUT, WEIGHTS) for name, config in VARIANTS.items()
}}
"""
BLOCK_TABLES = read_tables("""
# %% stages: mean, standard deviation and more of every tensor of the block, layer by layer
stages_table = forward_pass.statistics
stages_table["layer"] += 1
# %% tokens: change of every token from the input of the first block to the output of the last
from core.experiments.block.compare import per_token

tokens_table = per_token(forward_pass)
tokens_table["token"] += 1
# %% attention: the weight that every query gives to every key that it may see, head by head
from core.experiments.block.attention import weight_table

attention_table = weight_table(forward_pass)
# %% heads: entropy (bits), distance (tokens) and weight on the token itself, head by head
from core.experiments.block.attention import measure_heads

tables = {layer + 1: measure_heads(forward_pass, layer) for layer in forward_pass.layers}
heads_table = pd.concat(tables, names=["layer"]).reset_index("layer")
# %% silent: share of hidden units that are exactly zero (value) or nearly zero (small)
from core.experiments.block.neurons import sparsity

tables = {layer + 1: sparsity(forward_pass, layer) for layer in forward_pass.layers}
silent_table = pd.concat(tables, names=["layer"]).reset_index("layer")
# %% order: the largest difference between two orders of the same words, by position encoding
from core.experiments.block.positions import compare_word_orders

order_table = compare_word_orders(forward_pass)
# %% cost: parameters, FLOPs and memory of one pass, by component
from core.model import cost

amounts = {
    "parameters": cost.parameters(CONFIG),
    "operations": cost.flops(CONFIG, len(forward_pass.tokens)),
    "bytes": cost.activation_bytes(CONFIG, len(forward_pass.tokens), MACHINE.dtype),
}
rows = [(amount, *item) for amount, parts in amounts.items() for item in parts.items()]
cost_table = pd.DataFrame(rows, columns=["amount", "part", "value"])
""")
COMPARE_TABLES = read_tables("""
# %% compared: output statistics of every model, and their distance from the baseline
from core.experiments.block.compare import compare

compared_table = compare(passes)
# %% heads: attention entropy of every head in bits, averaged over query tokens
from core.experiments.block.attention import measure_heads

rows = [
    (name, layer + 1, row.head, row.value)
    for name, forward_pass in passes.items()
    for layer in forward_pass.layers
    for row in measure_heads(forward_pass, layer).query("meter == 'entropy'").itertuples()
]
heads_table = pd.DataFrame(rows, columns=["variant", "layer", "head", "entropy"])
# %% attention: the weight that every query gives to every key that it may see, head by head
from core.experiments.block.attention import weight_table

tables = {name: weight_table(forward_pass) for name, forward_pass in passes.items()}
attention_table = pd.concat(tables, names=["variant"]).reset_index("variant")
""")


def make_block_script(
    config: Config,
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    weights: str = "random",
    view: str = "",
) -> Script:
    """Return the script of one pass: tables stages, tokens, attention, and one for some views.

    The views heads, positions, neurons and cost add the tables heads, order, silent and cost.

    Args:
        config: Settings of the model.
        tokens: The text, without padding.
        machine: Device and precision.
        dropout: Whether dropout acts.
        weights: Kind of weights, among core.experiments.weights.
        view: View of the page whose table is added.
    """
    names = ["stages", "tokens", "attention"]
    if view in ("heads", "positions") and config.attention:
        names.append({"heads": "heads", "positions": "order"}[view])
    elif view == "neurons" and config.ffn:
        names.append("silent")
    elif view == "cost":
        names.append("cost")
    settings = {"TOKENS": list(tokens), "DROPOUT": dropout, "WEIGHTS": weights, "MACHINE": machine}
    return Script(
        "One forward pass through a transformer block.",
        machine,
        {"CONFIG": config} | settings,
        [BLOCK_TABLES[name] for name in names],
        PASS,
    )


def make_compare_script(
    configs: Mapping[str, Config],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    weights: str = "random",
    baseline: Config | None = None,
) -> Script:
    """Return the script of several models: table compared, or with `baseline` heads, attention.

    Args:
        configs: Name to model, the baseline first.
        tokens: The text, without padding.
        machine: Device and precision.
        dropout: Whether dropout acts.
        weights: Kind of weights, among core.experiments.weights.
        baseline: Model of which configs are versions with other numbers of heads; else None.
    """
    names = ["compared"]
    title = "Effect of every variant on the output of a transformer block."
    if baseline:
        names = ["heads", "attention"]
        title = "Effect of the number of heads in a transformer block."
    settings = {"TOKENS": list(tokens), "DROPOUT": dropout, "WEIGHTS": weights, "MACHINE": machine}
    models = _model_settings(configs, baseline)
    return Script(
        title, machine, models | settings, [COMPARE_TABLES[name] for name in names], PASSES
    )


def _model_settings(
    configs: Mapping[str, Config], baseline: Config | None = None
) -> dict[str, object]:
    """Return the script's settings BASELINE (the first config by default) and VARIANTS."""
    baseline = baseline or next(iter(configs.values()))
    return {"BASELINE": baseline, "VARIANTS": write_variants(configs, baseline)}


JOURNEYS = """\
from core import Config
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.settings.device import Machine

journeys = {name: travel(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}
backward = {name: gradients(config, TOKENS, MACHINE, DEPTH) for name, config in VARIANTS.items()}
"""
DEPTH_TABLES = read_tables("""
# %% statistics: statistics of the residual stream after every pass (0: the input)
from core.experiments.depth.depth import table

statistics_table = table(journeys)
# %% gradients: the norm of ∂loss/∂stream before pass 1, 2, … and after the last
rows = [
    (name, number, value)
    for name, of_variant in backward.items()
    for number, value in enumerate(of_variant.stream.tolist())
]
gradients_table = pd.DataFrame(rows, columns=["variant", "pass", "value"])
# %% weights: the same with respect to every weight of the blocks
rows = [
    (name, *row)
    for name, of_variant in backward.items()
    for row in of_variant.weights.itertuples(index=False)
]
weights_table = pd.DataFrame(rows, columns=["variant", "layer", "weight", "value"])
# %% attention: weights averaged over heads, in the first, middle and last pass
rows = [
    (name, number, query, key, weight)
    for name, journey in journeys.items()
    for number, pattern in journey.patterns.items()
    for query, row in enumerate(pattern.mean(0).tolist(), 1)
    for key, weight in enumerate(row, 1)
]
attention_table = pd.DataFrame(rows, columns=["variant", "pass", "query", "key", "weight"])
""")
GRID_TABLES = read_tables("""
# %% grid: statistics of the residual stream after every pass (0: the input), for every
# combination of components
from core import Config
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.depth.grid import grid
from core.measure.stream_statistics import statistic
from core.settings.device import Machine

variants = grid(BASELINE, AXES, TOKENS, MACHINE, DEPTH)
rows = [
    (*entries.values(), number, meter, value)
    for entries, passes in zip(variants.entries, variants.values.tolist())
    for number, row in enumerate(passes)
    for meter, value in zip(statistic, row)
]
grid_table = pd.DataFrame(rows, columns=[*variants.axes, "pass", "meter", "value"])
""")


def make_depth_script(
    configs: Mapping[str, Config], tokens: Iterable[str], machine: Machine, depth: Depth
) -> Script:
    """Return the script of many passes: tables statistics, gradients, weights, attention.

    Args:
        configs: Name to model, the baseline first.
        tokens: The text, without padding.
        machine: Device and precision.
        depth: How many passes, and through which blocks.
    """
    return Script(
        "A transformer block applied repeatedly.",
        machine,
        _model_settings(configs) | _depth_settings(tokens, machine, depth),
        list(DEPTH_TABLES.values()),
        JOURNEYS,
    )


def make_grid_script(
    baseline: Config, axes: Axes, tokens: Iterable[str], machine: Machine, depth: Depth
) -> Script:
    """Return the script of a grid of untrained variants: a row per variant, pass and meter."""
    return Script(
        "Every combination of components, applied repeatedly.",
        machine,
        {"BASELINE": baseline, "AXES": axes} | _depth_settings(tokens, machine, depth),
        list(GRID_TABLES.values()),
    )


def _depth_settings(tokens: Iterable[str], machine: Machine, depth: Depth) -> dict[str, object]:
    """Return the script's settings TOKENS, DEPTH and MACHINE for many passes."""
    passes = Code(f"Depth(passes={depth.passes}, blocks={quoted(depth.blocks)})")
    return {"TOKENS": list(tokens), "DEPTH": passes, "MACHINE": machine}


TRAIN = """\
from core import Config
from core.experiments.training.judged import select_runs
from core.experiments.training.plan import Arm, Plan, Trial
from core.settings.device import Machine
from core.train import Training, train

torch.set_num_threads(1)  # as in the app: more threads change the order of sums, and so rounding

runs = {
    (name, seed): list(train(config, how, seed, MACHINE))
    for name, config, how, seed in PLAN.trainings()
}
compared = select_runs(runs, PLAN)
"""
TRAINING_TABLES = read_tables("""
# %% rows: every run. loss: of the batch; gradient_norm: before clipping; update_size: how far the
# step moved all weights together, relative to their norm
from core.experiments.training.results import every_row

rows_table = every_row(runs, PLAN)
# %% curves: means over the seeds that did not diverge, with 95 % intervals; for loss, the
# geometric mean
from core.experiments.training.results import curves

curves_table = curves(compared.runs, PLAN)
# %% accuracy: where the curves end, the differences from the first model with 95 % intervals and p
# (paired t-test, Holm), and what each model costs
from core.experiments.training.judged import describe_rates
from core.experiments.training.results import summary

accuracy_table = summary(compared.runs, PLAN, describe_rates(PLAN, compared.names))
""")


def make_training_script(plan: Plan) -> Script:
    """Return a plan's training script: tables rows, curves, accuracy; ConfigError for float16."""
    plan.states()
    baseline = plan.arms[0].config
    settings = {
        "BASELINE": baseline,
        "ARMS": Code(enclose([_write_arm(arm, baseline) for arm in plan.arms])),
        "TRAINING": plan.training,
        "TRIAL": plan.trial,
        "MACHINE": plan.machine,
        "PLAN": Code("Plan(tuple(ARMS), TRAINING, TRIAL, MACHINE)"),
    }
    return Script(
        "Training with and without a component.",
        plan.machine,
        settings,
        list(TRAINING_TABLES.values()),
        TRAIN,
        "Where rounding differs, training curves diverge after a while.",
    )


def _write_arm(arm: Arm, baseline: Config) -> str:
    """Write the code Arm(…) with all values that are not defaults."""
    fields = {}
    for field in dataclasses.fields(arm):
        value = getattr(arm, field.name)
        if field.name == "config":
            fields["config"] = write_changed_config(value, baseline, 8 + len("config="))
        elif field.name == "training" and value:
            fields["training"] = write_settings_call(value, 8 + len("training="))
        elif value != field.default:
            fields[field.name] = write_literal(value)
    return write_call("Arm", fields, before=4)


BENCH = """\
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import questions
from core.model.knockout import read_cuts

torch.set_num_threads(1)  # as in the app: more threads change the order of sums, and so rounding

opened = MODEL
bench = Bench(opened, questions(opened, TEXTS))
cuts, problems = read_cuts(CUTS, opened.config)
assert not problems, problems
"""
TRAINED_TABLES = read_tables("""
# %% readings: attention to the subject across a clause, from the verb and from the token before
# it, with 95 % intervals
from core.experiments.trained.tables import attention_to_subject

rows = [
    (f"{head.layer + 1}.{head.head + 1}", *head.verb[:3], *head.before[:3], head.even)
    for head in attention_to_subject(bench)
]
columns = ["head", "verb", "verb_low", "verb_high", "before", "before_low", "before_high", "even"]
readings_table = pd.DataFrame(rows, columns=columns)
# %% effects: effects of the ablation: means over texts, and the change with its 95 % interval
from core.experiments.trained.tables import tabulate_effects

effect = bench.effect(cuts, MODE)
effects_table = tabulate_effects(effect, bench.baseline)
# %% distances: accuracy by group of questions, such as distance, with its 95 % interval (Wilson)
from core.experiments.trained.tables import LEAST, accuracy_by_distance

tables = {
    "whole": accuracy_by_distance(bench.baseline, bench.questions, LEAST),
    "without": accuracy_by_distance(effect, bench.questions, LEAST),
}
distances_table = pd.concat(tables, names=["model"]).reset_index("model")
# %% contributions: direct logit attribution of every component, with 95 % intervals (Holm)
from core.experiments.trained import contributions

contributions_table = contributions.table(bench, cuts, MODE)
# %% takeover: change in the contribution of later components, with 95 % intervals (Holm)
from core.experiments.trained import contributions

takeover_table = contributions.compare_contributions(bench, cuts, MODE)
# %% sweep: every head and sub-layer ablated in turn, with 95 % intervals (Holm)
from core.experiments.trained.tables import rank_effects

sweep_table = rank_effects(list(bench.sweep(MODE)), bench.baseline)
# %% words: the most likely next tokens after a token of the text
from core.experiments.trained.prompt import next_token_logits, next_words, read, run_prompt
from core.model.generate import Sampling

prompt = read(opened, TEXT)
passes = {"whole": run_prompt(bench, prompt)}
if cuts:
    passes["without"] = run_prompt(bench, prompt, cuts, MODE)
scores = {
    name: next_token_logits(bench, forward_pass, TOKEN - 1)
    for name, forward_pass in passes.items()
}
said = prompt.ids[TOKEN : TOKEN + 1]  # the token that follows in the text
words_table = next_words(scores, SAMPLING, opened.tokens.label, included=said)
""")
WITHOUT_TABLES = read_tables("""
# %% family: trained without each component, and removed after training, with 95 % intervals
# (Holm) of the difference, placed around the baseline's value
from core.experiments.trained import comparison

family_table = comparison.summary(comparison.read(), MEASURE)
""")
DISTANCE_TABLES = read_tables("""
# %% family: accuracy by distance: baseline, trained without, removed after training, with 95 %
# intervals (Holm) of the difference from the baseline
from core.experiments.trained import comparison

family_table = comparison.compare_by_distance(comparison.read(), PART)
""")
ELSEWHERE = 'files.from_folder("FOLDER")  # replace FOLDER by the path of the folder of the model'


def make_knockout_script(
    model: str,
    cuts: Sequence[Cut],
    mode: str,
    texts: int,
    view: str = "",
    text: str = "",
    token: int = 1,
    sampling: Sampling | None = None,
) -> Script:
    """Return a trained model's script; `model`: code that opens it; `view` chooses the tables.

    Views and tables: knockout (effects, distances, takeover or contributions), credit
    (contributions), sweep (sweep), words (words), any other (readings).

    Args:
        model: Code that opens it: folder_call, member_call or ELSEWHERE.
        cuts: The ablated parts.
        mode: Kind of ablation: zero, mean or resample.
        texts: Number of texts on which the effect is measured.
        view: View of the page whose tables are printed.
        text: The prompt, for words.
        token: Number of its token (from 1) after which the next one is predicted, for words.
        sampling: How the next token is chosen, for words.
    """
    written = quoted(write_cuts(tuple(cuts)))
    settings: dict[str, object] = {
        "MODEL": Code(model),
        "CUTS": Code(f"{written}  # as in a link: 2.3 is L2H3, head 3 of layer 2"),
        "MODE": mode,
        "TEXTS": texts,
    }
    if view == "words":
        settings["TEXT"] = text
        settings["TOKEN"] = Code(f"{token}  # the prediction is read after this token")
        settings["SAMPLING"] = sampling or Sampling()
    names = {
        "knockout": ["effects", "distances", "takeover" if cuts else "contributions"],
        "credit": ["contributions"],
        "sweep": ["sweep"],
        "words": ["words"],
    }
    return Script(
        "Ablations of a trained model.",
        Machine("cpu"),
        settings,
        [TRAINED_TABLES[name] for name in names.get(view, ["readings"])],
        f"from core.checkpoints import {model.partition('.')[0]}\n{BENCH}",
    )


def folder_call(name: str) -> str:
    """Return code that opens the model of this name in the project's folder models."""
    return f"files.from_folder(files.ROOT / {quoted(name)})"


def member_call(member: str, seed: int) -> str:
    """Return code that opens a member of the shipped family of models, of one seed."""
    return f"family.open_member({quoted(member)}, {seed})"


def make_family_script(measure: str, part: str = "") -> Script:
    """Return the script of the family's table of `measure`, or by distance for a member `part`.

    Args:
        measure: Key of core.experiments.trained.comparison.compared.
        part: Member whose accuracy by distance is printed instead, or "".
    """
    return Script(
        "Trained without a component, or removed after training.",
        Machine("cpu"),
        {"PART": part} if part else {"MEASURE": measure},
        list((DISTANCE_TABLES if part else WITHOUT_TABLES).values()),
    )
