"""What a trained model is asked may be much: it is made quickly, once for all who ask, within limits, and let go of."""

import contextlib
import gc
import hashlib
import queue
import threading
import time
import weakref

import pytest
import torch

from core import Config
from core.experiments import pieces
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid
from core.experiments.trained import contributions, knockout, prompt, tables
from core.experiments.trained.questions import questions
from core.experiments.trained.sentences import forms, sentences
from core.model.generate import Sampling
from core.model.knockout import cuts
from core.model.parts.init import generator
from core.model.trace import _open
from core.settings import memory
from core.settings.cache import LRUCache
from core.settings.progress import large, tell, turn, watched
from core.tasks.sentences import LONGEST, NUMBERS, VOCABULARY, Writer
from core.train.budget import TimeLimit
from tests.test_knockout import legal
from tests.test_model_page import opened
from tests.test_page import fine
from ui.kit.guard import Bar
from ui.trained import controls

# The sentences


def test_many_sentences_at_once_are_those_that_a_writer_writes_one_by_one():
    numbers = torch.randint(2**31, (5000, NUMBERS), generator=generator(3, "sentences"))
    rows = forms().write(numbers.numpy(), VOCABULARY).tolist()
    for line, row in zip(numbers.tolist(), rows):
        wanted = Writer(line).sentence()
        assert [VOCABULARY[token] for token in row] == wanted + [VOCABULARY[0]] * (LONGEST + 1 - len(wanted))


@pytest.mark.parametrize(
    ("many", "digest"),
    [(8, "b5b6adc71252e813"), (64, "7acbd517aa1f5254"), (256, "ac3268bf663d84f9"), (1024, "77b20f08e31629e5"), (4096, "fe365d10bc232441")],
)  # fmt: skip
def test_the_questions_stay_the_same(many, digest):
    """Digests of what was drawn one sentence at a time, which took 47 seconds for the last of them."""
    drawn = (sentences.__wrapped__(many, 0), sentences.__wrapped__(8 * many, 1))
    assert hashlib.blake2b(repr(drawn).encode(), digest_size=8).hexdigest() == digest


def test_ten_thousand_sentences_are_drawn_in_seconds():
    begun = time.process_time()
    sentences.__wrapped__(10_000, 7)
    assert time.process_time() - begun < 10  # one by one: 30


# Once for all who ask


