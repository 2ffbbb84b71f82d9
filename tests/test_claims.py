"""Claims of papers: the rule, each claim's numbers computed another way, and every sentence."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from core.measure.intervals import Interval
from core.model.config import Config
from core.model.parts.init import generator
from core.model.trace import trace
from core.model.transformer import Transformer
from core.study.plan import StudyError
from core.study.shipped import ROOT, read_shipped_study, shipped_curves
from core.tasks import task
from core.teaching import claims
from core.teaching.claims import (
    DOES_NOT,
    FILE,
    REPLICATES,
    UNDECIDED,
    Evidence,
    Judged,
    claim,
    describe,
    judge_claim,
    main,
    read_values,
    verdict,
    write_values,
)

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHIPPED = read_values()
of_each_claim = pytest.mark.parametrize("name", claim)


# The rule


@given(some.floats(-1, 1), some.floats(0, 1), some.floats(0.01, 0.5), some.booleans())
def test_verdict_holds_for_all_values_in_interval(mean, reach, effect, alike):
    actual = Interval(mean, mean - reach, mean + reach, 5)
    values = np.linspace(actual.low, actual.high, 2001)
    counts = np.abs(values) < effect if alike else values > effect
    text = verdict(actual, effect, alike)
    edge = np.isclose(values[[0, -1]], effect).any() or np.isclose(values[[0, -1]], -effect).any()
    if edge:
        return
    if alike and values[0] < -effect and values[-1] > effect:
        assert text == UNDECIDED
    elif counts.all():
        assert text == REPLICATES
    elif not counts.any():
        assert text == DOES_NOT
    else:
        assert text == UNDECIDED


@pytest.mark.parametrize("alike", [False, True])
def test_without_an_interval_nothing_is_decided(alike):
    assert verdict(Interval(0.9, math.nan, math.nan, 1), 0.1, alike) == UNDECIDED


@of_each_claim
def test_intervals_of_all_claims_hold_together(name):
    values = list(SHIPPED[name].values())
    actual = judge_claim(SHIPPED[name], claim[name]).interval
    if np.std(values) == 0:
        assert actual.low == actual.high == values[0]
        return
    low, high = stats.t.interval(
        1 - 0.05 / (3 * len(claim)), len(values) - 1, np.mean(values), stats.sem(values)
    )
    low = max(low, claim[name].within[0])
    high = min(high, claim[name].within[1])
    assert (actual.mean, actual.low, actual.high, actual.n) == pytest.approx(
        (np.mean(values), low, high, len(values))
    )
    assert all(claim[name].within[0] <= value <= claim[name].within[1] for value in values)
    assert len(values) >= 5


# The definitions


def last(name: str, learnt: str, variant: str = "baseline") -> dict[int, float]:
    """Return each seed's final accuracy from the curves' files; chance level if it diverged.

    The files are read without the project's own reader.
    """
    actual = {}
    for run in read_shipped_study(name).runs:
        if (run.task, run.variant) == (learnt, variant):
            has_diverged, _, accuracy = raw_curves()[run.hash]
            actual[run.seed] = (
                task[run.training.task].chance if has_diverged else float(accuracy[-1])
            )
    return actual


@cache
def raw_curves() -> dict:
    """Return hash -> (whether the run diverged, its steps, its accuracies) of shipped files."""
    runs = {}
    for path in (ROOT / "results" / "curves").rglob("*.npz"):
        with np.load(path) as packed:
            ends = np.cumsum(packed["rows"])
            curves = zip(
                np.split(packed["step"], ends[:-1]), np.split(packed["accuracy"], ends[:-1])
            )
            for key, has_diverged, (steps, accuracy) in zip(
                packed["run"], packed["diverged"], curves
            ):
                runs[key.decode()] = bool(has_diverged), steps, accuracy.astype(float)
    return runs


def subtract_by_seed(first, other) -> dict[int, float]:
    return {seed: first[seed] - other[seed] for seed in first}


def grammar(variant):
    return lambda: subtract_by_seed(
        last("sentences", "sentences", variant), last("sentences", "sentences")
    )


def sudden():
    """Return the largest gain within a tenth of the training, step by step."""
    actual = {}
    for run in read_shipped_study("induction").runs:
        if run.variant == "baseline":
            _, steps, accuracy = raw_curves()[run.hash]
            best = max(
                accuracy[j] - accuracy[i]
                for i in range(len(steps))
                for j in range(len(steps))
                if steps[j] - steps[i] == 30
            )
            actual[run.seed] = best / (accuracy[-1] - accuracy[0])
    return actual


BY_HAND = {
    "warm_up": lambda: subtract_by_seed(
        subtract_by_seed(
            last("warm_up", "reverse", "post-norm, warm-up"),
            last("warm_up", "reverse", "post-norm"),
        ),
        subtract_by_seed(last("warm_up", "reverse", "warm-up"), last("warm_up", "reverse")),
    ),
    "scaling": lambda: subtract_by_seed(
        last("ablation_matrix", "induction, one wide head"),
        last("ablation_matrix", "induction, one wide head", "− scaling"),
    ),
    "gated_ffn": grammar("SwiGLU, equal parameters"),
    "rms_norm": grammar("RMSNorm"),
    "no_positions": lambda: subtract_by_seed(
        last("no_positions", "subtraction"), last("no_positions", "subtraction", "no mask")
    ),
    "qk_norm": lambda: {
        seed: np.mean(
            [
                last("qk_norm", "induction", "QK-norm")[seed] - last("qk_norm", "induction")[seed],
                last("qk_norm", "induction", "rate 0.03, QK-norm")[seed]
                - last("qk_norm", "induction", "rate 0.03")[seed],
            ]
        )
        for seed in range(6)
    },
    "memories": lambda: subtract_by_seed(
        subtract_by_seed(last("memories", "facts"), last("memories", "facts", "− FFN")),
        subtract_by_seed(last("memories", "recall"), last("memories", "recall", "− FFN")),
    ),
    "induction": lambda: subtract_by_seed(
        last("induction", "induction"), last("induction", "induction", "1 layer")
    ),
    "suddenly": sudden,
    "grouped_queries": grammar("2 key-value heads"),
    "dyt": grammar("DyT"),
    "value_residual": grammar("value residual"),
    "muon": grammar("Muon"),
    "rezero": lambda: subtract_by_seed(
        last("rezero", "reverse", "ReZero"), last("rezero", "reverse")
    ),
    "parallel": grammar("parallel sub-layers"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_shipped_claims_match_their_trainings(name):
    assert claim[name](Evidence()) == pytest.approx(BY_HAND[name]())
    assert SHIPPED[name] == pytest.approx(BY_HAND[name]())


def test_diverged_training_counts_as_chance():
    class Curves:
        @staticmethod
        def rows(run):
            row = shipped_curves("rezero").rows(run)[-1]
            note = "diverged at step 3" if run.seed == 0 else ""
            return [row._replace(accuracy=0.9, note=note)]

    got = Evidence(lambda _: Curves).accuracy("rezero", "reverse")
    assert got == {seed: task["reverse"].chance if seed == 0 else 0.9 for seed in range(6)}


def test_words_that_attention_alone_makes_alike():
    """The claim's number for its first seed equals a float64 computation by hand."""

    def likeness(residual: bool) -> float:
        config = Config(seed=0, ffn=False, norm="none", residual_attention=residual, n_layers=10)
        words = list(dict.fromkeys(claims.TEXT))
        model = Transformer(config, tuple(words)).double()
        ids = torch.tensor([[words.index(word) for word in claims.TEXT]])
        with torch.inference_mode(), trace(sites=("resid_post",)) as record:
            model(ids)
        x = record["resid_post"][-1][0].double().numpy()
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return np.mean([x[i] @ x[j] for i in range(len(x)) for j in range(len(x)) if i != j])

    assert SHIPPED["rank_collapse"][0] == pytest.approx(likeness(False) - likeness(True), abs=0.02)
    assert claim["rank_collapse"](Evidence()) == pytest.approx(SHIPPED["rank_collapse"], abs=1e-3)


