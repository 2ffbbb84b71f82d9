"""Laws that hold for every part: each runs over the menus, so it covers new parts too."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from core import Block, Config, FeedForward, MultiHeadAttention, Transformer, trace
from core.model.layers import enable_dropout, source_of_weights
from core.model.parts import MENUS
from core.model.parts.init import Draw, generator
from core.model.parts.mask import restrict_to_window
from core.model.parts.softmax import masked_softmax
from core.model.trace import SITES
from core.model.variants import apply
from tests.cases import RECENT

BASE = Config(d_model=16, n_heads=2, d_ff=24, n_layers=2, seed=3)
WORDS = ("<pad>", "the", "court", "held", "that", "tenants")
TOKENS = torch.tensor([[1, 2, 3, 4, 5, 1], [5, 4, 4, 2, 1, 3]])

ENTRIES = [{field: name} for field, menu in MENUS.items() for name in menu]
SWITCHES = [field for field, definition in Config.settings().items() if definition.kind is bool]
OFF = [{field: not getattr(BASE, field)} for field in SWITCHES]  # tied embeddings: on
COMBINED = [
    {"attention": False, "ffn": False},
    {"residual_attention": False, "residual_ffn": False},
    {"bias": False, "norm": "none", "activation": "swiglu"},
    {"placement": "post", "norm": "RMSNorm", "residual_ffn": False},
    {
        "mask": "causal",
        "position": "rope",
        "norm": "RMSNorm",
        "activation": "swiglu",
        "bias": False,
    },
    {"d_head": 5},
    {"d_head": 20, "position": "rope", "tied": True, "bias": False},
    *RECENT,
]


def named(changes: list[dict]):
    return [
        pytest.param(change, id=",".join(f"{k}={v}" for k, v in change.items()))
        for change in changes
    ]


EVERY = pytest.mark.parametrize("change", named(ENTRIES + OFF + COMBINED))


def changes_without(field):
    return [change for change in ENTRIES + OFF + COMBINED if field not in change]


def run(config, tokens=TOKENS, real=None):
    with torch.no_grad():
        return Transformer(config, WORDS)(tokens, real)


def near(got, right, tolerance):
    torch.testing.assert_close(
        got, right, rtol=tolerance, atol=tolerance * max(1.0, right.abs().max().item())
    )


# Shapes of things


def test_sites_have_fixed_order():
    """Pages, stored tables and links name the sites: a new name or order must be deliberate."""
    assert (
        list(SITES)
        == (
            "embed_raw ln_embed embed resid_pre ln1 q k v scores pattern gate z attn_raw ln1_post"
            " attn_out resid_mid ln2 mlp_pre mlp_post mlp_raw ln2_post mlp_out resid_post ln_final"
            " logits"
        ).split()
    )


@EVERY
def test_only_known_sites_are_tapped(change):
    tapped = set()
    with trace(lambda site, layer, x: tapped.add(site)):
        run(BASE.replace(**change))
    assert tapped <= set(SITES)
    assert {"embed", "resid_pre", "resid_post", "logits"} <= tapped


def test_default_block_parameters_match_formulas():
    def count(module):
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(MultiHeadAttention(Config())) == 16_640  # 4 · (64² + 64)
    assert count(FeedForward(Config())) == 33_088  # 2 · 64 · 256 + 256 + 64
    assert count(Block(Config())) == 49_984  # and two norms of 2 · 64


@pytest.mark.parametrize("width", [8, 64, 72, 1024])
def test_d_ff_and_d_head_follow_d_model(width):
    assert Config(d_model=width).d_ff == 4 * width
    assert Config(d_model=width, d_ff=40).d_ff == 40
    assert Config(d_model=width).d_head == width // 4
    assert Config(d_model=width, d_head=40).d_head == 40


# Gradients


@EVERY
@pytest.mark.parametrize("padded", [False, True])
def test_forward_and_backward_reach_all_parameters(change, padded):
    # A short learned table's other rows and the words not in the text get zeros: each table has one
    # gradient as a whole.
    model = Transformer(BASE.replace(**change), WORDS)
    real = torch.ones_like(TOKENS, dtype=torch.bool)
    real[0, 4:] = False
    logits = model(TOKENS, real if padded else None)
    assert logits.shape == (2, 6, len(WORDS))
    assert logits.isfinite().all()
    with torch.no_grad():  # ReZero's begin at 0, and nothing before them is asked to change
        for name, parameter in model.named_parameters():
            if name.endswith(".gain"):
                parameter += 0.3
    logits = model(TOKENS, real if padded else None)
    # A plain sum would not do: the sum over a LayerNorm's outputs is a constant.
    (logits * torch.randn(logits.shape, generator=generator(0, "loss"))).sum().backward()
    for name, parameter in model.named_parameters():
        if (
            parameter.grad is None
        ):  # what the second of two sub-layers side by side replaces reaches nothing
            assert change == {"parallel": True, "residual_ffn": False} and name.split(".")[2] in (
                "attn",
                "ln1",
            ), name
            continue
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("position", MENUS["position"])
def test_training_works_after_a_first_look_without_gradients(position):
    """Cached tables of angles that were made under inference_mode must not break training."""
    config = Config(
        d_model=28, n_heads=2, d_ff=8, position=position
    )  # sizes that no other test has
    tokens = torch.ones(1, 13, dtype=torch.long)
    with torch.inference_mode():
        Transformer(config, WORDS)(tokens)
    model = Transformer(config, WORDS)
    model(tokens).square().sum().backward()
    assert model.embed.grad.isfinite().all()


# Tracing


@EVERY
def test_tracing_changes_nothing_bit_for_bit(change):
    model = Transformer(BASE.replace(**change), WORDS)

    def outputs(*traces):
        model.zero_grad()
        with traces[0] if traces else torch.enable_grad():
            logits = model(TOKENS)
        logits.square().sum().backward()
        return [
            logits,
            *(
                parameter.grad.clone()
                for parameter in model.parameters()
                if parameter.grad is not None
            ),
        ]

    plain = outputs()
    for watched in (
        trace(),
        trace(sites=["pattern"]),
        trace(lambda site, layer, x: None),
        trace(lambda s, n, x: x),
    ):
        assert all(map(torch.equal, outputs(watched), plain))


# The future


@pytest.mark.parametrize("change", named(changes_without("mask")))
def test_causal_model_ignores_the_future(change):
    config = BASE.replace(mask="causal").replace(**change)
    for index in range(1, 6):
        changed = TOKENS.clone()
        changed[:, index:] = changed[:, index:].flip(0)
        assert not torch.equal(changed[:, index:], TOKENS[:, index:])
        before = run(config)
        after = run(config, changed)
        near(after[:, :index], before[:, :index], 1e-6)
        assert not torch.allclose(after[:, index:], before[:, index:])


def test_without_a_mask_it_does():
    """This shows that the test above could fail."""
    changed = TOKENS.clone()
    changed[:, 5] = 2
    assert (run(BASE, changed)[:, :5] - run(BASE)[:, :5]).abs().max() > 1e-3


# Randomness


@EVERY
def test_config_and_seed_determine_numbers(change):
    config = BASE.replace(**change)
    torch.manual_seed(1)
    once = Transformer(config, WORDS)
    torch.manual_seed(2)
    repeated = Transformer(config, WORDS)
    for (name, a), (_, b) in zip(once.state_dict().items(), repeated.state_dict().items()):
        assert torch.equal(a, b), name
    assert torch.equal(once(TOKENS), repeated(TOKENS))
    assert not torch.equal(once(TOKENS), run(config.replace(seed=4)))


def test_threads_give_equal_numbers():
    """Seeding by torch.manual_seed changed 8 of 20 runs when other threads drew numbers."""
    configs = [BASE.replace(seed=seed, position="learned") for seed in range(4)]
    expected = [run(config) for config in configs]
    together = threading.Barrier(4)

    def user(number):
        together.wait(timeout=10)
        results = []
        for _ in range(5):
            torch.manual_seed(number)
            torch.rand(number + 1)
            results.append(run(configs[number]))
        return results

    with ThreadPoolExecutor(4) as threads:
        for right, results in zip(expected, threads.map(user, range(4))):
            assert all(torch.equal(result, right) for result in results)


def test_streams_are_the_same_on_every_machine():
    """Pinned numbers: links must not depend on the day, the process or PYTHONHASHSEED."""
    uniform = [0.7229, 0.4194, 0.4407]
    normal = [0.4205, 0.1239, -1.0727]
    assert torch.rand(3, generator=generator(0, "embed.court")).tolist() == pytest.approx(
        uniform, abs=1e-4
    )
    assert torch.randn(16, generator=generator(0, "embed.court"))[:3].tolist() == pytest.approx(
        normal, abs=1e-4
    )
    streams = {
        tuple(torch.rand(3, generator=generator(s, n)).tolist())
        for s in (0, 1)
        for n in ("a", "b", "1/a")
    }
    assert len(streams) == 6


@EVERY
def test_global_random_states_are_untouched(change):
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    model = Transformer(BASE.replace(dropout=0.5).replace(**change), WORDS)
    with enable_dropout(generator(0, "dropout")):
        model(TOKENS).sum().backward()
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert random.getstate() == before[2]


# The residual stream


@pytest.mark.parametrize(
    "change",
    named(
        [
            c
            for c in changes_without("placement")
            if not any("residual" in key or key == "skips" for key in c)
        ]
    ),
)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_stream_is_sum_of_writes(change, share):
    config = BASE.replace(n_layers=3, placement="pre", dropout=share).replace(**change)
    with torch.no_grad(), enable_dropout(generator(0, "dropout")), trace() as record:
        Transformer(config, WORDS)(TOKENS)
    written = [*record["embed"], *record.get("attn_out", []), *record.get("mlp_out", [])]
    assert len(written) == 1 + 3 * (config.attention + config.ffn)
    near(sum(written), record["resid_post"][-1], 1e-6)


# Taking parts out


FULL = BASE.replace(position="learned", mask="causal")
ALTERNATIVES = OFF + [
    c for c in ENTRIES if "init" not in c and getattr(FULL, next(iter(c))) != next(iter(c.values()))
]


@pytest.mark.parametrize(
    "change", named([*ALTERNATIVES, {"n_layers": 3}, {"n_heads": 4}, {"dropout": 0.5}])
)
def test_changing_a_part_keeps_other_initial_weights(change):
    """Comparisons are paired: two variants differ in the part and not in the random draw."""
    full, changed = (
        Transformer(config, WORDS).state_dict() for config in (FULL, apply(change, FULL))
    )
    common = full.keys() & changed.keys()
    assert {"embed"} | ({"unembed.weight"} if "tied" not in change else set()) <= common
    for name in common:
        rows = min(
            len(full[name]), len(changed[name])
        )  # a gate stands below the values, which stay as they were
        assert torch.equal(full[name][:rows], changed[name][:rows]), name


@pytest.mark.parametrize(
    ("change", "removed"),
    [
        ({"attention": False}, (".attn.", ".ln1.")),
        ({"ffn": False}, (".mlp.", ".ln2.")),
        ({"bias": False}, (".bias",)),
        ({"norm": "none"}, (".ln1.", ".ln2.", "ln_final.")),
        ({"placement": "post"}, ("ln_final.",)),
        ({"position": "none"}, ("position.",)),
        ({"tied": True}, ("unembed.",)),
        ({"residual_attention": False, "residual_ffn": False, "scale": False, "mask": "none"}, ()),
    ],
    ids=str,
)
def test_switching_off_a_part_removes_it_alone(change, removed):
    full, changed = (
        Transformer(config, WORDS).state_dict() for config in (FULL, FULL.replace(**change))
    )
    assert full.keys() - changed.keys() == {
        name for name in full if any(part in name for part in removed)
    }
    assert not changed.keys() - full.keys()


@pytest.mark.parametrize("init", MENUS["init"])
def test_fused_qkv_holds_three_matrices(init):
    config = BASE.replace(init=init)
    fused = MultiHeadAttention(config).qkv
    width = config.d_model
    draw = Draw(MENUS["init"][init], config.seed).below("blocks.0.attn")
    for index, name in enumerate("QKV"):
        rows = slice(index * width, (index + 1) * width)
        assert torch.equal(fused.weight[rows], draw.weight(f"W_{name}", width, width))
        assert torch.equal(fused.bias[rows], draw.bias(f"b_{name}", width, width))


def test_block_alone_equals_block_in_model():
    model = Transformer(BASE, WORDS)
    alone = {"": Block(BASE), "attn.": MultiHeadAttention(BASE), "mlp.": FeedForward(BASE)}
    for path, module in alone.items():
        for name, tensor in module.state_dict().items():
            assert torch.equal(tensor, model.state_dict()[f"blocks.0.{path}{name}"])
    assert not torch.equal(Block(BASE, 1).attn.qkv.weight, Block(BASE, 0).attn.qkv.weight)


@pytest.mark.parametrize("init", MENUS["init"])
@pytest.mark.parametrize(
    "longer", [(*WORDS, "lease"), ("lease", *WORDS), WORDS[::-1]], ids=["end", "start", "turned"]
)
def test_other_words_leave_a_words_vector_alone(longer, init):
    config = BASE.replace(init=init)
    before, after = (
        dict(zip(words, Transformer(config, words).embed)) for words in (WORDS, longer)
    )
    for word in WORDS:
        assert torch.equal(before[word], after[word]), word
    assert len({tuple(vector.tolist()) for vector in after.values()}) == len(longer)


def test_word_vector_depends_on_whole_word():
    rows = source_of_weights(BASE).below("embed").rows(("can", "can#2", "Can", "can"), 16)
    assert torch.equal(rows[0], rows[3])
    assert not torch.equal(rows[0], rows[1]) and not torch.equal(rows[0], rows[2])


# Attention weights


@EVERY
@pytest.mark.parametrize("padding", ["none", "behind", "before", "everything"])
def test_weights_sum_to_1_or_are_all_zero(change, padding):
    """Padding before the text leaves a causal model's first tokens nothing to attend to."""
    config = BASE.replace(**change)
    if not config.attention:
        change = {}
        config = BASE
    real = torch.ones_like(TOKENS, dtype=torch.bool)
    if padding != "none":
        real[
            0,
            {"behind": slice(4, None), "before": slice(None, 2), "everything": slice(None)}[
                padding
            ],
        ] = False
    with torch.no_grad(), trace(sites=["pattern", "z", "logits"]) as record:
        model = Transformer(config, WORDS)
        model(TOKENS, real)
    anywhere = model.attention_mask(TOKENS, real).expand(2, config.n_heads, 6, 6)
    for layer, (pattern, z) in enumerate(zip(record["pattern"], record["z"])):
        may_look = restrict_to_window(anywhere, config.window_in(layer))
        assert (pattern >= 0).all()  # and not NaN
        if config.part("softmax").sums_to_one:
            torch.testing.assert_close(pattern.sum(-1), may_look.any(-1).float())
        else:  # the rest is given to nobody
            assert (pattern.sum(-1) < 1).all() and (pattern.sum(-1) > 0)[may_look.any(-1)].all()
        assert (pattern[~may_look] == 0).all()
        assert (z[~may_look.any(-1)] == 0).all()
    assert record["logits"][0].isfinite().all()


