"""Claims of papers, and whether they hold here: experiment, smallest effect that counts, verdict.

What is measured, and the smallest effect that counts, stand in a claim's definition before it is
run: one number per seed. Claims that are inconclusive get more seeds, at most twice. Intervals of
all claims and all looks hold together (Bonferroni): the chance that any of them misses is at most
5 %.

    python -m core.teaching.claims [--only warm_up …] [--table results/claims.csv]

measures claims and writes the table (`make claims` trains what they need first). The others stay as
they are in it.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pandas as pd
import torch

from core.experiments.depth.depth import Depth, travel
from core.experiments.training.plan import BASELINE
from core.experiments.training.sentences import decimals_of, format_points
from core.export.sheets import read_csv, write_csv
from core.measure.intervals import LEVEL, Interval, Within, interval, wilson
from core.measure.stream_statistics import statistic
from core.measure.verdicts import has_two_groups
from core.model.config import Config
from core.model.knockout import Lesion, list_cuts
from core.model.parts.init import generator
from core.model.text import PAD
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.wording import count, fixed
from core.study.curves import CurveFiles, Curves
from core.study.plan import StudyError
from core.study.shipped import read_shipped_study, shipped_curves, table_of
from core.tasks import task
from core.train import Row, Training, chunk, model, start

Values = Mapping[int, float]  # seed -> number
Link = tuple[str, Mapping[str, str]]  # key of a page, parameters of the experiment there

REPLICATES = "replicates here"
DOES_NOT = "does not replicate here"
UNDECIDED = "inconclusive"
LOOKS = 3  # claims that were inconclusive were measured up to twice more, with more seeds
REASONS = {  # (verdict, whether the claim is that there is no such effect) -> reason
    (REPLICATES, False): "the whole interval is above {smallest}",
    (DOES_NOT, False): "the whole interval is below {smallest}",
    (UNDECIDED, False): "the interval includes the threshold of {smallest}",
    (REPLICATES, True): "the whole interval is within ±{smallest}",
    (DOES_NOT, True): "the whole interval is outside ±{smallest}",
    (UNDECIDED, True): "the interval is only partly within ±{smallest}",
}
FILE = table_of("claims")
COLUMNS = ("claim", "seed", "value")


@dataclass(frozen=True)
class Evidence:
    """Curves of studies, from which claims are measured; those that ship by default.

    find: name of a study to its curves.
    """

    find: Callable[[str], CurveFiles | Curves] = shipped_curves

    def curves(
        self, name: str, task_name: str, variant: str = BASELINE
    ) -> dict[int, Sequence[Row]]:
        """Return seed -> rows of a task and variant of study `name`, also of its later looks.

        Raises StudyError if a seed of the first look is missing or not trained to the end.
        """
        study = read_shipped_study(name)
        first, later = (
            {
                run.seed: self.find(name).rows(run)
                for run in runs
                if (run.task, run.variant) == (task_name, variant)
            }
            for runs in (study.runs, study.later)
        )
        if not first or None in first.values():
            raise StudyError(
                [f"{name}: {task_name}, {variant} is missing, or not trained on every seed."]
            )
        return {seed: rows for seed, rows in (first | later).items() if rows}

    def accuracy(self, name: str, task_name: str, variant: str = BASELINE) -> dict[int, float]:
        """Return seed -> final accuracy (share) of a cell of a study; chance where it diverged."""
        tasks = {run.task: task[run.training.task] for run in read_shipped_study(name).runs}
        curves = self.curves(name, task_name, variant)
        return {
            seed: tasks[task_name].chance if rows[-1].note else rows[-1].accuracy
            for seed, rows in curves.items()
        }

    def gain(
        self, name: str, task_name: str, variant: str, other: str = BASELINE
    ) -> dict[int, float]:
        """Return seed -> accuracy of `variant` − of `other` (share), which must have all seeds."""
        return subtract(
            self.accuracy(name, task_name, variant), self.accuracy(name, task_name, other)
        )


def subtract(a: Values, other: Values) -> dict[int, float]:
    """Return a − other for each seed that both have."""
    return {seed: a[seed] - other[seed] for seed in a if seed in other}


class Claim(Protocol):
    """Entry of the menu: a function that returns one number per seed.

    Attributes:
        paper: authors, year, title, and section.
        here: the experiment at this size.
        number: what is measured.
        smallest: the smallest effect that counts.
        alike: whether the claim is that there is no effect of that size.
        points: whether the number is a difference of accuracies, shown in percentage points.
        within: the range of possible values.
        live: the link that opens the experiment.
    """

    paper: str
    here: str
    number: str
    smallest: float
    alike: bool
    points: bool
    within: Within
    live: Link

    def __call__(self, evidence: Evidence, /) -> Values:
        """Return one number per seed."""


claim: Menu[Claim] = Menu("Claims", alike=False, points=True, within=(-1.0, 1.0))


@dataclass(frozen=True)
class Judged:
    """Result of a claim: mean over seeds with its interval, and the verdict that follows.

    above: number of seeds above the smallest effect that counts, where seeds fall into two groups,
    above it and below it, far apart: the mean says little then.
    """

    interval: Interval
    verdict: str
    above: int | None = None


def judge_claim(values: Values, entry: Claim) -> Judged:
    """Judge a claim: mean over seeds, interval (Bonferroni over claims, looks), and verdict."""
    measured = interval(values.values(), entry.within, 1 - (1 - LEVEL) / (len(claim) * LOOKS))
    above = None
    if entry.points and has_two_groups(values.values(), entry.smallest):
        above = sum(value >= entry.smallest for value in values.values())
    return Judged(measured, verdict(measured, entry.smallest, entry.alike), above)


def verdict(measured: Interval, smallest: float, alike: bool) -> str:
    """Return REPLICATES (whole interval > smallest; alike: within ±), DOES_NOT or UNDECIDED.

    DOES_NOT if the whole interval is on the other side; UNDECIDED for NaN.
    """
    if not measured.low <= measured.high:  # NaN
        return UNDECIDED
    if alike:
        replicates = -smallest < measured.low and measured.high < smallest
        does_not = measured.low > smallest or measured.high < -smallest
    else:
        replicates = measured.low > smallest
        does_not = measured.high < smallest
    if replicates:
        return REPLICATES
    return DOES_NOT if does_not else UNDECIDED


def format_measure(value: float, entry: Claim, decimals: int | None = None) -> str:
    """Format in points (`decimals`) if entry.points, else 2 decimals; no unit; NaN: "undefined".

    A number has 2 decimals; `decimals` is for points alone.
    """
    if math.isnan(value):
        return "undefined"
    return format_points(value, decimals) if entry.points else fixed(value, 2)


def format_smallest(entry: Claim) -> str:
    """Format the smallest effect that counts: "30.0 points", "0.50"."""
    return format_measure(entry.smallest, entry) + (" points" if entry.points else "")


def format_result(result: Judged, entry: Claim) -> str:
    """Format mean and interval: "62.1 points (51.0 to 73.2)"; without one "… (no interval)"."""
    mean, low, high, _ = result.interval
    decimals = decimals_of((mean, low, high))
    if math.isnan(low):
        span = "no interval"
    else:
        ends = [format_measure(end, entry, decimals) for end in (low, high)]
        span = " to ".join(ends)
    return f"{format_measure(mean, entry, decimals)}{' points' if entry.points else ''} ({span})"


def describe(result: Judged, entry: Claim) -> str:
    """Describe a result: "62.1 points (51.0 to 73.2), 10 seeds: … (reason)."; also two groups."""
    if math.isnan(result.interval.low):
        reason = "there is no interval"
    else:
        reason = REASONS[result.verdict, entry.alike].format(smallest=format_smallest(entry))
    seeds = count(result.interval.n, "seed")
    text = f"{format_result(result, entry)}, {seeds}: {result.verdict} ({reason})."
    if result.above is None:
        return text
    _, low, high = wilson(result.above, result.interval.n)
    return (
        f"{text} Seeds fall into two groups, so the mean describes none of them. {result.above} of"
        f" {result.interval.n} are above {format_smallest(entry)} (95 % CI {fixed(100 * low, 0)} to"
        f" {fixed(100 * high, 0)} %, for this claim alone)."
    )


def describe_verdicts(results: Iterable[Judged]) -> str:
    """Describe how many results have each verdict: "18 claims: 9 replicate here, …"."""
    counts = Counter(result.verdict for result in results)
    yes = counts[REPLICATES]
    no = counts[DOES_NOT]
    undecided = counts[UNDECIDED]
    return (
        f"{count(yes + no + undecided, 'claim')}: "
        f"{yes} {'replicates' if yes == 1 else 'replicate'} here, "
        f"{no} {'does' if no == 1 else 'do'} not, "
        f"{undecided} {'is' if undecided == 1 else 'are'} inconclusive."
    )


def write_values(path: Path, values: Mapping[str, Values]) -> None:
    """Write claim -> seed -> number as a CSV file; OSError if that fails."""
    rows = [
        (name, seed, value) for name, by_seed in values.items() for seed, value in by_seed.items()
    ]
    write_csv(pd.DataFrame(rows, columns=list(COLUMNS)), path)


def read_values(path: Path = FILE, complete: bool = True) -> dict[str, dict[int, float]]:
    """Read claim -> seed -> number from CSV; StudyError if unknown or (`complete`) any is empty.

    Args:
        path: The CSV file.
        complete: Whether a claim without numbers is an error.
    """
    try:
        table = read_csv(path, ("claim",))
        values: dict[str, dict[int, float]] = {name: {} for name in claim}
        for name, seed, value in table[list(COLUMNS)].itertuples(index=False):
            values[name][int(seed)] = float(value)
    except (ValueError, KeyError, TypeError, MemoryError):
        problem = f"{path.name} is not a table of claims; make claims recreates it."
        raise StudyError([problem]) from None
    missing = [name for name, by_seed in values.items() if not by_seed]
    if complete and missing:
        raise StudyError([f"{path.name} has no values for {missing[0]}; make claims recreates it."])
    return values


CPU = Machine(device="cpu")
TEXT = "the court held that the defendant , who had signed the contracts , was liable .".split()
DRAWS = range(10)
SEEDS = range(10)
# of the language models; rows of text on which each is asked
STEPS = 600
ROWS = 512
SMALL = 0.01  # of accuracy: what a head may cost that can be removed
FIRST = 3  # tokens of a row that have too little before them to choose from
SENTENCES = "two-layer language model stopped at 300 steps, about 77 % accuracy"
WITHIN = 0.05  # of accuracy: what is called no difference


def gain_measurement(
    study: str, task_name: str, variant: str, other: str = BASELINE
) -> Callable[[Evidence], Values]:
    """Return a function of the evidence: seed -> accuracy of variant − that of other (share)."""
    return lambda evidence: evidence.gain(study, task_name, variant, other)


def link_to_sentences(variants: str = "none", **others: str) -> Link:
    """Return the Link to Training: task sentences, 300 steps, these variants, and `others`."""
    return "training", {"task": "sentences", "steps": "300", "variants": variants} | others


@claim.register(
    "warm_up",
    label="Post-norm needs warm-up more than pre-norm",
    help="with the norm after the sum, gradients near the output are large at initialisation.",
    paper="Xiong et al., 2020: On layer normalization in the Transformer architecture",
    here=(
        "a twelve-layer model learns to reverse a sequence at a learning rate of 0.005, with and"
        " without 100 steps of warm-up"
    ),
    number="Accuracy gain from warm-up with post-norm, minus the gain with pre-norm",
    within=(-2.0, 2.0),
    smallest=0.3,
    live=(
        "training",
        {
            "task": "reverse",
            "n_layers": "12",
            "learning_rate": "0.005",
            "warmup": "0",
            "variants": "placement-post",
        },
    ),
)
def warm_up(evidence: Evidence) -> Values:
    """Return the gain from warm-up with post-norm minus that with pre-norm, by seed."""
    post = evidence.gain("warm_up", "reverse", "post-norm, warm-up", "post-norm")
    return subtract(post, evidence.gain("warm_up", "reverse", "warm-up"))


claim.add(
    "scaling",
    gain_measurement("ablation_matrix", "induction, one wide head", BASELINE, "− scaling"),
    label="Attention scores need scaling by 1/√d_k",
    help="without scaling the softmax saturates in wide heads and gradients vanish.",
    paper="Vaswani et al., 2017: Attention is all you need, section 3.2.1",
    here="induction with a single head of width 128, queries and keys of variance 1",
    number="Accuracy with scaling − accuracy without",
    smallest=0.3,
    live=(
        "training",
        {
            "task": "induction",
            "d_model": "128",
            "n_heads": "1",
            "init": "xavier",
            "variants": "scale-off",
        },
    ),
)
claim.add(
    "gated_ffn",
    gain_measurement("sentences", "sentences", "SwiGLU, equal parameters"),
    label="Gated activations are better at equal parameter count",
    help="a value times a gate, with two thirds of the width.",
    paper="Shazeer, 2020: GLU variants improve Transformer, table 1",
    here=SENTENCES,
    number="Accuracy with SwiGLU − accuracy with GELU, at equal parameter count",
    smallest=0.02,
    live=link_to_sentences("activation-swiglu__matched-on"),
)
claim.add(
    "rms_norm",
    gain_measurement("sentences", "sentences", "RMSNorm"),
    label="RMSNorm does as well as LayerNorm",
    help="mean subtraction is unnecessary.",
    paper="Zhang and Sennrich, 2019: Root mean square layer normalization",
    here=SENTENCES,
    number="Accuracy with RMSNorm − accuracy with LayerNorm",
    smallest=WITHIN,
    alike=True,
    live=link_to_sentences("norm-RMSNorm"),
)
claim.add(
    "no_positions",
    gain_measurement("no_positions", "subtraction", BASELINE, "no mask"),
    label="Causal models learn positions without position encoding",
    help="the causal mask itself reveals how many tokens came before.",
    paper=(
        "Kazemnejad et al., 2023: The impact of positional encoding on length generalization in"
        " Transformers, section 5"
    ),
    here="two layers learn a − b modulo 37 without position encoding",
    number="Accuracy with the causal mask − accuracy without a mask, both without positions",
    smallest=0.2,
    live=(
        "training",
        {"task": "subtraction", "position": "none", "n_layers": "2", "variants": "mask-none"},
    ),
)


@claim.register(
    "qk_norm",
    label="QK-norm allows higher learning rates",
    help="normalised queries and keys bound the attention scores.",
    paper="Dehghani et al., 2023: Scaling vision Transformers to 22 billion parameters, section 2",
    here="four layers learn induction at three and at ten times the usual learning rate",
    number="Accuracy with QK-norm − accuracy without, averaged over two learning rates",
    smallest=0.1,
    live=(
        "training",
        {"task": "induction", "n_layers": "4", "learning_rate": "0.03", "variants": "qk_norm-on"},
    ),
)
def qk_norm(evidence: Evidence) -> Values:
    """Return the gain from QK-norm, averaged over two learning rates, by seed."""
    usual = evidence.gain("qk_norm", "induction", "QK-norm")
    higher = evidence.gain("qk_norm", "induction", "rate 0.03, QK-norm", "rate 0.03")
    return {seed: (usual[seed] + higher[seed]) / 2 for seed in usual}


@claim.register(
    "memories",
    label="Feed-forward networks act as memories",
    help="they store memorised facts, not information from the context.",
    paper="Geva et al., 2021: Transformer feed-forward layers are key-value memories",
    here=(
        "a fact table to memorise and associative recall from the context, with and without the FFN"
    ),
    number="FFN effect on facts − FFN effect on in-context recall",
    within=(-2.0, 2.0),
    smallest=0.2,
    live=("training", {"task": "facts", "variants": "ffn-off"}),
)
def memories(evidence: Evidence) -> Values:
    """Return by seed: accuracy with FFN − without it on facts, minus the same on recall (share)."""
    facts, recall = (
        evidence.gain("memories", name, BASELINE, "− FFN") for name in ("facts", "recall")
    )
    return subtract(facts, recall)


claim.add(
    "induction",
    gain_measurement("induction", "induction", BASELINE, "1 layer"),
    label="Induction needs two layers",
    help="a previous-token head feeds an induction head.",
    paper="Olsson et al., 2022: In-context learning and induction heads, argument 2",
    here="one and two layers continue a repeating sequence",
    number="Accuracy of two layers − accuracy of one",
    smallest=0.3,
    live=("training", {"task": "induction", "variants": "n_layers-1"}),
)


@claim.register(
    "suddenly",
    label="Induction emerges abruptly",
    help="most of it is learned within a small part of training.",
    paper="Olsson et al., 2022: In-context learning and induction heads, argument 1",
    here="two layers learn induction: accuracy measured every 6 steps, up to step 300",
    number="Largest gain over any 10 % of training, as a share of the total gain",
    within=(0.0, math.inf),
    smallest=0.5,
    points=False,
    live=("training", {"task": "induction"}),
)
def suddenly(evidence: Evidence) -> Values:
    """Return the largest share of the gain in accuracy within 10 % of the steps, by seed.

    On the task and study induction.
    """
    shares = {}
    for seed, rows in evidence.curves("induction", "induction").items():
        accuracy = {row.step: row.accuracy for row in rows}
        wide = max(accuracy) // 10
        total_gain = rows[-1].accuracy - rows[0].accuracy
        gains = [
            accuracy[step] - accuracy[step - wide] for step in accuracy if step - wide in accuracy
        ]
        shares[seed] = max(gains) / total_gain
    return shares


claim.add(
    "grouped_queries",
    gain_measurement("sentences", "sentences", "2 key-value heads"),
    label="Grouped-query attention (GQA) costs little",
    help="sharing keys and values costs little accuracy and shrinks the KV cache (here by half).",
    paper=(
        "Ainslie et al., 2023: GQA: training generalized multi-query Transformer models, section 3"
    ),
    here=SENTENCES,
    number="Accuracy with two key-value heads − accuracy with four",
    smallest=WITHIN,
    alike=True,
    live=link_to_sentences("n_kv_heads-2"),
)
claim.add(
    "dyt",
    gain_measurement("sentences", "sentences", "DyT"),
    label="DyT can replace the norm",
    help="an elementwise tanh works as well as normalisation.",
    paper="Zhu et al., 2025: Transformers without normalization, section 5",
    here=SENTENCES,
    number="Accuracy with DyT − accuracy with LayerNorm",
    smallest=WITHIN,
    alike=True,
    live=link_to_sentences("norm-DyT"),
)
claim.add(
    "value_residual",
    gain_measurement("sentences", "sentences", "value residual"),
    label="Value residual helps",
    help="later layers that reuse the values of the first layer learn faster.",
    paper="Zhou et al., 2024: Value residual learning",
    here=SENTENCES,
    number="Accuracy with value residual − accuracy without",
    smallest=0.02,
    live=link_to_sentences("value_residual-on"),
)
claim.add(
    "muon",
    gain_measurement("sentences", "sentences", "Muon"),
    label="Muon learns in fewer steps than AdamW",
    help="its updates have equal size in all directions of a matrix.",
    paper="Jordan, 2024: Muon, an optimizer for hidden layers in neural networks",
    here=SENTENCES,
    number="Accuracy with Muon − accuracy with AdamW, at the same learning rate",
    smallest=0.02,
    live=link_to_sentences(optimiser="muon"),
)
claim.add(
    "rezero",
    gain_measurement("rezero", "reverse", "ReZero"),
    label="ReZero trains deep models without a norm",
    help="the output of each sub-layer is scaled by a learned scalar that starts at zero.",
    paper="Bachlechner et al., 2021: ReZero is all you need",
    here="six layers without any norm learn to reverse a sequence at a learning rate of 0.015",
    number="Accuracy with ReZero − accuracy without, both without a norm",
    smallest=0.3,
    live=(
        "training",
        {
            "task": "reverse",
            "n_layers": "6",
            "learning_rate": "0.015",
            "norm": "none",
            "variants": "residual_scale-rezero",
        },
    ),
)
claim.add(
    "parallel",
    gain_measurement("sentences", "sentences", "parallel sub-layers"),
    label="Parallel attention and FFN do as well as sequential",
    help="the FFN does not need the output of attention.",
    paper="Black et al., 2022: GPT-NeoX-20B, section 2.1",
    here=SENTENCES,
    number="Accuracy with parallel sub-layers − accuracy with sequential ones",
    smallest=WITHIN,
    alike=True,
    live=link_to_sentences("parallel-on"),
)


@lru_cache
def train_language_model(seed: int, gate: bool = False) -> Transformer:
    """Train a small language model, once per process and arguments; shared: do not change it.

    `gate`: with attention's output gate. It is in eval mode, on the CPU.

    Identical to the last bit on the same machine.
    """
    state = start(
        task["sentences"].config(seed=seed, gate=gate),
        Training(task="sentences", steps=STEPS),
        seed,
        CPU,
    )
    while not state.done:
        state, _ = chunk(state, 60.0)
    return model(state)


def draw_sentences(seed: int, rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw held-out sentences with their targets: int64 (rows, T) each; IGNORE for padding."""
    return task["sentences"](generator(seed, "claims"), rows, None, held_out=True)


