"""Effects of knock-outs over held-out texts: equal to the same thing computed slowly, text by text, in plain steps."""

import math
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from core.checkpoint import Opened
from core.checkpoint.legal import batch, vocabulary
from core.checkpoint.tokens import Words
from core.config import Config
from core.dial import ConfigError
from core.experiments import contributions as credit
from core.experiments import knockout, lens, prompt
from core.experiments.questions import partners, questions, sentences
from core.generate import Sampling
from core.lesion import Cut, Lesion, Recorded, cuts, mode
from core.model import Transformer
from core.tasks import task
from core.tasks.sentences import BE, NOUNS, anatomy
from core.tasks.task import is_held_out
from core.text import PAD
from core.trace import trace
from core.train import Training, chunk, start

SHAPES = [{}, {"placement": "post"}, {"norm": "RMSNorm"}, {"norm": "none"}, {"position": "learned"}, {"residual_attention": False}, {"bias": False}, {"tied": True}]  # fmt: skip


def legal(**changes) -> Opened:
    """An untrained model of sentences, with biases and gains that are not 0 and 1."""
    config = Config(**{"n_layers": 2, "d_model": 32, "position": "rope", "mask": "causal", **changes})
    made = Transformer(config, vocabulary())
    stream = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for each in made.parameters():
            each.add_(0.3 * torch.randn(each.shape, generator=stream))
    return Opened("untrained", made, Words(vocabulary()), "sentences")


def learner(name: str, **training) -> Opened:
    state, _ = chunk(start(task[name].config(), Training(task=name, steps=2, **training), 0), 10.0)
    from core.checkpoint.own import of_training

    return of_training(state, name)


@pytest.fixture(scope="module")
def made() -> knockout.Bench:
    return knockout.bench(legal(), 96)


def slow(bench, edits=lambda n: ()):
    """Logits at every place asked, one text at a time, without padding, in float32: (Q, V)"""
    q, rows = bench.questions, []
    for row, place in zip(q.row.tolist(), q.place.tolist()):
        ids = q.tokens[row : row + 1, : int(q.lengths[row])]
        with torch.inference_mode(), trace(*edits(row), sites=()):
            rows.append(bench.model(ids)[0, place])
    return torch.stack(rows)


# The questions


def test_sentences_are_held_out_and_their_anatomy_is_right():
    nouns = {form: number for pairs in NOUNS.values() for pair in pairs for number, form in enumerate(pair)}
    learnt = task["sentences"]
    for words in sentences(300, 0):
        found = anatomy(words)
        assert words[found.verb] == BE[nouns[words[found.subject]]]
        assert words[-1] == "." and words[found.subject - 1] == "the"
        row = torch.full((1, learnt.length), learnt.vocabulary.index(PAD))
        row[0, : len(words)] = torch.tensor([learnt.vocabulary.index(word) for word in words])
        assert bool(is_held_out(row, learnt.vocabulary, learnt.held_out))
        between = words[found.subject + 1 : found.verb]
        assert found.distractors == sum(
            nouns.get(w, nouns[words[found.subject]]) != nouns[words[found.subject]] for w in between
        )
        assert found.clause == any(w in ("who", "whom") for w in between)


def test_the_grammar_says_what_the_anatomy_says():
    """Whoever wrote the sentence knows its number: the verb of the writer is the verb found."""
    for words in sentences(300, 1):
        assert words.count(".") == 1 and words[anatomy(words).verb] in BE


def test_questions_ask_for_the_verb_after_what_stands_before_it(made):
    q = made.questions
    words = [[vocabulary()[t] for t in row[:n]] for row, n in zip(q.tokens.tolist(), q.lengths.tolist())]
    for n, (row, place) in enumerate(zip(q.row.tolist(), q.place.tolist())):
        assert words[row][place + 1] == vocabulary()[q.right[n]] and words[row][-1] == words[row][place + 1]
        assert {vocabulary()[q.right[n]], vocabulary()[q.wrong[n]]} == set(BE)
        assert q.value[n] == q.verb[n] - q.subject[n] - 1
    assert bool(q.across.any()) and not bool(q.across.all())
    assert q.lengths.tolist() == sorted(q.lengths.tolist())


@pytest.mark.parametrize("of", ["sentences", "copy", "facts"])
def test_resampling_takes_another_text_of_the_same_length_and_never_the_same(of, made):
    q = made.questions if of == "sentences" else questions(learner(of), 64)
    for one, other, length in zip(q.tokens, q.elsewhere, q.lengths.tolist()):
        assert one[:length].tolist() != other[:length].tolist()
        pad = vocabulary().index(PAD)
        if of == "sentences":
            assert int((other != pad).sum()) == length == int((one != pad).sum())


