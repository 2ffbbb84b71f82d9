"""Fragments, which a page redraws without its error guard, each have a guard of their own.

The fragments are found in the source and made to fail.
"""

import ast
from functools import partial
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent
SOURCES = [
    path
    for path in [ROOT / "app.py", *ROOT.glob("pages/*.py"), *ROOT.glob("ui/**/*.py")]
    if path.name != "guard.py"
]
DIALOGS = ("dialog", "experimental_dialog")


def name_of(call) -> str:
    """Return the last name of a called function or a decorator."""
    call = call.func if isinstance(call, ast.Call) else call
    return call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")


def find_fragments() -> list[tuple[str, str]]:
    """Return (module, function) of every fragment and dialog."""
    built = []
    for path in SOURCES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "fragment"
            ):
                built.append((module, node.args[0].id))
            elif isinstance(node, ast.FunctionDef) and any(
                name_of(item) in DIALOGS for item in node.decorator_list
            ):
                built.append((module, node.name))
    return built


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_fragments_always_have_the_guard(path):
    """Streamlit's fragment is called in ui/kit/guard.py alone; every dialog is guarded."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert not node.attr.endswith("fragment"), (
                f"line {node.lineno}: use ui.kit.guard.fragment"
            )
        if isinstance(node, ast.FunctionDef):
            names = [name_of(item) for item in node.decorator_list]
            for index, name in enumerate(names):
                assert name not in DIALOGS or names[index + 1 :][:1] == ["showing_errors"], (
                    f"line {node.lineno}: not guarded"
                )


class Broken:
    """Object that raises an error naming a server folder at every use."""

    def _fail(self, *_):
        raise OSError("/srv/secret/place")

    __getattr__ = __bool__ = __eq__ = __ne__ = __iter__ = __contains__ = __getitem__ = _fail


def draw(module, function):
    """Draw the test's page: a fragment or dialog that gets broken arguments."""
    import importlib
    import inspect

    from tests.test_fragments import Broken
    from ui.kit.guard import fragment

    call = getattr(importlib.import_module(module), function)
    (call if function == "_new" else fragment(call))(
        *(Broken() for _ in inspect.signature(call).parameters)
    )


@pytest.mark.parametrize("module, function", find_fragments())
def test_fragment_error_becomes_a_sentence(module, function, monkeypatch):
    app = AppTest.from_function(draw, args=(module, function), default_timeout=30).run()
    check(app)
    fragments = list(app._fragment_storage._fragments)
    assert fragments
    repeated = partial(RerunData, fragment_id_queue=fragments)
    monkeypatch.setattr("streamlit.testing.v1.local_script_runner.RerunData", repeated)
    check(app.run())


def fail_in_store():
    """Draw a page whose store cannot be opened."""
    from core.settings.environment import ServerError
    from ui.kit.guard import show_errors

    with show_errors():
        raise ServerError("postgres://name@host/lab is down", "The store is unavailable.")


def test_store_error_shows_its_public_message():
    app = AppTest.from_function(fail_in_store).run()
    assert [error.value.replace("\\", "") for error in app.error] == ["The store is unavailable."]


def check(app):
    assert not app.exception
    (text,) = [error.value for error in app.error]
    assert "Something went wrong (" in text and "Traceback" not in text and "/srv" not in text
