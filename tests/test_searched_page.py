"""The page Training with fair comparisons, from the click to the table.

Each model has its best learning rate, and cost is matched.
"""

import pandas as pd
import pytest

from core.experiments.training.judged import describe_rates, select_runs
from core.experiments.training.plan import Trial
from core.experiments.training.results import summary
from core.study.file import parse
from core.train import train
from core.train.match import search
from tests.pages import tables as tables_of
from tests.studies import TEXT
from tests.test_page import fine
from tests.test_study_tables import open_link
from tests.test_training_page import TINY, button, opened, running, start_line, texts, trained

SHORT = TINY | {"task": "copy", "variants": "ffn-off"}


@pytest.mark.parametrize("kind", [kind_name for kind_name in search if kind_name != "none"])
def test_models_stand_at_rate_chosen_by_other_seeds(kind):
    app = trained(search=kind, **SHORT)
    plan = running(app).plan
    count = {"three": 3, "five": 5}[kind] * 4
    assert f"Done: {count} runs" in start_line(app)
    runs = {
        (name, seed): list(train(config, how, seed)) for name, config, how, seed in plan.trainings()
    }
    actual = select_runs(runs, plan)
    assert running(app).runs == actual.runs
    accuracy_table = tables_of(app)["Accuracy and cost of each model"]()
    expected = summary(actual.runs, plan, describe_rates(plan, actual.names))
    pd.testing.assert_frame_equal(accuracy_table.reset_index(drop=True), expected)
    assert set(accuracy_table.guards) == {"learning rate searched"}
    assert "Same for every model: tuned learning rate." in texts(app)
    assert "the rate with the lowest training loss is used" in texts(app)
    assert [list(table.value["learning rate on seeds"]) for table in app.dataframe] == [
        list(expected.rates)
    ]
    for state in running(app).states.values():
        assert state.training.learning_rate in {
            how.learning_rate for arm in plan.arms for how in plan.ways(arm).values()
        }
    names = {name for name, _ in running(app).every_run}
    assert set(tables_of(app)["all logged steps"]().variant) == names and len(names) == count // 2


def test_rate_is_reported_after_all_were_trained():
    app = fine(opened(search="three", **SHORT | {"steps": "5000", "seed": "73"}))
    app = fine(button(app, "start").click().run())
    try:
        assert set(app.dataframe[0].value["learning rate on seeds"]) == {
            "–"
        } and "edge of the range" not in texts(app)
    finally:
        running(app).job.stop()


def test_link_of_searched_cell_opens_search(tmp_path):
    """A cell of a study with searched rates opens its experiment on the page, to the last run."""
    from core.study.database.store import Store
    from core.study.tables import summary_with_guards
    from tests.studies import fill

    parsed = parse(TEXT.replace('device = "cpu"', 'device = "cpu"\nsearch = "three"'))
    store = Store(str(tmp_path / "studies.sqlite"))
    table = summary_with_guards(
        store, fill(store, parsed, lambda run: 0.5 + run.training.learning_rate)
    )
    store.close()
    seeds_of = {}
    for run in parsed.runs:
        seeds_of.setdefault(run.task, set()).add((run.config, run.training))
    for line in table.itertuples():
        plan = open_link(line.link)
        assert plan.trial == Trial(seeds=3, search="three")
        planned = {(config.replace(seed=seed), how) for _, config, how, seed in plan.trainings()}
        assert planned <= seeds_of[line.task] and len(planned) == 9 * len(plan.arms)
        assert plan.arms[-1].name == (
            "baseline" if line.variant == "baseline" else plan.arms[-1].name
        )


@pytest.mark.parametrize("guards", [{}, {"search": "three"}, {"match": "time"}])
def test_single_learning_rate_is_named_only_if_single(guards):
    app = trained(trained="steps", **guards, **SHORT)
    drawn = "".join(str(element.proto) for element in app.get("bidi_component"))
    assert ("Same for all models." in drawn) == (not guards)
    assert ("Mean over seeds, per model." in drawn) == bool(guards)