def test_partners_of_odd_lengths():
    assert partners([[1, 2], [1, 2]], [[3, 4, 5], [1, 2, 9]], 0).tolist() == [[3, 4], [3, 4]]
    with pytest.raises(ConfigError, match="resampling needs another text of 3 tokens"):
        partners([[1, 2, 3]], [[1, 2, 3], [4]], 0)


@pytest.mark.parametrize("name", task)
def test_every_tasks_model_can_be_asked_and_cut_everywhere(name):
    opened = learner(name)
    bench = knockout.bench(opened, 32)
    assert len(bench.baseline.correct) == len(bench.questions.row) > 0
    for how in mode:
        table = knockout.ranked(list(bench.sweep(how)), bench.baseline)
        assert table.change.notna().all() and set(table.cut) == {cut.write() for cut in cuts(opened.config)}
    if name != "sentences":
        learnt = task[name]
        assert bench.questions.by == "place in the sequence" and learnt.length <= bench.questions.tokens.shape[1]


# Effects against plain steps


def by_hand(logits, whole, q):
    """Every effect, question by question, in float64 with plain Python."""
    rows = []
    for n in range(len(logits)):
        scores, base = logits[n].double().tolist(), whole[n].double().tolist()
        log, base_log = (
            [v - max(x) - math.log(sum(math.exp(u - max(x)) for u in x)) for v in x] for x in (scores, base)
        )
        right, wrong = int(q.right[n]), int(q.wrong[n])
        if wrong < 0:
            wrong = max((v, t) for t, v in enumerate(base) if t != right)[1]
        best = max(q.among or range(len(scores)), key=lambda t: scores[t])
        kl = sum(math.exp(b) * (b - a) for a, b in zip(log, base_log))
        rows.append((float(best == right), math.exp(log[right]), scores[right] - scores[wrong], kl))
    return pd.DataFrame(rows, columns=list(knockout.effect))


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_the_whole_models_answers_equal_those_without_padding(changes):
    bench = knockout.bench(legal(**changes), 64)
    wanted = slow(bench)
    torch.testing.assert_close(bench.whole.logits, wanted, rtol=1e-4, atol=1e-5 * wanted.abs().max().item())


@pytest.mark.parametrize("how", mode)
@pytest.mark.parametrize("cut", cuts(Config(n_layers=2)), ids=lambda cut: cut.name)
def test_effects_equal_plain_steps(made, cut, how):
    q = made.questions
    means = mean_by_hand(made)

    def edits(row):
        other = q.elsewhere[row : row + 1, : int(q.lengths[row])]
        with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as there:
            made.model(other)
        known = {(s, n): Recorded(means[s, n], there[s][n]) for s in there for n in range(2)}
        return (Lesion((cut,), how, known),)

    whole, logits = slow(made), slow(made, edits)
    wanted = by_hand(logits, whole, q)
    effect = made.effect((cut,), how)
    for name in knockout.effect:
        found = pd.Series(effect.values[name].numpy())
        np.testing.assert_allclose(found, wanted[name], rtol=2e-3, atol=2e-5, err_msg=name)
    told = knockout.told(effect, made.baseline).set_index("effect")
    base = by_hand(whole, whole, q)
    for name in ("probability", "difference"):
        change = wanted[name] - base[name]
        low, high = scipy.stats.t.interval(0.95, len(change) - 1, change.mean(), scipy.stats.sem(change))
        row = told.loc[name]
        np.testing.assert_allclose((row.change, row.low, row.high), (change.mean(), low, high), rtol=5e-3, atol=2e-5)
        p = scipy.stats.ttest_rel(wanted[name], base[name]).pvalue
        assert abs(row.p - p) < 1e-2


def mean_by_hand(bench):
    """The mean over all words of all texts, one text after the other."""
    q, total, words = bench.questions, {}, 0
    for row, length in zip(q.tokens, q.lengths.tolist()):
        with torch.inference_mode(), trace(sites=("z", "attn_out", "mlp_out")) as seen:
            bench.model(row[None, :length])
        words += length
        for site in seen:
            for layer, x in enumerate(seen[site]):
                total[site, layer] = total.get((site, layer), 0) + x[0].double().sum(-2)
    return {key: (x / words).float() for key, x in total.items()}


def test_means_equal_those_by_hand(made):
    wanted = mean_by_hand(made)
    for known in made.recorded:
        for key, x in wanted.items():
            torch.testing.assert_close(known[key].mean, x, rtol=1e-4, atol=1e-5)


