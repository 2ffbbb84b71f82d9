"""The page "Class" without a browser: a teacher, students and a projector at one class."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.study.database import connection as databases
from core.teaching.classroom import CLOSED, OPEN, REVEALED
from core.teaching.lessons.language import phrases
from core.teaching.questions import find_question
from tests.pages import components, link, said_by
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from ui.kit.pages import CLASS
from ui.kit.store import SESSION
from ui.lessons.addresses import in_the_room, qr_svg
from ui.lessons.addresses import link as class_link
from ui.lessons.classroom import server
from ui.lessons.classroom.server import KEPT, TEACHER_KEYS


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    server.classroom.clear()
    server.look_again()
    yield
    server.classroom.clear()
    server.look_again()


def button(app, key: str) -> AppTest:
    return fine(next(each for each in app.button if each.key == key).click().run())


def ask(teacher) -> AppTest:
    """Open the next question."""
    return button(teacher, next(each.key for each in teacher.button if re.fullmatch(r"open_\d+", each.key or "")))


def start(*questions) -> tuple[AppTest, str, str]:
    """-> (the teacher's page, the code, the token)"""
    app = fine(opened(CLASS.path))
    if questions:
        app = next(each for each in app.multiselect if each.key == "class_questions").set_value(list(questions)).run()
    app = button(app, "start_class")
    code = link(app)["code"]
    return app, code, app.session_state[SESSION].kept[TEACHER_KEYS][code].value


def one_value(given) -> str:
    """Return a parameter of AppTest's address, which is a list once the app has written it."""
    return given[0] if isinstance(given, list) else given


def join(code: str, nickname: str = "") -> AppTest:
    app = fine(opened(CLASS.path, code=code))
    if nickname:
        next(each for each in app.text_input if each.key == "nickname").set_value(nickname)  # in a form
    return button(app, "join")


def again(app) -> AppTest:
    server.look_again()
    return fine(app.run())


def choose(app, at: int, because: str = "") -> AppTest:
    app = again(app)
    app.radio[0].set_value(at)  # in a form: sent with its button
    for each in app.button_group:
        each.set_value(1)  # not very sure
    if because:
        next(each for each in app.text_input if each.key.startswith("because_")).set_value(because)
    return button(app, next(each.key for each in app.button if each.key.startswith(("store_", "send_"))))


def texts(app) -> str:
    return " ".join([*said_on(app), *(each.value for each in [*app.success, *app.info])]).replace("\\", "")


def test_a_class_from_the_first_question_to_the_last():
    teacher, code, token = start("heads")
    ann, bob = join(code, "Ann"), join(code)
    assert "You are in" in texts(ann)
    teacher = ask(again(teacher))
    assert server.classroom().of_teacher(token).phase == OPEN
    ann, bob = choose(ann, 0, "each head has its own *matrices*"), choose(bob, 2)
    assert "Your vote is in: about eight times as many parameters" in texts(ann)
    now = server.classroom().of_teacher(token)
    assert now.votes == 2 and not now.waiting
    server.look_again()
    projector = fine(opened(CLASS.path, shown="projector", code=code))
    assert "2 of 2 have answered" in " ".join(each.text for each in projector.get("progress"))
    assert not any("As predicted" in each for each in said_on(ann)) and "ablation_lesson" not in repr(
        [each.proto for each in projector.get("bidi_component")]
    )
    teacher = button(again(teacher), "class_close")
    assert server.classroom().of_teacher(token).phase == CLOSED
    assert "Voting is closed" in texts(again(bob))
    teacher = button(again(teacher), "class_show")
    pictures = [json.loads(each.json)["picture"] for each in components(again(bob), "ablation_lesson")]
    assert any("somewhat more" in each for each in pictures) and not any("bar right" in each for each in pictures)
    teacher = again(teacher)
    box = next(each for each in teacher.checkbox if each.key.startswith("pick_"))
    fine(box.set_value(True).run())
    assert "each head has its own *matrices*" in texts(again(bob)) and "Ann" not in texts(bob)
    button(again(teacher), "class_reveal")
    assert server.classroom().of_teacher(token).phase == REVEALED
    assert "Not as predicted" in texts(again(ann)) and "As predicted" in texts(again(bob))


@pytest.mark.parametrize("name", ["check/before", "heads/carry", "layer_norm", "placement", "knowledge"])
def test_every_kind_of_question_can_be_answered(name):
    teacher, code, token = start(name)
    ann = join(code)
    ask(again(teacher))
    ann = again(ann)
    for each in ann.radio:
        each.set_value(0)  # in a form: sent with its button
    while any(box.value is None for box in ann.selectbox):
        box = next(box for box in ann.selectbox if box.value is None)
        ann = box.set_value(box.options and next(iter(box.proto.options)) and _first(box)).run()
    ann = surely(ann)
    ann = button(ann, next(each.key for each in ann.button if each.key.startswith(("store_", "send_"))))
    assert ("Your answers are in" if name.startswith("check/") else "Your vote is in") in texts(ann)
    assert "/ 8" not in texts(ann)  # a score would tell what is right
    (answer,) = server.classroom().answers(token).answer
    assert find_question(name, phrases("en")).in_words(answer)


def surely(app) -> AppTest:
    """Say how sure, where that is asked: outside a form, with a run of its own."""
    named = [each for each in app.button_group if each.key.startswith("sure_")]
    for each in named:
        each.set_value(2)
    return app.run() if named and any(each.key.startswith("store_") for each in app.button) else app


def _first(box):
    """The value of the first entry of a list, which shows labels."""
    from core.teaching.lessons.reader import read_lesson

    labels = {value.label: key for key, value in read_lesson("placement").values.items()}
    return labels[box.proto.options[0]]


def test_nothing_is_sent_where_nothing_is_chosen():
    teacher, code, token = start("heads")
    ann = join(code)
    ask(again(teacher))
    ann = again(ann)
    ann = fine(next(each for each in ann.button if each.key.startswith("send_")).click().run())
    assert "Choose an answer, and say how sure you are" in warned(ann) and server.classroom().answers(token).empty


def test_a_reload_leads_back_to_the_seat():
    teacher, code, token = start("heads")
    ann = join(code, "Ann")
    key = ann.session_state[SESSION].kept[KEPT][code].value
    ask(again(teacher))
    choose(ann, 1)
    fresh = fine(opened(CLASS.path, code=code))
    (component,) = components(fresh, "ablation_seat")
    fresh = fine(said_by(fresh, component, kept=key))
    assert "Your vote is in: somewhat more parameters" in texts(fresh)
    assert server.classroom().of_teacher(token).seats == 1


@pytest.mark.parametrize("key", ["", "no-such-key-here", "<script>"])
def test_a_key_that_is_none_leads_to_the_door(key):
    _, code, token = start("heads")
    app = fine(opened(CLASS.path, code=code))
    (component,) = components(app, "ablation_seat")
    app = fine(said_by(app, component, kept=key))
    assert any(each.key == "join" for each in app.button) and server.classroom().of_teacher(token).seats == 0


@pytest.mark.parametrize("code", ["XXXXX", "<b>"])
def test_a_wrong_code_is_said_and_the_door_is_there(code):
    start("heads")
    app = fine(opened(CLASS.path, code=code))
    assert warned(app) and any(each.key == "enter" for each in app.button)


@pytest.mark.parametrize("token", ["nonsense", "x" * 64, "<b>"])
def test_without_the_token_nobody_is_the_teacher(token):
    _, code, _ = start("heads")
    app = fine(opened(CLASS.path, shown="teacher", teacher=token, code=code))
    assert warned(app) and not any(re.match("open_|end_class", each.key or "") for each in app.button)


def test_no_address_on_the_teacher_page_holds_the_key():
    app, code, token = start("heads")
    assert set(link(app)) == {"shown", "code"} and token not in str(link(app))
    doors = [each.value for each in app.code if "http" in each.value]
    doors += [each.proto.url for each in app.main if each.type == "link_button"]
    assert len(doors) >= 1 and not any(token in door for door in doors)
    assert token in [each.value for each in app.code]  # to be typed in on another computer


def test_a_teacher_goes_on_elsewhere_by_typing_the_key():
    _, code, token = start("heads")
    app = fine(opened(CLASS.path))
    next(each for each in app.text_input if each.key == "class_code").set_value(token)
    app = button(app, "enter")
    assert any(each.key == "end_class" for each in app.button)
    assert one_value(link(app)["code"]) == code and token not in str(link(app))


def test_a_student_is_told_nothing_of_the_teacher_or_of_others():
    teacher, code, token = start("heads")
    ann = join(code, "Ann")
    bob = join(code, "Bob")
    ask(again(teacher))
    choose(ann, 1, "only mine")
    bob = again(bob)
    sent = repr([each for each in bob]) + repr(bob.session_state[SESSION].kept) + texts(bob)
    assert token not in sent and "only mine" not in sent and "Ann" not in sent


def test_who_may_not_write_cannot_start_a_class_unless_it_is_allowed(monkeypatch):
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    assert not any(each.key == "start_class" for each in fine(opened(CLASS.path)).button)
    monkeypatch.setenv(server.VARIABLE, "1")
    assert any(each.key == "start_class" for each in fine(opened(CLASS.path)).button)


def test_the_end_deletes_everything():
    teacher, code, token = start("heads")
    ann = join(code)
    teacher = again(teacher)
    teacher = fine(next(each for each in teacher.checkbox if each.key == "end_sure").set_value(True).run())
    button(teacher, "end_class")
    assert any(each.key == "enter" for each in again(ann).button)
    assert any(each.key == "enter" for each in fine(opened(CLASS.path, shown="teacher", teacher=token)).button)


def test_a_qr_code_is_drawn_and_addresses_are_of_this_network():
    assert qr_svg(class_link("http://10.0.0.1:8501/Class", code="BCDFG")).startswith("<svg")
    assert in_the_room().replace(".", "").isdigit() or in_the_room() == "localhost"


def test_a_class_that_is_over_is_said_to_be_over():
    _, code, token = start("heads")
    app = join(code)
    server.classroom().end(token)
    assert "This class has ended" in texts(again(app)) and not warned(app)


def test_the_teacher_sees_the_right_answer_only_once_it_is_revealed():
    """The teacher's screen is often the one that all see."""
    teacher, code, _ = start("heads")
    ann = join(code)
    teacher = ask(again(teacher))
    choose(ann, 2)
    for step in ("", "class_close", "class_discuss_now", "class_reveal"):
        teacher = button(again(teacher), step) if step else teacher
        teacher = again(teacher)
        (drawn,) = [
            json.loads(each.json)["picture"]
            for each in components(teacher, "ablation_lesson")
            if "rect class" in each.json
        ]
        shown = "bar right" in drawn, "Measured:" in texts(teacher), "Green: what was measured." in texts(teacher)
        assert shown == ((step == "class_reveal",) * 3), step
