"""Small rooms: a file is one idea of at most 250 lines, a function is seen at a glance."""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parent.parent.parent
FILES = [
    ROOT / "app.py",
    *(path for folder in ("core", "ui", "pages", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))),
]
LINES, OF_A_FUNCTION = 250, 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < OF_A_FUNCTION, f"{node.name}, line {node.lineno}"
