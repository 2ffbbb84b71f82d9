"""Sentences on screen have at most 25 words."""

import ast
import re
from pathlib import Path

import pytest

from core.experiments.depth.depth import blocks
from core.experiments.trained.knockout import effect
from core.measure.stream_statistics import statistic
from core.model.knockout import mode
from core.model.parts import MENUS
from core.tasks import task

ROOT = Path(__file__).parent.parent.parent
WORDS = 25
FILES = [
    path for folder in ("core", "ui", "pages") for path in sorted((ROOT / folder).rglob("*.py"))
]
SAID = {
    **MENUS,
    "task": task,
    "statistic": statistic,
    "effect": effect,
    "mode": mode,
    "blocks": blocks,
}


def too_long(text: str) -> list[str]:
    """Return the sentences that have too many words; styles and drawings do not count."""
    sentences = re.split(r"(?<=[.!?])\)?\s+|\n", text)
    return [
        sentence
        for sentence in sentences
        if len(sentence.split()) > WORDS and not re.search("{|<svg", sentence)
    ]


def text_of(node) -> str:
    """Return a string expression's text with X for inserted values; "" if it is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            element.value if isinstance(element, ast.Constant) else "X" for element in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return ""


def docstrings(tree) -> set[ast.AST]:
    bodies = (
        node.body
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    )
    return {body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_has_short_sentences(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = docstrings(tree)
    strings = (text_of(node) for node in ast.walk(tree) if node not in left_out)
    assert not [sentence for text in strings for sentence in too_long(text)]


@pytest.mark.parametrize("name", SAID)
def test_menus_have_short_sentences(name):
    """A task's example is excluded: it is a row of symbols."""
    for entry in SAID[name]:
        assert not too_long(SAID[name].help(entry).split("Example (seed")[0]), entry
