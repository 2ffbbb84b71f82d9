"""Common structure of pages: a row in the table, a file, a folder with context and views.

A page's file reads from top to bottom.
"""

import ast
import dataclasses
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from ui.kit.pages import PAGES, START

ROOT = Path(__file__).parent.parent.parent
SHOWN = [page for page in PAGES if page is not START]
SOURCES = [
    path for path in (*ROOT.glob("ui/**/*.py"), *ROOT.glob("pages/*.py")) if path.name != "pages.py"
]
of_each_page = pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.key)


def context_of(page):
    """Return the class of the views' argument."""
    package = importlib.import_module(f"ui.{page.key}")
    module = getattr(package, "context", package)
    (context,) = [part for name, part in vars(module).items() if name.endswith("Context")]
    return context


def test_page_table_matches_file_order():
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "pages").glob("*.py"))]
    assert [page.path for page in PAGES] == ["app.py", *files]
    for page in SHOWN:
        assert Path(page.path).stem.split("_", 1)[1] == page.name.replace(" ", "_")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_names_and_places_stand_in_one_file(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    for call in calls:
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if name in ("page", "heading", "page_link", "switch_page", "offer") and call.args:
            assert not isinstance(call.args[0], ast.Constant), f"line {call.lineno}: {name}"


@of_each_page
def test_page_contexts_are_frozen(page):
    context = context_of(page)
    assert context.__dataclass_params__.frozen
    look = next(field.type for field in dataclasses.fields(context) if field.name == "look")
    assert (
        look.settings()[page.parameter].menu is page.views
    )  # and so the link says which view is open


@of_each_page
def test_views_take_only_the_context(page):
    assert page.views
    for name, view in page.views.items():
        assert list(inspect.signature(view).parameters) == ["context"], name
        assert view.__module__.startswith(f"ui.{page.key}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["ui.kit.page", "ui.start", *(f"ui.{page.key}" for page in SHOWN)]
)
def test_nobody_loads_the_views_of_another_page(module):
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('ui.')))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folders = {name.split(".")[1] for name in loaded.stdout.split()}
    folder = module.split(".")[
        1
    ]  # a page may live in the folder of another, whose lessons it teaches
    assert not folders & {page.key for page in SHOWN} - {folder}