def test_several_at_once_are_not_one_after_another_but_together(made):
    both = made.effect((Cut(0, "head", 1), Cut(1, "ffn")), "zero")
    logits = slow(made, lambda row: (Lesion((Cut(0, "head", 1), Cut(1, "ffn"))),))
    wanted = by_hand(logits, slow(made), made.questions)
    np.testing.assert_allclose(both.values["difference"], wanted.difference, rtol=1e-3, atol=1e-4)


def test_the_baseline_is_never_overwritten(made):
    before = {name: x.clone() for name, x in made.baseline.values.items()}
    streams = [[x.clone() for x in each] for each in made.streams]
    read = prompt.read(made.opened, "the judge , who was late , was right .")
    whole = prompt.look(made, read).sites["pattern"][1].clone()
    for how in mode:
        for cut in cuts(made.model.config):
            knockout.measured(made, (cut,), how)
            prompt.look(made, read, (cut,), how)
    assert all(torch.equal(made.baseline.values[name], x) for name, x in before.items())
    assert all(torch.equal(one, other) for one, other in zip(sum(made.streams, []), sum(streams, [])))
    assert torch.equal(prompt.look(made, read).sites["pattern"][1], whole)
    assert knockout.measured(made, (), "zero") is made.baseline


def test_two_visitors_with_other_knock_outs_read_their_own_numbers(made):
    every, wrong = cuts(made.model.config), []
    wanted = {(cut, how): made.effect((cut,), how).values["difference"] for cut in every for how in mode}

    def visit(seed):
        order = list(wanted)
        np.random.default_rng(seed).shuffle(order)
        for cut, how in order:
            if not torch.equal(
                made.effect((Cut(int(cut.layer), str(cut.part), int(cut.head)),), str(how)).values["difference"],
                wanted[cut, how],
            ):
                wrong.append((cut, how))

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(4)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert not wrong


def test_accuracy_by_distance_is_the_mean_of_the_right_ones(made):
    table, q = knockout.by_distance(made.baseline, made.questions), made.questions
    assert table.questions.sum() == len(q.row)
    for row in table.itertuples():
        right = made.baseline.correct[q.value == row.value]
        ends = scipy.stats.binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
        assert row.accuracy == pytest.approx(right.mean().item())
        assert (row.low, row.high) == pytest.approx((ends.low, ends.high), abs=1e-9)


def test_readings_are_the_attention_on_the_subject(made):
    q = made.questions
    for each in knockout.readings(made):
        shares = []
        for n in q.across.nonzero()[:, 0].tolist():
            with torch.inference_mode(), trace(sites=("pattern",)) as seen:
                made.model(q.tokens[n : n + 1, : int(q.lengths[n])])
            row = seen["pattern"][each.layer][0, each.head, :, q.subject[n]]
            shares.append((row[q.verb[n]].item(), row[q.verb[n] - 1].item()))
        assert (each.verb.mean, each.before.mean) == pytest.approx(tuple(np.mean(shares, 0)), abs=1e-5)
        assert each.verb.n == len(shares)
        assert each.even == pytest.approx(
            np.mean([1 / (q.verb[n].item() + 1) for n in q.across.nonzero()[:, 0].tolist()])
        )
        assert all(
            bool(anatomy_of(q, n).clause) and anatomy_of(q, n).distractors for n in q.across.nonzero()[:, 0].tolist()
        )


def anatomy_of(q, n):
    words = [vocabulary()[token] for token in q.tokens[n, : int(q.lengths[n])]]
    return anatomy([*words, "late", "."])  # questions end with the verb


@pytest.mark.parametrize("name", ["induction", "facts"])
def test_wrong_is_the_likeliest_word_that_is_not_right(name):
    bench = knockout.bench(learner(name), 32)
    for scores, right, wrong in zip(
        bench.whole.logits.tolist(), bench.whole.right.tolist(), bench.whole.wrong.tolist()
    ):
        assert wrong == max((value, word) for word, value in enumerate(scores) if word != right)[1]


def test_what_is_asked_begins_with_words_that_training_never_read():
    asked = {words[: anatomy(words).verb] for words in sentences(512, 0)}
    read = set()
    for seed in range(4):
        tokens, _ = batch(torch.Generator().manual_seed(seed), 256)
        for row in tokens.tolist():
            words = tuple(vocabulary()[token] for token in row if token)
            if "<unk>" not in words:
                read.add(words[: anatomy(words).verb])
    assert not asked & read and len(read) > 300


# Contributions


