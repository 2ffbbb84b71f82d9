"""Benchmark of Trained model: ablations, generated text and the page.

    python -m benchmarks.trained sweep|generate|page [--device cuda]

sweep: every head and sub-layer of the shipped model ablated by itself, over 256 held-out sentences,
one thread; median of five, each from a fresh bench. generate: a text of 200 tokens goes on, and one
of 8 tokens grows to 198, with cached keys and values and without, in turn. page: from a click on a
head to the last painted pixel of the view of its ablation.
"""

import argparse
import statistics
import time

import torch

from core import Config, Transformer
from core.checkpoints.files import ROOT, SHIPPED, from_folder
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import questions
from core.model.generate import Sampling, generate
from core.model.knockout import list_cuts, mode
from core.settings.memory import reuse_freed_memory

GPT2 = Config(
    d_model=768,
    n_heads=12,
    n_layers=12,
    activation="gelu_tanh",
    position="learned",
    mask="causal",
    tied=True,
)


def sweep(args: argparse.Namespace):
    """Print the time of ablating every component of the shipped model, by method."""
    opened = from_folder(ROOT / SHIPPED)
    asked_questions = questions(opened, 256)
    opened.model.to(args.device)
    for how in mode:
        took = []
        for _ in range(6):
            begin = time.perf_counter()
            effects = list(Bench(opened, asked_questions).sweep(how))
            took.append(time.perf_counter() - begin)
        print(
            f"{how:9} {len(effects)} parts, {asked_questions.what}:"
            f" {statistics.median(took[1:]):.3f} s, with the whole model's own pass"
        )


def generation(args: argparse.Namespace):
    """Print the time per generated token, with and without cached keys and values."""
    legal = from_folder(ROOT / SHIPPED).model
    gpt2 = Transformer(GPT2, [str(n) for n in range(256)]).requires_grad_(False)
    for name, model, rounds in (("the shipped model", legal, 9), ("GPT-2 small's shape", gpt2, 1)):
        model.to(args.device)
        for begin, further in ((200, 20), (8, 190)):
            took = {True: [], False: []}
            for _ in range(rounds):
                for cache in took:
                    steps = generate(
                        model, torch.arange(begin) % 50, Sampling(words=further + 1), cache=cache
                    )
                    next(steps)  # reads the text itself, which both have to
                    start = time.perf_counter()
                    count = sum(1 for _ in steps)
                    took[cache].append((time.perf_counter() - start) / count)
            cached, uncached = (1e3 * statistics.median(took[cache]) for cache in took)
            print(
                f"{name}: a text of {begin} tokens, {count} further: {cached:.2f} ms each with"
                f" cached keys and values, {uncached:.2f} ms without: {uncached / cached:.1f} times"
                " as fast"
            )


PRESS = """document.addEventListener("pointerdown", () => {
  Object.assign(window.seen, { key: performance.now(), changed: 0, painted: 0 })
}, true)"""


def page(args: argparse.Namespace):
    """Print the time from a click that ablates a head to the last painted pixel."""
    from benchmarks.paint import WATCH
    from benchmarks.serving import browser, server, settle

    opened = from_folder(ROOT / SHIPPED)
    heads = [cut for cut in list_cuts(opened.config) if cut.part == "head"]
    took = []
    with browser() as chromium, server() as (address, _):
        visit = chromium.new_page(viewport={"width": 1400, "height": 900})
        visit.add_init_script(WATCH + PRESS)
        visit.goto(f"{address}/Trained_model?taken=knockout&out=1.ffn")
        settle(visit, 1500)
        for how in ("zero", "mean"):
            for cut in heads:
                query = f"taken=attention&layer={cut.layer + 1}&head={cut.head + 1}&mode={how}"
                visit.goto(f"{address}/Trained_model?{query}")
                settle(visit, 800)
                visit.locator(".st-key-remove_head button").click()
                visit.wait_for_timeout(50)
                settle(visit, 500)
                times = visit.evaluate("window.seen")
                took.append(times["painted"] - times["key"])
    took = sorted(took[1:])
    print(
        f"a head knocked out, click to last painted pixel: median {statistics.median(took):.0f} ms,"
        f" 90th {took[int(0.9 * (len(took) - 1))]:.0f}, {took[0]:.0f} to {took[-1]:.0f} over"
        f" {len(took)} clicks, each for the first time"
    )


def main():
    """Run the part of the benchmark that the command line names."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("what", choices=["sweep", "generate", "page"])
    args.add_argument("--device", default="cpu")
    args = args.parse_args()
    torch.set_num_threads(1)
    reuse_freed_memory()
    print(
        f"{torch.cuda.get_device_name() if args.device == 'cuda' else 'CPU, one thread'}, torch"
        f" {torch.__version__}"
    )
    {"sweep": sweep, "generate": generation, "page": page}[args.what](args)


if __name__ == "__main__":
    main()
