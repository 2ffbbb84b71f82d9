"""The page "Claims": every claim, the experiment behind its link, and damaged tables."""

import json

import pytest

from core.teaching.claims import claim, describe, describe_verdicts, judge_claim, read_values
from tests import pages
from tests.pages import components, link, texts
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from ui.claims import experiment_link
from ui.kit.pages import CLAIMS, TRAINING

of_each_claim = pytest.mark.parametrize("name", claim)


def rows(app) -> list[dict]:
    (listed,) = components(app, "ablation_claims")
    return json.loads(json.loads(listed.json))["rows"]


def test_list_has_all_claims_with_verdicts():
    app = fine(opened(CLAIMS.path))
    values = read_values()
    actual = {name: judge_claim(values[name], claim[name]) for name in claim}
    assert any(describe_verdicts(actual.values()) in item for item in said_on(app)) and not warned(
        app
    )
    assert [row["title"] for row in rows(app)] == [claim.label(name) for name in claim]
    assert [row["verdict"] for row in rows(app)] == [item.verdict for item in actual.values()]
    for row, name in zip(rows(app), claim):
        assert row["said"] == f"{claim.label(name)}: {describe(actual[name], claim[name])}"
        assert claim[name].paper.startswith(row["paper"]) and "nan" not in row["picture"]


@of_each_claim
def test_single_claim_shows_its_measurement(name):
    app = fine(opened(CLAIMS.path, shown="evidence", claim=name))
    text = " ".join(said_on(app))
    actual = judge_claim(read_values()[name], claim[name])
    assert (
        describe(actual, claim[name]) in text
        and claim[name].number in text
        and claim[name].here in text
    )
    assert f"--only {name}" in text and not warned(app)
    assert rows(app)[0]["picture"].count('class="seed"') == actual.interval.n


SHIPS = "Precomputed"
NOT_STORED = {"sinks"}  # whole language models, of which no curve is kept


@of_each_claim
def test_its_experiment_opens_as_it_is_meant(name):
    """The link is accepted unchanged, and the page Training knows what to train."""
    values = read_values()[name]
    page, params = experiment_link(claim[name], values)
    assert page.key == claim[name].live[0] and claim[name].live[1].items() <= params.items()
    app = fine(pages.opened(page.path, **params))
    assert not warned(app)
    expected = {
        key: value for key, value in params.items() if value not in ("none", "reverse")
    }  # the page's own
    assert expected.items() <= dict(link(app)).items()
    if page is TRAINING and name not in NOT_STORED:
        assert (
            f"{SHIPS}: {len(values) * 2 if params.get('variants') != 'none' else len(values)} run"
            in texts(app)
        )
