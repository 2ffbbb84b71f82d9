"""Terms of the field are explained where they are used, in short sentences."""

import pytest

from tests.test_page import fine, opened
from ui.kit.page import TERMS

TRAINED = "pages/5_Trained_model.py"
SHOWN = {  # term -> a link to a page that has it at a figure, a caption or a column
    "logit difference": (TRAINED, {"taken": "sweep", "texts": "16"}),
    "KL divergence": (TRAINED, {"taken": "knockout", "out": "2.4", "texts": "16"}),
    "direct logit attribution": (TRAINED, {"taken": "credit", "texts": "16"}),
    "attention rollout": (TRAINED, {"taken": "layers"}),
    "logit lens": (TRAINED, {"taken": "layers"}),
    "Holm": (TRAINED, {"taken": "sweep", "texts": "16"}),
    "paired t-test": ("app.py", {}),
    "Boschloo": ("pages/4_Studies.py", {}),
    "entropy": ("pages/1_One_block.py", {"view": "heads"}),
    "RMS": ("pages/1_One_block.py", {"view": "neurons"}),
    "cosine similarity": ("pages/1_One_block.py", {"view": "heads"}),
}


@pytest.mark.parametrize("term", TERMS)
def test_terms_are_explained_in_place(term):
    page, link = SHOWN[term]
    app = fine(opened(page, **link))
    helps = [element.proto.help for element in [*app.markdown, *app.caption]]
    assert any(TERMS[term] in text for text in helps)
