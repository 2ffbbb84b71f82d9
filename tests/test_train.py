"""Training equals the plain loop, in chunks or not, alone or stacked; divergence messages."""

import dataclasses
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from core import Transformer, trace
from core.model.layers import enable_dropout
from core.model.parts import MENUS
from core.model.parts.init import generator
from core.model.variants import apply
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.tasks import IGNORE, task
from core.train import State, Training, chunk, held_out, model, optimiser, stack, start, train
from core.train.run import Run, clip_gradients, norms_by_seed, total_norm

SMALL = task["reverse"].config(d_model=16, n_heads=2, d_ff=24, n_layers=2)
SHORT = Training(batch=4, steps=9, learning_rate=0.01, warmup=3, every=2)
CPU = Machine(device="cpu")


def run(config=SMALL, training=SHORT, seed=5):
    """Return the rows and the last state of a training."""
    rows = []
    stream = train(config, training, seed, CPU)
    while True:
        try:
            rows.append(next(stream))
        except StopIteration as end:
            return rows, end.value


def are_bitwise_equal(a, b):
    """Return whether rows are bitwise equal; NaN equals NaN."""
    return repr(a) == repr(b)


def same_state(a: State, b: State):
    fields = [
        field.name for field in dataclasses.fields(State) if field.compare
    ]  # all but the clock
    return all(are_equal(getattr(a, name), getattr(b, name)) for name in fields)


def are_equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(are_equal(a[key], b[key]) for key in a)
    return a == b


# The loop


def reference(config, training, seed):
    """Train with a plain loop and PyTorch's plain optimisers. Return a row for every step."""
    config = config.replace(seed=seed)
    learnt_task = task[training.task]
    network = Transformer(config, learnt_task.vocabulary)
    parameters = list(network.parameters())
    if training.optimiser == "adamw":
        optimiser = torch.optim.AdamW(
            parameters, weight_decay=training.weight_decay, foreach=False, fused=False
        )
    elif training.optimiser == "sgd":
        optimiser = torch.optim.SGD(
            parameters, momentum=0.9, weight_decay=training.weight_decay, foreach=False
        )
    else:
        optimiser = MuonByHand(network, training.weight_decay)
    data = generator(seed, f"{training.task}.training")
    dropout = generator(seed, "dropout")
    test_tokens, test_targets = learnt_task(
        generator(seed, f"{training.task}.held_out"), learnt_task.test, held_out=True
    )
    for step in range(1, training.steps + 1):
        rate = training.learning_rate * min(1, step / training.warmup)
        if step > training.warmup and training.decay == "linear":
            rate *= 1 - (step - 1 - training.warmup) / (training.steps - training.warmup)
        optimiser.param_groups[0]["lr"] = rate
        tokens, targets = learnt_task(data, training.batch)
        with enable_dropout(dropout):
            logits = network(tokens)
        chosen = logits.log_softmax(-1)[targets != IGNORE]
        loss = -chosen[torch.arange(len(chosen)), targets[targets != IGNORE]].mean()
        optimiser.zero_grad()
        loss.backward()
        norm = torch.cat([p.grad.flatten() for p in parameters]).norm()
        if training.clip and norm > training.clip:
            for p in parameters:
                p.grad *= training.clip / norm
        before = torch.cat([p.detach().flatten() for p in parameters])
        optimiser.step()
        change = torch.cat([p.detach().flatten() for p in parameters]) - before
        with torch.no_grad():
            right = network(test_tokens).argmax(-1) == test_targets
        accuracy = (right & (test_targets != IGNORE)).sum() / (test_targets != IGNORE).sum()
        yield (
            step,
            loss.item(),
            accuracy.item(),
            norm.item(),
            (change.norm() / before.norm()).item(),
            rate,
        )


