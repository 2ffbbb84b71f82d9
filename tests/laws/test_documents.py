"""Documentation against code: tables, links and names agree."""

import re
from pathlib import Path

import pytest

from scripts import reference
from ui.kit.pages import PAGES as SHOWN
from ui.kit.pages import START

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks" / "README.md"]
SOURCES = [
    ROOT / "app.py",
    *(path for folder in ("core", "ui") for path in (ROOT / folder).rglob("*.py")),
]


def test_reference_matches_menus():
    assert reference.PAGE.read_text() == reference.reference_page(), "make reference"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_and_modules_exist(page):
    if page.name in ("CHANGELOG.md", "log.md"):  # they tell of what was
        return
    text = page.read_text()
    for path in re.findall(
        r"`((?:core|ui|pages|tests|scripts|docs|benchmarks|studies|results|models)/[\w/.*-]*)`",
        text,
    ):
        assert list(ROOT.glob(path.rstrip("/"))) if "*" in path else (ROOT / path).exists(), path
    for module in re.findall(r"python -m ((?:core|benchmarks|scripts)[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_guide_lists_exactly_the_variables_read():
    read = {
        name for path in SOURCES for name in re.findall(r"\"(ABLATION_[A-Z_]+)\"", path.read_text())
    }
    message = set(
        re.findall(
            r"^\| `(ABLATION_[A-Z_]+)`", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE
        )
    )
    assert read == message


@pytest.mark.parametrize(
    "page", [page for page in SHOWN if page is not START], ids=lambda page: page.key
)
def test_page_guides_name_every_view(page):
    guide = ROOT / "docs" / "pages" / f"{page.name.replace(' ', '_').lower()}.md"
    for name in page.views:
        assert f"*{page.views.label(name)}*" in guide.read_text(), f"{guide} says nothing of {name}"


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
