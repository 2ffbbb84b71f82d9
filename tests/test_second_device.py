"""Everything that runs on a GPU, on a second device: CPU's numbers, and results on the CPU.

The device is a real GPU where there is one, and else tests/second_device.py, on which mixing
devices fails as on a GPU.
"""

import contextlib
import dataclasses
import io
import pickle
import time
from itertools import chain

import numpy as np
import pandas as pd
import pytest
import torch

from core.checkpoints import Opened, files, native
from core.checkpoints.tokens import Words
from core.experiments.block import attention, neurons, positions, stages
from core.experiments.block.compare import compare, per_token, token_similarity
from core.experiments.depth.axes import AXES, Axes
from core.experiments.depth.depth import Depth, blocks, table, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid
from core.experiments.forward import build_plain_run, continuation, forward
from core.experiments.trained import contributions, knockout, prompt, tables
from core.experiments.training import trained
from core.experiments.training.plan import Arm, Plan, Trial
from core.export.script import Script
from core.export.scripts import (
    make_block_script,
    make_compare_script,
    make_depth_script,
    make_grid_script,
    make_training_script,
)
from core.measure.tensor_meters import measure
from core.model.config import Config
from core.model.generate import Sampling, generate
from core.model.knockout import Cut, list_cuts, mode
from core.model.parts import MENUS
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings import device as devices
from core.settings.device import Machine, median_ms, time_call
from core.settings.process import device_name
from core.tasks import task
from core.train import Training, optimiser, stack, start
from core.train import chunk as train_chunk
from core.workers import worker
from core.workers.job import Job
from core.workers.pool import ProcessPool
from scripts.legal_model import vocabulary
from tests.cases import RECENT
from tests.own_process import ALONE

pytestmark = [pytest.mark.own_process, pytest.mark.slow, pytest.mark.gpu]
NAME = "cuda" if torch.cuda.is_available() else "second"
NEAR = 1e-3 if NAME == "cuda" else 1e-5
if ALONE and NAME == "second":
    import tests.second_device  # noqa: F401

TOKENS = ("the", "court", "held", "the", "tenants", "liable")
SMALL = Config(d_model=16, n_heads=2, d_ff=24, n_layers=2, padding=2)
MAGNIFY = (
    {"normal_1"} if NAME == "cuda" else set()
)  # every rounding, and a GPU rounds in its own way
ENTRIES = [{field: name} for field, menu in MENUS.items() for name in menu if name not in MAGNIFY]
MORE = [
    {"tied": True},
    {"attention": False},
    {"ffn": False},
    {"residual_attention": False, "residual_ffn": False},
    {"scale": False, "bias": False},
    {"padding": 0, "mask": "causal"},
    {"n_heads": 4, "d_head": 6, "position": "alibi"},
    {
        "placement": "post",
        "norm": "RMSNorm",
        "position": "rope",
        "activation": "swiglu",
        "mask": "causal",
        "n_layers": 3,
    },
    *RECENT,
]
EVERY = pytest.mark.parametrize("changes", [*ENTRIES, *MORE], ids=str)


def both(dtype: str = "float32") -> tuple[Machine, Machine]:
    """Return the machines of the CPU and the device."""
    return Machine("cpu", dtype), Machine(NAME, dtype)


def roughly(dtype: str) -> float:
    """Return the tolerance of a pass: a GPU rounds half precision differently."""
    return 0.02 if NAME == "cuda" and dtype != "float32" else NEAR


# What is handed on


def assert_same(first, second, near: float = NEAR, index: str = "result"):
    """Compare two results relative to each tensor's largest value; no tensor is on a device."""
    assert type(first) is type(second), index
    if isinstance(first, torch.Tensor):
        assert first.device.type == second.device.type == "cpu", f"{index} is on {second.device}"
        assert first.dtype == second.dtype, index
        assert_same(first.detach().double().numpy(), second.detach().double().numpy(), near, index)
    elif isinstance(first, np.ndarray) and first.dtype.kind in "fiub":
        size = (
            np.abs(first[np.isfinite(first)], dtype=float).max(initial=0)
            if first.dtype.kind == "f"
            else 0
        )
        np.testing.assert_allclose(second, first, rtol=0, atol=near * max(1, size), err_msg=index)
    elif isinstance(first, pd.DataFrame):
        assert list(first) == list(second) and len(first) == len(second), index
        for name in first:
            assert_same(first[name].to_numpy(), second[name].to_numpy(), near, f"{index}.{name}")
    elif dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            if field.name not in ("machine", "timing", "seconds"):
                assert_same(
                    getattr(first, field.name),
                    getattr(second, field.name),
                    near,
                    f"{index}.{field.name}",
                )
    elif isinstance(first, dict):
        assert list(first) == list(second), index
        for name in first:
            assert_same(first[name], second[name], near, f"{index}[{name!r}]")
    elif isinstance(first, list | tuple | np.ndarray):
        assert len(first) == len(second), index
        for n, (item, other) in enumerate(zip(first, second)):
            assert_same(item, other, near, f"{index}[{n}]")
    elif isinstance(first, float):
        assert second == pytest.approx(first, rel=near, abs=near, nan_ok=True), index
    else:
        assert first == second, index