class MuonByHand:
    """Muon in float64 by singular value decomposition, a matrix at a time (Jordan, 2024).

    PyTorch's AdamW trains all other parameters.
    """

    def __init__(self, network, weight_decay):
        self.matrices = {name: p for name, p in network.blocks.named_parameters() if p.ndim == 2}
        remaining = [
            p
            for p in network.parameters()
            if all(p is not matrix for matrix in self.matrices.values())
        ]
        self.adam = torch.optim.AdamW(
            remaining, weight_decay=weight_decay, foreach=False, fused=False
        )
        self.momentum = {
            name: torch.zeros_like(p, dtype=torch.float64) for name, p in self.matrices.items()
        }
        self.param_groups = self.adam.param_groups
        self.weight_decay = weight_decay

    def zero_grad(self):
        self.adam.zero_grad()
        for p in self.matrices.values():
            p.grad = None

    def step(self):
        self.adam.step()
        rate = self.param_groups[0]["lr"]
        for name, p in self.matrices.items():
            gradient = p.grad.double()
            self.momentum[name] = 0.95 * self.momentum[name] + 0.05 * gradient
            change = 0.05 * gradient + 0.95 * self.momentum[name]
            pieces = change.chunk(3) if name.endswith("qkv.weight") else [change]
            change = torch.cat(
                [0.2 * math.sqrt(max(piece.shape)) * self.orthogonal(piece) for piece in pieces]
            )
            p.data = (p.double() * (1 - rate * self.weight_decay) - rate * change).float().data

    @staticmethod
    def orthogonal(x):
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        s = s / s.norm()
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        return u @ torch.diag(s) @ vt


@pytest.mark.parametrize(
    "change", [{}, {"clip": 0.5}, {"decay": "linear"}, {"weight_decay": 1.0}], ids=str
)
@pytest.mark.parametrize("method", optimiser)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_training_matches_plain_loop(change, method, share):
    config = SMALL.replace(dropout=share)
    training = dataclasses.replace(SHORT, optimiser=method, every=1, **change)
    rows = run(config, training)[0]
    right = list(reference(config, training, 5))
    assert len(rows) == len(right) == 9
    for row, expected in zip(rows, right):
        assert row[:6] == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert row.note == ""


def test_rows_come_at_first_regular_and_last_steps():
    assert [row.step for row in run()[0]] == [1, 2, 4, 6, 8, 9]
    assert [row.step for row in run(training=dataclasses.replace(SHORT, every=100))[0]] == [1, 9]
    every = run(training=dataclasses.replace(SHORT, every=1))[0]
    assert are_bitwise_equal(
        [row for row in every if row.step in (1, 2, 4, 6, 8, 9)], run()[0]
    )  # watching changes nothing
    assert Training(steps=1000).every == 20 and Training(steps=7).every == 1


@pytest.mark.parametrize("name", task)
def test_tasks_are_learnt_a_little(name):
    config = task[name].config(d_model=16, n_heads=2)
    rows, _ = run(config, Training(task=name, steps=40, batch=16, learning_rate=0.01, warmup=2))
    assert all(math.isfinite(number) for row in rows for number in row[:6])
    assert min(row.loss for row in rows[-5:]) < rows[0].loss
    assert all(0 <= row.accuracy <= 1 for row in rows)


@pytest.mark.parametrize(
    "change",
    [
        {field: name}
        for field in ("norm", "placement", "activation", "position", "mask", "init")
        for name in MENUS[field]
    ],
    ids=lambda change: str(*change.values()),
)
def test_parts_train_one_step(change):
    (row, *_), state = run(SMALL.replace(**change), dataclasses.replace(SHORT, steps=1))
    assert all(math.isfinite(number) for number in row[:6])
    assert row.update_size > 0
    assert all(tensor.isfinite().all() for tensor in state.model.values())


# The learning rate


