"""Ablation effects on held-out texts equal a slow computation, text by text."""

import math
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from core.checkpoints import Opened
from core.checkpoints.family import TRAINING, vocabulary
from core.checkpoints.tokens import Words
from core.experiments.trained import contributions as credit
from core.experiments.trained import knockout, prompt, tables
from core.experiments.trained.questions import questions, sentences
from core.model.config import Config
from core.model.generate import Sampling, generate
from core.model.knockout import Cut, Lesion, Recorded, list_cuts, mode
from core.model.text import PAD
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.setting import ConfigError
from core.tasks import task
from core.tasks.sentences import BE, DETERMINERS, NOUNS, find_anatomy
from core.tasks.task import is_held_out
from core.train import Training, chunk, start
from tests.holm import corrected, level

SHAPES = [
    {},
    {"placement": "post"},
    {"norm": "RMSNorm"},
    {"norm": "none"},
    {"position": "learned"},
    {"residual_attention": False},
    {"bias": False},
    {"attention_bias": False, "norm_eps": 0.1},
    {"tied": True},
]


def legal(**changes) -> Opened:
    """Return an untrained model of sentences with random biases and gains."""
    config = Config(
        **{"n_layers": 2, "d_model": 32, "position": "rope", "mask": "causal", **changes}
    )
    model = Transformer(config, vocabulary())
    stream = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=stream))
    return Opened("untrained", model, Words(vocabulary()), "sentences")


def learner(name: str, **training) -> Opened:
    state, _ = chunk(start(task[name].config(), Training(task=name, steps=2, **training), 0), 10.0)
    from core.checkpoints.native import open_training

    return open_training(state, name)


@pytest.fixture(scope="module")
def untrained_bench() -> knockout.Bench:
    return knockout.bench(legal(), 96)


@pytest.fixture(scope="module")
def plain(untrained_bench):
    """Return the means, the answers and the effects of the whole model, computed slowly."""
    full = slow(untrained_bench)
    return mean_by_hand(untrained_bench), full, by_hand(full, full, untrained_bench.questions)


def slow(bench, edits=lambda n: ()):
    """Return float32 logits (Q, V) of every question, one text at a time, without padding."""
    q = bench.questions
    rows = []
    for row, place in zip(q.row.tolist(), q.position.tolist()):
        ids = q.tokens[row : row + 1, : int(q.lengths[row])]
        with torch.inference_mode(), trace(*edits(row), sites=()):
            rows.append(bench.model(ids)[0, place])
    return torch.stack(rows)


# The questions


def test_sentences_are_held_out_and_their_anatomy_is_right():
    nouns = {
        form: number
        for pairs in NOUNS.values()
        for pair in pairs
        for number, form in enumerate(pair)
    }
    learnt = task["sentences"]
    for words in sentences(300, 0):
        actual = find_anatomy(words)
        assert words[actual.verb] == BE[nouns[words[actual.subject]]]
        assert words[-1] == "." and words[actual.subject - 1] in DETERMINERS
        row = torch.full((1, learnt.length), learnt.vocabulary.index(PAD))
        row[0, : len(words)] = torch.tensor([learnt.vocabulary.index(word) for word in words])
        assert bool(is_held_out(row, learnt.vocabulary, learnt.held_out, learnt.until))
        between = words[actual.subject + 1 : actual.verb]
        assert actual.distractors == sum(
            nouns.get(w, nouns[words[actual.subject]]) != nouns[words[actual.subject]]
            for w in between
        )
        assert actual.clause == any(w in ("who", "whom") for w in between)


def test_grammar_matches_anatomy():
    """The anatomy finds the verb that the grammar wrote."""
    for words in sentences(300, 1):
        assert words.count(".") == 1 and words[find_anatomy(words).verb] in BE


def test_questions_ask_for_verb_after_its_context(untrained_bench):
    q = untrained_bench.questions
    words = [
        [vocabulary()[t] for t in row[:n]] for row, n in zip(q.tokens.tolist(), q.lengths.tolist())
    ]
    for n, (row, place) in enumerate(zip(q.row.tolist(), q.position.tolist())):
        assert (
            words[row][place + 1] == vocabulary()[q.right[n]]
            and words[row][-1] == words[row][place + 1]
        )
        assert {vocabulary()[q.right[n]], vocabulary()[q.wrong[n]]} == set(BE)
        assert q.value[n] == q.verb[n] - q.subject[n] - 1
    assert bool(q.across.any()) and not bool(q.across.all())
    assert q.lengths.tolist() == sorted(q.lengths.tolist())


@pytest.mark.parametrize("task_name", ["sentences", "copy", "facts"])
def test_resampling_uses_other_text_of_same_length(task_name, untrained_bench):
    q = untrained_bench.questions if task_name == "sentences" else questions(learner(task_name), 64)
    for tokens, other, length in zip(q.tokens, q.elsewhere, q.lengths.tolist()):
        assert tokens[:length].tolist() != other[:length].tolist()
        pad = vocabulary().index(PAD)
        if task_name == "sentences":
            assert int((other != pad).sum()) == length == int((tokens != pad).sum())


