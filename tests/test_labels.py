"""Pictures, lists and tables separate items with equal labels: tokens, models, lessons."""

import json
import re

import pandas as pd
import pyarrow
import pytest

from core.checkpoints.tokens import Words
from core.experiments.trained import comparison, knockout
from core.model.config import Config
from core.model.parts import MENUS
from core.model.variants import Pins, lineup
from core.study.picture import matrix_svg
from core.study.summary import in_one_column
from core.tasks import task
from core.teaching.lessons.lesson import LessonError
from core.teaching.lessons.reader import FOLDER, build_lesson, load
from tests.pages import setting, texts, widget
from tests.test_model_page import READER as HEAD
from tests.test_model_page import fine, opened

LONG = "a word that is far too long to be shown on an axis as a whole"


def read_chart(chart) -> tuple[dict, pd.DataFrame]:
    """Return the specification and the table that a page sends to the browser."""
    return (
        json.loads(chart.proto.spec),
        pyarrow.ipc.open_stream(chart.proto.data.data).read_pandas(),
    )


@pytest.mark.parametrize("out", ["", HEAD])
def test_next_words_with_equal_labels_have_own_bars(monkeypatch, out):
    monkeypatch.setattr(Words, "label", lambda self, token: f"{LONG} {token}")
    app = fine(opened(taken="words", out=out))
    spec, table = read_chart(app.get("vega_lite_chart")[0])
    bars = spec["layer"][0]["encoding"]
    row = bars["y"]["field"]
    side = bars["yOffset"]["field"]
    assert table.token.nunique() >= 8 and table[row].nunique() == table.token.nunique()
    assert (table.groupby([row, side]).size() == 1).all()  # bars in one place would be stacked
    assert table.groupby(row).token.nunique().eq(1).all()


def open_equal_pairs():
    """Open One block on two marked pairs of the same words."""
    params = {"view": "pairs", "weights": "random", "text": "the dog and the dog"}
    return fine(opened("pages/1_One_block.py", **params, pairs="2-1,5-4"))


def test_pairs_of_the_same_words_are_two_arcs():
    app = open_equal_pairs()
    spec, table = read_chart(app.get("vega_lite_chart")[0])
    arcs = table[table.word.isna()]
    assert (arcs.groupby(spec["layer"][0]["encoding"]["detail"]["field"]).size() == 25).all()
    assert arcs.pair.unique().tolist() == ["dog → the"]


def test_removing_one_of_two_equal_pairs_keeps_other():
    app = open_equal_pairs()
    chosen = widget(app.multiselect, "pair_list")
    assert len(set(chosen.options)) == 2
    chosen.set_value(["2-1"]).run()
    assert setting(fine(app), "pairs") == "2-1"


def test_logit_lens_compares_tokens_not_labels(monkeypatch):
    text = texts(fine(opened(taken="layers")))
    monkeypatch.setattr(Words, "label", lambda self, token: LONG)
    (first,) = re.findall("top-1 from (layer \\d) onwards", text)
    assert f"top-1 from {first} onwards" in texts(fine(opened(taken="layers")))


def test_variants_whose_names_round_alike_have_two_names():
    variants, notes = lineup(Config(), Pins(variants="dropout-0.12345671~dropout-0.12345672"))
    assert not notes and [variant.config.dropout for variant in variants[1:]] == [
        0.12345671,
        0.12345672,
    ]
    assert len({variant.name for variant in variants}) == 3


def test_cells_whose_names_read_alike_are_two_rows():
    names = [("c", "a: b"), ("b: c", "a")]
    line = dict.fromkeys(
        ["accuracy", "low", "high", "difference", "difference_low", "difference_high", "p"], 0.5
    )
    table = pd.DataFrame(
        {
            "task": task,
            "variant": variant,
            "link": "",
            "seeds": 3,
            "diverged": 0,
            "missing": 0,
            **line,
        }
        for task, variant in names
    )
    joined = in_one_column(table, "change")
    assert joined.cell.tolist() == names and joined.variant.nunique() == 2
    assert matrix_svg(joined).count("<title>") == 2


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("prediction", "prediction.options: two of them have the same text"),
        ("transfer", "transfer.options: two of them have the same text"),
    ],
)
def test_lesson_with_equal_answers_is_refused(place, words):
    document = load(FOLDER / "order.toml")
    options = document[place]["options"]
    if place == "prediction":
        options[1]["text"] = options[0]["text"]
    else:
        options[1] = options[0]
    with pytest.raises(LessonError, match=words):
        build_lesson("order", document)


@pytest.mark.parametrize(
    "menu",
    [*MENUS.values(), task, knockout.effect, comparison.compared, comparison.removed],
    ids=lambda menu: menu.title,
)
def test_menu_labels_are_unique(menu):
    labels = [menu.label(name) for name in menu]
    assert len(set(labels)) == len(labels)