def test_learning_rate_warms_up_stays_and_decays():
    plain = Training(steps=10, learning_rate=1.0, warmup=4, decay="none")
    assert [plain.rate(step) for step in range(1, 11)] == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1]
    falling = dataclasses.replace(plain, decay="linear")
    assert [falling.rate(step) for step in range(4, 11)] == pytest.approx(
        [1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    )
    curved = dataclasses.replace(plain, decay="cosine")
    assert (
        curved.rate(5) == 1 and curved.rate(8) == pytest.approx(0.5) and 0 < curved.rate(10) < 0.1
    )
    assert dataclasses.replace(plain, warmup=0).rate(1) == 1
    assert dataclasses.replace(plain, warmup=40).rate(10) == 0.25  # a warm-up that is never over


# Settings


def test_budget_follows_task_until_changed():
    assert Training(task="copy").steps == task["copy"].training["steps"]
    assert Training(task="facts").decay == "linear" and Training(task="copy").decay == "none"
    assert Training(task="facts", decay="cosine").decay == "cosine"
    assert Training(task="facts").write() == {"task": "facts"}
    assert Training(task="facts", steps=7).write() == {"task": "facts", "steps": "7"}
    assert Training.read({"task": "facts", "steps": "7"}) == (Training(task="facts", steps=7), [])
    assert hash(Training(task="facts")) == hash(
        Training(task="facts", steps=task["facts"].training["steps"])
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "chess"),
        ("steps", 0),
        ("steps", 2.5),
        ("batch", -1),
        ("learning_rate", 0.0),
        ("clip", -0.1),
        ("learning_rate", math.nan),
        ("warmup", -1),
        ("decay", "sudden"),
        ("optimiser", "lion"),
        ("every", 0),
        ("weight_decay", math.inf),
    ],
)
def test_bad_training_value_is_refused_in_words(field, value):
    with pytest.raises(ConfigError, match=f"^{field} is .*it must be") as caught:
        Training(**{field: value})
    assert caught.value.field == field


def test_float16_is_refused_and_bfloat16_trains():
    class Gpu(Machine):
        def __post_init__(self):
            """Accept float16 as on a machine that supports it."""

    with pytest.raises(ConfigError, match="dtype is float16"):
        start(SMALL, SHORT, 0, Gpu(dtype="float16"))
    rows = list(train(SMALL, SHORT, 5, Machine(device="cpu", dtype="bfloat16")))
    assert rows[0].loss == pytest.approx(run()[0][0].loss, abs=0.05)
    assert not are_bitwise_equal(rows, run()[0])


# Cut into chunks


@pytest.mark.parametrize("method", optimiser)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_chunking_keeps_rows_and_weights(method, share):
    config = SMALL.replace(dropout=share)
    training = dataclasses.replace(SHORT, optimiser=method)
    rows, last = run(config, training)
    state = start(config, training, 5, CPU)
    pieces = []
    cuts = 0
    while not state.done:
        state, extra = chunk(pickle.loads(pickle.dumps(state)), seconds=0)  # one step each
        pieces += extra
        cuts += 1
    assert cuts == 9
    assert are_bitwise_equal(pieces, rows) and same_state(state, last)
    at_once, all_rows = chunk(start(config, training, 5, CPU), seconds=1000)
    assert are_bitwise_equal(all_rows, rows) and same_state(at_once, last)
    assert chunk(at_once, 1000)[1] == []


def test_chunk_keeps_its_starting_state():
    state, _ = chunk(chunk(start(SMALL, SHORT, 5, CPU), 0)[0], 0)
    copied = pickle.loads(pickle.dumps(state))
    once = chunk(state, 0)
    repeated = chunk(state, 0)
    assert same_state(state, copied)
    assert are_bitwise_equal(once[1], repeated[1]) and same_state(once[0], repeated[0])
    assert once[0].step == state.step + 1


