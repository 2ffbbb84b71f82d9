"""Layers of the project: the imports that each module may have."""

import ast
from pathlib import Path

import pytest

from core.tasks import task

ROOT = Path(__file__).parent.parent.parent
# From the ground up: a package imports from those before it. `figures` and `experiments` read
# passes; `export` what experiments found.
CORE = (
    "settings measure model tasks train workers checkpoints experiments figures export study"
    " teaching".split()
)
# What all pages use, from the ground up; above it one folder per page, and none of them looks into
# another.
SHARED = ["kit", "pictures", "shared"]
FILES = [
    path
    for folder in ("core", "ui", "pages", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
] + [ROOT / "app.py"]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path) for path in FILES}


def imported(path: Path) -> set[str]:
    """Return the project's modules that a file imports, also within functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{name.name}" for name in node.names} & MODULES or {
                node.module
            } & MODULES
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names} & MODULES
    return names


def room(module: str) -> tuple[str, str]:
    """Return a module's layer and folder: core.model.parts.norm -> ("core", "model")."""
    first, _, remaining = module.partition(".")
    return first, remaining.partition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_never_point_up(path):
    house, band = room(name_of(path))
    for module in imported(path):
        other, on_second = room(module)
        if house == "core":
            assert other == "core", f"{path.name} imports {module}"
            if band in CORE and on_second in CORE:
                assert CORE.index(on_second) <= CORE.index(band), f"{band} imports {module}"
        elif house == "ui":
            assert other in ("core", "ui"), f"{path.name} imports {module}"
            if other == "ui" and on_second != band:
                assert on_second in SHARED, f"{band} imports {module}"
                assert band not in SHARED or SHARED.index(on_second) < SHARED.index(band), (
                    f"{band} imports {module}"
                )
        else:
            assert other in ("core", "ui", house)


def test_list_has_every_folder_of_core():
    rooms = {
        file.name
        for file in (ROOT / "core").iterdir()
        if file.is_dir() and file.name != "__pycache__"
    }
    assert rooms == set(CORE)


def test_menu_has_every_task_file():
    names = {path.stem for path in (ROOT / "core" / "tasks").glob("*.py")} - {"__init__", "task"}
    parts = [*task.values(), task["legal"]]  # which no page offers
    missing = names - {part.draw.__module__.removeprefix("core.tasks.") for part in parts}
    assert not missing, (
        f"no task of {missing} is in the menu: name the file in core/tasks/__init__.py"
    )


def test_experiments_of_different_pages_are_independent():
    for path in (ROOT / "core" / "experiments").rglob("*.py"):
        location = path.relative_to(ROOT / "core" / "experiments").parts
        for module in imported(path):
            parts = module.split(".")
            if len(location) > 1 and parts[:2] == ["core", "experiments"] and len(parts) > 3:
                assert parts[2] == location[0], f"{path.name} imports {module}"


def test_model_and_measure_need_torch_and_numpy_alone():
    """A notebook that uses the model needs no packages for drawing or storage."""
    for folder in ("model", "measure"):
        for path in (ROOT / "core" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = []
                if isinstance(node, ast.ImportFrom):
                    names = [node.module]
                elif isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                assert not {name.split(".")[0] for name in names} & {
                    "altair",
                    "streamlit",
                    "sqlalchemy",
                    "tokenizers",
                }, path
