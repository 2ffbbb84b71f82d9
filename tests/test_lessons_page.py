"""The page "Lessons": predict, see, explain; the browser's stored answers; every link."""

import json

import pytest

from core.teaching.lessons import prediction
from core.teaching.lessons.language import ENGLISH, clean, phrases
from core.teaching.lessons.prediction import BECAUSE, NOT_AS_PREDICTED, VERDICTS, measure_outcome
from core.teaching.lessons.reader import lesson, read_lesson
from core.teaching.lessons.wording import fill_in
from tests.pages import components, drawn, link, pick
from tests.test_lessons import answers, of_each
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from ui.kit.pages import LESSONS, PAGES
from ui.kit.store import SESSION
from ui.lessons.progress import KEPT, LONGEST, read_predictions

PAGE = LESSONS.path


def open_lesson(name: str):
    return fine(opened(PAGE, shown="one", lesson=name))


def answer(app, name: str, chosen):
    """Choose an answer in the controls."""
    lesson_read = read_lesson(name).prediction
    if lesson_read.options:
        return (
            next(radio for radio in app.radio if radio.key == f"answer_{name}")
            .set_value(chosen)
            .run()
        )
    if lesson_read.ranked:
        for item in chosen[:-1]:
            box = next(
                box
                for box in app.selectbox
                if box.key.startswith(f"answer_{name}_") and box.value is None
            )
            app = box.set_value(item).run()
        return app
    percent = 100  # all that are asked for are shares
    app = (
        next(slider for slider in app.slider if slider.key == f"answer_{name}")
        .set_value(chosen[0] * percent)
        .run()
    )
    return (
        next(group for group in app.button_group if group.key == f"within_{name}")
        .set_value(chosen[1])
        .run()
    )


def store(app, name: str, sure: int = 1):
    how = next(group for group in app.button_group if group.key == f"sure_{name}")
    if how.value is None:
        app = how.set_value(sure).run()
    return fine(
        next(button for button in app.button if button.key == f"store_{name}").click().run()
    )


def stored_entries(app) -> dict:
    return app.session_state[SESSION].kept[KEPT].entries


def picture(app) -> str:
    return json.loads(next(component for component in components(app, "ablation_lesson")).json)[
        "picture"
    ]


@of_each
def test_measurement_waits_for_stored_prediction(name, monkeypatch):
    requests = []

    def watched(reading, params):
        requests.append((reading, tuple(sorted(params.items()))))
        return original(reading, params)

    original = prediction.measure_reading
    monkeypatch.setattr("core.teaching.lessons.prediction.measure_reading", watched)
    app = open_lesson(name)
    lesson_read = read_lesson(name)
    assert not requests and "?" in (
        picture(app) if lesson_read.prediction.kind == "number" else drawn(app, "setting")
    )
    app = answer(app, name, answers(lesson_read)[0])
    assert not requests
    store(app, name)
    assert len(requests) == len(lesson_read.values)


def test_path_measures_only_finished_lessons(monkeypatch):
    requests = []

    def watched(reading, params):
        requests.append(reading)
        return original(reading, params)

    original = prediction.measure_reading
    monkeypatch.setattr("core.teaching.lessons.prediction.measure_reading", watched)
    app = fine(opened(PAGE))
    path = drawn(app, "path")
    assert (
        not requests
        and path.count('class="picture"') == len(lesson)
        and path.count("card next") == 1
    )
    (component,) = components(app, "ablation_progress")
    app = fine(pick(app, component, '{"scaling": {"answer": [0.8, 0.2], "sure": 3, "carried": 1}}'))
    path = drawn(app, "path")
    assert set(requests) == {"largest_weight", "accuracy"} and path.count("card done") == 1
    assert path.index("card done") < path.index("card next") and "83 %" in path


@pytest.mark.parametrize("verdict", VERDICTS)
@of_each
def test_explanation_follows_from_numbers(name, verdict):
    lesson_read = read_lesson(name)
    fitting = (
        answer
        for answer in answers(lesson_read)
        if prediction.verdict(lesson_read.prediction, answer, measure_outcome(lesson_read))
        == verdict
    )
    chosen = next(fitting, None)
    if chosen is None:
        return  # no answer to this one has that verdict
    app = store(answer(open_lesson(name), name, chosen), name)
    text = " ".join(said_on(app))
    out = measure_outcome(lesson_read)
    words = {name: phrases(ENGLISH)[name] for name in VERDICTS}
    assert words[verdict] in text and sum(word in text for word in words.values()) == 1
    assert (
        fill_in(lesson_read.explanation[verdict], lesson_read, out) in text
        and fill_in(lesson_read.means, lesson_read, out) in text
    )
    if lesson_read.prediction.options and verdict == NOT_AS_PREDICTED:
        assert lesson_read.prediction.options[chosen].instead in text
    label = lesson_read.values[lesson_read.shown[0]].label
    assert label in picture(app) and "?" not in picture(app).replace("?xml", "")