@pytest.mark.parametrize("size", [1.0, 1e4, 1e30])
def test_empty_mask_rows_give_zeros_and_finite_gradients(size):
    stream = generator(0, "scores")
    scores = (size * torch.randn(2, 3, 4, 4, generator=stream)).requires_grad_()
    allowed = torch.rand(2, 1, 4, 4, generator=stream) < 0.5
    allowed[0, 0, 1] = allowed[1, 0, 0] = allowed[1, 0, 3] = False
    allowed[0, 0, 2] = True
    pattern = masked_softmax(scores, allowed)
    empty = ~allowed.any(-1).expand(2, 3, 4)
    assert empty.any() and not empty.all()
    assert (pattern[empty] == 0).all()
    torch.testing.assert_close(pattern[~empty].sum(-1), torch.ones(len(pattern[~empty])))
    with torch.autograd.set_detect_anomaly(
        True
    ):  # refuses a NaN on the way back, even one that is dropped further on
        (pattern * torch.randn(pattern.shape, generator=stream)).sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[empty] == 0).all()
    assert (scores.grad[~allowed.expand_as(scores)] == 0).all()


def test_mask_allowing_all_equals_no_mask():
    scores = torch.randn(2, 3, 4, 4, generator=generator(0, "scores"))
    assert torch.equal(
        masked_softmax(scores, torch.ones(4, 4, dtype=torch.bool)), masked_softmax(scores)
    )