# The device


@pytest.mark.skipif(NAME != "second", reason="a real GPU needs no proof that it is one")
def test_second_device_refuses_what_gpus_refuse():
    x = torch.randn(3, 4, device=NAME)
    on_cpu = torch.ones(4)

    def set_rows(values):
        x[torch.tensor([0, 2])] = values

    for call in (
        lambda: x + on_cpu,
        lambda: on_cpu * x,
        lambda: torch.cat([x, on_cpu[None]]),
        lambda: torch.stack([x.sum(), on_cpu.sum()]),
        lambda: torch.where(x > 0, x, on_cpu),
        lambda: x @ on_cpu,
        lambda: on_cpu[torch.tensor([0], device=NAME)],
        lambda: set_rows(on_cpu),
        lambda: x.masked_fill(on_cpu > 0, 0.0),
        lambda: on_cpu.mul_(x[0]),
        lambda: torch.rand(3, device=NAME, generator=torch.Generator()),
        lambda: torch.nn.functional.linear(x, torch.ones(2, 4)),
        lambda: torch.einsum("ij,j->i", x, on_cpu),
    ):
        with pytest.raises(RuntimeError, match="second"):
            call()
    for call in (
        x.double,
        lambda: torch.ones(2, dtype=torch.float64).to(NAME),
        lambda: torch.ones(2, dtype=torch.float64, device=NAME),
    ):
        with pytest.raises(TypeError, match="float64"):  # as on Apple's GPUs
            call()
    for call in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="numpy"):
            call()


@pytest.mark.skipif(NAME != "second", reason="a real GPU needs no proof that it is one")
def test_second_device_computes_what_gpus_compute():
    on_cpu = torch.arange(12.0).view(3, 4)
    x = on_cpu.to(NAME)
    assert (
        x.device.type == NAME and not x.is_cpu and x.cpu().is_cpu and torch.equal(x.cpu(), on_cpu)
    )
    assert (
        x.cpu().data_ptr() != x.numbers.data_ptr() and x.to(NAME) is x
    )  # a copy; nothing to be done
    assert x[torch.tensor([2, 0])].tolist() == [
        on_cpu[2].tolist(),
        on_cpu[0].tolist(),
    ]  # indices may be on the CPU
    assert (x * torch.tensor(2.0) + 1).tolist() == (
        on_cpu * 2 + 1
    ).tolist()  # and so may a single number
    x.view(4, 3)[0, :] = torch.ones(
        3
    )  # a view is the same memory, and what is copied may come from the CPU
    assert x[0].tolist() == [1, 1, 1, 3] and f"{x[0, 0]:.1f}" == "1.0" and float(x.sum()) == 66
    layer = torch.nn.Linear(4, 2)
    expected = torch.autograd.grad(layer(on_cpu).square().sum(), layer.weight)[0]
    moved = torch.nn.Linear(4, 2).to(NAME)
    moved.load_state_dict(layer.state_dict())
    assert isinstance(moved.weight, torch.nn.Parameter) and moved.weight.device.type == NAME
    moved(on_cpu.to(NAME)).square().sum().backward()
    torch.testing.assert_close(moved.weight.grad.cpu(), expected)
    with torch.autocast(NAME, torch.bfloat16):
        product = moved(x)
        assert (
            product.dtype == (x @ x.mT).dtype == torch.bfloat16
            and product.softmax(-1).dtype == torch.float32
        )
    assert moved(x).dtype == torch.float32


