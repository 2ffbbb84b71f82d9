"""The field's words are explained where they are used, in sentences that are short."""

import re

import pytest

from tests.test_page import fine, opened
from ui.kit.page import TERMS, explained

TRAINED = "pages/5_Trained_model.py"
SHOWN = {  # term -> a link at which it stands beside a figure, a caption or a column
    "logit difference": (TRAINED, {"taken": "sweep", "texts": "16"}),
    "KL divergence": (TRAINED, {"taken": "knockout", "out": "2.4", "texts": "16"}),
    "direct logit attribution": (TRAINED, {"taken": "credit", "texts": "16"}),
    "attention rollout": (TRAINED, {"taken": "layers"}),
    "logit lens": (TRAINED, {"taken": "layers"}),
    "Holm": (TRAINED, {"taken": "sweep", "texts": "16"}),
    "paired t-test": ("app.py", {}),
    "entropy": ("pages/1_One_block.py", {"view": "heads"}),
    "RMS": ("pages/1_One_block.py", {"view": "neurons"}),
    "cosine similarity": ("pages/1_One_block.py", {"view": "heads"}),
}


@pytest.mark.parametrize("term", TERMS)
def test_every_term_is_explained_where_it_stands(term):
    page, link = SHOWN[term]
    app = fine(opened(page, **link))
    helps = [each.proto.help for each in [*app.markdown, *app.caption]]
    assert any(TERMS[term] in text for text in helps)


def test_only_what_is_said_is_explained():
    assert explained("Accuracy stays at 100 % on 16 texts.") is None
    assert explained("Parameters") is None  # no RMS in it
    assert explained("Entropy in bits", "corrected (Holm)").startswith("**Holm**") and "**Entropy**" in explained(
        "entropy"
    )
    assert explained("mean and 95 % interval (paired t, 5 seeds)").startswith("**Paired t-test**")


@pytest.mark.parametrize("term", TERMS)
def test_explanations_are_short_sentences(term):
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z0-9(−])", TERMS[term])
    assert all(len(sentence.split()) <= 25 for sentence in sentences), sentences