@pytest.mark.parametrize("mask", MENUS["mask"])
def test_queries_that_see_nothing_leave_gradients_finite(mask):
    model = Transformer(BASE.replace(mask=mask), WORDS)
    real = torch.tensor([[False] * 6, [False, False, True, True, True, False]])
    model(TOKENS, real).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


# Padding, order, equality


@EVERY
@pytest.mark.parametrize("mask", MENUS["mask"])
def test_masked_padding_leaves_the_real_tokens_as_they_were(change, mask):
    config = BASE.replace(**{"mask": mask} | change)
    padded = torch.cat([TOKENS, torch.zeros(2, 3, dtype=torch.long)], dim=1)
    # normal_1 saturates attention, which magnifies rounding; see test_reference.py.
    near(
        run(config, padded, padded != 0)[:, :6],
        run(config),
        1e-3 if config.init == "normal_1" else 1e-5,
    )


def test_padding_that_is_not_masked_does_change_them():
    """This shows that the test above could fail."""
    padded = torch.cat([TOKENS, torch.zeros(2, 3, dtype=torch.long)], dim=1)
    assert (run(BASE, padded)[:, :6] - run(BASE)).abs().max() > 1e-3


@pytest.mark.parametrize(
    "change",
    named([c for c in ENTRIES + OFF + COMBINED if not {"position", "mask", "window"} & c.keys()]),
)
def test_without_positions_and_mask_order_does_not_matter(change):
    config = BASE.replace(position="none", mask="none").replace(**change)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    near(
        run(config, TOKENS[:, order]),
        run(config)[:, order],
        1e-3 if config.init == "normal_1" else 1e-5,
    )