@pytest.mark.parametrize(
    "changes",
    [*SHAPES, {"residual_ffn": False}, {"attention": False}, {"ffn": False}, {"placement": "post", "norm": "RMSNorm"}],
    ids=str,
)
def test_contributions_add_up_to_the_whole(changes):
    bench = knockout.bench(legal(**changes), 48)
    for made in [(), *(((cut,)) for cut in cuts(bench.model.config))]:
        made = made if isinstance(made, tuple) else (made,)
        for how in mode if made else ("zero",):
            each = credit.of_bench(bench, made, how)
            wanted = bench.effect(made, how).values["difference"]
            assert len(each) == len(credit.parts(bench.model))
            torch.testing.assert_close(
                each.sum(0), wanted, rtol=1e-4, atol=1e-5 * max(1.0, bench.whole.logits.abs().max().item())
            )


def test_a_heads_contribution_is_what_it_wrote_read_through_the_last_norm(made):
    """By hand, for one head and one text: z through its columns of W_O, centred and scaled as the stream is, times gain."""
    q, n = made.questions, 7
    with torch.inference_mode(), trace() as seen:
        made.model(q.tokens[n : n + 1, : int(q.lengths[n])])
    place, width = int(q.place[n]), made.model.config.d_head
    stream = seen["resid_post"][-1][0, place].double()
    z = seen["z"][1][0, 2, place].double()
    wrote = made.model.blocks[1].attn.out.weight[:, 2 * width : 3 * width].double() @ z
    scale = math.sqrt(((stream - stream.mean()) ** 2).mean() + 1e-5)
    read = (wrote - wrote.mean()) / scale * made.model.ln_final.weight.double()
    words = made.model.unembed.weight.double()
    wanted = (read @ (words[q.right[n]] - words[q.wrong[n]])).item()
    at = credit.parts(made.model).index(credit.Part("head", 1, 2))
    assert credit.of_bench(made)[at, n].item() == pytest.approx(wanted, rel=1e-4, abs=1e-5)


def test_only_what_comes_after_a_cut_can_take_over(made):
    cut = (Cut(0, "head", 1), Cut(1, "ffn"))
    table = credit.takeover(made, cut, "zero")
    assert set(table.name) == {"FFN 1", "head 2.1", "head 2.2", "head 2.3", "head 2.4"}
    assert table.change.is_monotonic_decreasing
    before, after = credit.of_bench(made), credit.of_bench(made, cut, "zero")
    row = table[table.name == "head 2.1"].iloc[0]
    at = credit.parts(made.model).index(credit.Part("head", 1, 0))
    found = scipy.stats.ttest_rel(after[at], before[at])
    assert row.p == pytest.approx(min(1.0, found.pvalue * len(table)), rel=1e-6, abs=1e-12)