@pytest.fixture(scope="module")
def small():
    config = task["sentences"].config(d_model=16, n_heads=2, n_layers=2, seed=3)
    return Transformer(config, task["sentences"].vocabulary)


def test_head_is_removed_at_its_output(small):
    tokens, targets = claims.draw_sentences(0, 16)

    def right(head: tuple[int, int] | None) -> float:
        def edit(site, layer, x):
            if site == "z" and head and layer == head[0]:
                x = x.clone()
                x[:, head[1]] = 0
                return x
            return None

        with torch.inference_mode(), trace(edit, sites=()):
            logits = small(tokens)
        actual = []
        learnt = task["sentences"]
        for row, column in zip(*torch.nonzero(targets != -100, as_tuple=True)):
            answer = learnt.vocabulary[int(targets[row, column])]
            for rivals in learnt.rivals:
                if answer in rivals:
                    scores = {
                        word: logits[row, column, learnt.vocabulary.index(word)].item()
                        for word in rivals
                    }
                    actual.append(max(scores, key=scores.get) == answer)
        return float(np.mean(actual))

    drops = [right(None) - right((layer, head)) for layer in range(2) for head in range(2)]
    assert claims.share_of_removable_heads(small, tokens, targets) == np.mean(
        [drop < 0.01 for drop in drops]
    )
    assert claims.accuracy(small, tokens, targets) == pytest.approx(right(None))