def test_machine_describes_itself():
    machine = Machine(NAME)
    assert machine.torch_device == NAME and machine.name == device_name(machine)
    assert machine.name == (torch.cuda.get_device_name() if NAME == "cuda" else "Second device")
    assert (
        machine.choices("device") == ["auto", *devices.available_devices()]
        and NAME in devices.available_devices()
    )
    assert machine.choices("dtype") == ["float32", "bfloat16", "float16"]
    assert worker.describe().devices[NAME] == (NAME, machine.name)


def test_time_is_taken_by_the_devices_events(monkeypatch):
    event = torch.get_device_module(NAME).Event
    records = []
    record = event.record
    monkeypatch.setattr(
        event, "record", lambda recorded: (records.append(recorded), record(recorded))
    )
    result, seconds = time_call(
        lambda: (torch.ones(64, 64, device=NAME) @ torch.ones(64, 64, device=NAME)).sum().item(),
        NAME,
    )
    assert result == 64**3 and seconds > 0 and len(records) == 2
    assert median_ms(build_plain_run(SMALL, TOKENS, Machine(NAME)), NAME, 3) > 0
    assert forward(SMALL, TOKENS, Machine(NAME)).timing.milliseconds > 0


# One block, depth, grid


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pass_matches(changes, dtype):
    assert_same(
        *(forward(SMALL.replace(**changes), TOKENS, machine) for machine in both(dtype)),
        roughly(dtype),
    )


@pytest.mark.parametrize("changes", MORE, ids=str)
def test_pass_in_float16_matches(changes):
    """A CPU can compute in float16, although core does not offer it."""
    machines = Machine.anywhere("cpu", "float16"), Machine(NAME, "float16")
    assert_same(
        *(forward(SMALL.replace(**changes), TOKENS, machine) for machine in machines),
        roughly("float16"),
    )


@pytest.mark.parametrize("mask", ["causal", "none"])
def test_generation_in_sliding_context_matches(mask):
    config = SMALL.replace(mask=mask, n_layers=2)
    sampling = Sampling(words=12, top_p=0.95)
    texts = [
        continuation(config, tuple(TOKENS), machine, "random", sampling, 6) for machine in both()
    ]
    on_first, on_second = ([step.token for step in steps] for _, steps in texts)
    assert on_first == on_second


def test_pass_with_dropout_matches():
    config = SMALL.replace(dropout=0.3, ffn_dropout=True)
    on_first, on_second = (forward(config, TOKENS, machine, dropout=True) for machine in both())
    assert_same(on_first, on_second)
    assert not torch.equal(on_second.output, forward(SMALL, TOKENS, Machine(NAME)).output)


def test_measures_of_a_trace_on_the_device():
    """README.md's "From Python" example, large enough that the CPU totals tensors as they pass."""
    model = Transformer(SMALL.replace(d_ff=512), TOKENS[:3])
    ids = torch.arange(3).repeat(2, 60)
    with torch.inference_mode(), trace() as on_first:
        model(ids)
    model.to(NAME)
    with torch.inference_mode(), trace() as on_second:
        model(ids.to(NAME))
    assert_same(measure(on_first), measure(on_second))