def accuracy(
    transformer: Transformer, tokens: torch.Tensor, targets: torch.Tensor, *edits: Lesion
) -> float:
    """Return the share of verbs that agree with their nouns, with all `edits` ablated at once."""
    with torch.inference_mode(), trace(*edits, sites=()):
        return task["sentences"].right(transformer(tokens), targets).float().mean().item()


def share_of_removable_heads(
    transformer: Transformer, tokens: torch.Tensor, targets: torch.Tensor
) -> float:
    """Return the share of heads whose ablation, one at a time, costs less than SMALL (a share).

    A gain costs less, too.
    """
    baseline = accuracy(transformer, tokens, targets)
    config = transformer.config
    heads = [cut for cut in list_cuts(config) if cut.part == "head"]
    return sum(
        baseline - accuracy(transformer, tokens, targets, Lesion((cut,))) < SMALL for cut in heads
    ) / len(heads)


def attention_to_first_token(transformer: Transformer, tokens: torch.Tensor) -> float:
    """Return the mean attention on the first token over heads, layers and words from the 4th on.

    Padding and queries among the first FIRST tokens do not count.
    """
    with torch.inference_mode(), trace(sites=("pattern",)) as recorded:
        transformer(tokens)
    is_reader = tokens != transformer.vocabulary.index(PAD)
    is_reader[:, :FIRST] = False
    of_layers = [pattern[..., 0].mean(1)[is_reader].mean() for pattern in recorded["pattern"]]
    return torch.stack(of_layers).mean().item()