@pytest.mark.parametrize("name", task)
def test_ablations_work_on_models_of_all_tasks(name):
    opened = learner(name)
    bench = knockout.bench(opened, 32)
    assert len(bench.baseline.correct) == len(bench.questions.row) > 0
    for how in mode:
        table = tables.rank_effects(list(bench.sweep(how)), bench.baseline)
        assert table.change.notna().all() and set(table.cut) == {
            cut.write() for cut in list_cuts(opened.config)
        }
    if name != "sentences":
        learnt = task[name]
        assert (
            bench.questions.by == "position in the sequence"
            and learnt.length <= bench.questions.tokens.shape[1]
        )


# Effects against plain steps


def by_hand(logits, full, q):
    """Return every effect, question by question, in float64 with plain Python."""
    rows = []
    for n in range(len(logits)):
        scores = logits[n].double().tolist()
        base = full[n].double().tolist()
        totals = [math.log(sum(math.exp(v) for v in x)) for x in (scores, base)]
        log, base_log = ([v - total for v in x] for x, total in zip((scores, base), totals))
        right = int(q.right[n])
        wrong = int(q.wrong[n])
        if wrong < 0:
            wrong = max((v, t) for t, v in enumerate(base) if t != right)[1]
        best = max(q.among or range(len(scores)), key=lambda t: scores[t])
        kl = sum(math.exp(b) * (b - a) for a, b in zip(log, base_log))
        rows.append((float(best == right), math.exp(log[right]), scores[right] - scores[wrong], kl))
    return pd.DataFrame(rows, columns=list(knockout.effect))


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_baseline_answers_match_unpadded_texts(changes):
    bench = knockout.bench(legal(**changes), 64)
    expected = slow(bench)
    torch.testing.assert_close(
        bench.whole.logits, expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item()
    )


@pytest.mark.parametrize("how", mode)
@pytest.mark.parametrize("cut", list_cuts(Config(n_layers=2)), ids=lambda cut: cut.name)
def test_effects_equal_plain_steps(untrained_bench, plain, cut, how):
    q = untrained_bench.questions
    means, full, base = plain

    def edits(row):
        other = q.elsewhere[row : row + 1, : int(q.lengths[row])]
        with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as on_second:
            untrained_bench.model(other)
        recorded = {
            (s, n): Recorded(means[s, n], on_second[s][n]) for s in on_second for n in range(2)
        }
        return (Lesion((cut,), how, recorded),)

    expected = by_hand(slow(untrained_bench, edits), full, q)
    effect = untrained_bench.effect((cut,), how)
    for name in knockout.effect:
        actual = pd.Series(effect.values[name].numpy())
        np.testing.assert_allclose(actual, expected[name], rtol=2e-3, atol=2e-5, err_msg=name)
    message = tables.tabulate_effects(effect, untrained_bench.baseline).set_index("effect")
    for name in ("probability", "difference"):
        change = expected[name] - base[name]
        low, high = scipy.stats.t.interval(
            0.95, len(change) - 1, change.mean(), scipy.stats.sem(change)
        )
        row = message.loc[name]
        np.testing.assert_allclose(
            (row.change, row.low, row.high), (change.mean(), low, high), rtol=5e-3, atol=2e-5
        )
        p = scipy.stats.ttest_rel(expected[name], base[name]).pvalue
        assert abs(row.p - p) < 1e-2


def mean_by_hand(bench):
    """Return the mean activation at each position, token by token.

    Positions that fewer than 8 texts reach share one mean: the mean over the tokens from the last
    position that enough texts reach.
    """
    q = bench.questions
    index = {}
    shared_from = sorted(q.lengths.tolist())[-8]
    for row, length in zip(q.tokens, q.lengths.tolist()):
        with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as record:
            bench.model(row[None, :length])
        for site in record:
            for layer, x in enumerate(record[site]):
                for position in range(length):
                    vectors = index.setdefault((site, layer), {}).setdefault(position, [])
                    vectors.append(x[0, ..., position, :].double())
    means = {}
    for key, words in index.items():
        rows = [sum(words[position]) / len(words[position]) for position in range(shared_from)]
        late = [
            word for position in words if position >= shared_from - 1 for word in words[position]
        ]
        means[key] = torch.stack([*rows, sum(late) / len(late)], -2).float()
    return means


def test_means_equal_those_by_hand(untrained_bench):
    expected = mean_by_hand(untrained_bench)
    for recorded in untrained_bench.recorded:
        for key, x in expected.items():
            torch.testing.assert_close(recorded[key].mean, x, rtol=1e-4, atol=1e-5)


