"""The block's page: every view, range end and invalid link, without a traceback."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.model.text import EXAMPLES, split_words
from tests import pages
from tests.pages import (
    back,
    components,
    control,
    controls,
    link,
    move,
    move_control,
    pick,
    setting,
    widget,
    written,
)
from tests.pages import words as shown_words
from ui.block import view as views

PAGE = "pages/1_One_block.py"


def opened(page: str = PAGE, **params) -> AppTest:
    """Open a page from a link; by default One block uses random weights."""
    return pages.opened(page, **({"weights": "random"} if page == PAGE else {}) | params)


def told(app) -> str:
    return pages.plain(" ".join(e.value for e in [*app.warning, *app.error]))


def said_on(app) -> list[str]:
    return [pages.plain(element.value) for element in [*fine(app).markdown, *app.caption]]


def fine(app) -> AppTest:
    assert not app.exception, [e.value for e in app.exception]
    assert not any("went wrong" in e.value for e in app.error), [e.value for e in app.error]
    return app


def summary(app) -> str:
    return next(item for item in written(app) if "parameters" in item)


def test_default_block_has_49984_parameters():
    assert "49,984 parameters" in summary(fine(opened()))


def test_oversized_run_is_refused_before_building(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "40")
    monkeypatch.setattr("core.experiments.forward.Transformer", None)  # building it would fail
    app = opened(d_model="1024", n_layers="12", d_ff="777")
    assert "ABLATION_MAX_MB" in told(app)
    assert "40 MB" in told(app)
    assert setting(app, "d_ff") == 777
    assert not app.exception


@pytest.mark.parametrize(
    "text",
    [
        "one",
        "👩‍👩‍👧‍👦 🇩🇪 👍🏽 1️⃣",
        "שלום עולם مرحبا بالعالم",
        "<b>bold</b> <script>alert(1)</script>",
        "**bold** _it_ [a](b) :red[x] `code` ~~s~~",
        "$x^2$ and $$y$$",
        "a | b \\ c {d}",
        "https://evil.test/a www.evil.test me@evil.test",
        "supercalifragilistic" * 40,
    ],
)
@pytest.mark.parametrize("view", ["attention", "stages", "text"])
def test_odd_text_shows_literally(text, view):
    app = fine(opened(text=text, view=view))
    assert setting(app, "text") == text
    for element in app.markdown:
        if element.value.startswith("**"):  # every mark that a user typed is escaped
            assert not re.search(r"(?<!\\)(<b>|<script|\[a\]|`code`|\$x|~~s)", element.value), (
                element.value
            )


def test_examples_bring_their_own_pairs_and_text():
    for example in EXAMPLES:
        app = opened(view="pairs")
        move_control(app, "example_of_text", example.text)
        fine(app)
        assert setting(app, "text") == example.text
        labels = [tuple(split_words(example.text)[n] for n in pair) for pair in example.pairs]
        assert len(widget(app.multiselect, "pair_list").value) == len(labels)


def test_marking_and_clearing_pairs():
    app = opened(view="pairs", text="the dog that barked ran")
    assert "No pairs marked" in app.info[0].value
    app.selectbox(key="pair_from").set_value("5 ran")
    app.selectbox(key="pair_to").set_value("2 dog").run()
    app.button[[b.label for b in app.button].index("Mark pair")].click().run()
    assert link(fine(app))["pairs"] == "5-2"
    widget(app.multiselect, "pair_list").set_value([]).run()
    assert link(fine(app))["pairs"] == "none"


def moved(app, **values):
    """Return the page after a full run with moved controls; AppTest shows the last run alone."""
    return fine(move(app, **values).run())


def test_dividing_heads_are_offered_and_conflicts_reported():
    app = moved(opened(d_model="72"), n_heads=24)
    assert shown_words(app, "n_heads") == ["1", "2", "3", "4", "6", "8", "9", "12", "18", "24"]
    app = moved(app, d_model=64)
    assert setting(app, "n_heads") == 16
    assert "n_heads is 24" in told(app)
    app = moved(moved(app, d_model=72), n_heads=24)
    app = moved(app, position="rope")
    assert setting(app, "position") == "none"
    assert "must be even" in told(app)


def test_sessions_do_not_see_each_other():
    first = opened(d_ff="96", seed="1")
    two = opened(d_ff="320", seed="2", text="quite another sentence")
    moved(first, norm="none")
    moved(two, mask="causal")
    assert link(first) == {"weights": "random", "d_ff": "96", "seed": "1", "norm": "none"}
    assert (
        link(two)["text"] == "quite another sentence"
        and link(two)["mask"] == "causal"
        and "norm" not in link(two)
    )
    assert summary(first) != summary(two)


@pytest.mark.parametrize("view", views)
@pytest.mark.parametrize("n_layers, activation", [(6, "gelu"), (2, "swiglu")])
def test_numbers_out_of_range_are_said_to_be_so(view, n_layers, activation):
    app = fine(
        opened(
            view=view, init="normal_1", norm="none", n_layers=str(n_layers), activation=activation
        )
    )
    assert not app.error
    assert ("became infinite or NaN" in told(app)) == (n_layers != 2)
    for element in app.markdown:
        assert not re.search(r"\b(nan|inf)\b", element.value), element.value


def test_script_of_three_head_counts_has_all(monkeypatch):
    scripts = []
    monkeypatch.setattr(
        "ui.kit.takeaway.draw_export",
        lambda page, script, *rest_of_arguments: scripts.append(script()),
    )
    fine(opened(view="heads", compare="on"))
    (exported,) = scripts
    assert all(f'"{name}":' in exported.python() for name in ("1 head", "4 heads", "8 heads"))


def test_controls_without_effect_are_hidden():
    visible = controls(opened(weights="random"))
    assert (
        "window" in visible
        and not {"global_every", "rope_share", "rope_base", "nope_every", "matched"}
        & visible.keys()
    )
    assert {"global_every", "matched"} <= controls(
        opened(weights="random", window="3", activation="swiglu")
    ).keys()
    assert {"rope_share", "rope_base", "nope_every"} <= controls(
        opened(weights="random", position="rope")
    ).keys()
    assert "rope_share" in controls(opened(weights="random", rope_share="0.5")), (
        "so that it can be brought back"
    )


def test_explicit_default_can_be_released():
    app = opened(n_heads="4")
    move_control(move_control(app, "n_kv_heads", "2"), "n_kv_heads", "4")
    assert (
        control(app, "n_kv_heads")["back"]
        and control(app, "n_kv_heads")["usual"] == "4"
        and "n_kv_heads" in link(app)
    )
    move_control(app, "n_heads", "8")
    assert setting(app, "n_kv_heads") == 4 and control(app, "n_kv_heads")["usual"] == "8"
    back(app, "n_kv_heads")
    assert setting(app, "n_kv_heads") == 8 and "back" not in control(app, "n_kv_heads")
    assert "n_kv_heads" not in link(app)


def test_random_weights_generate_in_sliding_context():
    app = fine(opened(view="text", text="the dog bites the man", context="6", words="9"))
    (chips,) = components(app, "ablation_chips")
    tokens = json.loads(json.loads(chips.json))["tokens"]
    assert [token["text"] for token in tokens[:5]] == ["the", "dog", "bites", "the", "man"]
    assert len(tokens) == 14 and {token["text"] for token in tokens} == {
        "the",
        "dog",
        "bites",
        "man",
    }
    assert any("Context: the last" in item for item in said_on(app))
    pick(app, chips, 9)  # the fifth new word
    (chips,) = components(fine(app), "ablation_chips")
    read = [load["weight"] is not None for load in json.loads(json.loads(chips.json))["tokens"]]
    assert read == [False] * 3 + [True] * 6 + [False] * 5
    assert any("tokens 4 to 9" in item for item in said_on(app))
    app = moved(app, context=60)
    assert not any("sliding" in item for item in said_on(app))
    assert {"context", "temperature", "top_k", "top_p", "draw", "words"} <= controls(app).keys()
    assert "context" not in controls(fine(opened(view="cost")))


@pytest.mark.parametrize(("gate", "last"), [("off", "10"), ("on", "11")])
def test_last_step_of_attention_opens_and_is_numbered(gate, last):
    """A gate adds a step; a link to a later step than there is opens the last one."""
    app = fine(opened(weights="random", view="steps", step="11", gate=gate))
    assert pages.offered(app, "step")[-1] == last
    assert any(re.match(rf"\W*{last}\W+Output", item) for item in said_on(app)), said_on(app)