def test_state_rebuilds_trained_model():
    assert are_equal(
        dict(model(start(SMALL, SHORT, 5, CPU)).state_dict()),
        dict(Transformer(SMALL.replace(seed=5), task["reverse"].vocabulary).state_dict()),
    )
    rows, last = run()
    trained = model(last)
    tokens, targets = held_out("reverse", 5)
    with torch.no_grad(), trace() as record:
        right = task["reverse"].right(trained(tokens), targets)
    assert right.float().mean().item() == rows[-1].accuracy
    assert len(record["pattern"]) == 2


# Beside others


def test_curves_are_independent_of_other_trainings():
    expected = [run(seed=seed)[0] for seed in (1, 2)]
    together = threading.Barrier(2)

    def user(index):
        together.wait(timeout=10)
        torch.manual_seed(index)
        return [run(seed=index + 1)[0] for _ in range(3)]

    with ThreadPoolExecutor(2) as threads:
        for right, results in zip(expected, threads.map(user, range(2))):
            assert all(are_bitwise_equal(result, right) for result in results)


def test_training_leaves_global_random_state():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    rows = run(SMALL.replace(dropout=0.2))[0]
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(4)
    assert are_bitwise_equal(run(SMALL.replace(dropout=0.2))[0], rows)


# Paired


PARTS = [
    {"attention": False},
    {"ffn": False},
    {"residual_attention": False, "residual_ffn": False},
    {"norm": "none"},
    {"position": "none"},
    {"activation": "identity"},
    {"n_heads": 1},
    {"n_layers": 1},
    {"dropout": 0.5},
]


@pytest.mark.parametrize("change", PARTS, ids=str)
def test_removed_part_keeps_data_and_other_weights(change):
    def batches_of(config):
        batches = []
        forward = Transformer.forward

        def watched(self, tokens, *remaining):
            batches.append(tokens)
            return forward(self, tokens, *remaining)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transformer, "forward", watched)
            return batches, run(config)[1]

    full, last = batches_of(SMALL)
    without, other = batches_of(apply(change, SMALL))
    assert len(full) == len(without) and all(map(torch.equal, full, without))
    assert torch.equal(last.data, other.data)
    a, b = (
        model(start(config, SHORT, 5, CPU)).state_dict() for config in (SMALL, apply(change, SMALL))
    )
    common = [name for name in a.keys() & b.keys() if a[name].shape == b[name].shape]
    assert {"embed", "unembed.weight"} <= set(common)
    assert all(torch.equal(a[name], b[name]) for name in common)


def test_config_seed_does_not_matter_but_the_seed_does():
    assert are_bitwise_equal(run(SMALL.replace(seed=77))[0], run()[0])
    assert not are_bitwise_equal(run(seed=6)[0], run()[0])


# Divergence and clipping


# Post-norm without norm at a high rate: gradients beyond 1.8e19, whose squares float32 cannot hold.
LARGE_GRADIENTS = task["reverse"].config(d_model=32, n_layers=6, norm="none")
HIGH_RATE = Training(
    task="reverse", steps=120, learning_rate=0.045, warmup=20, decay="none", clip=0.0, every=5
)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e18, 1e25, 1e37])
def test_total_norm_matches_float64(scale):
    tensors = [
        scale * torch.randn(20, 30, generator=torch.Generator().manual_seed(n)) for n in range(3)
    ]
    exact = torch.cat([x.double().flatten() for x in tensors]).norm().item()
    assert total_norm(tensors).item() == pytest.approx(exact, rel=1e-6)
    stacked = [torch.stack([x, 1e-30 * x]) for x in tensors]
    assert norms_by_seed(stacked)[0].item() == pytest.approx(exact, rel=1e-6)
    if scale <= 1:  # to the last bit what PyTorch gives: stored runs depend on it
        assert total_norm(tensors).equal(torch.nn.utils.get_total_norm(tensors))


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_total_norm_of_non_finite_is_non_finite(number):
    tensors = [torch.ones(3), torch.tensor([1.0, number])]
    assert (
        not total_norm(tensors).isfinite()
        and not norms_by_seed([x[None] for x in tensors]).isfinite().any()
    )