def constant_by_position(**changes) -> Opened:
    """Return a model where FFN 1 and L1H1 read positions, and all other parts read tokens."""
    opened = learner("induction")
    settings = {
        "n_layers": 2,
        "d_model": 32,
        "position": "learned",
        "mask": "causal",
        "norm": "none",
    }
    model = Transformer(Config(**{**settings, **changes}), opened.model.vocabulary)
    stream = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=stream))
        model.embed[:, 24:] = (
            0  # the last quarter of the stream holds positions, and nothing writes to it
        )
        model.position.weight[:, :24] = 0
        first = model.blocks[0]
        first.mlp.w_in.weight[:, :24] = 0
        for rows in (
            slice(0, 8),
            slice(32, 40),
            slice(64, 72),
        ):  # queries, keys and values of the first head
            first.attn.qkv.weight[rows, :24] = 0
        for block in model.blocks:
            for last in (block.attn.out, block.mlp.w_out):
                last.weight[24:] = 0
                last.bias[24:] = 0
    return Opened("constant", model, opened.tokens, "induction")


@pytest.mark.parametrize("cut", [Cut(0, "ffn"), Cut(0, "head", 0)], ids=lambda cut: cut.name)
def test_mean_ablation_of_position_only_part_has_no_effect(cut):
    bench = knockout.bench(constant_by_position(), 32)
    assert bench.positions_with_means == bench.questions.tokens.shape[1]
    with_zero, with_mean = (bench.effect((cut,), how) for how in ("zero", "mean"))
    for name in knockout.effect:
        assert torch.equal(with_mean.values[name], bench.baseline.values[name]), name
    assert (with_zero.values["difference"] - bench.baseline.values["difference"]).abs().max() > 1e-3
    other = bench.effect((Cut(1, "ffn"),), "mean")  # reads the tokens
    assert (other.values["difference"] - bench.baseline.values["difference"]).abs().max() > 1e-3


def test_joint_ablation_differs_from_sequence(untrained_bench):
    both = untrained_bench.effect((Cut(0, "head", 1), Cut(1, "ffn")), "zero")
    logits = slow(untrained_bench, lambda row: (Lesion((Cut(0, "head", 1), Cut(1, "ffn"))),))
    expected = by_hand(logits, slow(untrained_bench), untrained_bench.questions)
    np.testing.assert_allclose(both.values["difference"], expected.difference, rtol=1e-3, atol=1e-4)


def test_baseline_is_never_overwritten(untrained_bench):
    before = {name: x.clone() for name, x in untrained_bench.baseline.values.items()}
    streams = [[x.clone() for x in stream] for stream in untrained_bench.streams]
    read = prompt.read(untrained_bench.opened, "the judge , who was late , was right .")
    full = prompt.run_prompt(untrained_bench, read).sites["pattern"][1].clone()
    for how in mode:
        for cut in list_cuts(untrained_bench.model.config):
            knockout.cached_effect(untrained_bench, (cut,), how)
            prompt.run_prompt(untrained_bench, read, (cut,), how)
    assert all(torch.equal(untrained_bench.baseline.values[name], x) for name, x in before.items())
    assert all(
        torch.equal(stream, other)
        for stream, other in zip(sum(untrained_bench.streams, []), sum(streams, []))
    )
    assert torch.equal(prompt.run_prompt(untrained_bench, read).sites["pattern"][1], full)
    assert knockout.cached_effect(untrained_bench, (), "zero") is untrained_bench.baseline


def test_concurrent_ablations_read_own_numbers(untrained_bench):
    every = list_cuts(untrained_bench.model.config)
    wrong = []
    expected = {
        (cut, how): untrained_bench.effect((cut,), how).values["difference"]
        for cut in every
        for how in mode
    }

    def visit(seed):
        order = list(expected)
        np.random.default_rng(seed).shuffle(order)
        for cut, how in order:
            if not torch.equal(
                untrained_bench.effect(
                    (Cut(int(cut.layer), str(cut.part), int(cut.head)),), str(how)
                ).values["difference"],
                expected[cut, how],
            ):
                wrong.append((cut, how))

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_accuracy_by_distance_is_mean_of_correct(untrained_bench):
    table = tables.accuracy_by_distance(untrained_bench.baseline, untrained_bench.questions)
    q = untrained_bench.questions
    assert table.questions.sum() == len(q.row)
    for row in table.itertuples():
        right = untrained_bench.baseline.correct[q.value == row.value]
        ends = scipy.stats.binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
        assert row.accuracy == pytest.approx(right.mean().item())
        assert (row.low, row.high) == pytest.approx((ends.low, ends.high), abs=1e-9)