VIEWS = {
    "patterns": lambda p: attention.patterns(p, 1),
    "heads": lambda p: attention.measure_heads(p, 1),
    "similarity": lambda p: attention.head_similarity(p, 1),
    "walk": lambda p: attention.list_head_steps(p, 1, 0),
    "scaling": lambda p: attention.entropy_by_scaling(p, 1, 0),
    "stages": lambda p: stages.stages(p, 1),
    "norm": lambda p: stages.token_through_norm(p, 1, "ln2", 3),
    "strongest": lambda p: neurons.strongest(p, 1, 2),
    "sparsity": lambda p: neurons.sparsity(p, 1),
    "activations": lambda p: neurons.every_activation(p, 1),
    "units": lambda p: neurons.unit_map(p, 1, 8),
    "tables": lambda p: positions.position_tables(p, 8),
    "orders": lambda p: positions.compare_word_orders(p),
    "tokens": lambda p: per_token(p),
    "likeness": lambda p: token_similarity(p),
    "pairs": lambda p: attention.pair_attention(p, 1, ((4, 1), (5, 4))),
    "rollout": lambda p: prompt.rollout(p),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("position", ["sinusoidal", "rope", "alibi"])
def test_view_data_match(view, position):
    config = SMALL.replace(position=position, mask="causal")
    assert_same(*(VIEWS[view](forward(config, TOKENS, machine)) for machine in both()))


def test_several_models_on_one_sentence():
    variants = {
        "baseline": SMALL,
        **{str(item): SMALL.replace(**item) for item in MORE},
        "wide": SMALL.replace(d_model=24),
    }
    comparisons = [
        compare({n: forward(c, TOKENS, machine) for n, c in variants.items()}) for machine in both()
    ]
    assert_same(*comparisons)


@EVERY
@pytest.mark.parametrize("way", blocks)
def test_pass_after_pass(changes, way):
    depth = Depth(passes=5, blocks=way)
    journey_made = [travel(SMALL.replace(**changes), TOKENS, machine, depth) for machine in both()]
    assert_same(*journey_made)
    assert_same(*(table({"one": variant}) for variant in journey_made))


def test_passes_that_leave_the_range_of_numbers():
    config = SMALL.replace(init="normal_1", norm="none", activation="relu", residual_ffn=False)
    on_first, on_second = (travel(config, TOKENS, machine, Depth(passes=40)) for machine in both())
    assert on_first.diverged == on_second.diverged is not None
    assert_same(on_first.values[: on_first.diverged], on_second.values[: on_first.diverged])


@EVERY
@pytest.mark.parametrize("way", blocks)
def test_gradients(changes, way):
    depth = Depth(passes=3, blocks=way)
    assert_same(
        *(gradients(SMALL.replace(**changes), TOKENS, machine, depth) for machine in both())
    )


GRIDS = {
    "first": "",
    **{
        f"{axis} alone": f"{axis}-{'+'.join(axis_menu.entries)}" for axis, axis_menu in AXES.items()
    },
}
AXIS = "norm-none+RMSNorm__residual-both__activation-swiglu__n_heads-2"
ALONE_IN_IT = "norm-__placement-__residual-__activation-__n_heads-"


@pytest.mark.parametrize("way", blocks)
@pytest.mark.parametrize("axes", GRIDS)
def test_grid_matches(axes, way):
    """Each axis is tried by itself, and the page's first grid as a whole."""
    chosen = GRIDS[axes]
    if chosen:
        remaining = [part for part in ALONE_IN_IT.split("__") if not chosen.startswith(part)]
        chosen = "__".join([*remaining, chosen])
    depth = Depth(passes=2, blocks=way)
    assert_same(
        *(
            grid(SMALL.replace(n_heads=4), Axes(chosen), TOKENS, machine, depth)
            for machine in both()
        )
    )


@pytest.mark.parametrize(
    "axes", ["", "position-none+sinusoidal+learned+rope+alibi__mask-none+causal__norm-none"]
)
def test_grid_in_bfloat16_matches(axes):
    grids = [
        grid(SMALL, Axes(axes), TOKENS, machine, Depth(passes=2)) for machine in both("bfloat16")
    ]
    assert_same(*grids, roughly("bfloat16"))


# Training


def small(name: str, **changes) -> Config:
    """Return a model without biases: b_K's gradient is rounding that AdamW would amplify."""
    return task[name].config(d_model=8, n_heads=2, d_ff=12, n_layers=1, bias=False, **changes)


def trained_on(machine, name, method="adamw", **changes):
    """Train in two chunks. Return the final state and the rows."""
    training = Training(task=name, batch=4, steps=3, every=3, optimiser=method, clip=0.5, warmup=1)
    state, rows = train_chunk(start(small(name, **changes), training, 3, machine), 0)
    state, extra = train_chunk(pickle.loads(pickle.dumps(state)), 100)
    return state, [*rows, *extra]


def assert_same_training(first, second, dtype="float32"):
    """Compare (state, rows) of a training on both devices.

    In half precision autocast lowers other operations on a CPU.
    """
    state, some = first
    other, others = second
    near = NEAR if dtype == "float32" else 0.05
    assert_same(
        [row._replace(accuracy=0.0) for row in some],
        [row._replace(accuracy=0.0) for row in others],
        near,
    )
    if dtype == "float32":
        assert [row.accuracy for row in some] == pytest.approx(
            [row.accuracy for row in others], abs=0.02
        )
        assert_same((state.model, state.optimiser), (other.model, other.optimiser))
    else:
        fine = train_chunk(start(other.config, other.training, other.seed, Machine(NAME)), 0)[1]
        assert others[0].loss != fine[0].loss


WAYS = [(name, method, "float32") for name in task for method in optimiser] + [
    (name, "adamw", "bfloat16") for name in ("reverse", "sentences")
]


@pytest.mark.parametrize("name, method, dtype", WAYS)
def test_training(name, method, dtype):
    assert_same_training(
        *(trained_on(machine, name, method, dropout=0.1) for machine in both(dtype)), dtype
    )


def test_diverging_training_matches():
    training = Training(
        task="copy", batch=4, steps=20, optimiser="sgd", learning_rate=1000.0, warmup=0
    )
    results = [
        train_chunk(start(small("copy", norm="none"), training, 0, machine), 100)
        for machine in both()
    ]
    (on_first, rows), (on_second, others) = results
    assert on_first.diverged and on_second.diverged and rows[-1].note == others[-1].note


@pytest.mark.parametrize("name, method, dtype", WAYS)
def test_seeds_side_by_side(name, method, dtype):
    training = Training(task=name, batch=4, steps=2, every=2, optimiser=method, clip=0.5)
    built = []
    for machine in both(dtype):
        begun = [start(small(name), training, seed, machine) for seed in (3, 4)]
        further = stack.chunk(begun, 0)
        built.append(
            [
                (state, [*rows, *extra])
                for (_, rows), (state, extra) in zip(
                    further, stack.chunk([state for state, _ in further], 100)
                )
            ]
        )
    for on_first, on_second in zip(*built):
        assert_same_training(on_first, on_second, dtype)


@pytest.mark.parametrize("name", ["reverse", "sentences"])
def test_trained_answers_match(name):
    tokens, targets = task[name](torch.Generator().manual_seed(1), 5)
    built = []
    for machine in both():
        states = [
            trained_on(machine, name)[0],
            trained.untrained(trained_on(machine, name, position="none")[0]),
        ]
        built.append(
            (
                [trained.read(state, tokens[0], targets[0]) for state in states],
                trained.contrast(states, tokens, targets),
            )
        )
    assert_same(*built)


STUDY = """
name = "small"
tasks = ["copy"]
seeds = 2
device = "$DEVICE"
[base]
d_model = 16
n_heads = 2
n_layers = 1
[training]
steps = 6
batch = 8
every = 3
"""


def test_study_and_job_in_workers_match(tmp_path, monkeypatch):
    """A job stacks its seeds on such a device; a study trains them separately."""
    pytest.importorskip("sqlalchemy")
    from core.study.database.schema import DONE
    from core.study.database.store import Store
    from core.study.file import parse
    from core.study.runner import Runner

    store = Store(f"sqlite:///{tmp_path}/studies.sqlite")
    workers = ProcessPool(1)
    try:
        study = parse(STUDY.replace("$DEVICE", NAME))
        number = store.enrol(study).study
        for _ in Runner(store, [number], workers).train():
            pass
        runs = store.runs(number)
        assert {(run.state, run.device) for run in runs} == {(DONE, Machine(NAME).name)}
        training = study.runs[0].training
        states = {
            seed: start(study.runs[0].config, training, seed, Machine(NAME)) for seed in (7, 8)
        }
        job = Job(workers, states)
        sizes = []
        monkeypatch.setattr(
            workers,
            "train",
            lambda some, *arguments, _plain=workers.train: (
                sizes.append(len(some)),
                _plain(some, *arguments),
            )[1],
        )
        while not job.poll().done:
            time.sleep(0.01)
        assert not job.error and 2 in sizes
    finally:
        workers.close()
        store.close()
    assert len(job.rows[7]) == len(job.rows[8]) == 3


# A trained model


def opened(place: str, **changes) -> Opened:
    """Return an untrained model of sentences with random biases and gains."""
    config = Config(
        **{
            "n_layers": 2,
            "d_model": 16,
            "n_heads": 2,
            "position": "rope",
            "mask": "causal",
            **changes,
        }
    )
    model = Transformer(config, vocabulary())
    stream = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=stream))
    return Opened("untrained", model.to(place), Words(vocabulary()), "sentences")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(knockout, "SLICE", 16)


