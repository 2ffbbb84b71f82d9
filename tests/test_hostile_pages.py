"""Pages of a server on which something is missing, damaged or hostile: it costs itself and nothing else, is said in words, and no
visitor reads where on the server things lie."""

import shutil
from pathlib import Path

import pytest

from core.checkpoints import files
from core.study import summary
from core.study.database import connection as databases
from core.study.plan import StudyError
from tests import pages
from tests.pages import setting
from tests.test_damaged_store import everything
from tests.test_model_page import bring, opened, small, texts
from tests.test_page import fine, told
from tests.test_studies_page import forget
from ui.kit.guard import JOINER, literal
from ui.shared import models as choose
from ui.trained.controls import opening_call

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """What pages keep of models and studies is forgotten, and there is no store yet."""
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    monkeypatch.delenv("ABLATION_MODELS", raising=False)

    def clear():
        forget()
        choose._listed.cache_clear()
        choose._from_folder.clear()

    clear()
    yield clear
    clear()


# The model that ships, and the matrix


@pytest.fixture
def shipped(tmp_path, monkeypatch, fresh):
    """A copy of the folder of models, in which it can be damaged."""
    shutil.copytree(files.ROOT, tmp_path / "models")
    monkeypatch.setattr(files, "ROOT", tmp_path / "models")
    return tmp_path / "models" / files.SHIPPED


def missing(folder):
    shutil.rmtree(folder)


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


DAMAGES = [missing, cut]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_model_that_ships_and_is_damaged_costs_its_card_on_the_start_page_alone(shipped, damage):
    damage(shipped)
    app = fine(pages.opened("app.py"))
    labels = [each.proto.label for each in app.get("page_link")]
    assert len(app.error) == 1 and "odel is" in told(app) and files.SHIPPED in told(app)
    assert any("Take the residual out" in label for label in labels) and any(
        "Trained model" in label for label in labels
    )
    assert not any("Who is liable" in label for label in labels)
    assert "One change at a time" in everything(app) and str(shipped.parent) not in everything(app)


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_page_of_trained_models_says_what_is_missing_and_opens_the_others(shipped, damage, tmp_path, monkeypatch):
    damage(shipped)
    app = fine(opened())
    assert "odel is" in told(app) and files.SHIPPED in told(app) and len(app.error) == 1
    app = bring(app, **small())
    assert setting(app, "model") == "mine" and "reverse" in texts(app) and not app.error
    (tmp_path / "more" / "ours").mkdir(parents=True)
    for name, data in small(seed=7).items():
        (tmp_path / "more" / "ours" / name).write_bytes(data)
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path / "more"))
    app = fine(opened())
    assert setting(app, "model") == "ours" and not app.error and files.SHIPPED in told(app)
    app = fine(opened(model="ours"))
    assert not told(app)


TABLE = (ROOT / "results" / "ablation_matrix.csv").read_bytes()


DAMAGED = {
    "empty": b"", "cut": TABLE[:5000], "cut early": TABLE[:400], "bytes": b"\x80\x00\xff\n", "another": b"task\n1\n",
    "a column": TABLE.replace(b"variant", b"name", 1), "a hole": TABLE.replace(b"copy,copy", b"copy,", 1),
    "words": TABLE.replace(b"35200", b"many", 1),
}  # fmt: skip


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_table_of_results_that_is_damaged_is_no_summary(tmp_path, data):
    (tmp_path / "table.csv").write_bytes(data)
    with pytest.raises(StudyError):
        summary.read_summary(tmp_path / "table.csv")


@pytest.mark.parametrize("data", [None, DAMAGED["cut"]], ids=["missing", "cut"])
def test_a_table_of_results_that_is_damaged_costs_its_picture_alone(tmp_path, monkeypatch, data):
    import streamlit as st

    path, read = tmp_path / "table.csv", summary.read_summary
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr("ui.start.read_summary", lambda _: read(path))
    st.cache_data.clear()
    app = fine(pages.opened("app.py"))
    st.cache_data.clear()
    assert len(app.error) == 1 and "results/ablation_matrix.csv, is missing or damaged" in told(app)
    assert any("Who is liable" in each.proto.label for each in app.get("page_link"))


# Models that somebody brings


# Folders of models


def test_a_link_to_nothing_and_a_folder_that_cannot_be_read_cost_themselves(tmp_path, monkeypatch):
    for name in ("ours", "locked"):
        (tmp_path / name).mkdir()
        for file, data in small(seed=len(name)).items():
            (tmp_path / name / file).write_bytes(data)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    iterdir = Path.iterdir

    def refuse(self):
        if self.name == "locked":
            raise PermissionError(13, "Permission denied", str(self))
        return iterdir(self)

    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path))
    assert list(files.folders()) == ["legal", "locked", "ours"]
    assert not told(fine(opened(model="ours")))
    app = fine(opened(model="locked"))
    assert "The folder locked cannot be read (Permission denied)" in told(app) and str(tmp_path) not in everything(app)
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path / "nowhere"))
    assert list(files.folders()) == ["legal"]


def test_a_script_says_where_to_put_a_model_and_not_where_it_lies_on_the_server(tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir()
    for name, data in small().items():
        (tmp_path / "ours" / name).write_bytes(data)
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path))
    assert opening_call("legal") == 'files.from_folder(files.ROOT / "legal")'
    for name in ("ours", "mine"):
        assert str(tmp_path) not in opening_call(name) and 'from_folder("FOLDER")' in opening_call(name)


@pytest.mark.parametrize(
    "text", ["https://evil.test/a", "see www.evil.test", "WWW.evil.test", "me@evil.test", "mailto:me@evil.test"]
)
def test_an_address_that_somebody_typed_is_no_link(text):
    shown = literal(text)
    assert JOINER in shown and shown.replace(JOINER, "").replace("\\", "") == text


def test_texts_without_an_address_are_shown_as_they_are():
    assert JOINER not in literal("a wwwide b: c // d, e.f")