def test_readings_are_the_attention_on_the_subject(untrained_bench):
    q = untrained_bench.questions
    for reading in tables.attention_to_subject(untrained_bench):
        shares = []
        for n in q.across.nonzero()[:, 0].tolist():
            with torch.inference_mode(), trace(sites=("pattern",)) as record:
                untrained_bench.model(q.tokens[n : n + 1, : int(q.lengths[n])])
            row = record["pattern"][reading.layer][0, reading.head, :, q.subject[n]]
            shares.append((row[q.verb[n]].item(), row[q.verb[n] - 1].item()))
        assert (reading.verb.mean, reading.before.mean) == pytest.approx(
            tuple(np.mean(shares, 0)), abs=1e-5
        )
        assert reading.verb.n == len(shares)
        assert reading.even == pytest.approx(
            np.mean([1 / (q.verb[n].item() + 1) for n in q.across.nonzero()[:, 0].tolist()])
        )
        assert all(
            bool(anatomy_of(q, n).clause) and anatomy_of(q, n).distractors
            for n in q.across.nonzero()[:, 0].tolist()
        )


def test_uniform_attention_respects_layer_window():
    bench = knockout.bench(legal(window=9, global_every=2), 96)
    q = bench.questions
    even = {}
    for layer, near in ((0, 9), (1, 100)):
        shares = []
        for n in q.across.nonzero()[:, 0].tolist():
            sees = [index for index in range(int(q.verb[n]) + 1) if q.verb[n] - index < near]
            shares.append((int(q.subject[n]) in sees) / len(sees))
        even[layer] = np.mean(shares)
    assert even[0] > 0.01 and abs(even[0] - even[1]) > 0.01
    for reading in tables.attention_to_subject(bench):
        assert reading.even == pytest.approx(even[reading.layer])


def anatomy_of(q, n):
    words = [vocabulary()[token] for token in q.tokens[n, : int(q.lengths[n])]]
    return find_anatomy([*words, "late", "."])  # questions end with the verb


@pytest.mark.parametrize("name", ["copy", "sentences"])
def test_text_counts_once_however_many_questions(name):
    q = questions(learner(name), 24)
    values = torch.rand(2, len(q.row), generator=torch.Generator().manual_seed(3))
    actual = q.per_text(values)
    assert actual.shape == (2, 24)
    for kind in range(2):
        for text in range(24):
            in_text = [
                values[kind, n].item() for n, row in enumerate(q.row.tolist()) if row == text
            ]
            assert actual[kind, text].item() == pytest.approx(
                math.fsum(in_text) / len(in_text), abs=1e-6
            )


@pytest.mark.parametrize("name", ["induction", "facts"])
def test_wrong_is_the_likeliest_word_that_is_not_right(name):
    bench = knockout.bench(learner(name), 32)
    for scores, right, wrong in zip(
        bench.whole.logits.tolist(), bench.whole.right.tolist(), bench.whole.wrong.tolist()
    ):
        assert wrong == max((value, word) for word, value in enumerate(scores) if word != right)[1]


@pytest.mark.parametrize("name", ["copy", "recall"])
def test_right_token_must_be_likeliest_without_rivals(name):
    opened = learner(name)
    bench = knockout.bench(opened, 32)
    q = bench.questions
    right = []
    for row, place in zip(q.row.tolist(), q.position.tolist()):
        with torch.inference_mode():
            scores = opened.model(q.tokens[row : row + 1])[0, place].tolist()
        right.append(max(range(len(scores)), key=scores.__getitem__) == q.right[len(right)].item())
    assert not q.among and 0 < sum(right) < len(right)
    assert bench.baseline.correct.tolist() == right
    assert 0 < bench.seconds < 60  # it is what the sweep's estimate is made of


def test_questions_begin_with_words_unseen_in_training():
    beginnings = {words[: find_anatomy(words).verb] for words in sentences(512, 0)}
    read = set()
    for seed in range(4):
        tokens, _ = task[TRAINING.task](torch.Generator().manual_seed(seed), 256)
        for row in tokens.tolist():
            words = tuple(vocabulary()[token] for token in row if token)
            if "<unk>" not in words:
                read.add(words[: find_anatomy(words).verb])
    assert not beginnings & read and len(read) > 300


# Contributions


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        *SHAPES,
        {"residual_ffn": False},
        {"attention": False},
        {"ffn": False},
        {"placement": "post", "norm": "RMSNorm"},
        {"skips": True},
        {"skips": True, "n_layers": 5, "placement": "post"},
        {"skips": True, "n_layers": 4, "residual_ffn": False},
    ],
    ids=str,
)
def test_contributions_add_up_to_the_whole(changes):
    bench = knockout.bench(legal(**changes), 48)
    for some_cuts in [(), *(((cut,)) for cut in list_cuts(bench.model.config))]:
        some_cuts = some_cuts if isinstance(some_cuts, tuple) else (some_cuts,)
        for how in mode if some_cuts else ("zero",):
            contributions = credit.bench_contributions(bench, some_cuts, how)
            expected = bench.effect(some_cuts, how).values["difference"]
            assert credit.mean_difference(bench, some_cuts, how) == pytest.approx(
                contributions.sum(0).mean().item()
            )
            assert len(contributions) == len(credit.list_parts(bench.model))
            torch.testing.assert_close(
                contributions.sum(0),
                expected,
                rtol=1e-4,
                atol=1e-5 * max(1.0, bench.whole.logits.abs().max().item()),
            )


