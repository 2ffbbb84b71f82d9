"""Claims: measured on the curves of trainings, or on models that are built or trained on the spot."""

import math
from functools import lru_cache

import torch

from core.experiments.depth.depth import Depth, travel
from core.experiments.training.plan import BASELINE
from core.measure.stream_statistics import statistic
from core.model.config import Config
from core.model.knockout import Lesion, cuts
from core.model.parts.init import generator
from core.model.text import PAD
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.tasks import task
from core.teaching.claims.rule import Evidence, Values, claim, subtract
from core.train import Training, chunk, model, start

CPU = Machine(device="cpu")
TEXT = "the court held that the defendant , who had signed the contracts , was liable .".split()
DRAWS, SEEDS = range(10), range(5)
STEPS, ROWS = 600, 512  # of the language models; rows of text on which each is asked
SMALL = 0.01  # of accuracy: what a head may cost that can be removed
FIRST = 3  # tokens of a row that have too little before them to choose from
SENTENCES = "a language model of two layers, 300 steps, grammar about half way"
WITHIN = 0.05  # of accuracy: what is called no difference


def _sentences(variants: str = "none", **others: str) -> tuple[str, dict[str, str]]:
    return "training", {"task": "sentences", "steps": "300", "variants": variants} | others


def _on_sentences(evidence: Evidence, variant: str) -> Values:
    return evidence.gain("sentences", "sentences", variant)


@claim(
    paper="Xiong et al., 2020: On layer normalization in the Transformer architecture",
    here="twelve layers learn to reverse a sequence at a learning rate of 0.005, with 100 steps of warm-up and without",
    number="What warm-up gains with post-norm, minus what it gains with pre-norm",
    within=(-2.0, 2.0),
    smallest=0.3,
    live=("training", {"task": "reverse", "n_layers": "12", "learning_rate": "0.005", "warmup": "0", "variants": "placement-post"}),
)  # fmt: skip
def warm_up(evidence: Evidence) -> Values:
    """Post-norm needs warm-up, pre-norm does not: with the norm after each sum, gradients near the output are large at first."""
    post = evidence.gain("warm_up", "reverse", "post-norm, warm-up", "post-norm")
    return subtract(post, evidence.gain("warm_up", "reverse", "warm-up"))


@claim(
    paper="Vaswani et al., 2017: Attention is all you need, section 3.2.1",
    here="induction with a single head of width 128, queries and keys of variance 1",
    number="Accuracy with scaling minus accuracy without",
    smallest=0.3,
    live=("training", {"task": "induction", "d_model": "128", "n_heads": "1", "init": "xavier", "variants": "scale-off"}),
)  # fmt: skip
def scaling(evidence: Evidence) -> Values:
    """Scores have to be divided by √d_k: where heads are wide, the softmax is else so sharp that no gradient is left."""
    return evidence.gain("ablation_matrix", "induction, one wide head", BASELINE, "− scaling")


@claim(
    paper="Shazeer, 2020: GLU variants improve Transformer, table 1",
    here=SENTENCES,
    number="Accuracy with SwiGLU minus accuracy with GELU, at equal parameters",
    smallest=0.02,
    live=_sentences("activation-swiglu__matched-on"),
)
def gated_ffn(evidence: Evidence) -> Values:
    """Gated activations are better at equal parameters: a value times a gate, with two thirds of the width."""
    return _on_sentences(evidence, "SwiGLU, equal parameters")


@claim(
    paper="Zhang and Sennrich, 2019: Root mean square layer normalization",
    here=SENTENCES,
    number="Accuracy with RMSNorm minus accuracy with LayerNorm",
    smallest=WITHIN,
    alike=True,
    live=_sentences("norm-RMSNorm"),
)
def rms_norm(evidence: Evidence) -> Values:
    """RMSNorm does as well as LayerNorm: the mean need not be taken off."""
    return _on_sentences(evidence, "RMSNorm")


@claim(
    paper="Kazemnejad et al., 2023: The impact of positional encoding on length generalization in Transformers, section 5",
    here="two layers learn a − b modulo 37 and are not told which number came first",
    number="Accuracy with the causal mask minus accuracy without a mask, both without positions",
    smallest=0.2,
    live=("training", {"task": "subtraction", "position": "none", "n_layers": "2", "variants": "mask-none"}),
)
def no_positions(evidence: Evidence) -> Values:
    """A causal model learns positions without being told: the mask itself shows how many tokens came before."""
    return evidence.gain("no_positions", "subtraction", BASELINE, "no mask")


