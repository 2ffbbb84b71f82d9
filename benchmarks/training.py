"""Benchmark of training: our loop, the workers, the estimate, the page, and other users.

    python -m benchmarks.training [step jobs estimate stack page crowd] [--device cuda]

step: one step of our loop over the same step in a plain loop as nanoGPT writes it (2 layers, d 64,
batch 64, T 32; also smaller). jobs: eight runs on two workers, and the same one after another in
this process. estimate: what a training takes over what core.train.budget expects of it, for every
task. stack: four seeds as one batch over the same four one after another. page: in headless
Chromium, from pressing Start to the first point, and each of the experiments to its end. crowd: ten
users moving sliders while two others train, over the same ten alone. In turn, medians, within one
run.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from core.experiments.training.plan import showcase
from core.settings.device import Machine
from core.tasks import task
from core.train import Training, budget, chunk, stack, start
from core.train.run import Run
from core.workers.job import Job
from core.workers.pool import ProcessPool

SIZES = ((2, 64, 64, 32), (2, 64, 16, 32), (4, 32, 32, 12))  # layers, d_model, batch, T


class PlainBlock(nn.Module):
    """Pre-norm block without taps or options."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.ln_2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        """Return the block's output for x, (batch, T, width)."""
        B, T, D = x.shape
        q, k, v = (
            y.view(B, T, self.heads, -1).transpose(1, 2)
            for y in self.qkv(self.ln_1(x)).split(D, dim=2)
        )
        weights = (q @ k.transpose(-2, -1) * (D // self.heads) ** -0.5).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(B, T, D))
        return x + self.down(F.gelu(self.up(self.ln_2(x))))


class Plain(nn.Module):
    """Small transformer as one writes it by hand."""

    def __init__(self, words: int, layers: int, width: int, heads: int, length: int):
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[PlainBlock(width, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        """Return the logits (batch, T, words) for tokens (batch, T)."""
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.ln_f(self.blocks(x)))


def plain_step(layers, width, batch, length, device):
    """Return a function that does one step of the plain loop, on data drawn like ours."""
    learnt = task["reverse"]
    model = Plain(len(learnt.vocabulary), layers, width, 4, length).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    stream = torch.Generator().manual_seed(0)

    def step():
        tokens, targets = (item.to(device) for item in learnt(stream, batch, length))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return (
            loss.item()
        )  # nanoGPT reads it only to log; we need it to see at once when a run diverges

    return step


def our_step(layers, width, batch, length, device):
    """Return a function that does one step of our loop."""
    training = Training(
        task="reverse", steps=10_000, every=10_000, batch=batch, length=length, clip=1.0
    )
    config = task["reverse"].config(n_layers=layers, d_model=width)
    return Run(start(config, training, 0, Machine(device))).step


def steps(device):
    """Print the time of one step of the plain loop and of ours, at each size."""
    for size in SIZES:
        calls = plain_step(*size, device), our_step(*size, device)
        took = [[], []]
        for turn in range(90):
            for call, times in zip(calls, took):
                begin = time.perf_counter()
                call()
                if turn >= 10:
                    times.append(1e3 * (time.perf_counter() - begin))
        plain, ours = (statistics.median(times) for times in took)
        ratio = statistics.median(b / a for a, b in zip(*took))
        layers, width, batch, length = size
        print(
            f"step, {layers} layers, d {width}, batch {batch}, T {length}: plain loop {plain:.2f}"
            f" ms, ours {ours:.2f} ms, ratio {ratio:.3f}",
            flush=True,
        )


def jobs(_):
    """Print the time of eight runs on two workers, and one after another."""
    states = {
        seed: start(task["reverse"].config(), Training(task="reverse"), seed) for seed in range(8)
    }
    workers = ProcessPool(2)
    workers.warm()
    time.sleep(10)

    def side_by_side() -> float:
        # nothing known from the time before
        begin = time.monotonic()
        workers.kept = type(workers.kept)(0)
        job = Job(workers, states)
        while not job.done:
            time.sleep(0.02)
            job.poll()
        return time.monotonic() - begin

    def one_by_one() -> float:
        begin = time.monotonic()
        for state in states.values():
            chunk(state, 1e9)
        return time.monotonic() - begin

    chunk(states[0], 1.0)  # what loads at the first step has loaded
    together = [side_by_side()]
    alone = one_by_one()
    together.append(side_by_side())
    workers.close()
    print(
        f"jobs: eight runs one after another {alone:.1f} s, on two workers {together[0]:.1f} and"
        f" {together[1]:.1f} s, {alone / statistics.mean(together):.2f} times faster",
        flush=True,
    )


def estimate(_):
    """Print the time of a short training of each task over the expected time."""
    for name in task:
        training = Training(task=name, steps=60, every=20)
        state = start(task[name].config(), training, 0)
        chunk(state, 0.2)
        took = chunk(state, 1e9)[0].seconds
        expected = budget.estimate_seconds(state.config, training)
        print(
            f"estimate, {name}: {took:.2f} s, expected {expected:.2f} s, ratio"
            f" {took / expected:.2f}",
            flush=True,
        )


def stacked(device):
    """Print the time of four and sixteen seeds, as one batch and one after another."""
    for seeds in (4, 16):
        for layers, width, batch, length in SIZES:
            training = Training(
                task="reverse", steps=100_000, every=100_000, batch=batch, length=length
            )
            config = task["reverse"].config(n_layers=layers, d_model=width)
            states = [start(config, training, seed, Machine(device)) for seed in range(seeds)]
            stack.chunk(states, 1.0)
            chunk(states[0], 1.0)
            pace = []  # seconds a step and seed
            for call, inputs in (
                (stack.chunk, states),
                (lambda s, t: [chunk(s[0], t)], states[:1]),
            ) * 2:
                begin = time.perf_counter()
                done = call(inputs, 4.0)[0][0].step
                pace.append((time.perf_counter() - begin) / done / len(inputs))
            together = (pace[0] + pace[2]) / 2
            alone = (pace[1] + pace[3]) / 2
            print(
                f"stack, {seeds} seeds, {layers} layers, d {width}, batch {batch}, T {length}:"
                f" alone {1e3 * alone:.2f} ms, stacked {1e3 * together:.2f} ms a step and seed,"
                f" {alone / together:.2f} times faster",
                flush=True,
            )


MARK = """() => {
  const isDrawn = each => each.matches("svg.picture") && each.querySelector(".marks path[d^=M]")
  const has = root => [...root.querySelectorAll("*")].some(each =>
    isDrawn(each) || (each.shadowRoot && has(each.shadowRoot)))
  document.querySelector(".st-key-start button").addEventListener("click", () => {
    const begin = performance.now()
    const look = () => {
      if (has(document)) window.first = performance.now() - begin
      else requestAnimationFrame(look)
    }
    look()
  }, true)
}"""


def page(_):
    """Print the time from Start to the first point, memory, and the time of each preset."""
    import psutil

    from benchmarks.serving import browser, server, settle

    with server() as (address, process), browser() as chromium:
        tab = chromium.new_page(viewport={"width": 1400, "height": 900})
        tab.goto(f"{address}/Training")
        settle(tab)
        took = []
        for seed in range(0, 60, 10):
            tab.goto(f"{address}/Training?seed={seed}&steps=100")
            settle(tab)
            tab.evaluate(MARK)
            tab.get_by_role("button", name="Start", exact=True).click()
            tab.wait_for_function("window.first", timeout=60_000)
            took.append(tab.evaluate("window.first"))
            tab.get_by_text("Done:").wait_for(timeout=120_000)
        first, *took = took
        print(
            f"page: Start to first point, {first:.0f} ms for the first training, with which the"
            " workers start"
        )
        print(
            f"page: Start to first point, median {statistics.median(took):.0f} ms of {len(took)},"
            f" worst {max(took):.0f} ms"
        )
        children = psutil.Process(process.pid).children(recursive=True)
        sizes = [
            child.memory_full_info().uss >> 20 for child in children
        ]  # what each does not share with others
        print(
            f"page: memory, server {psutil.Process(process.pid).memory_info().rss >> 20} MB, its"
            f" processes {sizes} MB more"
        )
        for name in showcase:
            tab.goto(f"{address}/Training")
            settle(tab)
            begin = time.monotonic()
            tab.locator(f".st-key-card_{name} button").click()
            tab.get_by_text("Done:").wait_for(timeout=300_000)
            lasted = time.monotonic() - begin
            settle(tab)
            sentence = tab.locator(".panel .sentence").first.inner_text()
            print(f"page: {showcase.label(name)}: {lasted:.1f} s. {sentence}", flush=True)


async def trainer(address, query, until):
    """Open Training as a user whose training runs, and rerun its fragments as a browser does."""
    import websockets
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    url = address.replace("http", "ws") + "/_stcore/stream"
    async with websockets.connect(
        url, subprotocols=["streamlit"], max_size=None, compression=None
    ) as socket:
        fragments = {}

        async def ask(fragment=""):
            message = BackMsg()
            message.rerun_script.query_string = query
            message.rerun_script.page_name = "Training"
            message.rerun_script.fragment_id = fragment
            await socket.send(message.SerializeToString())

        async def listen():
            async for data in socket:
                answer = ForwardMsg()
                answer.ParseFromString(data)
                if answer.WhichOneof("type") == "auto_rerun":
                    fragments[answer.auto_rerun.fragment_id] = answer.auto_rerun.interval

        listening = asyncio.create_task(listen())
        await ask()
        while time.monotonic() < until[0]:
            await asyncio.sleep(0.4)
            for fragment in list(fragments):
                await ask(fragment)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        if not fragments:
            raise RuntimeError("the training did not start")


def felt(_):
    """Print the delay of ten users' sliders alone, and while two others train."""
    import psutil

    from benchmarks.crowd import run_crowd
    from benchmarks.serving import server

    query = "task=reverse&steps=40000&seeds=1&begin=on&variants=none"

    async def both(address, watched):
        until = [time.monotonic() + 3600]
        trainers = [
            asyncio.create_task(trainer(address, f"{query}&seed={n}", until)) for n in range(2)
        ]
        await asyncio.sleep(15)  # workers start, trainings are under way
        busy = [child.cpu_percent(1.0) for child in watched.children(recursive=True)]
        print(f"crowd: workers' load {sorted(busy)[-2:]} %", flush=True)
        await run_crowd(address, [watched], 10, 40)
        until[0] = 0
        await asyncio.gather(*trainers)

    with server() as (address, process):
        watched = psutil.Process(process.pid)
        asyncio.run(run_crowd(address, [watched], 10, 40))
        asyncio.run(both(address, watched))


PARTS = {
    "step": steps,
    "jobs": jobs,
    "estimate": estimate,
    "stack": stacked,
    "page": page,
    "crowd": felt,
}


def main():
    """Run the parts of the benchmark that the command line names, or all that fit the device."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    args.add_argument("--device", default="cpu")
    args = args.parse_args()
    torch.set_num_threads(1)
    expected = args.parts or [
        name for name in PARTS if args.device == "cpu" or name in ("step", "stack")
    ]
    if hasattr(os, "sched_setaffinity") and not {"page", "crowd", "jobs"} & set(expected):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    for name in expected:
        PARTS[name](args.device)


if __name__ == "__main__":
    main()