def test_contributions_add_up_before_soft_cap():
    bench = knockout.bench(legal(logit_cap=2.0), 48)
    plain = knockout.bench(legal(), 48)  # the same weights
    for removed in ((), (Cut(0, "head", 1),)):
        before_cap = plain.effect(removed, "zero").values["difference"]
        torch.testing.assert_close(
            credit.bench_contributions(bench, removed).sum(0), before_cap, rtol=1e-4, atol=1e-4
        )
        assert (
            bench.effect(removed, "zero").values["difference"].abs().mean()
            < before_cap.abs().mean()
        )


def test_skips_pass_share_of_early_contribution():
    """Layer 2 reads layer 1's output twice: directly, and times the skip's weight."""
    bench = knockout.bench(legal(skips=True, norm="none"), 48)
    q = bench.questions
    model = bench.model
    n = 7
    (share,) = model.skip.tolist()
    assert abs(share - 1) > 0.01
    with torch.inference_mode(), trace() as record:
        model(q.tokens[n : n + 1, : int(q.lengths[n])])
    place = int(q.position[n])
    words = model.unembed.weight.double()
    direction = words[q.right[n]] - words[q.wrong[n]]
    actual = dict(
        zip(credit.list_parts(model), credit.bench_contributions(bench)[:, n].tolist(), strict=True)
    )
    for layer, times in ((0, 1 + share), (1, 1.0)):
        expected = times * (record["mlp_out"][layer][0, place].double() @ direction).item()
        assert actual[credit.Part("ffn", layer)] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    expected = (1 + share) * (record["embed"][0][0, place].double() @ direction).item()
    assert actual[credit.Part("embedding")] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("how", ["zero", "mean"])
@pytest.mark.parametrize(
    "out",
    [
        (),
        (Cut(0, "head", 1),),
        (Cut(1, "attention"),),
        (Cut(0, "layer"), Cut(1, "head", 3)),
        (Cut(0, "ffn"),),
    ],
)
def test_contribution_is_output_through_final_norm(untrained_bench, out, how):
    """A part's direct contribution is its output through the final norm's scale, for one text.

    A head's z passes its columns of W_O, all others unchanged; centred and scaled as the stream is,
    times gain. The replacement of a whole sub-layer belongs to no head.
    """
    q = untrained_bench.questions
    n = 7
    model = untrained_bench.model
    with torch.inference_mode(), trace(Lesion(out, how, untrained_bench.means)) as record:
        model(q.tokens[n : n + 1, : int(q.lengths[n])])
    place = int(q.position[n])
    width = model.config.d_head
    d = model.config.d_model
    stream = record["resid_post"][-1][0, place].double()
    scale = math.sqrt(((stream - stream.mean()) ** 2).mean() + 1e-5)
    words = model.unembed.weight.double()
    direction = model.ln_final.weight.double() * (words[q.right[n]] - words[q.wrong[n]])
    actual = credit.bench_contributions(untrained_bench, out, how)[:, n].tolist()
    thrown = {cut.layer for cut in out if cut.part in ("attention", "layer")}
    for part, value in zip(credit.list_parts(model), actual, strict=True):
        wrote = torch.zeros(d, dtype=torch.float64)
        attn = model.blocks[part.layer].attn
        if part.kind == "embedding":
            wrote = record["embed"][0][0, place].double()
        elif part.kind == "ffn":
            wrote = record["mlp_out"][part.layer][0, place].double()
        elif part.kind == "attention":
            wrote = (
                record["attn_out"][part.layer][0, place] if part.layer in thrown else attn.out.bias
            ).double()
        elif part.kind == "head" and part.layer not in thrown:
            columns = attn.out.weight[:, part.head * width : (part.head + 1) * width].double()
            wrote = columns @ record["z"][part.layer][0, part.head, place].double()
        expected = ((wrote - wrote.mean()) / scale @ direction).item()
        if part.kind == "norms":
            expected += (
                model.ln_final.bias.double() @ (words[q.right[n]] - words[q.wrong[n]])
            ).item()
        assert value == pytest.approx(expected, rel=1e-4, abs=2e-5), part.name


def whole_name(row) -> str:
    """Return a part's name from its row's numbers, which count from 1."""
    names = {
        "head": f"L{row.layer}H{row.head}",
        "attention": f"attention {row.layer}, bias",
        "ffn": f"FFN {row.layer}",
    }
    return names.get(row.kind, {"embedding": "embedding", "norms": "norm biases"}.get(row.kind))


