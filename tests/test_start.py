"""The start page's numbers equal the shipped model's, with and without the head.

They are computed one sentence at a time.
"""

import json
import re
import shutil

import pandas as pd
import pytest
import streamlit as st
import torch

from core.checkpoints import files
from core.experiments.trained.prompt import RIGHT, SUBJECT, TEXT, Flip, Side, flip
from core.experiments.trained.questions import SEED
from core.experiments.trained.sentences import sentences
from core.figures.small_pictures import agreement_svg, describe_agreement
from core.model.trace import trace
from core.study.summary import read_summary
from core.tasks.sentences import BE, find_anatomy
from tests import pages
from tests.pages import components, link
from tests.test_page import fine, told
from ui.shared import models as choose
from ui.start import count_seeds, describe_accuracy, format_probability, prediction_html

SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
LAYER, HEAD = (n - 1 for n in SHIPPED.about["reader"])
NUMBER = {word: index for index, word in enumerate(SHIPPED.model.vocabulary)}


def without_head(site, layer, x):
    """Ablate the head's output by hand."""
    if site == "z" and layer == LAYER:
        x = x.clone()
        x[:, HEAD] = 0
        return x


def slowly(words, removed: bool):
    """Return the probabilities of "was" and "were", and the head's attention at the last word."""
    ids = torch.tensor([[NUMBER[word] for word in words]])
    with (
        torch.inference_mode(),
        trace(*([without_head] if removed else []), sites=("z", "pattern")) as record,
    ):
        chances = SHIPPED.model(ids)[0, -1].double().softmax(-1)
    return {word: chances[NUMBER[word]].item() for word in BE}, record["pattern"][LAYER][
        0, HEAD, -1
    ].tolist()


@pytest.fixture(scope="module")
def start_figures() -> Flip:
    return flip(SHIPPED, LAYER, HEAD)


@pytest.mark.parametrize("removed", [False, True])
def test_start_figures_match_single_sentences(start_figures, removed):
    side = start_figures.without if removed else start_figures.whole
    chances, weights = slowly(TEXT.split(), removed)
    assert side.chances == pytest.approx(chances, abs=1e-5) and side.wrong == removed
    if not removed:
        assert start_figures.words == tuple(
            TEXT.split()
        ) and start_figures.weights == pytest.approx(weights, abs=1e-5)
        assert start_figures.words[weights.index(max(weights))] == SUBJECT
    right = 0
    for sentence in sentences(256, SEED):
        verb = find_anatomy(list(sentence)).verb
        chances, _ = slowly(sentence[:verb], removed)
        right += max(chances, key=chances.get) == sentence[verb]
    assert (side.right, side.of) == (right, 256)


@pytest.mark.parametrize("removed", [False, True])
def test_switch_shows_ablated_side_and_figures(start_figures, removed):
    app = fine(pages.opened("app.py"))
    (switch,) = app.toggle
    if removed:
        app = fine(switch.set_value(True).run())
    side = start_figures.without if removed else start_figures.whole
    text = " ".join(markdown.value for markdown in app.markdown)
    share = 100 * side.right / side.of
    assert f"**{share:.0f} %**" in text and ("100 % with the head" in text) == removed
    picture = json.loads(components(app, "ablation_hero")[0].json)["picture"]
    for word, chance in slowly(TEXT.split(), removed)[0].items():
        assert (
            f"<span>{word}</span>" in picture
            and f"<span>{format_probability(chance)}</span>" in picture
        )
    assert f">{side.chosen}</text>" in picture and ("wrong" in picture) == removed
    labels = [page_link.proto.label for page_link in app.get("page_link")]
    first = [label for label in labels if label.startswith("**")][:3]
    assert first == ["**Explore a block**", "**Train without a component**", "**Lessons**"]
    assert not told(app)
    assert dict(link(app)) == ({"removed": "on"} if removed else {})
    assert fine(pages.opened("app.py", **link(app))).toggle[0].value == removed


