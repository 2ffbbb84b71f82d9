"""A typed vector through every norm, against plain float64."""

import math

import pytest

from core.experiments.block.stages import apply_every_norm, read_vector
from core.model.parts import MENUS
from core.settings.setting import ConfigError
from tests.pages import link, setting
from tests.test_page import fine, opened

TYPED = "3.2, −1.5, 0.8, 2.1, −0.3, 1.7, −2.4, 0.5"
VALUES = [3.2, -1.5, 0.8, 2.1, -0.3, 1.7, -2.4, 0.5]


def by_hand(name: str, values: list[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    if name == "LayerNorm":
        size = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values) + 1e-5)
        return [(v - mean) / size for v in values]
    if name == "RMSNorm":
        size = math.sqrt(math.fsum(v * v for v in values) / len(values) + 1e-5)
        return [v / size for v in values]
    if name == "DyT":
        return [math.tanh(0.5 * v) for v in values]
    assert name == "none"
    return values


@pytest.mark.parametrize("name", MENUS["norm"])
@pytest.mark.parametrize("values", [VALUES, [5.0], [0.0, 0.0], [1e8, -1e-8, 3.0]], ids=str)
def test_norms_match_hand_computation(name, values):
    assert apply_every_norm(values)[name].tolist() == pytest.approx(
        by_hand(name, values), rel=1e-12, abs=1e-15
    )
    assert apply_every_norm(values).typed.tolist() == values


@pytest.mark.parametrize(
    "text, values",
    [
        (TYPED, VALUES),
        ("3.2,-1.5 , .8,2.1,−0.3,1.7,–2.4,0.5", VALUES),
        (" 1e3 ", [1000.0]),
        ("+2., -1E-2", [2.0, -0.01]),
        ("", []),
        ("  ", []),
    ],
)
def test_typed_vector_is_read(text, values):
    assert read_vector(text) == values


@pytest.mark.parametrize(
    "text, message",
    [
        ("1, two, 3", "'two', which is not a number"),
        ("1,,2", "a comma without a number"),
        ("nan", "which is not a number"),
        ("1e101", "the largest number allowed is 1e100"),
        (",".join(["1"] * 65), "has 65 numbers; at most 64"),
    ],
)
def test_text_without_vector_is_refused_in_words(text, message):
    with pytest.raises(ConfigError) as refused:
        read_vector(text)
    assert (
        message in str(refused.value).replace("“", "'").replace("”", "'").replace('"', "'")
        and refused.value.field == "vector"
    )


def page(**params) -> tuple:
    """Return the page with its text and tables."""
    app = fine(opened(view="norm", **params))
    tables = " ".join(table.value.to_string() for table in app.table)
    return app, " ".join([markdown.value for markdown in app.markdown] + [tables]).replace("\\", "")


@pytest.mark.parametrize("norm", MENUS["norm"])
def test_page_shows_vector_and_link_keeps_it(norm):
    app, text = page(vector=TYPED, norm=norm)
    assert setting(app, "vector") == TYPED and link(app)["vector"] == TYPED
    assert "Mean 0.5125, variance 3.054 (divided by 8), mean square 3.316" in text
    assert "(3.2 − 0.5125) / 1.747 = 1.538" in text and "3.2 / 1.821 = 1.757" in text
    for name in MENUS["norm"]:
        assert (
            MENUS["norm"].label(name) in text
            and f"{by_hand(name, VALUES)[6]:.4g}".replace("-", "−") in text
        )