def test_contribution_table_has_all_parts_with_intervals(untrained_bench):
    table = credit.table(untrained_bench)
    contributions = credit.bench_contributions(untrained_bench).numpy()
    ps = [scipy.stats.ttest_1samp(values, 0).pvalue for values in contributions]
    for index, (row, values) in enumerate(zip(table.itertuples(), contributions, strict=True)):
        assert row.name == whole_name(row)
        assert row.value == pytest.approx(values.mean(), abs=1e-9)
        ends = scipy.stats.ttest_1samp(values, 0).confidence_interval(level(ps, index))
        assert (row.low, row.high) == pytest.approx(tuple(ends), rel=1e-6, abs=1e-9)
        assert row.p == pytest.approx(corrected(ps)[index], rel=1e-6, abs=1e-12)
    assert len(set(table.name)) == len(table) == 1 + 2 * (4 + 2) + 1


def test_only_what_comes_after_a_cut_can_take_over(untrained_bench):
    cut = (Cut(0, "head", 1), Cut(1, "ffn"))
    table = credit.compare_contributions(untrained_bench, cut, "zero")
    assert set(table.name) == {"FFN 1", "L2H1", "L2H2", "L2H3", "L2H4"}
    assert table.change.is_monotonic_decreasing
    before = credit.bench_contributions(untrained_bench)
    after = credit.bench_contributions(untrained_bench, cut, "zero")
    names = [part.name for part in credit.list_parts(untrained_bench.model)]
    values = [
        (before[names.index(name)].numpy(), after[names.index(name)].numpy()) for name in table.name
    ]
    tests = [scipy.stats.ttest_rel(other, value) for value, other in values]
    ps = [test.pvalue for test in tests]
    for index, (row, (unchanged, other), test) in enumerate(zip(table.itertuples(), values, tests)):
        assert row.name == whole_name(row)
        assert (row.before, row.after, row.change) == pytest.approx(
            (unchanged.mean(), other.mean(), (other - unchanged).mean())
        )
        assert row.p == pytest.approx(corrected(ps)[index], rel=1e-6, abs=1e-12)
        assert (row.low, row.high) == pytest.approx(
            tuple(test.confidence_interval(level(ps, index)))
        )
    assert len(table) == 5


@pytest.mark.parametrize("cut", list_cuts(Config(n_layers=2)), ids=lambda cut: cut.name)
def test_parts_outside_takeover_are_unchanged(untrained_bench, cut):
    """Parts with a bitwise unchanged output cannot have taken anything over."""
    takeover_names = set(credit.compare_contributions(untrained_bench, (cut,), "mean").name)
    effect = untrained_bench.effect((cut,), "mean")
    for part in credit.list_parts(untrained_bench.model):
        if part.kind not in ("head", "ffn") or part.name in takeover_names:
            continue
        site = "z" if part.kind == "head" else "mlp_out"
        is_ablated = (part.kind == cut.part and part.layer == cut.layer) or (
            cut.part in ("attention", "layer") and part.layer == cut.layer
        )
        changed, other = (
            item.written[site, part.layer] for item in (effect, untrained_bench.baseline)
        )
        if part.kind == "head":
            changed = changed[:, part.head]
            other = other[:, part.head]
        assert is_ablated or torch.equal(changed, other), part.name


# One text


def test_unknown_word_is_marked_and_read(untrained_bench):
    read = prompt.read(
        untrained_bench.opened, "The defendant , who had filed a motion to dismiss , was liable ."
    )
    assert [read.labels[index] for index in read.unknown] == ["a", "to", "dismiss"]
    assert read.labels[0] == "The" and vocabulary()[read.ids[0]] == "the"
    assert prompt.verb_of(read) == read.labels.index("was")


def short(rows: int) -> Opened:
    """Return a model with so many learned positions, as from a file."""
    transformer = legal(position="learned").model
    transformer.position.weight = torch.nn.Parameter(transformer.position.weight[:rows].clone())
    return Opened("short", transformer, Words(vocabulary()), "sentences")


def test_text_is_cut_to_model_length(untrained_bench):
    for opened, limit in ((untrained_bench.opened, 256), (short(12), 12)):
        words = ["judge", "xylophone"] * 256
        for count in (limit - 1, limit, limit + 1, 2 * limit):
            read = prompt.read(opened, " ".join(words[:count]))
            assert read.labels == tuple(words[: min(count, limit)]) and len(read.ids) == min(
                count, limit
            )
            assert read.unknown == tuple(range(1, min(count, limit), 2))
            message = [f"The text has {count} tokens; only the first {limit} are used."]
            assert list(read.notes) == message * (count > limit)


def test_verb_is_last_with_context(untrained_bench):
    for text, index in [
        ("was", None),
        ("was late", None),
        ("the judge", None),
        ("the judge was", 2),
        ("The judges , who WAS late , were right .", 7),
        ("was was", 1),
    ]:
        assert prompt.verb_of(prompt.read(untrained_bench.opened, text)) == index