def benches(count=24, **changes) -> list[knockout.Bench]:
    """Return benches with texts for two slices."""
    return [knockout.bench(opened(place, **changes), count) for place in ("cpu", NAME)]


SHAPES = [
    {},
    {"mask": "none"},
    {"placement": "post", "norm": "RMSNorm"},
    {"norm": "none", "position": "learned"},
    {"position": "alibi", "bias": False, "tied": True},
    {"attention": False},
    {"ffn": False},
    {"residual_attention": False},
]
TEXT = "the judge , who was late , was right ."


@pytest.mark.parametrize("how", mode)
@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_ablations_match(changes, how):
    on_first, on_second = benches(**changes)
    assert_same(on_first.whole, on_second.whole)
    assert_same(on_first.patterns, on_second.patterns)
    several = tuple(list_cuts(on_first.model.config)[:3])
    effects = [[*item.sweep(how), item.effect(several, how)] for item in (on_first, on_second)]
    for first, other in zip(*effects):
        assert_same((first.values, first.correct), (other.values, other.correct))
    assert_same(
        *(
            tables.tabulate_effects(item[-1], bench.baseline)
            for item, bench in zip(effects, (on_first, on_second))
        )
    )
    assert_same(
        *(
            tables.rank_effects(item[:-1], bench.baseline)
            for item, bench in zip(effects, (on_first, on_second))
        )
    )
    assert_same(
        *(
            tables.accuracy_by_distance(item[-1], bench.questions)
            for item, bench in zip(effects, (on_first, on_second))
        )
    )
    assert_same(
        *(contributions.bench_contributions(item, several, how) for item in (on_first, on_second))
    )


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_contributions_and_readings_match(changes):
    both_benches = benches(**changes)
    assert_same(*(contributions.table(variant) for variant in both_benches))
    some = (list_cuts(both_benches[0].model.config)[0],)
    assert_same(
        *(contributions.compare_contributions(variant, some, "mean") for variant in both_benches)
    )
    assert_same(*(tables.attention_to_subject(variant) for variant in both_benches))


