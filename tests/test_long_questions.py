"""Large inputs to a trained model: computed fast, once for all, within limits, then freed."""

import gc
import hashlib
import threading
import weakref

import pytest
import torch

from core import Config
from core.checkpoints import files, native
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid
from core.experiments.trained import contributions, knockout, prompt, tables
from core.experiments.trained.questions import questions
from core.experiments.trained.sentences import forms, sentences
from core.model.generate import Sampling
from core.model.knockout import list_cuts
from core.model.parts.init import generator
from core.model.trace import _open
from core.model.transformer import Transformer
from core.settings import memory
from core.settings.progress import report_to
from core.tasks import task
from core.tasks.sentences import LONGEST, NUMBERS, VOCABULARY, Writer
from tests.limited import limited
from tests.test_knockout import legal
from tests.test_model_page import opened
from tests.test_page import fine

# The sentences


def test_vectorised_sentences_match_single_writer():
    numbers = torch.randint(2**31, (5000, NUMBERS), generator=generator(3, "sentences"))
    rows = forms().write(numbers.numpy(), VOCABULARY).tolist()
    for line, row in zip(numbers.tolist(), rows):
        expected = Writer(line).sentence()
        assert [VOCABULARY[token] for token in row] == expected + [VOCABULARY[0]] * (
            LONGEST + 1 - len(expected)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "digest"),
    [
        (8, "b5b6adc71252e813"),
        (64, "7acbd517aa1f5254"),
        (256, "ac3268bf663d84f9"),
        (1024, "77b20f08e31629e5"),
        (4096, "fe365d10bc232441"),
    ],
)
def test_questions_stay_the_same(count, digest):
    """Digests of drawing one sentence at a time, which took 47 seconds for the last case."""
    drawn = (sentences.__wrapped__(count, 0), sentences.__wrapped__(8 * count, 1))
    assert hashlib.blake2b(repr(drawn).encode(), digest_size=8).hexdigest() == digest


class UserLeftError(BaseException):
    """Exception that ends a run as Streamlit does when its user has left."""


def leave_after(signs: int):
    """Return a function that leaves after so many progress messages."""
    left = iter(range(signs))

    def watch(*_):
        if next(left, None) is None:
            raise UserLeftError

    return watch


# Heavy runs


def test_heavy_runs_queue_and_waiting_ones_can_leave(monkeypatch):
    monkeypatch.setattr(memory, "HEAVY", 0)
    begun = threading.Event()
    on = threading.Event()
    signs = []

    def first():
        with memory.room_for(1, "This grid"):
            begun.set()
            on.wait()

    visitor = threading.Thread(target=first)
    visitor.start()
    begun.wait()
    with report_to(leave_after(0)), pytest.raises(UserLeftError), memory.room_for(1, "This grid"):
        raise AssertionError("two heavy runs at once")
    with report_to(lambda *sign: (signs.append(sign), on.set())), memory.room_for(1, "This grid"):
        visitor.join()
    assert signs[0] == (None, "waiting for another large run on this server")


@pytest.mark.parametrize("kind", ["look", "effect", "text"])
def test_recording_for_replacement_takes_own_turn(kind, monkeypatch):
    """Six sessions that recorded means at once took 3 GB."""
    monkeypatch.setattr(memory, "HEAVY", 0)
    model = legal()
    bench = knockout.Bench(model, questions(model, 8))
    read = prompt.read(model, "the judge")
    cut = list_cuts(model.config)[:1]
    turns = []
    record = bench._record
    monkeypatch.setattr(
        bench, "_record", lambda: (turns.append(memory._heavy_run.locked()), record())[1]
    )
    if kind == "look":
        prompt.run_prompt(bench, read, tuple(cut), "mean")
    elif kind == "effect":
        bench.effect(tuple(cut), "mean")
    else:
        going_on = prompt.continuation(bench, read, 1, Sampling(words=5), tuple(cut), "mean")
        next(going_on)
        assert memory._heavy_run.locked()
        going_on.close()
    assert turns == [True] and not memory._heavy_run.locked()


# What is let go of


def everything(bench):
    some_cuts = list_cuts(bench.model.config)[:1]
    read = prompt.read(bench.opened, "the judge , who was late , was right .")
    prompt.run_prompt(bench, read)
    prompt.run_prompt(bench, read, tuple(some_cuts), "resample")
    list(prompt.continuation(bench, read, 3, Sampling(words=2), tuple(some_cuts), "mean"))
    knockout.cached_effect(bench, tuple(some_cuts), "mean")
    contributions.compare_contributions(bench, tuple(some_cuts), "zero")
    bench.opened.results.get(
        (bench.key, "readings"), lambda: (tables.attention_to_subject(bench), 10_000)
    )


def test_uncached_bench_is_released(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "3")
    model = legal()
    bench = knockout.bench(model, 64)
    everything(bench)
    reference = weakref.ref(bench)
    del bench
    gc.collect()
    assert reference() is None and model.results.entries


def test_other_texts_give_another_result():
    model = legal()
    few = knockout.bench(model, 32)
    count = knockout.bench(model, 64)
    assert few.key != count.key == knockout.Bench(model, questions(model, 64)).key
    assert knockout.bench(legal(), 32).key == few.key


