"""Ablations equal the same change of weights or tensors by hand, and affect no other user."""

import threading

import pytest
import torch

from core.model.config import Config
from core.model.knockout import Cut, Lesion, Recorded, list_cuts, mode, read_cuts, write_cuts
from core.model.parts import MENUS
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.setting import ConfigError

WORDS = [str(n) for n in range(20)]
IDS = torch.randint(0, 20, (3, 9), generator=torch.Generator().manual_seed(0))
OTHERS = torch.randint(0, 20, (3, 9), generator=torch.Generator().manual_seed(1))
SHAPES = [
    {},
    {"placement": "post"},
    {"norm": "RMSNorm"},
    {"norm": "none"},
    {"position": "learned"},
    {"position": "alibi"},
    {"mask": "none"},
    {"residual_attention": False},
    {"residual_ffn": False},
    {"bias": False},
    {"tied": True},
    {"activation": "swiglu"},
    {"d_head": 6},
]
EVERY = list_cuts(Config(n_layers=2))


def model(**changes) -> Transformer:
    return Transformer(
        Config(**{"n_layers": 2, "d_model": 32, "mask": "causal", "position": "rope", **changes}),
        WORDS,
    )


def run(transformer, *edits, ids=IDS, sites=()):
    with torch.inference_mode(), trace(*edits, sites=sites) as record:
        return transformer(ids), record


def recorded(transformer) -> dict:
    """Return each activation's mean over the batch by position, and its value on other texts."""
    _, on_first = run(transformer, sites=("z", "attn_out", "mlp_out"))
    _, on_second = run(transformer, ids=OTHERS, sites=("z", "attn_out", "mlp_out"))
    actual = {}
    for site in on_first:
        for layer, x in enumerate(on_first[site]):
            actual[site, layer] = Recorded(sum(x) / len(x), on_second[site][layer])
    return actual


@pytest.mark.parametrize("changes", SHAPES, ids=str)
@pytest.mark.parametrize("head", range(4))
@pytest.mark.parametrize("layer", range(2))
def test_zeroed_head_equals_zero_rows_in_w_o(changes, layer, head):
    transformer = model(**changes)
    cut_off = model(**changes)
    width = transformer.config.d_head
    with torch.no_grad():
        cut_off.blocks[layer].attn.out.weight[:, width * head : width * (head + 1)] = 0
    actual, _ = run(transformer, Lesion((Cut(layer, "head", head),)))
    expected, _ = run(cut_off)
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=1e-6 * max(1.0, expected.abs().max().item())
    )