@pytest.mark.parametrize("how", mode)
def test_prompt_with_and_without_ablation_matches(how):
    built = []
    for bench in benches():
        read = prompt.read(bench.opened, TEXT)
        passes = [
            prompt.run_prompt(bench, read),
            prompt.run_prompt(bench, read, (Cut(0, "head", 1), Cut(1, "ffn")), how),
        ]
        scores = {
            str(n): prompt.next_token_logits(bench, forward_pass, 4)
            for n, forward_pass in enumerate(passes)
        }
        text = prompt.next_words(
            scores, Sampling(temperature=0.7, top_k=6, top_p=0.9), bench.opened.tokens.label
        )
        looked = [
            prompt.logit_lens(bench.model, forward_pass, bench.opened.tokens.label)
            for forward_pass in passes
        ]
        built.append(
            (
                passes,
                scores,
                text,
                looked,
                [prompt.rollout(forward_pass) for forward_pass in passes],
            )
        )
        assert passes[0].machine.torch_device == bench.device.type
    assert_same(*built)


@pytest.mark.parametrize("how", ["", "zero", "mean"])
def test_continuation_after_ablation_matches(how):
    built = []
    for bench in benches():
        some = (Cut(0, "layer"),) if how else ()
        steps = prompt.continuation(
            bench, prompt.read(bench.opened, TEXT), 3, Sampling(words=5, top_k=9), some, how
        )
        built.append([tuple(step) for step in steps])
    assert_same(*built)


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize(
    "changes", [{}, {"position": "learned"}, {"position": "alibi"}, {"mask": "none"}], ids=str
)
def test_continuation_matches(changes, cache):
    ids = torch.tensor([3, 7, 11, 4])
    continuations = [
        list(
            map(
                tuple,
                generate(
                    opened(place, **changes).model, ids, Sampling(words=6, top_p=0.95), cache=cache
                ),
            )
        )
        for place in ("cpu", NAME)
    ]
    assert_same(*continuations)


def of_files(written: dict[str, bytes]) -> Opened:
    return files.from_upload(written)


def test_files_of_a_model_that_is_on_the_device():
    on_first, on_second = (
        native.model_files(opened(place).model, "a model", "sentences", seed=1)
        for place in ("cpu", NAME)
    )
    assert on_first == on_second
    assert of_files(on_second).key == opened("cpu").key == opened(NAME).key


def test_files_of_a_training_on_the_device():
    states = [trained_on(machine, "reverse")[0] for machine in both()]
    ids = torch.arange(1, 9)[None]
    for opened_model in (
        native.open_training(states[1], "a model"),
        of_files(native.trained_model_files(states[1], "a model", 0.5)),
    ):
        assert opened_model.model.embed.device.type == "cpu"
        assert_same(
            native.open_training(states[0], "a model").model(ids).detach(),
            opened_model.model(ids).detach(),
        )