# Time


@pytest.mark.parametrize("kind", ["effect", "bench", "words", "credit"])
def test_everything_that_is_long_says_how_far_it_is(kind, monkeypatch):
    monkeypatch.setattr(knockout, "SLICE", 8)
    model = legal()
    signs = []
    bench = knockout.bench(model, 64)
    with report_to(lambda share, words: signs.append((share, words))):
        if kind == "bench":
            knockout.Bench(model, questions(model, 64))
        elif kind == "effect":
            list(bench.sweep("mean"))
        elif kind == "credit":
            monkeypatch.setattr(contributions, "ROOM", 1)
            contributions.bench_contributions(bench)
        else:
            list(prompt.continuation(bench, prompt.read(model, "the judge"), 1, Sampling(words=5)))
    assert len(signs) >= 4 and all(0 <= share <= 1 and words for share, words in signs)


WORDS = ("the", "keys", "to", "the", "cabinet")
DEEP = {
    "depth": (travel, ()),
    "separate": (travel, ()),
    "grid": (grid, (Axes("norm-LayerNorm+none__placement-pre+post"),)),
    "gradients": (gradients, ()),
}


def deep(kind: str, seed: int):
    """Compute with a given seed, so that no other test has cached the result."""
    call, extra = DEEP[kind]
    config = Config(d_model=16, n_heads=2, d_ff=24, seed=seed)
    return call(config, *extra, WORDS, None, Depth(9, "separate" if kind == "separate" else "same"))


@pytest.mark.parametrize("kind", DEEP)
def test_passes_report_progress_and_can_be_last(kind, monkeypatch):
    monkeypatch.setattr(memory, "HEAVY", 0)
    signs = []
    with report_to(lambda share, words: signs.append((share, words))):
        deep(kind, 7101)
    shares = [share for share, _ in signs]
    assert (
        len(shares) >= 9
        and shares == sorted(shares)
        and shares[-1] == 1
        and "9 passes" in signs[0][1]
    )

    for last in (1, 5, len(signs) - 2):
        with report_to(leave_after(last)), pytest.raises(UserLeftError):
            deep(kind, 7102)
        assert not _open.get() and not memory._heavy_run.locked()
    deep(kind, 7102)


def test_sweep_of_hours_is_refused_of_a_minute_asks(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "60")
    monkeypatch.setattr(knockout.Bench, "sweep_seconds", 5 * 3600.0)
    sweep = knockout.Bench.sweep
    monkeypatch.setattr(knockout.Bench, "sweep", None)  # it would fail
    app = fine(opened(taken="sweep", texts="16"))
    text = " ".join(note.value for note in app.info).replace("\\", "")
    assert (
        "ablations on 16 held-out legal sentences would take about 5.0 h" in text
        and "at most 60 s" in text
    )
    assert "ABLATION_MAX_SECONDS" in text and "Choose fewer sentences" in text
    assert not any(button.key == "sweep_start" for button in app.button)
    monkeypatch.setattr(knockout.Bench, "sweep_seconds", 50.0)
    app = fine(opened(taken="sweep", texts="16"))
    assert "about 50 s on this machine" in app.info[0].value
    monkeypatch.setattr(knockout.Bench, "sweep", sweep)
    app = fine(next(button for button in app.button if button.key == "sweep_start").click().run())
    assert not app.info


# Memory


@pytest.fixture(scope="module")
def wordy():
    """Return a model of 50,000 words: its logits need more memory than its weights."""
    words = (*task["copy"].vocabulary, *(f"word {n}" for n in range(50_000)))
    config = Config(d_model=8, n_heads=1, mask="causal", position="rope")
    return files.from_upload(native.model_files(Transformer(config, words), "many words", "copy"))


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 64])
def test_many_texts_take_no_more_memory_than_is_said(wordy, count):
    asked_questions = questions(wordy, count)
    cut = list_cuts(wordy.config)[:1]
    text = sum(knockout.sizes(wordy, asked_questions)) >> 20
    assert count == 8 or text > 200

    def measure():
        memory.reuse_freed_memory()  # as the app does
        return [
            len(item)
            for item in (
                knockout.Bench(wordy, asked_questions).effect(tuple(cut), "zero").values.values()
            )
        ]

    assert limited(measure, megabytes=text + 60) == [count] * 4  # and what PyTorch itself takes


def test_smaller_slices_give_equal_answers(monkeypatch):
    model = legal()
    asked_questions = questions(model, 64)
    full = knockout.Bench(model, asked_questions)
    monkeypatch.setenv("ABLATION_MAX_MB", "2")
    parts = knockout.Bench(model, asked_questions)
    assert len(full.slices) == 1 < len(parts.slices)
    torch.testing.assert_close(parts.whole.logits, full.whole.logits, rtol=1e-5, atol=1e-5)
    cut = tuple(list_cuts(model.config)[:1])
    for name, values in full.effect(cut, "mean").values.items():
        torch.testing.assert_close(
            parts.effect(cut, "mean").values[name], values, rtol=1e-5, atol=1e-5
        )
