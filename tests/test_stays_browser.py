"""What can be pressed on every view of a page stands where it stood, whichever view is open and whatever is said of the settings."""

import pytest

from benchmarks.serving import settle
from tests.test_beside_browser import WHERE, middle, params, part
from ui.kit.pages import DEPTH, ONE_BLOCK, STUDIES, TRAINED_MODEL

pytestmark = pytest.mark.browser


def press(page, box):
    page.mouse.move(*middle(box))
    page.mouse.down()
    page.wait_for_timeout(30)
    page.mouse.up()


@pytest.mark.parametrize("here", [ONE_BLOCK, DEPTH, STUDIES, TRAINED_MODEL], ids=lambda page: page.key)
def test_tabs_stand_still_whichever_view_is_open(open_page, here):
    page = open_page(f"/{here.name.replace(' ', '_')}", width=1300)
    settle(page)
    first = page.evaluate(WHERE)
    labels = [here.views.label(each) for each in here.views]
    there = [each for each in first if each in (*labels, "Put everything back")]
    assert len(there) > 2
    for label in labels:
        if label in there:
            press(page, page.evaluate(WHERE)[label])
            params(page)
            now = page.evaluate(WHERE)
            moved = {each for each in there if each not in now or max(abs(a - b) for a, b in zip(first[each], now[each])) > 1}  # fmt: skip
            assert not moved, (label, moved)


@pytest.mark.parametrize("gap", [120, 200, 350])
@pytest.mark.parametrize("opened, first, then", [("without", "Next word", "heads"), ("heads", "Trained without", "credit"), ("without", "Attention", "steps")])  # fmt: skip
def test_a_second_view_is_opened_while_the_first_comes(open_page, opened, first, then, gap):
    """The first one's row of the text came or went, and where the second tab had stood was "Put everything back"."""
    page = open_page(f"/Trained_model?taken={opened}&out=2.3", width=1300)
    settle(page)
    places = page.evaluate(WHERE)
    press(page, places[first])
    page.wait_for_timeout(gap - 30)
    press(page, places[TRAINED_MODEL.views.label(then)])
    assert params(page) == {"taken": then, "out": "2.3"}


@pytest.mark.parametrize("gap", [150, 300])
@pytest.mark.parametrize("place, key", [("mlp_out norm", "norm-none"), ("attn_out norm", "norm-none")])
def test_a_part_is_pressed_while_it_is_said_that_words_are_not_known(open_page, place, key, gap):
    page = open_page("/One_block", width=1300)
    settle(page)
    box = page.evaluate(WHERE)[place]
    page.locator("[data-name=text] input").click(click_count=3)
    page.keyboard.type("The foo had bars .", delay=40)
    page.wait_for_timeout(2100)
    page.keyboard.press("Enter")
    page.wait_for_timeout(gap)
    press(page, box)
    assert params(page) == {"text": "The foo had bars .", "variants": key}
    assert page.get_by_text("This model does not know").is_visible()


@pytest.mark.parametrize("gap", [120, 350])
def test_a_part_is_pressed_while_what_was_wrong_with_a_link_goes(open_page, gap):
    page = open_page("/One_block?variants=attention.off", width=1300)
    settle(page)
    assert page.locator("[data-testid=stAlert]").is_visible()
    places = page.evaluate(WHERE)
    drawing = part(page, "mlp_out residual")
    drawing.evaluate("each => { each.getRootNode().host.known = true }")
    press(page, places["− positions"])
    page.wait_for_timeout(gap - 30)
    press(page, places["mlp_out residual"])
    assert params(page)["variants"] == "position-none~residual_ffn-off"
    assert part(page, "mlp_out residual").evaluate("each => each.getRootNode().host.known")  # it was not made anew


@pytest.mark.parametrize("gap", [150, 300])
def test_a_part_that_such_a_sentence_moves_is_pressed(open_page, gap):
    """Beside a trained model it stands above the drawing, which is looked at from Enter on."""
    page = open_page("/Trained_model", width=1300)
    settle(page)
    field = page.locator("[data-name=prompt] input")
    field.click(click_count=3)
    page.keyboard.type("the foo was bars .", delay=40)
    page.wait_for_timeout(2100)
    box = page.evaluate(WHERE)["attn_out head 2"]
    page.keyboard.press("Enter")
    page.wait_for_timeout(gap)
    press(page, box)
    assert params(page) == {"prompt": "the foo was bars .", "out": "2.2"}
    assert page.evaluate(WHERE)["attn_out head 2"][1] > box[1] + 15


def test_the_chip_that_was_chosen_last_can_be_taken_out(open_page):
    """Where there is no room for all of them, it moved away as the field lost the focus, and what was pressed was its name."""
    page = open_page("/Studies", width=1300)
    settle(page)
    box = page.get_by_test_id("stMultiSelect").last
    chips = box.locator("button[aria-label^=Remove]")
    box.locator("input").click()
    for many in range(1, 6):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(200)
        page.keyboard.press("Enter")
        chips.nth(many - 1).wait_for()
        page.wait_for_timeout(500)
    row = box.get_by_test_id("stMultiSelectTagsContainer")
    assert row.evaluate("each => each.scrollLeft") > 0
    name = chips.last.get_attribute("aria-label")
    press(page, list(chips.last.bounding_box().values()))
    settle(page)
    assert chips.count() == 4 and name not in [each.get_attribute("aria-label") for each in chips.all()]