@pytest.mark.parametrize("changes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["attention", "ffn"])
def test_zeroed_sublayer_equals_zero_last_map(changes, kind):
    transformer = model(**changes)
    cut_off = model(**changes)
    last = cut_off.blocks[1].attn.out if kind == "attention" else cut_off.blocks[1].mlp.w_out
    with torch.no_grad():
        for parameter in last.parameters():
            parameter.zero_()
    actual, _ = run(transformer, Lesion((Cut(1, kind),)))
    torch.testing.assert_close(
        actual, run(cut_off)[0], rtol=0, atol=1e-6 * max(1.0, actual.abs().max().item())
    )


def test_zeroed_layer_is_both_sublayers_without_touching_stream():
    transformer = model()
    actual, _ = run(transformer, Lesion((Cut(0, "layer"),)))
    both, _ = run(transformer, Lesion((Cut(0, "attention"), Cut(0, "ffn"))))
    assert torch.equal(actual, both)
    with torch.inference_mode():
        stream = transformer.blocks[1](
            transformer.embed_tokens(IDS), transformer.attention_mask(IDS)
        )
        torch.testing.assert_close(actual, transformer.compute_logits(stream), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cut", EVERY, ids=lambda cut: cut.name)
@pytest.mark.parametrize("how", mode)
def test_replacement_matches_ablation_mode(cut, how):
    transformer = model()
    means = recorded(transformer)
    _, plain = run(transformer, sites=("z", "attn_out", "mlp_out"))
    _, changed = run(transformer, Lesion((cut,), how, means), sites=("z", "attn_out", "mlp_out"))
    for site in cut.sites():
        x = changed[site][cut.layer]
        pick = (slice(None), cut.head) if site == "z" else (slice(None),)
        expected = {
            "zero": torch.zeros_like(x[pick]),
            "mean": (
                means[site, cut.layer]
                .mean[cut.head if site == "z" else slice(None)]
                .expand_as(x[pick])
            ),
            "resample": means[site, cut.layer].elsewhere[pick],
        }[how]
        assert torch.equal(x[pick], expected)
        if site == "z":  # the other heads are as they were
            others = [n for n in range(4) if n != cut.head]
            assert torch.equal(x[:, others], plain[site][cut.layer][:, others])


@pytest.mark.parametrize("how", mode)
def test_edit_keeps_model_tensors(how):
    transformer = model()
    before = {name: x.clone() for name, x in transformer.state_dict().items()}
    means = recorded(transformer)
    copies = {key: (item.mean.clone(), item.elsewhere.clone()) for key, item in means.items()}
    full, _ = run(transformer)
    for cut in EVERY:
        run(transformer, Lesion((cut,), how, means))
    assert all(torch.equal(x, before[name]) for name, x in transformer.state_dict().items())
    assert all(
        torch.equal(means[key].mean, copies[key][0])
        and torch.equal(means[key].elsewhere, copies[key][1])
        for key in copies
    )
    assert torch.equal(run(transformer)[0], full)


def test_concurrent_ablations_do_not_interfere():
    transformer = model()
    expected = {cut: run(transformer, Lesion((cut,)))[0] for cut in EVERY}
    full = run(transformer)[0]
    wrong = []

    def visit(cut):
        for _ in range(40):
            if not torch.equal(
                run(transformer, Lesion((cut,)))[0], expected[cut]
            ) or not torch.equal(run(transformer)[0], full):
                wrong.append(cut)

    threads = [threading.Thread(target=visit, args=(cut,)) for cut in EVERY[:6]]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_ablation_links_ignore_order_and_repeats():
    config = Config(n_layers=2)
    read, notes = read_cuts("2.ffn~1.2~2.ffn~1.2", config)
    assert read == (Cut(0, "head", 1), Cut(1, "ffn")) and not notes
    assert write_cuts(reversed(read)) == write_cuts(read) == "1.2~2.ffn"
    assert len(read_cuts("a~b~c~d~e", config)[1]) == 3  # no more is said than can be read


@pytest.mark.parametrize(
    "text", ["9.1", "1.99", "1.mlp", "x", "0.1", "1.", "-1.1", "1.1.1", "\x00", "1.head", "𝟙.1"]
)
def test_unknown_place_is_named_and_rest_kept(text):
    actual, notes = read_cuts(f"1.2~{text}~2.ffn", Config(n_layers=2))
    assert (
        actual == (Cut(0, "head", 1), Cut(1, "ffn"))
        and len(notes) == 1
        and "1.attention" in notes[0]
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("blow up", "must be one of zero"),
        ("mean", "no activations were recorded"),
        ("resample", "no activations were recorded"),
    ],
)
def test_impossible_lesion_is_refused_in_words(how, message):
    with pytest.raises(ConfigError, match=message):
        Lesion((Cut(0, "ffn"),), how)


@pytest.mark.parametrize("cut", EVERY, ids=lambda cut: cut.name)
def test_tokens_beyond_the_means_take_the_last_one(cut):
    transformer = model()
    rows = 4
    means = {key: Recorded(item.mean[..., :rows, :]) for key, item in recorded(transformer).items()}
    longer = {
        key: Recorded(item.mean[..., [0, 1, 2, 3, 3, 3, 3, 3, 3], :]) for key, item in means.items()
    }
    assert torch.equal(
        run(transformer, Lesion((cut,), "mean", means))[0],
        run(transformer, Lesion((cut,), "mean", longer))[0],
    )


@pytest.mark.parametrize("field", ["norm"])
def test_norm_is_linear_at_fixed_scale(field):
    x, index = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)).unbind()
    for kind in MENUS[field].values():
        norm = kind("ln", 16)
        for parameter in norm.parameters():
            torch.nn.init.normal_(parameter)
        bias = getattr(norm, "bias", None)
        torch.testing.assert_close(norm.linear(x, x) + (0 if bias is None else bias), norm(x))
        torch.testing.assert_close(
            norm.linear(2 * x + index, index), 2 * norm.linear(x, index) + norm.linear(index, index)
        )