def test_resampling_one_text_takes_another_of_its_length(untrained_bench):
    read = prompt.read(untrained_bench.opened, "the judge was")
    cut = Cut(0, "head", 1)
    forward_pass = prompt.run_prompt(untrained_bench, read, (cut,), "resample")
    plain = prompt.run_prompt(untrained_bench, read)
    assert not torch.equal(forward_pass.sites["z"][0][1], plain.sites["z"][0][1])
    assert (
        plain.weights == "Model: untrained" and forward_pass.weights == "Model: untrained, − L1H2"
    )
    others = [
        ids[:n].tolist()
        for ids, n in zip(untrained_bench.questions.tokens, untrained_bench.questions.lengths)
        if n == len(read.ids)
    ]
    with torch.inference_mode(), trace(sites=("z",)) as on_second:
        untrained_bench.model(torch.tensor(others))
    assert any(
        torch.allclose(step, forward_pass.sites["z"][0][1], atol=1e-5)
        for step in on_second["z"][0][:, 1]
    )
    assert torch.equal(
        forward_pass.sites["z"][0][0], plain.sites["z"][0][0]
    )  # the other heads are as they were
    with pytest.raises(ConfigError, match="resampling needs another text of 100"):
        prompt.run_prompt(
            untrained_bench,
            prompt.read(untrained_bench.opened, "the judge " * 50),
            (cut,),
            "resample",
        )


def test_logit_lens_ends_with_prediction(untrained_bench):
    read = prompt.read(untrained_bench.opened, "the judge , who was late , was right .")
    forward_pass = prompt.run_prompt(untrained_bench, read)
    table = prompt.logit_lens(
        untrained_bench.model, forward_pass, untrained_bench.opened.tokens.label
    )
    with torch.inference_mode():
        chances = untrained_bench.model(torch.tensor([read.ids]))[0].softmax(-1)
    assert table.token.tolist() == [*range(1, len(read.ids) + 1)] * 3
    last = table[table.depth == 2]
    messages = [untrained_bench.opened.tokens.label(token) for token in chances.argmax(-1).tolist()]
    assert last.word.tolist() == messages
    np.testing.assert_allclose(last.probability, chances.max(-1).values, rtol=1e-5)
    np.testing.assert_allclose(last.of_last, last.probability)
    first = table[table.depth == 0].probability
    with torch.inference_mode():
        stream = untrained_bench.model.embed[list(read.ids)]
        expected = untrained_bench.model.unembed(
            torch.nn.functional.layer_norm(
                stream,
                (32,),
                untrained_bench.model.ln_final.weight,
                untrained_bench.model.ln_final.bias,
            )
        ).softmax(-1)
    np.testing.assert_allclose(first, expected.max(-1).values, rtol=1e-4)
    early = table[table.depth == 0].of_last
    np.testing.assert_allclose(
        early, expected.gather(-1, chances.argmax(-1, keepdim=True))[:, 0], rtol=1e-4
    )
    assert (early < 0.9 * first.to_numpy()).any()  # what the embedding alone says is another word


@pytest.mark.parametrize("residual", [True, False])
def test_rollout_is_the_product_of_the_mixed_maps(residual):
    opened = legal(residual_attention=residual)
    forward_pass = prompt.run_prompt(
        knockout.bench(opened, 32), prompt.read(opened, "the judge , who was late , was right .")
    )
    actual = prompt.rollout(forward_pass)
    expected = np.eye(len(forward_pass.tokens))
    for layer, pattern in enumerate(forward_pass.sites["pattern"]):
        mixed = pattern.double().numpy().mean(0)
        mixed = 0.5 * mixed + 0.5 * np.eye(len(mixed)) if residual else mixed
        expected = mixed @ expected
        np.testing.assert_allclose(actual[layer], expected, atol=1e-6)
        np.testing.assert_allclose(actual[layer].sum(-1), 1.0, atol=1e-6)


ROLLOUT_CUTS = [
    (Cut(1, "attention"), Cut(0, "attention")),
    tuple(Cut(1, "head", n) for n in range(4)),
    (Cut(0, "layer"),),
    (Cut(1, "head", 2), Cut(0, "head", 0), Cut(1, "head", 2)),
    (Cut(1, "attention"), *(Cut(0, "head", n) for n in range(4))),
    (Cut(0, "ffn"),),
    (),
]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(
    "made_cuts", ROLLOUT_CUTS, ids=lambda cuts: "~".join(cut.write() for cut in cuts)
)
def test_rollout_finds_a_way_just_where_the_gradient_does(made_cuts, residual):
    """Rollout connects two tokens if and only if a change of one changes the other's output."""
    opened = legal(residual_attention=residual)
    bench = knockout.bench(opened, 32)
    read = prompt.read(opened, "the judge , who was late , was right .")
    forward_pass = (
        prompt.run_prompt(bench, read, made_cuts, "zero")
        if made_cuts
        else prompt.run_prompt(bench, read)
    )
    actual = prompt.rollout(forward_pass, made_cuts)[-1]
    ids = torch.tensor([read.ids])
    start = opened.model.embed_tokens(ids).detach().requires_grad_()
    edits = (prompt.lesion(bench, read.ids, made_cuts, "zero"),) if made_cuts else ()
    with trace(*edits, sites=()):
        x = start
        for block in opened.model.blocks:
            x = block(x, opened.model.attention_mask(ids))
    weigh = torch.randn(
        x.shape[-1], generator=torch.Generator().manual_seed(1)
    )  # a plain sum a norm would hide
    for index in range(len(read.ids)):
        gradient = torch.zeros_like(start)
        if x.requires_grad:  # else the output is a constant
            (gradient,) = torch.autograd.grad((x[0, index] * weigh).sum(), start, retain_graph=True)
        reached = gradient[0].norm(dim=-1) > 0
        assert torch.equal(actual[index] > 0, reached), index


