"""The page "Lessons" without a browser: predict, see, explain; what the browser kept; every link."""

import json

import pytest

from core.teaching.lessons import prediction
from core.teaching.lessons.language import clean
from core.teaching.lessons.prediction import BECAUSE, NOT_AS_PREDICTED, SURE, VERDICTS, outcome
from core.teaching.lessons.reader import lesson, read_lesson
from core.teaching.lessons.wording import fill_in
from tests.pages import components, link, pick
from tests.test_lessons import answers, of_each
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from ui.kit.pages import LESSONS, PAGES
from ui.kit.store import SESSION
from ui.lessons.progress import KEPT, LONGEST, read

PAGE = LESSONS.path
NUMBER = next(name for name in lesson if (of := read_lesson(name).prediction) and of.kind == "number")


def open_lesson(name: str):
    return fine(opened(PAGE, shown="one", lesson=name))


def answer(app, name: str, chosen):
    """Choose it in the controls."""
    of = read_lesson(name).prediction
    if of.options:
        return next(each for each in app.radio if each.key == f"answer_{name}").set_value(chosen).run()
    if of.ranked:
        for each in chosen[:-1]:
            box = next(box for box in app.selectbox if box.key.startswith(f"answer_{name}_") and box.value is None)
            app = box.set_value(each).run()
        return app
    percent = 100  # all that are asked for are shares
    app = next(each for each in app.slider if each.key == f"answer_{name}").set_value(chosen[0] * percent).run()
    return next(each for each in app.button_group if each.key == f"within_{name}").set_value(chosen[1]).run()


def store(app, name: str, sure: int = 1):
    how = next(each for each in app.button_group if each.key == f"sure_{name}")
    if how.value is None:
        app = how.set_value(sure).run()
    return fine(next(each for each in app.button if each.key == f"store_{name}").click().run())


def kept(app) -> dict:
    return app.session_state[SESSION].kept[KEPT].entries


def picture(app) -> str:
    return json.loads(next(each for each in components(app, "ablation_lesson")).json)["picture"]


def of_verdict(name: str, verdict: str):
    """An answer with this verdict, or None."""
    of = read_lesson(name)
    found = (each for each in answers(of) if prediction.verdict(of.prediction, each, outcome(of)) == verdict)
    return next(found, None)


@of_each
def test_nothing_is_measured_before_the_prediction_is_stored(name, monkeypatch):
    asked = []

    def watched(reading, params):
        asked.append((reading, tuple(sorted(params.items()))))
        return original(reading, params)

    original = prediction.measured
    monkeypatch.setattr("core.teaching.lessons.prediction.measured", watched)
    app = open_lesson(name)
    of = read_lesson(name)
    assert not asked and "?" in picture(app) or of.prediction.kind == "curve"
    app = answer(app, name, answers(of)[0])
    assert not asked
    store(app, name)
    assert len(asked) == len(of.values)


@pytest.mark.parametrize("verdict", VERDICTS)
@of_each
def test_it_says_what_follows_from_the_numbers(name, verdict):
    chosen, of = of_verdict(name, verdict), read_lesson(name)
    if chosen is None:
        return  # no answer to this one has that verdict
    app = store(answer(open_lesson(name), name, chosen), name)
    said, out = " ".join(said_on(app)), outcome(of)
    words = {
        "as_predicted": "As predicted",
        "not_as_predicted": "Not as predicted",
        "undecided": "Undecided: the seeds do not tell",
    }
    assert words[verdict] in said and sum(each in said for each in words.values()) == 1
    assert fill_in(of.explanation[verdict], of, out) in said and fill_in(of.means, of, out) in said
    if of.prediction.options and verdict == NOT_AS_PREDICTED:
        assert of.prediction.options[chosen].instead in said
    shown = of.values[of.shown[0]].label
    assert shown in picture(app) and "?" not in picture(app).replace("?xml", "")


@pytest.mark.parametrize("sure", SURE)
def test_sure_and_wrong_is_the_most_interesting_case(sure):
    app = answer(open_lesson("heads"), "heads", 0)
    next(each for each in app.button_group if each.key == "sure_heads").set_value(sure).run()
    said = " ".join(said_on(store(app, "heads")))
    assert ("most interesting case" in said) == (sure >= 2)


@pytest.mark.parametrize("because", ["<b>bold</b> **strong** $x$ :smile:", "a\nb\x00\ud800", "é 漢 \u202e", "x" * 900])
def test_a_reason_of_any_characters_shows_literally(because):
    app = answer(open_lesson("heads"), "heads", 0)
    app = (
        next(each for each in app.text_input if each.key == "because_heads")
        .set_value(because.encode("utf-8", "ignore").decode())
        .run()
    )
    app = store(app, "heads")
    stored = kept(app)["heads"].because
    assert stored == clean(because.encode("utf-8", "ignore").decode())[:BECAUSE] and len(stored) <= BECAUSE
    assert stored in " ".join(said_on(app)) and "<b>" not in " ".join(each.value for each in app.markdown)


