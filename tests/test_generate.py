"""Next-token generation: Hugging Face's probabilities, exact KV cache, seeded sampling."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from core.experiments.forward import continuation
from core.model.config import Config
from core.model.generate import Sampling, generate, probabilities
from core.model.knockout import Cut, Lesion
from core.model.kv_cache import KVCache
from core.model.parts import MENUS
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.setting import ConfigError
from tests import reference
from ui.pictures.chips import attention_read

WORDS = [str(n) for n in range(30)]
IDS = torch.randint(0, 30, (2, 14), generator=torch.Generator().manual_seed(0))
CHOICES = [
    (field, name)
    for field in ("position", "norm", "placement", "activation", "init")
    for name in MENUS[field]
]
CHOICES += [
    ("tied", True),
    ("bias", False),
    ("scale", False),
    ("residual_attention", False),
    ("attention", False),
    ("ffn", False),
    ("d_head", 6),
]


def model(**changes) -> Transformer:
    return Transformer(
        Config(**{"d_model": 32, "n_layers": 3, "mask": "causal", "position": "rope", **changes}),
        WORDS,
    )


@pytest.mark.parametrize(("field", "name"), CHOICES)
@pytest.mark.parametrize("cuts", [(1,) * 14, (14,), (5, 1, 8), (13, 1)])
def test_kv_cache_changes_nothing(field, name, cuts):
    """Logits of a whole text and of its pieces agree to 1e-5 of their size."""
    transformer = model(**{field: name})
    with torch.inference_mode():
        full = transformer(IDS)
        cache = KVCache(transformer)
        pieces = torch.cat([transformer(piece, kv_cache=cache) for piece in IDS.split(cuts, 1)], 1)
    torch.testing.assert_close(
        pieces, full, rtol=1e-5, atol=1e-5 * max(1.0, full.abs().max().item())
    )
    assert cache.length == 14


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"global_every": 2},
        {"n_kv_heads": 2, "position": "alibi"},
        {"softmax": "sink", "score_cap": 2.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("window", [1, 3, 5])
@pytest.mark.parametrize("cuts", [(1,) * 14, (5, 1, 8), (8, 4, 2), (2, 12), (6, 6, 2)], ids=str)
def test_chunks_beyond_window_match_whole_text(changes, window, cuts):
    """A chunk of several tokens beyond the window stays causal."""
    transformer = model(window=window, **changes)
    with torch.inference_mode():
        full = transformer(IDS)
        cache = KVCache(transformer)
        pieces = torch.cat([transformer(piece, kv_cache=cache) for piece in IDS.split(cuts, 1)], 1)
    torch.testing.assert_close(
        pieces, full, rtol=1e-5, atol=1e-5 * max(1.0, full.abs().max().item())
    )


def test_taps_see_new_tokens_with_all_keys():
    transformer = model()
    with torch.inference_mode(), trace() as full:
        transformer(IDS)
    cache = KVCache(transformer)
    with torch.inference_mode():
        transformer(IDS[:, :10], kv_cache=cache)
        with trace() as record:
            transformer(IDS[:, 10:], kv_cache=cache)
    for site, pieces in record.items():
        axis = -2 if pieces[0].dim() == 4 else 1
        expected = [x.narrow(axis, 10, 4) for x in full[site]]
        for piece, other in zip(pieces, expected):
            torch.testing.assert_close(piece, other, rtol=1e-4, atol=1e-5)


def test_kv_cache_needs_causal_mask():
    with pytest.raises(ValueError, match="no token attends to later ones"):
        KVCache(model(mask="none"))


def test_kv_cache_takes_neither_padding_nor_an_order():
    transformer = model()
    for other in ({"real": torch.ones_like(IDS, dtype=torch.bool)}, {"order": [0, 0]}):
        with pytest.raises(ValueError, match="neither padding nor an order"):
            transformer.run_blocks(IDS, kv_cache=KVCache(transformer), **other)


@pytest.mark.parametrize(
    "changes",
    [{}, {"position": "learned"}, {"position": "alibi", "placement": "post"}, {"mask": "none"}],
)
@pytest.mark.parametrize(
    "edits", [(), (Lesion((Cut(1, "head", 1), Cut(0, "ffn"))),)], ids=["whole", "knocked out"]
)
def test_generation_matches_with_and_without_cache(changes, edits):
    transformer = model(**changes)
    sampling = Sampling(words=20, temperature=1.3, top_k=12, top_p=0.9, draw=3)
    cached, other = (
        list(generate(transformer, IDS[0], sampling, *edits, cache=cache))
        for cache in (True, False)
    )
    assert [s.token for s in cached] == [s.token for s in other]
    for a, b in zip(cached, other):
        torch.testing.assert_close(a.logits, b.logits, rtol=1e-5, atol=1e-5)
        assert (a.probability, a.chance) == pytest.approx((b.probability, b.chance), abs=1e-5)
        for p, q in zip(a.patterns, b.patterns):
            assert p.shape == (4, 14 + cached.index(a))
            torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


def test_seeds_determine_generated_text():
    transformer = model()
    texts = [
        [s.token for s in generate(transformer, IDS[0], Sampling(words=30, draw=draw))]
        for draw in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]
    torch.manual_seed(7)  # nobody else's random numbers are used, or changed
    before = torch.get_rng_state()
    list(generate(transformer, IDS[0], Sampling(words=5)))
    assert torch.equal(torch.get_rng_state(), before)


numbers = some.lists(
    some.floats(-8, 8).map(lambda x: round(x, 3)), min_size=3, max_size=40, unique=True
)


@given(
    numbers,
    some.sampled_from([0.3, 0.7, 1.0, 2.5]),
    some.integers(0, 45),
    some.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
)
def test_probabilities_equal_hugging_faces(logits, temperature, top_k, top_p):
    warpers = pytest.importorskip("transformers.generation.logits_process")
    scores = torch.tensor([logits], dtype=torch.float64)
    expected = warpers.TemperatureLogitsWarper(temperature)(None, scores)
    if top_k:
        expected = warpers.TopKLogitsWarper(top_k)(None, expected)
    if 0 < top_p < 1:
        expected = warpers.TopPLogitsWarper(top_p)(None, expected)
    if top_p == 0:
        expected = warpers.TopKLogitsWarper(1)(None, expected)
    actual = probabilities(scores[0], Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    torch.testing.assert_close(actual, expected.softmax(-1)[0], rtol=1e-9, atol=1e-12)
    assert actual.sum().item() == pytest.approx(1)


def test_words_are_drawn_as_often_as_their_chance_says():
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    transformer = model()
    transformer.compute_logits = lambda stream: logits.expand(1, stream.shape[1], 4)
    counts = torch.zeros(4)
    for draw in range(2000):
        counts[
            next(iter(generate(transformer, IDS[0, :1], Sampling(words=1, draw=draw)))).token
        ] += 1
    expected = 2000 * logits.softmax(-1)
    assert (
        (counts - expected) ** 2 / expected
    ).sum() < 16.3  # chi-squared, three degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("top_k", -1),
        ("top_p", 1.5),
        ("words", 0),
        ("draw", 1.5),
        ("words", 10**9),
    ],
)
def test_impossible_sampling_is_refused_in_words(name, value):
    with pytest.raises(ConfigError, match=name):
        Sampling(**{name: value})


def test_top_k_1_takes_likeliest_with_model_probability():
    transformer = model()
    for step in generate(transformer, IDS[0], Sampling(words=8, top_k=1, temperature=2.0)):
        assert step.token == int(step.logits.argmax()) and step.chance == 1.0
        assert step.probability == pytest.approx(
            step.logits.double().softmax(-1)[step.token].item()
        )
        assert step.probability < 1


def test_nucleus_is_smallest_set_reaching_p():
    """A token is excluded if those before it reach p exactly; ties keep the first tokens."""
    for words, p, count in [
        (2, 0.5, 1),
        (4, 0.5, 2),
        (4, 0.25, 1),
        (4, 0.26, 2),
        (8, 1.0, 8),
        (8, 0.0, 1),
    ]:
        expected = [1 / count] * count + [0.0] * (words - count)
        assert probabilities(torch.zeros(words), Sampling(top_p=p)).tolist() == expected


# A context that slides


@pytest.mark.parametrize("context", [1, 5, 14, 17, 100])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position": "learned"},
        {"position": "sinusoidal", "n_layers": 1},
        {"mask": "none", "position": "alibi"},
        {"window": 3, "global_every": 2},
    ],
    ids=str,
)
def test_sliding_context_reads_last_tokens_only(changes, context):
    """The float64 reference pass over the last tokens counts positions from the first of them."""
    transformer = model(d_model=8, n_heads=2, d_ff=8, **{"n_layers": 2, **changes}).requires_grad_(
        False
    )
    config = transformer.config
    weights = reference.weights_of(transformer)
    ids = IDS[0].tolist()
    for step in generate(transformer, ids, Sampling(words=6, draw=1), context=context):
        recorded = reference.forward(weights, config, [ids[-context:]])
        right = torch.tensor(recorded["logits"][0][0][-1])
        torch.testing.assert_close(step.logits.double(), right, rtol=1e-4, atol=1e-5)
        assert step.probability == pytest.approx(right.softmax(-1)[step.token].item(), rel=1e-4)
        for layer, pattern in enumerate(step.patterns):
            expected = torch.tensor(recorded["pattern"][layer][0][:, -1])
            torch.testing.assert_close(
                pattern.double(), expected[:, -pattern.shape[1] :], rtol=1e-4, atol=1e-6
            )
            assert len(attention_read(step, layer, 1, len(ids))) == len(ids)
        ids.append(step.token)


def test_sliding_context_matches_nanogpt_loop():
    """The reference is greedy nanoGPT generate(): a whole pass over the last block_size tokens."""
    transformer = model(position="learned")
    ids = IDS[:1]
    with torch.inference_mode():
        for _ in range(20):
            logits = transformer(ids if ids.shape[1] <= 16 else ids[:, -16:])[:, -1]
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
    steps = generate(transformer, IDS[0], Sampling(words=20, temperature=0.0), context=16)
    assert [step.token for step in steps] == ids[0, 14:].tolist()


def test_weights_outside_the_window_or_the_context_are_none():
    transformer = model(window=4)
    step = list(generate(transformer, IDS[0], Sampling(words=3)))[2]
    weights = attention_read(step, 0, 1, 16)
    assert (
        weights[:11] == [None] * 11 and weights[11] == 0 and sum(weights[12:]) == pytest.approx(1)
    )
    slid = list(generate(model(mask="none"), IDS[0], Sampling(words=3), context=5))[2]
    assert (
        attention_read(slid, 0, 1, 16)[:11] == [None] * 11
        and None not in attention_read(slid, 0, 1, 16)[11:]
    )
    alone = next(iter(generate(model(attention=False), IDS[0], Sampling(words=1))))
    assert attention_read(alone, 0, 0, 14) == []


def test_random_weights_continue_with_sentence_words():
    tokens = ("the", "dog", "bites", "the", "man")
    config = Config(d_model=16, n_heads=2, padding=3, mask="causal")
    words, steps = continuation(config, tokens, Machine(), "random", Sampling(words=30), 6)
    assert words == ("the", "dog", "bites", "man") and len(steps) == 30
    transformer = Transformer(config, words)
    ids = [words.index(token) for token in tokens]
    right = list(generate(transformer, ids, Sampling(words=30), context=6))
    assert [step.token for step in steps] == [step.token for step in right]
    assert {pattern.shape[1] for step in steps for pattern in step.patterns} == {5, 6}