def test_with_all_attention_knocked_out_no_word_reaches_another(untrained_bench):
    read = prompt.read(untrained_bench.opened, "the judge , who was late , was right .")
    for how in ("zero", "mean"):
        out = (Cut(0, "attention"), *(Cut(1, "head", n) for n in range(4)))
        assert torch.equal(
            prompt.rollout(prompt.run_prompt(untrained_bench, read, out, how), out)[-1],
            torch.eye(len(read.ids)).double(),
        )


def test_continuation_is_cached_per_ablation(untrained_bench):
    read = prompt.read(untrained_bench.opened, "the judge")
    sampling = Sampling(words=6)
    full = [s.token for s in prompt.continuation(untrained_bench, read, 1, sampling)]
    without = [
        s.token
        for s in prompt.continuation(untrained_bench, read, 1, sampling, (Cut(0, "layer"),), "mean")
    ]
    assert [s.token for s in prompt.continuation(untrained_bench, read, 1, sampling)] == full
    assert [
        s.token
        for s in prompt.continuation(untrained_bench, read, 1, sampling, (Cut(0, "layer"),), "mean")
    ] == without
    with pytest.raises(ConfigError, match="Resample ablation"):
        list(
            prompt.continuation(untrained_bench, read, 1, sampling, (Cut(0, "layer"),), "resample")
        )


@pytest.mark.parametrize("how", ["", "zero", "mean"])
def test_continuation_starts_at_named_token(untrained_bench, how):
    """The reference is generate on the shortened text; another token gives another text."""
    read = prompt.read(untrained_bench.opened, "the judge , who was late , was right .")
    sampling = Sampling(words=5, draw=2)
    cut = (Cut(0, "layer"),) if how else ()
    edits = (Lesion(cut, how, untrained_bench.means if how == "mean" else {}),) if how else ()
    texts = []
    for after in (1, 4, 4):
        actual = [
            s.token
            for s in prompt.continuation(untrained_bench, read, after, sampling, cut, how or "zero")
        ]
        expected = generate(
            untrained_bench.model,
            read.ids[: after + 1],
            sampling,
            *edits,
            end_tokens=untrained_bench.opened.ends,
        )
        assert actual == [s.token for s in expected]
        texts.append(actual)
    assert texts[0] != texts[1] == texts[2]


@pytest.mark.parametrize("after, room", [(3, 8), (8, 3), (11, 1)])
def test_continuation_ends_with_positions(after, room):
    bench = knockout.bench(short(12), 16)
    read = prompt.read(bench.opened, " ".join(["judge"] * 12))
    if after < 11:  # all that fit; with one further word there would be none to read it with
        plain = generate(bench.model, read.ids[: after + 1], Sampling(words=room))
        assert (
            len(list(prompt.continuation(bench, read, after, Sampling(words=60))))
            == len(list(plain))
            == room
        )
    else:
        assert len(list(prompt.continuation(bench, read, after, Sampling(words=60)))) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_it_is_the_same():
    on_cpu = knockout.bench(legal(), 64)
    on_gpu = legal()
    on_gpu.model.to("cuda")
    on_gpu = knockout.bench(on_gpu, 64)
    for how in mode:
        for cut in list_cuts(on_cpu.model.config):
            expected, other = (item.effect((cut,), how) for item in (on_cpu, on_gpu))
            for name in knockout.effect:
                torch.testing.assert_close(
                    other.values[name], expected.values[name], rtol=1e-3, atol=1e-3
                )
    cuts = (Cut(0, "head", 1),)
    torch.testing.assert_close(
        credit.bench_contributions(on_gpu, cuts),
        credit.bench_contributions(on_cpu, cuts),
        rtol=1e-3,
        atol=1e-3,
    )
    read = prompt.read(on_cpu.opened, "the judge")
    sampling = Sampling(words=8, temperature=0.0)
    expected, other = (
        [s.token for s in prompt.continuation(item, read, 1, sampling)] for item in (on_cpu, on_gpu)
    )
    assert expected == other