def test_who_asks_for_what_is_being_made_waits_and_is_handed_it_even_where_it_is_not_kept():
    cache, begun, made = LRUCache(1), threading.Event(), []

    def make():
        begun.set()
        time.sleep(0.3)
        made.append(object())
        return made[-1], 2 << 20  # more than there is room for

    found = []
    visitors = [threading.Thread(target=lambda: found.append(cache.get("sweep", make))) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
        begun.wait()
    for visitor in visitors:
        visitor.join()
    assert len(made) == 1 and found == 4 * made and cache.peek("sweep") is None and not cache._turns


class Left(BaseException):
    """As Streamlit ends the run of a visitor who has gone."""


def leave(*_):
    raise Left


def leave_after(signs: int):
    """A visitor who goes when so many signs have come."""
    left = iter(range(signs))
    return lambda *_: next(left, None) is None and leave()


def test_who_waits_can_leave_and_where_the_first_leaves_the_next_one_goes_on():
    cache, begun, on = LRUCache(1), threading.Event(), threading.Event()

    def make():
        begun.set()
        on.wait()
        tell(0.5, "half")
        return "made", 1

    def first():
        with watched(leave), pytest.raises(Left):
            cache.get("sweep", make)

    visitor = threading.Thread(target=first)
    visitor.start()
    begun.wait()
    with watched(leave), pytest.raises(Left):
        cache.get("sweep", make)
    on.set()
    visitor.join()
    assert cache.get("sweep", make) == "made" and not cache._turns


def test_who_waits_for_another_large_run_says_so_and_can_leave(monkeypatch):
    monkeypatch.setattr(memory, "HEAVY", 0)
    begun, on, signs = threading.Event(), threading.Event(), []

    def first():
        with memory.room_for(1, "This grid"):
            begun.set()
            on.wait()

    visitor = threading.Thread(target=first)
    visitor.start()
    begun.wait()
    with watched(leave), pytest.raises(Left), memory.room_for(1, "This grid"):
        raise AssertionError("two large runs at once")
    with watched(lambda *sign: (signs.append(sign), on.set())), memory.room_for(1, "This grid"):
        visitor.join()
    assert signs[0] == (None, "waiting for another large run on this server")
    assert large.idle


class Visitor:
    """One thread that does what it is told, and says when it is done."""

    def __init__(self):
        self.asked, self.done = queue.Queue(), queue.Queue()
        threading.Thread(target=self._live, daemon=True).start()

    def _live(self):
        with contextlib.ExitStack() as page:
            for what in iter(self.asked.get, None):
                what(page)
                self.done.put(what)
        self.done.put("left")

    def begin(self, what):
        self.asked.put(what)
        return self

    def soon(self) -> bool:
        """Whether it has been done within some time; if not, it waits."""
        try:
            self.done.get(timeout=0.4)
        except queue.Empty:
            return False
        return True

    def done_at_last(self) -> bool:
        return bool(self.done.get(timeout=20))


def opens(page):
    page.enter_context(large.held())


def makes(megabytes: int):
    def run(page):
        with memory.room_for(megabytes << 20, "This grid"):
            pass

    return run


def test_what_a_page_still_holds_counts_until_it_is_drawn(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1000")
    one, two, three, nobody = (Visitor() for _ in range(4))
    for each in (one, two, three):
        assert each.begin(opens).done_at_last()
    assert one.begin(makes(600)).done_at_last()
    assert three.begin(makes(300)).done_at_last(), "900 MB"
    assert nobody.begin(makes(100)).done_at_last() and nobody.begin(makes(100)).done_at_last(), (
        "of which nothing is held"
    )
    assert not two.begin(makes(500)).soon(), "1,400 MB at once"
    assert not nobody.begin(makes(100)).soon(), "who came later"
    assert three.begin(makes(310)).done_at_last(), "who holds something waits for nobody who does not"
    one.begin(None)
    assert one.done_at_last() and two.done_at_last() and nobody.done_at_last()
    for each in (two, three, nobody):
        assert each.begin(None).done_at_last()
    assert large.idle


def test_who_has_held_something_for_longest_waits_for_nobody_who_holds_something(monkeypatch):
    """Otherwise these two would wait for each other."""
    monkeypatch.setenv("ABLATION_MAX_MB", "1000")
    one, two = Visitor(), Visitor()
    for each in (one, two):
        assert each.begin(opens).done_at_last() and each.begin(makes(300)).done_at_last()
    assert not two.begin(makes(900)).soon()
    assert one.begin(makes(900)).done_at_last()
    one.begin(None)
    assert one.done_at_last() and two.done_at_last() and two.begin(None).done_at_last()
    assert large.idle


def test_who_waits_for_what_another_computes_does_not_keep_him_from_it(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1000")
    one, two, theirs = Visitor(), Visitor(), threading.Lock()

    def alone(page):
        page.enter_context(turn(theirs, "the same"))

    for each in (one, two):
        assert each.begin(opens).done_at_last()
    assert one.begin(makes(600)).done_at_last() and two.begin(alone).done_at_last()
    one.begin(alone)
    assert two.begin(makes(900)).done_at_last() and two.begin(None).done_at_last()
    assert one.done_at_last() and one.begin(None).done_at_last()
    assert large.idle


def test_a_page_holds_what_it_has_made_until_it_is_drawn(monkeypatch):
    monkeypatch.setattr(memory, "HEAVY", 0)
    seen, told = [], controls.summary
    monkeypatch.setattr(controls, "summary", lambda context: (seen.append(dict(large._held)), told(context))[1])
    fine(opened(prompt="the judge of a page that holds", taken="steps"))
    assert len(seen[0]) == 1 and max(seen[0].values()) > 1000 and large.idle


@pytest.mark.parametrize("what", ["look", "effect", "text"])
def test_what_stands_elsewhere_is_recorded_in_a_turn_of_its_own(what, monkeypatch):
    """Six visitors at once who had the mean put in took 3 GB."""
    monkeypatch.setattr(memory, "HEAVY", 0)
    model = legal()
    bench, read, cut = (
        knockout.Bench(model, questions(model, 8)),
        prompt.read(model, "the judge"),
        cuts(model.config)[:1],
    )
    turns, record = [], bench._record
    monkeypatch.setattr(bench, "_record", lambda: (turns.append(large._running), record())[1])
    if what == "look":
        prompt.look(bench, read, tuple(cut), "mean")
    elif what == "effect":
        bench.effect(tuple(cut), "mean")
    else:
        going_on = prompt.continuation(bench, read, 1, Sampling(words=5), tuple(cut), "mean")
        next(going_on)
        assert large._running
        going_on.close()
    assert turns == [True] and large.idle


# What is let go of


def everything(bench):
    made, read = cuts(bench.model.config)[:1], prompt.read(bench.opened, "the judge , who was late , was right .")
    prompt.look(bench, read)
    prompt.look(bench, read, tuple(made), "resample")
    list(prompt.continuation(bench, read, 3, Sampling(words=2), tuple(made), "mean"))
    knockout.measured(bench, tuple(made), "mean")
    contributions.takeover(bench, tuple(made), "zero")
    bench.opened.results.get((bench.key, "readings"), lambda: (tables.readings(bench), 10_000))


def test_a_bench_that_is_not_kept_is_not_held_by_what_was_measured_on_it(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "3")
    model = legal()
    bench = knockout.bench(model, 64)
    everything(bench)
    gone = weakref.ref(bench)
    del bench
    gc.collect()
    assert gone() is None and model.results._kept


def test_a_bench_that_makes_room_for_others_is_let_go_of():
    model = legal()
    gone = weakref.ref(knockout.bench(model, 64))
    everything(gone())
    assert gone() is not None
    model.results.put("another", "large", model.results.max_bytes - model.results._bytes + 1)  # what is oldest goes
    gc.collect()
    assert gone() is None


def test_what_was_measured_on_other_texts_is_another_result():
    model = legal()
    few, many = knockout.bench(model, 32), knockout.bench(model, 64)
    assert few.key != many.key == knockout.Bench(model, questions(model, 64)).key
    assert knockout.bench(legal(), 32).key == few.key


# Limits of time


def test_what_would_take_too_long_is_ended_soon_and_says_what_would_help(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "20")
    monkeypatch.setattr(pieces, "SOON", 0.01)
    done = []
    with pytest.raises(
        TimeLimit, match=r"4,096 texts would take about .* at most 20 s .*ABLATION_MAX_SECONDS.*fewer texts"
    ):
        for number in pieces.pieces(range(4096), 4096, "4,096 texts"):
            time.sleep(0.02)
            done.append(number)
    assert len(done) == 2


def test_a_first_piece_that_takes_long_is_no_measure_for_the_others(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "1")
    monkeypatch.setattr(pieces, "SOON", 0.01)
    for number in pieces.pieces(range(100), 100, "words"):
        time.sleep(0.0 if number else 0.1)


@pytest.mark.parametrize("what", ["effect", "bench", "words", "credit"])
def test_everything_that_is_long_says_how_far_it_is(what, monkeypatch):
    monkeypatch.setattr(knockout, "SLICE", 8)
    model, signs = legal(), []
    bench = knockout.bench(model, 64)
    with watched(lambda share, words: signs.append((share, words))):
        if what == "bench":
            knockout.Bench(model, questions(model, 64))
        elif what == "effect":
            list(bench.sweep("mean"))
        elif what == "credit":
            monkeypatch.setattr(contributions, "ROOM", 1)
            contributions.of_bench(bench)
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


def deep(what: str, seed: int):
    """One of a seed's own, so that no other test has had it computed."""
    call, more = DEEP[what]
    config = Config(d_model=16, n_heads=2, d_ff=24, seed=seed)
    return call(config, *more, WORDS, None, Depth(9, "separate" if what == "separate" else "same"))


@pytest.mark.parametrize("what", DEEP)
def test_every_pass_says_how_far_it_is_and_can_be_the_last(what, monkeypatch):
    monkeypatch.setattr(memory, "HEAVY", 0)
    signs = []
    with watched(lambda share, words: signs.append((share, words))):
        deep(what, 7101)
    shares = [share for share, _ in signs]
    assert len(shares) >= 9 and shares == sorted(shares) and shares[-1] == 1 and "9 passes" in signs[0][1]

    for last in (1, 5, len(signs) - 2):
        with watched(leave_after(last)), pytest.raises(Left):
            deep(what, 7102)
        assert not _open.get() and large.idle
    deep(what, 7102)


@pytest.mark.parametrize("what", DEEP)
def test_passes_that_would_take_too_long_are_ended_soon(what, monkeypatch):
    monkeypatch.setattr(pieces, "SOON", 0.0)
    monkeypatch.setattr(pieces, "max_seconds", lambda: 0.0)
    with pytest.raises(TimeLimit, match=r"9 passes.* would take about .* ABLATION_MAX_SECONDS.*fewer passes"):
        deep(what, 7103)


def test_a_sweep_of_hours_is_refused_and_one_of_a_minute_asks_first(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "60")
    monkeypatch.setattr(knockout.Bench, "sweep_seconds", 5 * 3600.0)
    sweep = knockout.Bench.sweep
    monkeypatch.setattr(knockout.Bench, "sweep", None)  # it would fail
    app = fine(opened(taken="sweep", texts="16"))
    said = " ".join(each.value for each in app.info).replace("\\", "")
    assert "parts over 16 held-out legal sentences would take about 5.0 h" in said and "at most 60 s" in said
    assert "ABLATION_MAX_SECONDS" in said and "Choose fewer texts" in said
    assert not any(button.key == "sweep_start" for button in app.button)
    monkeypatch.setattr(knockout.Bench, "sweep_seconds", 50.0)
    app = fine(opened(taken="sweep", texts="16"))
    assert "about 50 s on this machine" in app.info[0].value
    monkeypatch.setattr(knockout.Bench, "sweep", sweep)
    app = fine(next(button for button in app.button if button.key == "sweep_start").click().run())
    assert not app.info


def test_the_bar_lets_streamlit_end_a_run_that_takes_long(monkeypatch):
    drawn = []

    class Place:
        def progress(self, share, text):
            drawn.append((share, text))

    monkeypatch.setattr("ui.kit.guard.st.empty", Place)
    bar = Bar()
    bar.draw(0.1, "soon")
    assert not drawn  # a page that is quick has none
    bar.next = 0.0
    bar.draw(None, "waiting")
    bar.draw(0.5, "too soon again")
    assert drawn == [(0.0, "Waiting")]