def test_attention_to_first_token_is_mean_of_weights(small):
    tokens, _ = claims.draw_sentences(0, 4)
    with torch.inference_mode(), trace(sites=("pattern",)) as record:
        small(tokens)
    weights = [
        record["pattern"][layer][row, head, reader, 0].item()
        for layer in range(2)
        for row in range(4)
        for head in range(2)
        for reader in range(3, tokens.shape[1])
        if tokens[row, reader]  # 0 is the padding
    ]
    assert claims.attention_to_first_token(small, tokens) == pytest.approx(
        np.mean(weights), abs=1e-6
    )


# What is said, and the file


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.31, 0.4, "is above 0.30"),
        (-0.1, 0.2, "is below 0.30"),
        (0.2, 0.4, "includes the threshold of 0.30"),
    ],
)
def test_verdict_states_number_and_reason(low, high, words):
    class Rule:
        smallest = 0.3
        alike = False
        points = False

    actual = Interval((low + high) / 2, low, high, 7)
    text = describe(Judged(actual, verdict(actual, 0.3, False)), Rule)
    assert words in text and "7 seeds" in text
    assert float(text.split(" ")[0].replace("−", "-")) == pytest.approx(actual.mean, abs=0.006)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "claim,seed\n",
        "claim,seed,value\nno such,0,1\n",
        "claim,seed,value\nscaling,zero,1\n",
        "claim,seed,value\nscaling,0,much\n",
        FILE.read_text()[:300],
    ],
)
def test_damaged_or_partial_file_is_refused_in_words(tmp_path, text):
    (tmp_path / "claims.csv").write_text(text)
    with pytest.raises(StudyError, match="make claims recreates it"):
        read_values(tmp_path / "claims.csv")


def test_measuring_one_claim_keeps_the_others(tmp_path, monkeypatch, capsys):
    path = tmp_path / "claims.csv"
    old = {
        name: values for name, values in SHIPPED.items() if name != "induction"
    }  # as before it was a claim
    write_values(path, old)
    monkeypatch.setattr("sys.argv", ["claims", "--only", "induction", "--table", str(path)])
    main()
    assert read_values(path) == SHIPPED and claim.label("induction") in capsys.readouterr().out


def test_padding_is_ignored_in_attention_sink_claim():
    model = Transformer(task["sentences"].config(), task["sentences"].vocabulary)
    tokens, _ = task["sentences"](generator(0, "sinks"), 6)
    rows = []
    for line in tokens:
        words = line[line != 0][
            None
        ]  # the sentence by itself; the first word of the vocabulary is the padding
        assert 0 < words.shape[1] < len(line)
        with torch.no_grad(), trace(sites=("pattern",)) as record:
            model(words)
        rows.append(
            torch.stack([p[0, :, claims.FIRST :, 0] for p in record["pattern"]])
        )  # (layers, heads, readers)
    exact = torch.cat(rows, -1).double().mean().item()
    assert claims.attention_to_first_token(model, tokens) == pytest.approx(exact, rel=1e-5)


def test_seeds_in_two_groups_are_counted():
    """Most seeds of the claim on warm-up show the gain, the others show none."""
    entry = claim["warm_up"]
    result = judge_claim(SHIPPED["warm_up"], entry)
    n = len(SHIPPED["warm_up"])
    above = sum(value > 0.3 for value in SHIPPED["warm_up"].values())
    assert result.above == above < result.interval.n == n
    low, high = stats.binomtest(above, n).proportion_ci(method="wilson")
    share = f"{above} of {n} are above 30.0 points (95 % CI {100 * low:.0f} to {100 * high:.0f} %"
    assert share in describe(result, entry)
    for name in claim:
        values = sorted(SHIPPED[name].values())
        smallest = claim[name].smallest
        gaps = [b - a for a, b in zip(values, values[1:]) if a < smallest <= b]
        is_split = bool(gaps) and gaps[0] >= 0.2 and claim[name].points
        assert (judge_claim(SHIPPED[name], claim[name]).above is not None) == is_split, name


def test_readme_counts_the_verdicts():
    verdicts = [judge_claim(SHIPPED[name], claim[name]).verdict for name in claim]
    replicating, failing, undecided = map(verdicts.count, (REPLICATES, DOES_NOT, UNDECIDED))
    counts = f"{replicating} replicate, {failing} do not and {undecided} are inconclusive"
    assert f"Of {len(claim)} published claims" in README and counts in README
