"""Controls keep their position in every view of a page, whatever is selected."""

import pytest

from benchmarks.serving import settle
from tests.test_beside_browser import WHERE, middle, params
from ui.kit.pages import DEPTH, ONE_BLOCK, STUDIES, TRAINED_MODEL

pytestmark = pytest.mark.browser


def press(page, box):
    page.mouse.move(*middle(box))
    page.mouse.down()
    page.wait_for_timeout(30)
    page.mouse.up()


@pytest.mark.parametrize(
    "path", [ONE_BLOCK, DEPTH, STUDIES, TRAINED_MODEL], ids=lambda page: page.key
)
def test_tabs_stand_still_whichever_view_is_open(open_page, path):
    page = open_page(f"/{path.name.replace(' ', '_')}", width=1300)
    settle(page)
    first = page.evaluate(WHERE)
    labels = list(path.groups) or [path.views.label(view) for view in path.views]
    fixed = [item for item in first if item in (*labels, "Restore all")]
    assert len(fixed) >= 2
    for label in labels:
        if label in fixed:
            press(page, page.evaluate(WHERE)[label])
            params(page)
            now = page.evaluate(WHERE)
            moved = {
                item
                for item in fixed
                if item not in now or max(abs(a - b) for a, b in zip(first[item], now[item])) > 1
            }
            assert not moved, (label, moved)


@pytest.mark.parametrize(
    "opened, first, then",
    [
        ("without", "Next token", "layers"),
        ("heads", "Ablation", "credit"),
        ("without", "Attention", "steps"),
    ],
)
def test_second_view_opens_while_first_loads(open_page, opened, first, then):
    """A row of text that came or went with the first view moved "Restore all" under the tab."""
    page = open_page(f"/Trained_model?taken={opened}&out=2.3", width=1300)
    settle(page)
    places = page.evaluate(WHERE)
    press(page, places[first])
    page.wait_for_timeout(170)  # ms, as quick hands press
    press(page, places[next(tab for tab, views in TRAINED_MODEL.groups.items() if then in views)])
    assert params(page) == {"taken": then, "out": "2.3"}