@pytest.mark.parametrize("chosen, wrong", [("was", False), ("were", True)])
@pytest.mark.parametrize("removed", [False, True])
def test_start_picture_has_all_words_and_description(chosen, wrong, removed):
    words = ["the", "defendant", "<b>", ","]
    weights = [0.01, 0.8, 0.15, 0.04]
    svg = agreement_svg(words, weights, chosen, wrong, removed)
    assert re.findall(r'class="word middle[^"]*"[^>]*>([^<]*)<', svg) == [
        "the",
        "defendant",
        "&lt;b&gt;",
        ",",
        chosen,
    ]
    # Neither 0.01 nor the last word's attention to itself is drawn.
    assert svg.count("<path") == 2 and (svg.count(' off"') == 2 + 2) == removed
    last_word, next_word = (
        float(re.search(rf'x="([\d.]+)"[^>]*>{word}<', svg)[1]) for word in (",", chosen)
    )
    starts = {float(start) for start in re.findall(r'd="M ([\d.]+) ', svg)}
    assert starts == {last_word} and last_word < next_word
    assert re.findall(r'class="figure[^>]*>([^<]*)<', svg) == ["0.15", "0.80"]
    text = describe_agreement(words, weights, chosen, wrong, removed)
    assert (
        f"predicts “{chosen}”, which is {'incorrect' if wrong else 'correct'}" in text
        and "0.80" in text
    )
    assert ("is removed" in text) == removed


def test_prediction_states_whether_top_token_is_correct():
    likeliest = {"was": 0.48, ",": 0.23, "<b>": 0.093, "were": 0.0021}
    full = Side({"was": 0.48, "were": 0.0021}, likeliest, 10, 10)
    html = prediction_html(full)
    assert re.findall(r"<span>([^<]*) %</span>", html) == ["48", "23", "9.3", "0.21"]
    assert (
        f"prefers “{RIGHT}” (correct)" in html
        and "Most likely" not in html
        and "<b>&lt;" not in html
        and "&lt;b&gt;" in html
    )
    without = Side({"was": 0.2, "were": 0.3}, {"were": 0.3, "was": 0.2}, 5, 10)
    assert "“were” (incorrect)" in prediction_html(without)
    comma_first = Side({"was": 0.2, "were": 0.3}, {",": 0.31, "were": 0.3, "was": 0.2}, 5, 10)
    assert "“were” (incorrect). Most likely token: “,”" in prediction_html(comma_first)
    assert "**50 %** (100 % with the head)" in describe_accuracy(full, without, True)


@pytest.mark.parametrize("is_cut", [False, True])
def test_broken_shipped_model_loses_only_its_card(is_cut, tmp_path, monkeypatch):
    shutil.copytree(files.ROOT, tmp_path / "models")
    weights = tmp_path / "models" / files.SHIPPED / "model.safetensors"
    if is_cut:
        weights.write_bytes(weights.read_bytes()[:1000])
    else:
        shutil.rmtree(weights.parent)
    monkeypatch.setattr(files, "ROOT", tmp_path / "models")
    for forget in (choose._list_folders.cache_clear, choose._from_folder.clear):
        forget()
    for page in ("app.py", "pages/5_Trained_model.py"):
        app = fine(pages.opened(page))
        assert len(app.error) == 1 and files.SHIPPED in told(app) and str(tmp_path) not in told(app)
    labels = [page_link.proto.label for page_link in fine(pages.opened("app.py")).get("page_link")]
    assert any("Remove the residual" in label for label in labels)
    assert not any("Subject–verb agreement" in label for label in labels)
    monkeypatch.undo()
    for forget in (choose._list_folders.cache_clear, choose._from_folder.clear):
        forget()


@pytest.mark.parametrize("data", [None, b"task\n1\n"], ids=["missing", "another"])
def test_broken_results_table_loses_only_its_picture(data, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr("ui.start.read_summary", lambda _: read_summary(path))
    st.cache_data.clear()
    app = fine(pages.opened("app.py"))
    st.cache_data.clear()
    assert len(app.error) == 1 and "results/ablation_matrix.csv" in told(app)
    assert any(
        "Subject–verb agreement" in page_link.proto.label for page_link in app.get("page_link")
    )


@pytest.mark.parametrize("parts", ["ablation_matrix", "positions"])
def test_matrix_states_its_numbers_of_seeds(parts):
    assert "mean of 5 to 20 seeds." in pages.texts(pages.opened("app.py", parts=parts))


def test_count_of_equal_seeds_is_a_single_number():
    assert count_seeds(pd.Series([5, 5])) == "5 seeds"
