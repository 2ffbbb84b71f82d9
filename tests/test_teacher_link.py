"""The teacher's link, built by ticking boxes, restores these in a fresh session."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from core.teaching.lessons.reader import read_lesson
from tests.pages import components, controls, drawn, links, move, words, written
from tests.test_page import fine, opened
from ui.block.side_by_side import HINT, LOCKED
from ui.kit.limits import PARAMETER, Limits, read_limits
from ui.kit.pages import CLASS, LESSONS, ONE_BLOCK, TRAINED_MODEL, TRAINING


def built(**chosen):
    """Return the page and the link's parameters."""
    fine(opened(ONE_BLOCK.path))  # so that its settings are known
    fine(opened(TRAINING.path))
    app = fine(opened(LESSONS.path, shown="teacher_link"))
    for key, value in chosen.items():
        for kind in (app.multiselect, app.toggle, app.selectbox):
            for item in kind:
                if item.key == key:
                    app = fine(item.set_value(value).run())
    (code,) = [element.value for element in app.code]
    return app, dict(parse_qsl(urlsplit(code).query)), urlsplit(code)


def test_ticked_choices_open_in_fresh_session():
    _, params, url = built(
        link_views_block=["attention", "cost"],
        link_moved_block=["norm", "text"],
        link_locked_block=["placement"],
    )
    assert url.path.endswith("/One_block")
    app = fine(opened(ONE_BLOCK.path, **params))
    assert list(links(app)) == [ONE_BLOCK.name] and words(app, "view") == ["Attention", "Cost"]
    assert "norm" in controls(app) and "text" in controls(app) and "placement" not in controls(app)


@pytest.mark.parametrize("ticked, hint", [({}, HINT), ({"link_moved_block": []}, LOCKED)])
def test_only_classes_with_removable_parts_say_click(ticked, hint):
    """The hint depends on whether parts can be removed in the state that the link opens."""
    app = fine(opened(ONE_BLOCK.path, **built(**ticked)[1]))
    (drawing,) = components(app, "ablation_drawing")
    assert hint in " ".join(written(app)) and bool(json.loads(drawing.json)["clicked"]) == (
        hint == HINT
    )


def test_lesson_opens_by_its_link():
    _, params, url = built(link_pages=["lessons"], link_lesson="relu")
    app = fine(opened(LESSONS.path, **params))
    assert read_lesson("relu").title in drawn(app, "top") and list(links(app)) == [LESSONS.name]
    assert url.path.endswith("/Lessons")


def test_teacher_access_is_never_shared(tmp_path, monkeypatch):
    from core.study.database import connection as databases
    from ui.kit.store import SESSION
    from ui.lessons.classroom import server
    from ui.lessons.classroom.server import TEACHER_KEYS

    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    server.classroom.clear()
    app = fine(opened(CLASS.path))
    app = fine(next(button for button in app.button if button.key == "start_class").click().run())
    (keys,) = app.session_state[SESSION].kept[TEACHER_KEYS].values()
    token = keys.value
    app = fine(app.switch_page(LESSONS.path).run())
    app = fine(move(app, shown="teacher_link").run())
    app = fine(
        next(box for box in app.multiselect if box.key == "link_pages").set_value([CLASS.key]).run()
    )
    link = dict(parse_qsl(urlsplit(app.code[0].value).query))
    assert token not in app.code[0].value and token not in str(read_limits(link[PARAMETER]).link)
    server.classroom.clear()


def test_without_a_page_there_is_no_link():
    fine(opened(ONE_BLOCK.path))
    app = fine(opened(LESSONS.path, shown="teacher_link"))
    app = fine(next(box for box in app.multiselect if box.key == "link_pages").set_value([]).run())
    assert not app.code and any("at least one page" in note.value for note in app.info)


@pytest.mark.parametrize("flag", ["link_large", "link_embed"])
def test_flags_stand_in_the_link(flag):
    _, params, _ = built(**{flag: True})
    assert ("large" in params[PARAMETER]) == (flag == "link_large") and ("embed" in params) == (
        flag == "link_embed"
    )


@pytest.mark.parametrize("moved", [("out",), ()])
def test_trained_model_is_clickable_only_if_ablations_are_free(moved):
    limits = Limits(pages=("trained",), moved=moved)
    app = fine(opened(TRAINED_MODEL.path, **{PARAMETER: limits.write()}))
    (drawing,) = components(app, "ablation_drawing")
    assert bool(json.loads(drawing.json)["clicked"]) == bool(moved)