def test_a_prediction_can_be_made_anew():
    app = store(answer(open_lesson("heads"), "heads", 0), "heads")
    app = fine(next(each for each in app.button if each.label == "Predict anew").click().run())
    assert not kept(app) and any(each.key == "store_heads" for each in app.button)


def told_by_browser(app, entries) -> object:
    (component,) = components(app, "ablation_progress")
    return fine(pick(app, component, entries if isinstance(entries, str) else json.dumps(entries)))


def test_what_the_browser_has_kept_is_there_again():
    app = told_by_browser(open_lesson("heads"), {"heads": {"answer": 2, "sure": 3, "because": "why", "carried": 1}})
    said = " ".join(said_on(app))
    assert "As predicted" in said and "why" in said and "certain" in said
    (component,) = components(app, "ablation_progress")
    assert json.loads(component.json)["entries"]["heads"]["answer"] == 2
    everything = fine(opened(PAGE))
    assert "done" not in " ".join(said_on(everything))


@pytest.mark.parametrize(
    "told",
    [
        "", "nonsense", "[]", "3", "[" * 50_000, "x" * (LONGEST + 1), '{"heads": 3}', '{"heads": {"answer": 9, "sure": 1}}',
        '{"heads": {"answer": 1, "sure": 9}}', '{"heads": {"answer": 1, "sure": true}}', '{"heads": {"answer": 1, "sure": 1, "because": 3}}',
        '{"free_play": {"answer": 1, "sure": 1}}', '{"moon": {"answer": 1, "sure": 1}}', '{"heads": {"answer": 1e999, "sure": 1}}',
        *(f'{{"%s": {{"answer": [{number}, 0.05], "sure": 1}}}}' % NUMBER for number in ("1e999", "-1e999", "NaN", "9" * 400)),
    ],
)  # fmt: skip
def test_what_a_browser_cannot_have_kept_is_left_out(told):
    assert read(told) == {}


WAYS = [
    pytest.param(way, id=f"{name}-{at}")
    for name in lesson
    for at, way in enumerate(
        [*filter(None, (read_lesson(name).experiment, read_lesson(name).challenge)), *read_lesson(name).ways]
    )
]


@pytest.mark.parametrize("way", WAYS)
def test_an_experiment_opens_as_it_is_meant(way):
    page = next(each for each in PAGES if each.key == way.page)
    app = fine(opened(page.path, **way.params))
    assert not warned(app)
    for name, value in way.params.items():
        assert link(app).get(name) in ([value], value, None) or name == "weights", name


def test_the_list_has_every_lesson_and_opens_it():
    app = fine(opened(PAGE))
    titles = [each.label.replace("\\", "") for each in app.button if each.key.startswith("open_")]
    assert titles == [f"**{read_lesson(name).number} · {read_lesson(name).title}**" for name in lesson]
    app = fine(next(each for each in app.button if each.key == "open_relu").click().run())
    assert read_lesson("relu").question in " ".join(said_on(app))


def test_free_play_leads_to_every_kind_of_page():
    app = open_lesson("free_play")
    assert len(app.get("page_link")) == len(read_lesson("free_play").ways)
    assert not any(each.key == "store_free_play" for each in app.button)


def pressed(app, name: str):
    """The button, in one message with what was moved just before."""
    return fine(next(each for each in app.button if each.key == f"store_{name}").click().run())


@pytest.mark.parametrize("name", [name for name in lesson if read_lesson(name).prediction])
def test_what_is_taken_back_in_the_moment_of_storing_is_not_stored(name):
    first, last = answers(read_lesson(name))[0], answers(read_lesson(name))[-1]
    app = answer(open_lesson(name), name, first)
    how = next(each for each in app.button_group if each.key == f"sure_{name}")
    app = how.set_value(2).run()
    next(each for each in app.button_group if each.key == f"sure_{name}").set_value(None)
    app = pressed(app, name)
    said = [each.value.replace("\\", "") for each in app.toast]
    assert not kept(app) and said == ["Choose an answer, and say how sure you are."]
    app = next(each for each in app.button_group if each.key == f"sure_{name}").set_value(1).run()
    of = read_lesson(name).prediction
    if of.options:
        next(each for each in app.radio if each.key == f"answer_{name}").set_value(last)
        assert kept(pressed(app, name))[name].answer == last
    elif of.ranked:  # what comes next has not been said of the new order
        next(each for each in app.selectbox if each.key == f"answer_{name}_0_").set_value(first[1])
        app = pressed(app, name)
        assert not kept(app) and len(app.toast) == 1
        order = [first[1], first[0], *first[2:]]
        assert kept(store(answer(app, name, order[1:]), name))[name].answer == order
    else:
        next(each for each in app.slider if each.key == f"answer_{name}").set_value(100 * last[0])
        assert kept(pressed(app, name))[name].answer[0] == pytest.approx(last[0])
