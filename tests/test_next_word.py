""" "was" turns into "were" where the head that reads the subject is removed."""

import numpy as np
import pytest

from core.checkpoints.tokens import UNKNOWN
from core.experiments.trained.questions import SEED
from core.experiments.trained.sentences import following_words, group_words, sentences
from core.model.text import PAD, split_words
from core.settings.wording import number
from core.tasks.sentences import (
    ADJECTIVES,
    BE,
    DETERMINERS,
    HOLDING,
    LINKS,
    MARKS,
    NEAR,
    NUMBER,
    OF_KIND,
    RULED,
    TO_PEOPLE,
    TO_THINGS,
    find_anatomy,
    is_kept_back,
)
from tests.pages import control, press, setting
from tests.reference import forward, weights_of
from tests.test_model_page import READER, SHIPPED, fine, opened, texts
from ui.shared.models import SHIPPED as NAME
from ui.shared.models import example_prompts

TEXT = example_prompts(NAME)[0][1]
VOCABULARY = SHIPPED.model.vocabulary


def slowly(text: list[str], removed: str = "") -> dict[str, float]:
    """Return each word's probability of being next, in float64, one vector after another.

    A head is removed by zeroing its columns of W_O.
    """
    weights = weights_of(SHIPPED.model)
    if removed:
        layer, head = (int(n) - 1 for n in removed.split("."))
        width = SHIPPED.config.d_head
        weights[f"blocks.{layer}.attn.out.weight"][:, width * head : width * (head + 1)] = 0
    scores = forward(weights, SHIPPED.config, [[VOCABULARY.index(word) for word in text]])[
        "logits"
    ][0][0][-1]
    shares = np.exp(scores - scores.max())
    return dict(zip(VOCABULARY, (shares / shares.sum()).tolist()))


@pytest.fixture(scope="module")
def chances():
    """Return the probabilities of the default text's verb, with and without the head."""
    verb = find_anatomy(TEXT.split()).verb
    return [slowly(TEXT.split()[:verb], removed) for removed in ("", READER)]


def test_default_text_is_known_and_depends_on_one_head(
    chances,
):
    """The default text is a held-out sentence with distractors of the other number."""
    sentence = TEXT.split()
    full, without = chances
    places = find_anatomy(sentence)
    assert (
        set(split_words(TEXT)) <= set(VOCABULARY)
        and is_kept_back(sentence)
        and places.distractors == 3
    )
    right = sentence[places.verb]
    wrong = BE[1 - BE.index(sentence[places.verb])]
    assert NUMBER[sentence[places.subject]] == BE.index(right)
    assert full[right] > 0.9 > 0.1 > full[wrong] and without[wrong] > 0.9 > 0.1 > without[right]


def test_probabilities_stand_side_by_side_with_and_without_head(chances):
    full, without = chances
    text = texts(fine(opened(taken="words", out=READER)))
    was, were = (f"“{word}” {full[word]:.2f} → {without[word]:.2f}" for word in BE)
    for element in (text, texts(fine(opened(taken="knockout", out=READER)))):
        assert f"{was}; {were}." in element and "“were” instead of “was”" in element


def test_likeliest_word_is_named_where_text_differs():
    text = "the witness said that the owners of".split()
    chances = slowly(text)
    best = max(chances, key=chances.get)
    assert f"Top prediction: “{best}” ({100 * chances[best]:.3g} %)" in texts(
        fine(opened(taken="words", prompt=" ".join(text)))
    )
    message = texts(fine(opened(taken="words", prompt="the lawyer were right .", token="2")))
    chances = slowly(["the", "lawyer"])
    best = max(chances, key=chances.get)
    assert (
        f"Top prediction: “{best}”" in message
        and f"“were” ({number(100 * chances['were'])} %)" in message
    )


SENTENCES = [list(sentence) for sentence in sentences(512, SEED)]


def test_following_words_match_the_writer():
    """Kinds of words that may follow equal those seen after the same kinds in many sentences."""
    kind = {word: name for name, group in finely().items() for word in group}
    observed: dict[tuple[str, ...], set[str]] = {}
    for sentence in map(list, sentences(4096, SEED + 7)):
        kinds = [kind[word] for word in sentence]
        for index in range(len(kinds)):
            observed.setdefault(tuple(kinds[:index]), set()).add(kinds[index])
    for sentence in SENTENCES[:128]:
        for index in range(len(sentence)):
            can = following_words(sentence[:index])
            assert sentence[index] in can
            assert {kind[word] for word in can} >= observed.get(
                tuple(kind[word] for word in sentence[:index]), set()
            )
    for beginning, kinds in list(observed.items())[:400]:
        if len(beginning) < 4:  # so short that every way on has been met
            text = [finely()[name][0] for name in beginning]
            assert {kind[word] for word in following_words(text)} == kinds, beginning


def finely() -> dict[str, list[str]]:
    """Return the grammar's words by kind; nothing else distinguishes two words of one kind."""
    links = {word: [word] for word in (*LINKS, *MARKS)}
    groups = {
        "people": OF_KIND["people"],
        "things": OF_KIND["things"],
        "roles": OF_KIND["roles"],
        "be": list(BE),
    }
    lists = {
        "determiner": sorted(set(DETERMINERS)),
        "adjective": ADJECTIVES,
        "ruled": RULED,
        "signed": TO_THINGS,
        "suing": TO_PEOPLE,
        "near": NEAR,
        "holding": HOLDING,
    }
    return {**links, **groups, **lists}


def test_words_are_offered_once_with_following_first():
    for text in (
        "",
        "the",
        "the lawyer was",
        "the the",
        "banana",
        "the lawyer was late .",
        "The Lawyer",
    ):
        groups = group_words(split_words(text))
        order = [can for _, _, can in groups]
        assert order == sorted(order, reverse=True) and order[0]
        assert sorted(word for _, offered_words, _ in groups for word in offered_words) == sorted(
            set(VOCABULARY) - {PAD, UNKNOWN}
        )
        assert {
            word for _, offered_words, can in groups if can for word in offered_words
        } == following_words(split_words(text))


@pytest.mark.slow
@pytest.mark.parametrize("beginning", ["the witness said that the owners", "the lawyer", "the"])
def test_text_completes_greedily_to_its_full_stop(beginning):
    app = fine(press(opened(prompt=beginning), "complete"))
    text = beginning.split()
    while text[-1] != ".":
        chances = slowly(text)
        text.append(max(chances, key=chances.get))
    assert setting(app, "prompt") == " ".join(text)
    assert "ends with a full stop" in control(app, "complete")["help"]
    assert setting(fine(press(app, "complete")), "prompt") == " ".join(text)


def test_words_are_offered_where_model_knows_grammar():
    app = fine(opened(prompt="the lawyer"))
    field = control(app, "lexicon")
    assert field["label"] == "Vocabulary" and field["titles"] == ["Likely next", "Other"]
    assert [[g["name"], g["words"], g["next"]] for g in field["groups"]] == [
        list(g) for g in group_words(["the", "lawyer"])
    ]
    assert setting(fine(press(fine(opened(prompt="")), "complete")), "prompt") == ""