@claim(
    paper="Dehghani et al., 2023: Scaling vision Transformers to 22 billion parameters, section 2",
    here="four layers learn induction at three and at ten times the usual learning rate",
    number="Accuracy with QK-norm minus accuracy without, mean of both rates",
    smallest=0.1,
    live=("training", {"task": "induction", "n_layers": "4", "learning_rate": "0.03", "variants": "qk_norm-on"}),
)
def qk_norm(evidence: Evidence) -> Values:
    """QK-norm allows higher learning rates: with normed queries and keys, scores cannot grow without limit."""
    usual = evidence.gain("qk_norm", "induction", "QK-norm")
    higher = evidence.gain("qk_norm", "induction", "rate 0.03, QK-norm", "rate 0.03")
    return {seed: (usual[seed] + higher[seed]) / 2 for seed in usual}


@claim(
    paper="Geva et al., 2021: Transformer feed-forward layers are key-value memories",
    here="a table of facts to be memorised, and pairs to be read from the text, each with the FFN and without",
    number="What taking the FFN out costs on facts, minus what it costs on recall from the text",
    within=(-2.0, 2.0),
    smallest=0.2,
    live=("training", {"task": "facts", "variants": "ffn-off"}),
)
def memories(evidence: Evidence) -> Values:
    """Feed-forward networks are memories: what was learnt by heart is kept in them, what stands in the text is not."""
    facts, recall = (evidence.gain("memories", name, BASELINE, "− FFN") for name in ("facts", "recall"))
    return subtract(facts, recall)


@claim(
    paper="Olsson et al., 2022: In-context learning and induction heads, argument 2",
    here="a sequence that repeats itself has to be gone on with, by one layer and by two",
    number="Accuracy of two layers minus accuracy of one",
    smallest=0.3,
    live=("training", {"task": "induction", "variants": "n_layers-1"}),
)
def induction(evidence: Evidence) -> Values:
    """Induction needs two layers: one tells each token what stood before it, the next finds the token after its twin."""
    return evidence.gain("induction", "induction", BASELINE, "1 layer")


@claim(
    paper="Olsson et al., 2022: In-context learning and induction heads, argument 1",
    here="the same task, two layers: the accuracy of every sixth step of 300",
    number="The most that is gained within a tenth of the training, as a share of all that is gained",
    within=(0.0, math.inf),
    smallest=0.5,
    points=False,
    live=("training", {"task": "induction"}),
)
def suddenly(evidence: Evidence) -> Values:
    """Induction comes suddenly: most of it is learnt in a small part of the training."""
    shares = {}
    for seed, rows in evidence.curves("induction", "induction").items():
        accuracy = {row.step: row.accuracy for row in rows}
        wide, whole = max(accuracy) // 10, rows[-1].accuracy - rows[0].accuracy
        gains = [accuracy[step] - accuracy[step - wide] for step in accuracy if step - wide in accuracy]
        shares[seed] = max(gains) / whole
    return shares


@claim(
    paper="Ainslie et al., 2023: GQA: training generalized multi-query Transformer models, section 3",
    here=SENTENCES,
    number="Accuracy with two heads of keys and values minus accuracy with four",
    smallest=WITHIN,
    alike=True,
    live=_sentences("n_kv_heads-2"),
)
def grouped_queries(evidence: Evidence) -> Values:
    """Grouped queries cost little: heads can share keys and values, and half of them need not be kept."""
    return _on_sentences(evidence, "2 key-value heads")


@claim(
    paper="Zhu et al., 2025: Transformers without normalization, section 5",
    here=SENTENCES,
    number="Accuracy with DyT minus accuracy with LayerNorm",
    smallest=WITHIN,
    alike=True,
    live=_sentences("norm-DyT"),
)
def dyt(evidence: Evidence) -> Values:
    """DyT can replace the norm: squeezing every number by tanh does as well as dividing by their spread."""
    return _on_sentences(evidence, "DyT")


@claim(
    paper="Zhou et al., 2024: Value residual learning",
    here=SENTENCES,
    number="Accuracy with value residual minus accuracy without",
    smallest=0.02,
    live=_sentences("value_residual-on"),
)
def value_residual(evidence: Evidence) -> Values:
    """Value residual helps: a later layer that also reads the values of the first one learns faster."""
    return _on_sentences(evidence, "value residual")


@claim(
    paper="Jordan, 2024: Muon, an optimizer for hidden layers in neural networks",
    here=SENTENCES,
    number="Accuracy with Muon minus accuracy with AdamW, at the same learning rate",
    smallest=0.02,
    live=_sentences(optimiser="muon"),
)
def muon(evidence: Evidence) -> Values:
    """Muon learns in fewer steps than AdamW: a matrix is changed in all its directions alike."""
    return _on_sentences(evidence, "Muon")


@claim(
    paper="Bachlechner et al., 2021: ReZero is all you need",
    here="six layers without any norm learn to reverse a sequence at a learning rate of 0.015",
    number="Accuracy with ReZero minus accuracy without, neither with a norm",
    smallest=0.3,
    live=("training", {"task": "reverse", "n_layers": "6", "learning_rate": "0.015", "norm": "none", "variants": "residual_scale-rezero"}),
)  # fmt: skip
def rezero(evidence: Evidence) -> Values:
    """ReZero trains deep models without a norm: each sub-layer is multiplied by a number that begins at zero."""
    return evidence.gain("rezero", "reverse", "ReZero")