@pytest.mark.parametrize("scale", [1.0, 1e25])
def test_clipped_gradients_have_the_norm_that_was_asked_for(scale):
    parameters = [torch.nn.Parameter(torch.randn(20, 30)) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = scale * torch.randn(20, 30)
    by_torch = [parameter.grad.clone().requires_grad_() for parameter in parameters]
    for copy in by_torch:
        copy.grad = copy.detach().clone()
    norm = total_norm([parameter.grad for parameter in parameters])
    clip_gradients(parameters, 0.5, norm)
    assert torch.cat([p.grad.flatten() for p in parameters]).norm().item() == pytest.approx(
        0.5, rel=1e-5
    )
    if scale == 1:
        torch.nn.utils.clip_grad_norm_(by_torch, 0.5)
        assert all(ours.grad.equal(theirs.grad) for ours, theirs in zip(parameters, by_torch))


def test_stacked_seeds_survive_large_finite_gradients():
    states = [start(LARGE_GRADIENTS, HIGH_RATE, seed, CPU) for seed in (1, 2)]
    results = stack.chunk(states, 1e9)
    assert max(row.gradient_norm for _, rows in results for row in rows) > 1.9e19
    for state, rows in results:
        assert state.diverged == (not math.isfinite(rows[-1].gradient_norm))


@pytest.mark.parametrize("side_by_side", [False, True])
def test_infinite_loss_is_divergence(monkeypatch, side_by_side):
    owner = stack._Stack if side_by_side else Run

    def far_apart(self, tokens):
        weights = self.weights if side_by_side else self.parameters
        words = len(task["reverse"].vocabulary)
        scores = torch.zeros(*tokens.shape, words)
        # The difference of these is beyond float32, their softmax is not.
        scores[..., 0] = 3e38
        scores[..., 1:] = -3e38
        return scores + 0.0 * sum(weight.sum() for weight in weights)

    monkeypatch.setattr(owner, "logits", far_apart)
    if side_by_side:
        (state, rows), _ = stack.chunk([start(SMALL, SHORT, seed, CPU) for seed in (5, 6)], 1e9)
    else:
        rows, state = run()
    assert state.diverged and state.step == 1 and rows[-1].note == "diverged at step 1"
    assert math.isinf(rows[-1].loss) and math.isfinite(rows[-1].gradient_norm)


def test_infinite_weight_is_divergence():
    training = Training(
        task="reverse", batch=4, steps=9, learning_rate=1000.0, weight_decay=10.0, warmup=0, every=1
    )
    begun = start(SMALL, training, 5, CPU)
    weights = {name: x.clone() for name, x in model(begun).state_dict().items()}
    weights["position.weight"][-1] = (
        1e36  # of a position that no sequence has; its decay takes it beyond float32
    )
    state, rows = chunk(dataclasses.replace(begun, model=weights), 1000)
    assert (
        state.diverged
        and rows[-1].note == "diverged at step 1"
        and math.isnan(rows[-1].update_size)
    )
    assert math.isfinite(rows[-1].loss) and math.isfinite(rows[-1].gradient_norm)


def test_divergence_is_the_last_row_and_says_so():
    training = Training(optimiser="sgd", learning_rate=1000.0, warmup=0, steps=50, batch=4)
    rows, state = run(SMALL.replace(norm="none"), training)
    *before, last = rows
    assert last.note == f"diverged at step {last.step}" and last.step < 50
    assert math.isnan(last.accuracy) and math.isnan(last.update_size)
    assert not any(row.note for row in before)
    assert state.done and state.diverged and state.step == last.step
    assert are_bitwise_equal(
        chunk(start(SMALL.replace(norm="none"), training, 5, CPU), 1000)[1], rows
    )
    assert chunk(state, 1000)[1] == []
