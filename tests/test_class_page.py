"""The page "Class" without a browser: a teacher, students and a projector at one class."""

import re

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from core.study.database import connection as databases
from core.teaching.classroom import CLOSED, OPEN, REVEALED
from core.teaching.lessons.language import phrases
from core.teaching.questions import find_question, question_names
from tests.pages import components, drawn, link, said_by
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from ui.kit.pages import CLASS
from ui.kit.store import SESSION
from ui.lessons.addresses import local_ip, qr_svg
from ui.lessons.addresses import with_params as class_link
from ui.lessons.classroom import server
from ui.lessons.classroom.server import KEPT, TEACHER_KEYS

WORDS = phrases("en")


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    server.classroom.clear()
    server.clear_view_cache()
    yield
    server.classroom.clear()
    server.clear_view_cache()


def button(app, key: str) -> AppTest:
    return fine(next(button for button in app.button if button.key == key).click().run())


def ask(teacher) -> AppTest:
    """Open the next question."""
    return button(
        teacher,
        next(
            button.key for button in teacher.button if re.fullmatch(r"open_\d+", button.key or "")
        ),
    )


def start(*questions) -> tuple[AppTest, str, str]:
    """Return the teacher's page, the class code and the token."""
    app = fine(opened(CLASS.path))
    if questions:
        app = (
            next(box for box in app.multiselect if box.key == "class_questions")
            .set_value(list(questions))
            .run()
        )
    app = button(app, "start_class")
    code = link(app)["code"]
    return app, code, app.session_state[SESSION].kept[TEACHER_KEYS][code].value


def join(code: str, nickname: str = "") -> AppTest:
    app = fine(opened(CLASS.path, code=code))
    if nickname:
        next(field for field in app.text_input if field.key == "nickname").set_value(
            nickname
        )  # in a form
    return button(app, "join")


def rerun(app) -> AppTest:
    server.clear_view_cache()
    return fine(app.run())


def choose(app, index: int, because: str = "") -> AppTest:
    app = rerun(app)
    app.radio[0].set_value(index)  # in a form: sent with its button
    for group in app.button_group:
        group.set_value(1)  # not very sure
    if because:
        next(field for field in app.text_input if field.key.startswith("because_")).set_value(
            because
        )
    return button(
        app, next(button.key for button in app.button if button.key.startswith(("store_", "send_")))
    )


def texts(app) -> str:
    return " ".join(
        [*said_on(app), *(element.value for element in [*app.success, *app.info])]
    ).replace("\\", "")


def test_class_from_first_question_to_last():
    teacher, code, token = start("heads")
    ann = join(code, "Ann")
    bob = join(code)
    assert WORDS["class_wait"] in texts(ann)
    teacher = ask(rerun(teacher))
    assert server.classroom().watch_as_teacher(token).phase == OPEN
    ann = choose(ann, 0, "each head has its own *matrices*")
    bob = choose(bob, 2)
    assert WORDS["class_in"].format(answer="about eight times as many parameters") in texts(ann)
    now = server.classroom().watch_as_teacher(token)
    assert now.votes == 2 and not now.waiting
    server.clear_view_cache()
    projector = fine(opened(CLASS.path, shown="projector", code=code))
    slide = drawn(projector, "slide")
    assert "2 of 2" in slide and "Ann" not in slide
    assert "output><b>" not in slide and "bar right" not in slide  # no counts while voting is open
    assert not any(WORDS["as_predicted"] in item for item in said_on(ann))
    teacher = button(rerun(teacher), "class_close")
    assert server.classroom().watch_as_teacher(token).phase == CLOSED
    assert WORDS["class_closed"] in texts(rerun(bob))
    teacher = button(rerun(teacher), "class_show")
    bars = drawn(rerun(bob), "distribution")
    assert "somewhat more" in bars and "bar right" not in bars
    slide = drawn(rerun(projector), "slide")
    teacher = rerun(teacher)
    box = next(item for item in teacher.checkbox if item.key.startswith("pick_"))
    fine(box.set_value(True).run())
    assert "each head has its own *matrices*" in texts(rerun(bob)) and "Ann" not in texts(bob)
    button(rerun(teacher), "class_reveal")
    assert server.classroom().watch_as_teacher(token).phase == REVEALED
    assert WORDS["not_as_predicted"] in texts(rerun(ann)) and WORDS["as_predicted"] in texts(
        rerun(bob)
    )