@claim.register(
    "rank_collapse",
    label="Without residuals, the output of attention collapses to rank one",
    help="pure attention loses rank doubly exponentially with depth.",
    paper="Dong et al., 2021: Attention is not all you need, theorem 2.2",
    here="ten attention-only layers with random weights, no norm and no FFN",
    number="Token similarity (1 = identical) after ten layers: without residuals − with residuals",
    within=(-2.0, 2.0),
    smallest=0.3,
    points=False,
    live=(
        "depth",
        {"ffn": "off", "norm": "none", "blocks": "separate", "variants": "residual_attention-off"},
    ),
)
def rank_collapse(evidence: Evidence) -> Values:
    """Return token similarity (cosine) without residuals − with, by seed; `evidence` is unused."""

    def likeness(seed: int, residual: bool) -> float:
        config = Config(seed=seed, ffn=False, norm="none", residual_attention=residual)
        values = travel(config, TEXT, CPU, Depth(passes=10, blocks="separate")).values
        return float(values[-1, list(statistic).index("cosine")])

    return {seed: likeness(seed, False) - likeness(seed, True) for seed in DRAWS}


@claim.register(
    "heads_can_go",
    label="Most heads can be pruned individually",
    help="removing a single head barely hurts a trained model.",
    paper="Michel et al., 2019: Are sixteen heads really better than one?, section 3.2",
    here=(
        "language models of two layers with four heads each, trained for 600 steps; 512 rows of"
        " text"
    ),
    number="Share of heads whose removal costs less than one point of accuracy",
    within=(0.0, 1.0),
    smallest=0.5,
    points=False,
    live=("trained", {"taken": "sweep"}),
)
def heads_can_go(evidence: Evidence) -> Values:
    """Return the share of heads that can go one at a time, by seed; `evidence` is unused."""
    return {
        seed: share_of_removable_heads(train_language_model(seed), *draw_sentences(seed))
        for seed in SEEDS
    }