@claim(
    paper="Black et al., 2022: GPT-NeoX-20B, section 2.1",
    here=SENTENCES,
    number="Accuracy with parallel sub-layers minus accuracy one after the other",
    smallest=WITHIN,
    alike=True,
    live=_sentences("parallel-on"),
)
def parallel(evidence: Evidence) -> Values:
    """Attention and FFN can work at the same time: the FFN need not wait for what attention has read."""
    return _on_sentences(evidence, "parallel sub-layers")


@lru_cache
def trained(seed: int, gate: bool = False) -> Transformer:
    """A small language model, trained anew: the same on the same machine to the last bit."""
    state = start(task["sentences"].config(seed=seed, gate=gate), Training(task="sentences", steps=STEPS), seed, CPU)
    while not state.done:
        state, _ = chunk(state, 60.0)
    return model(state)


def texts(seed: int, rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of sentences that training never draws, with their answers: int64 (rows, T) each."""
    return task["sentences"](generator(seed, "claims"), rows, None, held_out=True)


def accuracy(asked: Transformer, tokens: torch.Tensor, targets: torch.Tensor, *edits: Lesion) -> float:
    """The share of the verbs that agree with their nouns, with parts of the model taken out."""
    with torch.inference_mode(), trace(*edits, sites=()):
        return task["sentences"].right(asked(tokens), targets).float().mean().item()


def removable(asked: Transformer, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    """The share of the heads without which, one at a time, accuracy falls by less than SMALL."""
    whole, config = accuracy(asked, tokens, targets), asked.config
    heads = [cut for cut in cuts(config) if cut.part == "head"]
    return sum(whole - accuracy(asked, tokens, targets, Lesion((cut,))) < SMALL for cut in heads) / len(heads)


def on_the_first(asked: Transformer, tokens: torch.Tensor) -> float:
    """Return the weight that a head gives to the first token: the mean over rows, heads, layers and the tokens that read.

    Padding reads nothing.
    """
    with torch.inference_mode(), trace(sites=("pattern",)) as seen:
        asked(tokens)
    is_reader = tokens != asked.vocabulary.index(PAD)
    is_reader[:, :FIRST] = False
    of_layers = [pattern[..., 0].mean(1)[is_reader].mean() for pattern in seen["pattern"]]
    return torch.stack(of_layers).mean().item()


@claim(
    paper="Dong et al., 2021: Attention is not all you need, theorem 2.2",
    here="ten layers of attention alone, random weights, no norm and no FFN",
    number="Similarity of all words after ten layers without residuals, minus with them (1: all are the same)",
    within=(-2.0, 2.0),
    smallest=0.3,
    points=False,
    live=("depth", {"ffn": "off", "norm": "none", "blocks": "separate", "variants": "residual_attention-off"}),
)  # fmt: skip
def rank_collapse(evidence: Evidence) -> Values:
    """Without residuals attention makes all words alike: pure attention loses rank doubly exponentially with depth."""

    def likeness(seed: int, residual: bool) -> float:
        config = Config(seed=seed, ffn=False, norm="none", residual_attention=residual)
        values = travel(config, TEXT, CPU, Depth(passes=10, blocks="separate")).values
        return float(values[-1, list(statistic).index("cosine")])

    return {seed: likeness(seed, False) - likeness(seed, True) for seed in DRAWS}


@claim(
    paper="Michel et al., 2019: Are sixteen heads really better than one?, section 3.2",
    here="language models of two layers with four heads each, trained for 600 steps; 512 rows of text",
    number="Share of the heads that can be removed, one at a time, for less than one point of accuracy",
    within=(0.0, 1.0),
    smallest=0.5,
    points=False,
    live=("trained", {"taken": "sweep"}),
)
def heads_can_go(evidence: Evidence) -> Values:
    """Most heads can be removed: a trained model hardly gets worse without any one of them."""
    return {seed: removable(trained(seed), *texts(seed)) for seed in SEEDS}


@claim(
    paper="Qiu et al., 2025: Gated attention for large language models",
    here="the same language models, and the same again with a gate behind each head; 512 rows of text",
    number="Attention to the first word of a row without gates, minus with them",
    smallest=0.05,
    points=False,
    live=("training", {"task": "sentences", "steps": "600", "variants": "gate-on"}),
)
def sinks(evidence: Evidence) -> Values:
    """Attention sinks vanish with gated attention: a head that finds nothing need not look at the first word."""
    tokens = {seed: texts(seed)[0] for seed in SEEDS}
    plain = {seed: on_the_first(trained(seed), tokens[seed]) for seed in SEEDS}
    return subtract(plain, {seed: on_the_first(trained(seed, gate=True), tokens[seed]) for seed in SEEDS})
