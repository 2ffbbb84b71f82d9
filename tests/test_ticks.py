"""Studies by tick boxes: the ticks are what is trained, and stay in step with the file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.model.config import Config
from core.model.variants import apply, decode, name_of
from core.settings.setting import ConfigError
from core.study.file import AXES, CHANGES, LOOKS, Ticks, parse, read_ticks
from core.tasks import task
from tests.pages import control, widget
from tests.test_page import fine
from tests.test_studies_page import area, dialog, good, opened, texts, url  # noqa: F401
from ui.studies.chooser import _study_label
from ui.studies.context import NAMES
from ui.studies.new_study import TEMPLATE

TICKS = some.builds(
    Ticks,
    name=some.text(some.characters(exclude_categories=["Cs"]), max_size=20),
    question=some.text(some.characters(exclude_categories=["Cs"]), max_size=20),
    tasks=some.lists(some.sampled_from(list(task)), unique=True, max_size=3).map(tuple),
    seeds=some.one_of(some.integers(1, 20), some.just(LOOKS)),
    margin=some.sampled_from([2.0, 0.5, 7.5]),
    changes=some.lists(some.sampled_from(CHANGES), unique=True, max_size=4).map(tuple),
    axes=some.fixed_dictionaries(
        {},
        optional={
            n: some.lists(some.sampled_from(v), unique=True, min_size=1, max_size=2).map(tuple)
            for n, v in AXES.items()
        },
    ),
)


@given(TICKS)
def test_ticks_and_their_file_say_the_same(ticked):
    assert read_ticks(ticked.write()) == ticked


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("changes", [(), ("norm-none",), tuple(CHANGES[:4])])
def test_ticked_variants_are_trained(changes, seeds):
    axes = {"placement": ("pre", "post"), "n_layers": ("1", "2")} if seeds == 3 else {}
    study = parse(Ticks("x", "", ("copy", "reverse"), seeds, changes, axes).write())
    expected = set()
    for name in ("copy", "reverse"):
        base = task[name].config()
        arms = [{}, *[decode(text, "") for text in changes]]
        arms += [
            {"placement": p, "n_layers": int(n)} for p in ("pre", "post") for n in "12" if axes
        ]
        for arm in arms:
            try:
                expected |= {(name, apply(arm, base).replace(seed=seed)) for seed in range(seeds)}
            except ConfigError:
                pass
    assert {(run.task, run.config) for run in study.runs} == expected


@pytest.mark.parametrize("text", CHANGES)
def test_tickable_changes_have_effects_and_own_names(text):
    assert sum(name_of(decode(item, "")) == name_of(decode(text, "")) for item in CHANGES) == 1
    assert read_ticks(
        f'name = "x"\ntasks = ["copy"]\n[variants]\n"{name_of(decode(text, ""))}" = "{text}"'
    ).changes == (text,)
    assert decode(text, "") and Config()


@pytest.mark.parametrize(
    "addition",
    [
        "[base]\nn_layers = 2",
        "[training]\nsteps = 5",
        "seeds = [1, 2]",
        'seeds = "3, 6"',
        "margin = 60",
        "seeds = 21",
        "seeds = true",
        "device = 'cpu'",
        "[variants]\n'mine' = 'norm-none'",
        "[variants]\n'− norm' = 'no_such-1'",
        "[variants]\n'− norm' = 3",
        "[axes]\nseed = [1]",
        "[axes]\nnorm = []",
        "[axes]\nnorm = 'none'",
        "tasks = 'copy'",
        "[axes]\nlearning_rate = [0.5]",
        "name = 3",
        "= 3",
        "a." * 3000 + "b = 1",
        "[" * 3000,
    ],
)
def test_richer_file_is_left_to_its_author(addition):
    assert read_ticks(addition) is None


def test_files_that_ship_are_ticked_where_they_can_be():
    assert read_ticks(TEMPLATE).changes == ("norm-none",)
    for path in Path("studies").glob("*.toml"):
        actual = read_ticks(path.read_text(encoding="utf-8"))
        if actual:
            assert {(r.task, r.config, r.training) for r in parse(actual.write()).runs} == {
                (r.task, r.config, r.training) for r in parse(path.read_text(encoding="utf-8")).runs
            }


def test_ticks_and_file_match_both_ways(url):  # noqa: F811
    app = dialog()
    assert widget(app.button_group, "tick_parts").value == ["norm-none"]
    widget(app.button_group, "tick_tasks").set_value(["copy", "reverse"]).run()
    widget(app.button_group, "tick_parts").set_value(["norm-none", "ffn-off"]).run()
    widget(app.selectbox, "tick_seeds").set_value(2).run()
    widget(app.multiselect, "tick_others").set_value(["norm-RMSNorm"]).run()
    widget(app.button_group, "tick_placement").set_value(["pre", "post"]).run()
    ticked = read_ticks(area(good(app)).value)
    assert (set(ticked.tasks), ticked.seeds, ticked.axes) == (
        {"copy", "reverse"},
        2,
        {"placement": ("pre", "post")},
    )
    assert ticked.changes == ("norm-none", "ffn-off", "norm-RMSNorm")
    assert f"{len(parse(ticked.write()).runs)} runs, 2 seeds per model" in texts(app)
    widget(app.number_input, "tick_margin").set_value(1.5).run()
    assert "margin = 1.5" in area(app).value
    widget(app.selectbox, "tick_seeds").set_value(LOOKS).run()
    assert 'seeds = "5, 10, 20"' in area(good(app)).value and "undecided after 5 seeds" in texts(
        app
    )
    area(app).set_value(ticked.write().replace("seeds = 2", "seeds = 4")).run()
    assert widget(app.selectbox, "tick_seeds").value == 4
    widget(app.button_group, "tick_tasks").set_value([]).run()  # said, and the ticks stay
    assert app.error and widget(app.selectbox, "tick_seeds").value == 4
    area(app).set_value("[base]\nn_layers = 2").run()
    assert "cannot be edited in the form" in texts(app)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_shipped_studies_have_results(url, name):  # noqa: F811
    app = good(opened(study=name))
    assert widget(app.selectbox, "study").options == list(
        map(_study_label, NAMES)
    ) and "Change in accuracy" in texts(app)
    for view in ("curves", "runs", "compare", "source"):
        app = fine(opened(study=name, shown=view))
        assert not app.error and (view == "source" or app.caption), view
    assert "\nseeds = " in fine(opened(study=name, shown="source")).code[0].value
    # Only a study that searches learning rates has a tab for them.
    rates = ["rates"] if NAMES[name] == "own_learning_rates" else []
    assert [view for view, _ in control(app, "shown")["options"]] == ["matrix", *rates, "source"]
    assert "runs" in dict(control(fine(opened(study=name, shown="runs")), "shown")["options"])