@pytest.mark.parametrize(
    "change", named([c for c in ENTRIES if c.get("position", c.get("mask", "none")) != "none"])
)
def test_with_positions_or_a_mask_it_does(change):
    """The order is a shuffle: ALiBi without a mask has distances only and misses a reversal."""
    config = BASE.replace(**change)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert (run(config, TOKENS[:, order]) - run(config)[:, order]).abs().max() > 1e-3


def test_equal_configs_hash_equal_and_build_equal_models():
    plain = Config(d_model=32, n_heads=2)
    typed = Config(d_model=np.int64(32), n_heads=2, d_ff=128, dropout=0, norm="LayerNorm")
    assert plain == typed and hash(plain) == hash(typed)
    assert {plain: 1}[typed] == 1
    assert all(
        type(getattr(typed, field)) is type(getattr(plain, field)) for field in Config.settings()
    )
    a, b = (Transformer(config, WORDS).state_dict() for config in (plain, typed))
    assert a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("field", Config.settings())
def test_configs_that_differ_in_one_setting_are_not_equal(field):
    value = getattr(Config(), field)
    if field in MENUS:
        other = next(name for name in MENUS[field] if name != value)
    elif isinstance(value, bool):
        other = not value
    else:
        definition = Config.settings()[field]
        other = definition.low if value != definition.low else definition.high
    assert Config().replace(**{field: other}) != Config()
