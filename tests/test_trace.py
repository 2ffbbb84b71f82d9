"""Recording, editing and dropout stay within the caller's context."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from core import Config, Transformer, tap, trace
from core.model.layers import dropout, enable_dropout
from core.model.parts.init import generator
from core.model.trace import SITES

CONFIG = Config(
    d_model=16,
    n_heads=4,
    d_ff=24,
    n_layers=2,
    seed=3,
    placement="sandwich",
    gate=True,
    embedding_norm=True,
)  # which has every site
WORDS = ("<pad>", "the", "court", "held", "that")
TOKENS = torch.tensor([[1, 2, 3, 4, 1], [4, 3, 2, 1, 2]])


@pytest.fixture(scope="module")
def model():
    """Return the model that all tests share; none may change it."""
    return Transformer(CONFIG, WORDS).requires_grad_(False)


def zero_head(head, at_layer=0):
    def edit(site, layer, z):
        if site == "z" and layer == at_layer:
            z = z.clone()
            z[:, head] = 0
            return z

    return edit


def test_tap_without_a_trace_returns_the_very_same_tensor():
    x = torch.ones(3)
    assert tap("embed", x) is x


def test_trace_has_one_tensor_per_layer_in_order(model):
    with trace() as record:
        logits = model(TOKENS)
    assert {site: len(layers) for site, layers in record.items()} == {
        site: 1 if site in ("embed_raw", "ln_embed", "embed", "ln_final", "logits") else 2
        for site in SITES
    }
    assert torch.equal(record["logits"][0], logits)
    assert torch.equal(record["resid_pre"][0], record["embed"][0])
    assert torch.equal(record["resid_pre"][1], record["resid_post"][0])
    assert not torch.equal(record["resid_post"][0], record["resid_post"][1])


def test_second_pass_is_appended(model):
    with trace(sites=["logits"]) as record:
        model(TOKENS)
        model(TOKENS[:1])
    assert [len(logits) for logits in record["logits"]] == [2, 1]


def test_site_filter_limits_records_not_edits(model):
    met = []
    with trace(lambda site, layer, x: met.append((site, layer)), sites=["pattern", "z"]) as record:
        model(TOKENS)
    assert set(record) == {"pattern", "z"}
    assert {site for site, _ in met} == set(SITES)
    assert met.count(("z", 1)) == 1


def test_unknown_site_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no site atention;.*attn_out.*logits"):
        trace(sites=["z", "atention"])


def test_edit_precedes_recording_and_changes_the_rest(model):
    with trace() as plain:
        model(TOKENS)
    with trace(zero_head(1)) as edited:
        model(TOKENS)
    assert (edited["z"][0][:, 1] == 0).all()
    assert torch.equal(edited["z"][0][:, 0], plain["z"][0][:, 0])
    for site in ("q", "k", "v", "scores", "pattern"):  # what comes before is as it was
        assert torch.equal(edited[site][0], plain[site][0])
    for site in ("attn_out", "resid_post", "logits"):
        assert not torch.equal(edited[site][0], plain[site][0])


@pytest.mark.parametrize("head", range(CONFIG.n_heads))
def test_zeroed_z_equals_removed_output_columns(model, head):
    with trace(zero_head(head)) as edited:
        model(TOKENS)
    without = copy.deepcopy(model)
    columns = slice(head * CONFIG.d_head, (head + 1) * CONFIG.d_head)
    without.blocks[0].attn.out.weight[:, columns] = 0
    with trace() as right:
        without(TOKENS)
    for site in ("attn_out", "logits"):
        torch.testing.assert_close(edited[site][0], right[site][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("site", SITES)
def test_sites_can_be_edited(model, site):
    """Doubling an activation changes something further on.

    The input of a norm is doubled in half of its numbers: the norm would undo it otherwise.
    """
    half = torch.arange(16) % 2 + 1

    def edit(index, layer, x):
        if index != site:
            return None
        return x * half if index.endswith("_raw") else 2 * x

    with trace(edit) as edited:
        logits = model(TOKENS)
    with trace() as plain:
        model(TOKENS)
    assert not torch.allclose(edited[site][0], plain[site][0])
    assert torch.equal(edited["logits"][0], logits)
    assert not torch.allclose(logits, plain["logits"][0], rtol=0, atol=1e-4)


def test_edits_chain_in_order():
    with trace(
        lambda site, layer, x: x + 1, lambda site, layer, x: None, lambda site, layer, x: x * 10
    ) as record:
        assert tap("embed", torch.tensor(1.0)) == 20
    assert record["embed"][0] == 20


def test_outer_trace_runs_before_inner():
    with trace(lambda site, layer, x: x + 1) as outer:
        with trace(lambda site, layer, x: x * 10) as inner:
            assert tap("embed", torch.tensor(1.0)) == 20
        assert tap("embed", torch.tensor(1.0)) == 2
    assert [x.item() for x in outer["embed"]] == [2, 2]
    assert [x.item() for x in inner["embed"]] == [20]


def test_edit_passes_gradients(model):
    stream = model.embed[TOKENS].clone().requires_grad_()
    with trace(lambda site, layer, x: stream if site == "embed" else None):
        model(TOKENS).square().sum().backward()
    assert stream.grad.isfinite().all() and stream.grad.abs().min() > 0


def test_threads_edit_shared_model_independently(model):
    def run(head):
        with trace(zero_head(head)) as record:
            together.wait(
                timeout=10
            )  # four traces are open whenever a pass starts, and while it runs
            model(TOKENS)
            together.wait(timeout=10)
        return record

    alone = []
    for head in range(4):
        with trace(zero_head(head)) as recorded:
            model(TOKENS)
        alone.append(recorded)
    together = threading.Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        results = [list(threads.map(run, range(4))) for _ in range(5)]
    for seen_by_all in results:
        for expected, recorded in zip(alone, seen_by_all):
            assert {site: len(layers) for site, layers in recorded.items()} == {
                s: len(x) for s, x in expected.items()
            }
            assert all(
                torch.equal(a, b) for site in SITES for a, b in zip(recorded[site], expected[site])
            )
    assert not torch.equal(alone[0]["logits"][0], alone[1]["logits"][0])


def test_dropout_acts_only_inside_dropping():
    model = Transformer(CONFIG.replace(dropout=0.5), WORDS)
    plain = Transformer(CONFIG, WORDS)(TOKENS)
    assert torch.equal(model(TOKENS), plain)
    assert torch.equal(
        model.train()(TOKENS), plain
    )  # there is no train/eval switch on a shared model
    with enable_dropout(generator(0, "dropout")):
        assert not torch.equal(model(TOKENS), plain)
    assert torch.equal(model(TOKENS), plain)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_rescales(share):
    with enable_dropout(generator(0, "dropout")):
        x = dropout(torch.ones(20_000), share)
    zeros = (x == 0).double().mean().item()
    assert zeros == pytest.approx(share, abs=4 * (share * (1 - share) / 20_000) ** 0.5)
    torch.testing.assert_close(x[x != 0], torch.full_like(x[x != 0], 1 / (1 - share)))


def test_dropout_acts_at_embeddings_attention_weights_and_both_outputs():
    model = Transformer(CONFIG.replace(dropout=0.5), WORDS)
    with enable_dropout(generator(0, "dropout")), trace() as record:
        model(TOKENS)
    for site in ("embed", "attn_raw", "mlp_raw"):
        for x in record[site]:
            assert 0.3 < (x == 0).double().mean() < 0.7
    for pattern, v, z in zip(record["pattern"], record["v"], record["z"]):
        torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 4, 5))  # recorded before dropout
        assert not torch.allclose(pattern @ v, z)
