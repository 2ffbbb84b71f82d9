"""Tokenisation: typed or pasted text stays whole and in order, and omissions are reported."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.model.text import (
    EXAMPLES,
    MAX_TOKENS,
    PAD,
    Input,
    split_up_to_limit,
    split_words,
    vocabulary,
)

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
SKIN_TONE = "👍🏽"
KEYCAP = "1️⃣"
HEART = "❤️"
ENGLAND = "🏴󠁧󠁢󠁥󠁮󠁧󠁿"
SURFER = "🏄🏽‍♀️"  # skin tone, joiner and variation selector in one
SHAKING = "\U0001fae8"  # from Unicode 15, which Python 3.11's tables do not know yet

SENTENCES = {
    "nothing": ("", []),
    "white space": (" \t\n\r\u00a0\u3000\u2028", []),
    "punctuation": (
        "The court (1st) held: yes!",
        ["The", "court", "(", "1st", ")", "held", ":", "yes", "!"],
    ),
    "paragraph sign": ("§ 5(2)", ["§", "5", "(", "2", ")"]),
    "apostrophe": ("don't O’Neil's", ["don't", "O’Neil's"]),
    "plural possessive": ("tenants' lease", ["tenants", "'", "lease"]),
    "single quotes": ("the 'rule' holds", ["the", "'", "rule", "'", "holds"]),
    "typographic quotes": ("“the ‘rule’ holds”", ["“", "the", "‘", "rule", "’", "holds", "”"]),
    "double quotes": ('"yes"', ['"', "yes", '"']),
    "hyphen": ("cross-examine a well-known rule", ["cross-examine", "a", "well-known", "rule"]),
    "dash": ("held - and - rose — so", ["held", "-", "and", "-", "rose", "—", "so"]),
    "trailing hyphen": ("pre- and post-norm", ["pre", "-", "and", "post-norm"]),
    "numbers": ("$5 or 3.14", ["$", "5", "or", "3", ".", "14"]),
    "HTML": ("<b>hi</b> &amp;", ["<", "b", ">", "hi", "<", "/", "b", ">", "&", "amp", ";"]),
    "Markdown": ("**bold** [a](b)", ["*", "*", "bold", "*", "*", "[", "a", "]", "(", "b", ")"]),
    "identifiers": ("ln_final resid_pre", ["ln_final", "resid_pre"]),
    "composed accent": ("café", ["café"]),
    "combining accent": ("cafe\u0301 o\u0308l", ["café", "öl"]),
    "decomposed Hangul": ("\u1112\u1161\u11ab", ["한"]),
    "a combining accent that nothing takes in": ("q\u0301", ["q\u0301"]),
    "soft hyphen before an accent": ("cafe\u00ad\u0301", ["café"]),
    "Hebrew": ("שלום, עולם!", ["שלום", ",", "עולם", "!"]),
    "Arabic with vowels": ("كِتَابٌ جَدِيد", ["كِتَابٌ", "جَدِيد"]),
    "direction marks": ("\u200fשלום\u200e court", ["שלום", "court"]),
    "Persian": ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
    "Devanagari": ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
    "Devanagari with joiner": ("क्\u200dष है", ["क्\u200dष", "है"]),
    "Thai marks": ("ที่นี่ น้ำ", ["ที่นี่", "น้ำ"]),
    "Chinese": ("法院，认为", ["法院", "，", "认为"]),
    "family": (FAMILY, [FAMILY]),
    "flag": (FLAG, [FLAG]),
    "flag of England": (ENGLAND, [ENGLAND]),
    "skin tone": (SKIN_TONE, [SKIN_TONE]),
    "a skin tone by itself": ("👍 🏽", ["👍", "🏽"]),
    "keycap": (KEYCAP, [KEYCAP]),
    "variation selector": (HEART, [HEART]),
    "surfer": (SURFER, [SURFER]),
    "emoji after a word": ("court👍 " + "held" + HEART, ["court", "👍", "held", HEART]),
    "word after an emoji": ("👍court " + SKIN_TONE + "held", ["👍", "court", SKIN_TONE, "held"]),
    "an emoji of Unicode 15": ("a " + SHAKING + " b", ["a", SHAKING, "b"]),
    "NUL": ("a\0 b\0", ["a", "b"]),
    "bell, escape, delete": ("\x07a \x1bb\x7f", ["a", "b"]),
    "byte order mark": ("\ufeffcourt", ["court"]),
    "soft hyphen": ("de\u00adfendant", ["defendant"]),
    "padding cannot be typed": (PAD, ["<", "pad", ">"]),
}


@pytest.mark.parametrize(
    ("text", "tokens"), [pytest.param(*pair, id=name) for name, pair in SENTENCES.items()]
)
def test_words(text, tokens):
    assert split_words(text) == tokens


# Any text at all


PIECES = st.sampled_from(
    [
        *"aZé9_ '’-.,$<*\t\n\0",
        FAMILY,
        FLAG,
        SKIN_TONE,
        KEYCAP,
        HEART,
        ENGLAND,
        *"🇩🏽\u200d\u200c\ufe0f\u20e3\u0301\u00ad",
        "שלום",
        "नमस्ते",
        "\ud800",
    ]
)
ANY_TEXT = st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join))


def composed(text):
    return unicodedata.normalize("NFC", text.replace("\u00ad", ""))


def visible(text):
    """Return the visible characters: letters, digits, punctuation, symbols."""
    return [c for c in text if unicodedata.category(c)[0] in "LNPS"]


@given(ANY_TEXT)
def test_tokens_of_any_text_are_clean_and_in_order(text):
    tokens = split_words(text)
    assert all(tokens)
    for c in "".join(tokens):
        assert not c.isspace() and unicodedata.category(c) not in ("Cc", "Cs")
    remaining = iter(composed(text))
    assert all(c in remaining for c in "".join(tokens))  # as they stand in the text, only with gaps


@given(ANY_TEXT)
def test_visible_characters_are_kept(text):
    assert visible("".join(split_words(text))) == visible(composed(text))


@given(ANY_TEXT)
@example("👍 🏽")
def test_typed_token_is_one_token(text):
    """Otherwise a link, which joins tokens by spaces, could give back other tokens."""
    for token in split_words(text):
        assert split_words(token) == [token]
    assert split_words(" ".join(split_words(text))) == split_words(text)


@given(ANY_TEXT)
def test_omitted_parts_are_reported_exactly(text):
    inputs, problems = Input.read({"text": text})
    visible = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cs"))
    assert inputs.text == visible
    assert len(problems) == (visible != text)
    assert split_up_to_limit(inputs.text) == (split_words(visible), [])  # too short to be cut


def test_excess_token_is_cut_and_reported():
    text = " ".join(f"word{n}" for n in range(1, MAX_TOKENS + 2))
    tokens, notes = split_up_to_limit(text)
    assert tokens == text.split()[:MAX_TOKENS]
    assert notes == ["The text has 257 tokens; only the first 256 are used."]


def test_vocabulary_is_unique_with_padding_first():
    assert vocabulary(["can", "the", "can", "Can"]) == (PAD, "can", "the", "Can")
    assert vocabulary([]) == (PAD,)


# Examples


EACH = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@EACH
def test_example_pairs_are_tokens_of_the_text(example):
    tokens = split_words(example.text)
    assert split_up_to_limit(example.text) == (tokens, [])
    assert len(example.pairs) == len(example.about) >= 2
    for pair, about in zip(example.pairs, example.about):
        for index, word in zip(pair, about):
            word, _, nth = word.partition("#")
            assert tokens[index] == word
            assert tokens[: index + 1].count(word) == int(nth or 1)
        assert pair[0] != pair[1]


@EACH
def test_repeated_words_are_numbered(example):
    """A single "the" would be right by luck."""
    tokens = split_words(example.text)
    for word in (word for pair in example.about for word in pair):
        assert "#" in word or tokens.count(word) == 1, word