# Pages: what they do with tensors is done on the CPU


def opens(page: str, **params):
    """Open a page from a link and expect no error."""
    app = pytest.importorskip("streamlit.testing.v1").AppTest.from_file(
        "../app.py", default_timeout=90
    )
    app.switch_page(page)
    for name, value in params.items():
        app.query_params[name] = value
    return _fine(app.run(), params)


def _fine(app, link):
    assert not app.exception, (link, [error.value for error in app.exception])
    assert not app.error, (link, [error.value for error in app.error])
    return app


def test_views_of_one_block_open():
    views = pytest.importorskip("ui.block").view
    written = pytest.importorskip("tests.pages").written
    for view in views:
        app = opens(
            "pages/1_One_block.py",
            device=NAME,
            view=view,
            variants="norm-none",
            compare="on",
            n_layers="2",
            padding="1",
        )
        assert any(Machine(NAME).name in item for item in written(app)), view


def test_views_of_depth_open():
    views = pytest.importorskip("ui.depth").view
    for view in views:
        opens("pages/2_Depth.py", device=NAME, show=view, passes="4")


def test_views_of_trained_model_open(monkeypatch):
    """A large pass goes to the fastest device."""
    views = pytest.importorskip("ui.trained").view
    choose = pytest.importorskip("ui.shared.models")
    monkeypatch.setattr(choose, "LARGE", 0)
    assert choose.open_model(choose.SHIPPED).model.embed.device.type == NAME
    for view in views:
        opens(
            "pages/5_Trained_model.py",
            taken=view,
            texts="16",
            out="2.4~1.ffn",
            mode="mean",
            words="5",
        )


def test_views_of_training_open():
    views = pytest.importorskip("ui.training").view
    tiny = dict(
        task="copy",
        steps="4",
        batch="4",
        warmup="0",
        seeds="2",
        d_model="8",
        n_heads="2",
        n_layers="1",
    )
    app = opens("pages/3_Training.py", device=NAME, **tiny)
    next(button for button in app.button if button.key == "start").click().run()
    from tests.pages import (
        move,
    )  # not above: the rest of this file runs where there is no Streamlit
    from ui.kit.jobs import RUNNING
    from ui.kit.store import SESSION

    job = app.session_state[SESSION].kept[RUNNING].job
    while not job.poll().done:
        time.sleep(0.05)
    assert not job.error and job.states["baseline", 0].machine.torch_device == NAME
    for view in views:
        _fine(move(app, trained=view).run(), view)


# Exported scripts


def printed(script: str) -> str:
    text = io.StringIO()
    text.reconfigure = lambda **args: None
    with contextlib.redirect_stdout(text):
        exec(compile(script, "script.py", "exec"), {"__name__": "__main__"})
    return text.getvalue()


def scripts(machine: Machine) -> dict[str, Script]:
    variants = {"baseline": SMALL, "other": SMALL.replace(norm="none", position="alibi")}
    plan = Plan(
        (Arm("baseline", small("sentences"), 0, frozenset()),),
        Training(task="sentences", batch=4, steps=2),
        Trial(seeds=1),
        machine,
    )
    return {
        "block": make_block_script(SMALL.replace(dropout=0.2), TOKENS, machine, dropout=True),
        "compare": make_compare_script(variants, TOKENS, machine),
        "depth": make_depth_script(variants, TOKENS, machine, Depth(passes=3)),
        "grid": make_grid_script(SMALL, Axes(AXIS), TOKENS, machine, Depth(passes=2)),
        "training": make_training_script(plan),
    }


@pytest.mark.parametrize("name", ["block", "compare", "depth", "grid", "training"])
def test_exported_scripts_match(name):
    on_first, on_second = (printed(scripts(machine)[name].python()) for machine in both())
    first, other = (
        list(chain.from_iterable(line.split(",") for line in text.splitlines()))
        for text in (on_first, on_second)
    )
    numbers = [[_number(cell) for cell in cells] for cells in (first, other)]
    assert [n if n is None else 0 for n in numbers[0]] == [
        n if n is None else 0 for n in numbers[1]
    ]
    assert_same(
        *([n for n in number if n is not None] for number in numbers),
        1e-4 if name != "training" else 0.01,
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