def test_answer_letters_match_on_phone_and_projector():
    teacher, code, _ = start("heads")
    ann = join(code)
    ask(rerun(teacher))
    question = find_question("heads", WORDS, "en")
    options = rerun(ann).radio[0].options
    assert [option.replace("\\", "") for option in options] == [
        f"**{mark}** {text}" for mark, text in zip("ABCD", question.offered)
    ]
    projector = fine(opened(CLASS.path, shown="projector", code=code))
    slide = drawn(projector, "slide")
    assert all(f"<b>{mark}</b>" in slide for mark in "ABCD")
    assert "projection matrices" in slide  # what the question is about
    button(rerun(teacher), "class_close")
    assert "- **C** exactly the same number of parameters" not in texts(rerun(ann))
    button(rerun(teacher), "class_discuss_now")
    assert "**C** exactly the same number of parameters" in texts(rerun(ann))
    button(rerun(teacher), "class_reveal")
    slide = drawn(rerun(projector), "slide")
    assert slide.count("bar right") == 1
    assert "Result (parameters with eight heads ÷ one head): 1.00 ×" in slide


def test_that_students_cannot_connect_is_said_until_one_has(monkeypatch):
    monkeypatch.setattr("ui.lessons.classroom.teacher.listens_here_alone", lambda: True)
    teacher, code, _ = start("heads")
    assert WORDS["class_here_alone"] in [note.value for note in teacher.info]
    join(code)
    assert WORDS["class_here_alone"] not in [element.value for element in rerun(teacher).info]


@pytest.mark.parametrize(
    "name", ["check/before", "heads/carry", "layer_norm", "placement", "knowledge"]
)
def test_students_answer_all_kinds_of_questions(name):
    teacher, code, token = start(name)
    ann = join(code)
    ask(rerun(teacher))
    ann = rerun(ann)
    for radio in ann.radio:
        radio.set_value(0)  # in a form: sent with its button
    while any(box.value is None for box in ann.selectbox):
        box = next(box for box in ann.selectbox if box.value is None)
        ann = box.set_value(box.options and next(iter(box.proto.options)) and _first(box)).run()
    ann = surely(ann)
    ann = button(
        ann, next(button.key for button in ann.button if button.key.startswith(("store_", "send_")))
    )
    assert WORDS["check_in" if name.startswith("check/") else "class_in"].partition("{")[
        0
    ] in texts(ann)
    assert "/ 8" not in texts(ann)  # a score would tell what is right
    (answer,) = server.classroom().read_answers(token).answer
    assert find_question(name, WORDS).format_answer(answer)


def surely(app) -> AppTest:
    """Choose a confidence where it is asked for, outside the form and in a separate run."""
    named = [group for group in app.button_group if group.key.startswith("sure_")]
    for item in named:
        item.set_value(2)
    return (
        app.run()
        if named and any(button.key.startswith("store_") for button in app.button)
        else app
    )


def _first(box):
    """Return the value of a list's first option; the list shows labels."""
    from core.teaching.lessons.reader import read_lesson

    labels = {value.label: key for key, value in read_lesson("placement").values.items()}
    return labels[box.proto.options[0]]


def test_reload_returns_to_the_seat():
    teacher, code, token = start("heads")
    ann = join(code, "Ann")
    key = ann.session_state[SESSION].kept[KEPT][code].value
    ask(rerun(teacher))
    choose(ann, 1)
    fresh = fine(opened(CLASS.path, code=code))
    (component,) = components(fresh, "ablation_seat")
    fresh = fine(said_by(fresh, component, kept=key))
    assert WORDS["class_in"].format(answer="somewhat more parameters") in texts(fresh)
    assert server.classroom().watch_as_teacher(token).seats == 1


@pytest.mark.parametrize("code", ["XXXXX", "<b>"])
def test_wrong_code_shows_message_and_door(code):
    start("heads")
    app = fine(opened(CLASS.path, code=code))
    assert warned(app) and any(button.key == "enter" for button in app.button)


@pytest.mark.parametrize("token", ["nonsense", "x" * 64, "<b>"])
def test_without_the_token_nobody_is_the_teacher(token):
    _, code, _ = start("heads")
    app = fine(opened(CLASS.path, shown="teacher", teacher=token, code=code))
    assert warned(app) and not any(
        re.match("open_|end_class", button.key or "") for button in app.button
    )


def test_teacher_continues_elsewhere_by_key():
    _, code, token = start("heads")
    app = fine(opened(CLASS.path))
    next(field for field in app.text_input if field.key == "class_code").set_value(token)
    app = button(app, "enter")
    assert any(button.key == "end_class" for button in app.button)
    assert link(app)["code"] == code and token not in str(link(app))


def test_students_see_nothing_of_teacher_or_others():
    teacher, code, token = start("heads")
    ann = join(code, "Ann")
    bob = join(code, "Bob")
    ask(rerun(teacher))
    choose(ann, 1, "only mine")
    bob = rerun(bob)
    sent = repr([item for item in bob]) + repr(bob.session_state[SESSION].kept) + texts(bob)
    assert token not in sent and "only mine" not in sent and "Ann" not in sent