@claim.register(
    "sinks",
    label="Attention sinks vanish with gated attention",
    help="with a gate, a head can output nothing instead of attending to the first token.",
    paper="Qiu et al., 2025: Gated attention for large language models",
    here=(
        "language models of two layers with four heads each, with and without a gate on each head;"
        " 512 rows of text"
    ),
    number="Attention to the first token without gates − with gates",
    smallest=0.05,
    points=False,
    live=("training", {"task": "sentences", "steps": "600", "variants": "gate-on"}),
)
def sinks(evidence: Evidence) -> Values:
    """Return attention to the first token without gates − with, by seed; `evidence` is unused."""
    tokens = {seed: draw_sentences(seed)[0] for seed in SEEDS}
    plain = {
        seed: attention_to_first_token(train_language_model(seed), tokens[seed]) for seed in SEEDS
    }
    return subtract(
        plain,
        {
            seed: attention_to_first_token(train_language_model(seed, gate=True), tokens[seed])
            for seed in SEEDS
        },
    )


def main() -> None:
    """Measure the claims named on the command line, or all; print them, update the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=list(claim), default=list(claim), metavar="CLAIM"
    )
    parser.add_argument("--table", type=Path, default=FILE)
    args = parser.parse_args()
    torch.set_num_threads(1)
    # Where all is measured anew, the table need not exist.
    values = {} if set(args.only) == set(claim) else read_values(args.table, complete=False)
    for name in args.only:
        values[name] = dict(claim[name](Evidence()))
        result = judge_claim(values[name], claim[name])
        print(f"{claim.label(name)}: {describe(result, claim[name])}", flush=True)
        measured = {name: values[name] for name in claim if values.get(name)}
        write_values(args.table, measured)


if __name__ == "__main__":
    main()
