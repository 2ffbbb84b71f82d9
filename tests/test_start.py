"""The first screen: what it shows of one head is what the model that ships computes, with the head and without it, one sentence at a time."""

import re

import pytest
import torch

from core.checkpoints import files
from core.experiments.trained.prompt import RIGHT, SUBJECT, TEXT, Flip, Side, flip
from core.experiments.trained.questions import SEED
from core.experiments.trained.sentences import sentences
from core.figures.small_pictures import agreement_svg, describe
from core.model.trace import trace
from core.tasks.sentences import BE, anatomy
from tests import pages
from tests.pages import components, link
from tests.test_page import fine, told
from ui.start import told as said_of

SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
LAYER, HEAD = (n - 1 for n in SHIPPED.about["reader"])
NUMBER = {word: at for at, word in enumerate(SHIPPED.model.vocabulary)}


def without_head(site, layer, x):
    """What the head writes, taken out by hand."""
    if site == "z" and layer == LAYER:
        x = x.clone()
        x[:, HEAD] = 0
        return x


def slowly(words, removed: bool):
    """-> (probability of was and of were as the next word, the head's attention at the last word)"""
    ids = torch.tensor([[NUMBER[word] for word in words]])
    with torch.inference_mode(), trace(*([without_head] if removed else []), sites=("z", "pattern")) as seen:
        chances = SHIPPED.model(ids)[0, -1].double().softmax(-1)
    return {word: chances[NUMBER[word]].item() for word in BE}, seen["pattern"][LAYER][0, HEAD, -1].tolist()


@pytest.fixture(scope="module")
def made() -> Flip:
    return flip(SHIPPED, LAYER, HEAD)


def test_the_head_is_cut_where_it_writes():
    with torch.inference_mode(), trace(sites=("z",)) as seen:
        SHIPPED.model(torch.tensor([[1, 2, 3]]))
    assert seen["z"][LAYER].shape[1] == SHIPPED.config.n_heads


@pytest.mark.parametrize("removed", [False, True])
def test_its_figures_are_those_of_the_model_one_sentence_at_a_time(made, removed):
    side = made.without if removed else made.whole
    chances, weights = slowly(TEXT.split(), removed)
    assert side.chances == pytest.approx(chances, abs=1e-5) and side.wrong == removed
    if not removed:
        assert made.words == tuple(TEXT.split()) and made.weights == pytest.approx(weights, abs=1e-5)
        assert made.words[weights.index(max(weights))] == SUBJECT
    right = 0
    for sentence in sentences(256, SEED):
        verb = anatomy(list(sentence)).verb
        chances, _ = slowly(sentence[:verb], removed)
        right += max(chances, key=chances.get) == sentence[verb]
    assert (side.right, side.of) == (right, 256)


@pytest.mark.parametrize("removed", [False, True])
def test_the_switch_shows_the_other_side_and_its_figures(made, removed):
    app = fine(pages.opened("app.py"))
    (switch,) = app.toggle
    if removed:
        app = fine(switch.set_value(True).run())
    side = made.without if removed else made.whole
    said = " ".join(each.value for each in app.markdown)
    for word, chance in slowly(TEXT.split(), removed)[0].items():
        assert f"{word} {chance:.2f}" in said.replace("**", "")
    assert f"**{side.right} of {side.of}**" in said and (f"with the head {made.whole.right} of" in said) == removed
    (picture,) = components(app, "ablation_hero")
    assert f">{side.chosen}</text>" in picture.json.replace("\\u003c", "<") and ("wrong" in picture.json) == removed
    labels = [each.proto.label for each in app.get("page_link")]
    assert [label for label in labels if label.startswith("**")][:3] == [
        "**Take a block apart**", "**Train without a part**", "**What else is in this model?**",
    ]  # fmt: skip
    assert not told(app)
    assert dict(link(app)) == ({"removed": "on"} if removed else {})
    assert fine(pages.opened("app.py", **link(app))).toggle[0].value == removed


@pytest.mark.parametrize("chosen, wrong", [("was", False), ("were", True)])
@pytest.mark.parametrize("removed", [False, True])
def test_the_picture_holds_every_word_and_says_what_it_shows(chosen, wrong, removed):
    words, weights = ["the", "defendant", "<b>", ","], [0.01, 0.8, 0.15, 0.04]
    svg = agreement_svg(words, weights, chosen, wrong, removed)
    assert re.findall(r'class="word middle[^"]*"[^>]*>([^<]*)<', svg) == ["the", "defendant", "&lt;b&gt;", ",", chosen]
    assert svg.count("<path") == 3 and (svg.count(' off"') == 3 + 2) == removed  # 0.01 is not drawn
    assert re.findall(r'class="figure[^>]*>([^<]*)<', svg) == ["0.15", "0.80"]
    text = describe(words, weights, chosen, wrong, removed)
    assert f"chooses “{chosen}”, which is {'wrong' if wrong else 'right'}" in text and "0.80" in text
    assert ("is removed" in text) == removed


def test_what_is_said_names_the_likelier_word():
    whole, without = Side({"was": 0.7, "were": 0.1}, 9, 10), Side({"was": 0.2, "were": 0.3}, 5, 10)
    assert said_of(whole, without, False) == (
        f"Next word: **was 0.70**, were 0.10, all other words 0.20 ({RIGHT} is right). Right in **9 of 10** held-out sentences."
    )
    assert said_of(whole, without, True) == (
        f"Next word: was 0.20, **were 0.30**, all other words 0.50 ({RIGHT} is right). Right in **5 of 10** held-out sentences; with the head 9 of 10."
    )