def test_the_share_is_of_the_whole(made):
    table = credit.table(made)
    assert table.share.sum() == pytest.approx(1, abs=1e-6)
    assert (table.share * table.value.sum()).tolist() == pytest.approx(table.value.tolist(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("cut", cuts(Config(n_layers=2)), ids=lambda cut: cut.name)
def test_what_is_left_out_of_the_takeover_wrote_what_it_wrote(made, cut):
    """To the last bit: so it cannot have taken anything over."""
    asked = set(credit.takeover(made, (cut,), "mean").name)
    effect = made.effect((cut,), "mean")
    for part in credit.parts(made.model):
        if part.kind not in ("head", "ffn") or part.name in asked:
            continue
        site = "z" if part.kind == "head" else "mlp_out"
        own = (part.kind == cut.part and part.layer == cut.layer) or (
            cut.part in ("attention", "layer") and part.layer == cut.layer
        )
        one, other = (each.written[site, part.layer] for each in (effect, made.baseline))
        if part.kind == "head":
            one, other = one[:, part.head], other[:, part.head]
        assert own or torch.equal(one, other), part.name


# One text


def test_a_word_that_is_unknown_is_marked_and_read(made):
    read = prompt.read(made.opened, "The defendant , who had filed a motion to dismiss , was liable .")
    assert [read.labels[at] for at in read.unknown] == ["filed", "a", "motion", "to", "dismiss"]
    assert read.labels[0] == "The" and vocabulary()[read.ids[0]] == "the"
    assert prompt.verb_of(read) == read.labels.index("was")


@pytest.mark.parametrize("text", ["", "   ", "\x00", "\u200b"])
def test_a_text_without_words_is_told(made, text):
    with pytest.raises(ConfigError, match="no word"):
        prompt.read(made.opened, text)


def test_a_model_without_an_unknown_word_leaves_it_out():
    read = prompt.read(learner("sentences"), "the judge xylophone was late .")
    assert read.labels == ("the", "judge", "was", "late", ".") and "xylophone" in read.notes[0]
    with pytest.raises(ConfigError, match="no word that this model can read"):
        prompt.read(learner("sentences"), "nothing known here")


@pytest.mark.parametrize("text", ["the judge " * 200, "<b>the</b> $x$ *judge* 👩‍👩‍👧 שלום", "was", "."])
def test_odd_texts_pass_through_every_view(made, text):
    read = prompt.read(made.opened, text)
    seen = prompt.look(made, read)
    assert len(seen.tokens) == len(read.ids) <= 256
    assert lens.logit_lens(made.model, seen, made.opened.tokens.label).probability.between(0, 1).all()
    for how in ("zero", "mean"):
        prompt.look(made, read, (Cut(1, "head", 0),), how)


def test_resampling_one_text_takes_another_of_its_length(made):
    read = prompt.read(made.opened, "the judge was late .")
    cut = Cut(0, "head", 1)
    seen = prompt.look(made, read, (cut,), "resample")
    plain = prompt.look(made, read)
    assert not torch.equal(seen.sites["z"][0][1], plain.sites["z"][0][1])
    with pytest.raises(ConfigError, match="resampling needs another text of 100"):
        prompt.look(made, prompt.read(made.opened, "the judge " * 50), (cut,), "resample")


def test_the_lens_ends_with_what_the_model_says(made):
    read = prompt.read(made.opened, "the judge , who was late , was right .")
    seen = prompt.look(made, read)
    table = lens.logit_lens(made.model, seen, made.opened.tokens.label)
    with torch.inference_mode():
        chances = made.model(torch.tensor([read.ids]))[0].softmax(-1)
    last = table[table.depth == 2]
    np.testing.assert_allclose(last.probability, chances.max(-1).values, rtol=1e-5)
    np.testing.assert_allclose(last.of_last, last.probability)
    first = table[table.depth == 0].probability
    with torch.inference_mode():
        stream = made.model.embed[list(read.ids)]
        wanted = made.model.unembed(
            torch.nn.functional.layer_norm(stream, (32,), made.model.ln_final.weight, made.model.ln_final.bias)
        ).softmax(-1)
    np.testing.assert_allclose(first, wanted.max(-1).values, rtol=1e-4)


@pytest.mark.parametrize("residual", [True, False])
def test_rollout_is_the_product_of_the_mixed_maps(residual):
    opened = legal(residual_attention=residual)
    seen = prompt.look(knockout.bench(opened, 32), prompt.read(opened, "the judge , who was late , was right ."))
    found, wanted = lens.rollout(seen), np.eye(len(seen.tokens))
    for layer, pattern in enumerate(seen.sites["pattern"]):
        mixed = pattern.double().numpy().mean(0)
        mixed = 0.5 * mixed + 0.5 * np.eye(len(mixed)) if residual else mixed
        wanted = mixed @ wanted
        np.testing.assert_allclose(found[layer], wanted, atol=1e-6)
        np.testing.assert_allclose(found[layer].sum(-1), 1.0, atol=1e-6)


def test_a_text_that_goes_on_is_kept_under_its_own_knock_out(made):
    read, sampling = prompt.read(made.opened, "the judge"), Sampling(words=6)
    whole = [s.token for s in prompt.continuation(made, read, 1, sampling)]
    without = [s.token for s in prompt.continuation(made, read, 1, sampling, (Cut(0, "layer"),), "mean")]
    assert [s.token for s in prompt.continuation(made, read, 1, sampling)] == whole
    assert [s.token for s in prompt.continuation(made, read, 1, sampling, (Cut(0, "layer"),), "mean")] == without
    with pytest.raises(ConfigError, match="being written"):
        list(prompt.continuation(made, read, 1, sampling, (Cut(0, "layer"),), "resample"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_it_is_the_same():
    here, there = knockout.bench(legal(), 64), legal()
    there.model.to("cuda")
    there = knockout.bench(there, 64)
    for how in mode:
        for cut in cuts(here.model.config):
            one, other = (each.effect((cut,), how) for each in (here, there))
            for name in knockout.effect:
                torch.testing.assert_close(other.values[name], one.values[name], rtol=1e-3, atol=1e-3)
    made = (Cut(0, "head", 1),)
    torch.testing.assert_close(credit.of_bench(there, made), credit.of_bench(here, made), rtol=1e-3, atol=1e-3)
    read, sampling = prompt.read(here.opened, "the judge"), Sampling(words=8, temperature=0.0)
    one, other = ([s.token for s in prompt.continuation(each, read, 1, sampling)] for each in (here, there))
    assert one == other