@pytest.mark.parametrize("because", ["<b>bold</b> **strong** $x$ :smile:", "a\nb\x00", "x" * 900])
def test_reasons_show_literally(because):
    app = answer(open_lesson("heads"), "heads", 0)
    app = (
        next(field for field in app.text_input if field.key == "because_heads")
        .set_value(because.encode("utf-8", "ignore").decode())
        .run()
    )
    app = store(app, "heads")
    stored = stored_entries(app)["heads"].because
    assert (
        stored == clean(because.encode("utf-8", "ignore").decode())[:BECAUSE]
        and len(stored) <= BECAUSE
    )
    assert stored in " ".join(said_on(app)) and "<b>" not in " ".join(
        markdown.value for markdown in app.markdown
    )


def test_stored_predictions_return():
    app = open_lesson("heads")
    (component,) = components(app, "ablation_progress")
    app = fine(
        pick(app, component, '{"heads": {"answer": 2, "sure": 3, "because": "why", "carried": 1}}')
    )
    text = " ".join(said_on(app))
    assert (
        phrases(ENGLISH)["as_predicted"] in text
        and "why" in text
        and phrases(ENGLISH)["was_sure_3"] in text
    )
    (component,) = components(app, "ablation_progress")
    assert json.loads(component.json)["entries"]["heads"]["answer"] == 2
    everything = drawn(fine(opened(PAGE)), "path")
    assert 'class="card done"' not in everything and everything.count('class="card') == len(lesson)


@pytest.mark.parametrize(
    "stored",
    [
        "nonsense",
        "x" * (LONGEST + 1),
        '{"heads": {"answer": 9, "sure": 1}}',
        '{"moon": {"answer": 1, "sure": 1}}',
    ],
)
def test_impossible_stored_predictions_are_dropped(stored):
    assert read_predictions(stored) == {}


WAYS = [
    pytest.param(way, id=f"{name}-{index}")
    for name in lesson
    for index, way in enumerate(
        [
            *filter(None, (read_lesson(name).experiment, read_lesson(name).challenge)),
            *read_lesson(name).ways,
        ]
    )
]


@pytest.mark.parametrize("way", WAYS)
def test_experiments_open_as_intended(way):
    page = next(item for item in PAGES if item.key == way.page)
    app = fine(opened(page.path, **way.params))
    assert not warned(app)
    for name, value in way.params.items():
        assert link(app).get(name) in ([value], value, None) or name == "weights", name


def pressed(app, name: str):
    """Press the button in one message with a control moved just before."""
    return fine(
        next(button for button in app.button if button.key == f"store_{name}").click().run()
    )


@pytest.mark.parametrize("name", [name for name in lesson if read_lesson(name).prediction])
def test_withdrawn_answer_is_not_stored(name):
    first = answers(read_lesson(name))[0]
    last = answers(read_lesson(name))[-1]
    app = answer(open_lesson(name), name, first)
    how = next(group for group in app.button_group if group.key == f"sure_{name}")
    app = how.set_value(2).run()
    next(group for group in app.button_group if group.key == f"sure_{name}").set_value(None)
    app = pressed(app, name)
    messages = [toast.value.replace("\\", "") for toast in app.toast]
    assert not stored_entries(app) and messages == [phrases(ENGLISH)["store_first"]]
    app = (
        next(group for group in app.button_group if group.key == f"sure_{name}").set_value(1).run()
    )
    lesson_read = read_lesson(name).prediction
    if lesson_read.options:
        next(radio for radio in app.radio if radio.key == f"answer_{name}").set_value(last)
        assert stored_entries(pressed(app, name))[name].answer == last
    elif lesson_read.ranked:  # what comes next has not been said of the new order
        next(box for box in app.selectbox if box.key == f"answer_{name}_0_").set_value(first[1])
        app = pressed(app, name)
        assert not stored_entries(app) and len(app.toast) == 1
        order = [first[1], first[0], *first[2:]]
        assert stored_entries(store(answer(app, name, order[1:]), name))[name].answer == order
    else:
        next(slider for slider in app.slider if slider.key == f"answer_{name}").set_value(
            100 * last[0]
        )
        assert stored_entries(pressed(app, name))[name].answer[0] == pytest.approx(last[0])