def test_starting_a_class_needs_permission(monkeypatch):
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    assert not any(item.key == "start_class" for item in fine(opened(CLASS.path)).button)
    monkeypatch.setenv(server.VARIABLE, "1")
    assert any(item.key == "start_class" for item in fine(opened(CLASS.path)).button)


def test_ending_a_class_deletes_everything():
    teacher, code, token = start("heads")
    ann = join(code)
    teacher = rerun(teacher)
    teacher = fine(
        next(item for item in teacher.checkbox if item.key == "end_sure").set_value(True).run()
    )
    button(teacher, "end_class")
    assert any(item.key == "enter" for item in rerun(ann).button)
    assert any(
        item.key == "enter"
        for item in fine(opened(CLASS.path, shown="teacher", teacher=token)).button
    )


def test_qr_code_is_drawn_for_local_addresses():
    assert qr_svg(class_link("http://10.0.0.1:8501/Class", code="BCDFG")).startswith("<svg")
    assert local_ip().replace(".", "").isdigit() or local_ip() == "localhost"


@pytest.mark.parametrize("is_asked_for", [False, True])
def test_teacher_sees_answer_once_revealed_or_requested(is_asked_for):
    """The teacher's screen is often projected for the class."""
    teacher, code, _ = start("heads")
    ann = join(code)
    teacher = ask(rerun(teacher))
    choose(ann, 2)
    for step in ("", "class_close", "class_discuss_now", "class_reveal"):
        teacher = button(rerun(teacher), step) if step else teacher
        teacher = rerun(teacher)
        if is_asked_for and step == "class_close":
            teacher = fine(
                next(toggle for toggle in teacher.toggle if toggle.key.startswith("answer_"))
                .set_value(True)
                .run()
            )
        bars = drawn(teacher, "teacher_distribution")
        is_shown = step == "class_reveal" or (
            is_asked_for and step in ("class_close", "class_discuss_now")
        )
        assert ("bar right" in bars, WORDS["measured"] in texts(teacher)) == (
            is_shown,
            is_shown,
        ), step
    teacher = ask(teacher)
    assert "bar right" not in drawn(
        teacher, "teacher_distribution"
    )  # of the next question it is hidden again


@pytest.mark.parametrize("address, is_reachable", [("", True), ("127.0.0.1", False)])
def test_projector_has_qr_code_when_server_is_reachable(address, is_reachable):
    _, code, _ = start("heads")
    before = config.get_option("server.address")
    config.set_option("server.address", address)
    try:
        slide = drawn(fine(opened(CLASS.path, shown="projector", code=code)), "slide")
    finally:
        config.set_option("server.address", before)
    assert ("<svg" in slide) == is_reachable and ("cannot connect" in slide) != is_reachable


def test_answers_keep_their_places_on_the_projector():
    teacher, code, _ = start("heads")
    ann = join(code)
    projector = fine(opened(CLASS.path, shown="projector", code=code))
    teacher = ask(rerun(teacher))
    orders = []
    for step in ("", "class_close", "class_show", "class_reveal"):
        teacher = button(rerun(teacher), step) if step else teacher
        slide = drawn(rerun(projector), "slide")
        orders.append(re.findall(r'class="text">([^<]*)', slide))
        assert re.search(r"--height: (\d+)px", slide)[1] == "64"
        if not step:
            choose(ann, 3)
    assert orders[0] == [option.text for option in find_question("heads", WORDS).prediction.options]
    assert all(order == orders[0] for order in orders)


@pytest.mark.parametrize("name", question_names())
def test_questions_fit_the_projector(name):
    teacher, code, token = start(name)
    ask(rerun(teacher))
    projector = fine(opened(CLASS.path, shown="projector", code=code))
    height = re.search(r"--height: (\d+)px", drawn(projector, "slide"))[1]
    bars = drawn(projector, "slide").count("<li")
    assert int(height) * bars + 12 * (bars - 1) <= 348 and int(height) >= 28


def test_pages_have_one_filled_button():
    teacher, code, _ = start("heads")
    ann = join(code)
    for step in ("", "open", "class_close", "class_discuss_now", "class_reveal"):
        if step == "open":
            teacher = ask(teacher)
        elif step:
            teacher = button(teacher, step)
        filled = [
            element.key for element in rerun(teacher).button if element.proto.type == "primary"
        ]
        assert (
            len(filled) == 1
            and "space"
            == next(button for button in teacher.button if button.key == filled[0]).proto.shortcut
        )
    for app in (fine(opened(CLASS.path)), rerun(ann)):
        assert sum(button.proto.type == "primary" for button in app.button) <= 1
