"""What axe-core finds on every page and view, in both themes, wide and narrow: nothing serious or moderate."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from benchmarks.serving import settle
from ui.block import view as block
from ui.depth import view as depth
from ui.trained import view as trained

pytestmark = pytest.mark.browser
PLACES = (
    ["/", "/Training", "/Studies", "/One_block?variants=norm-none~n_heads-1"]
    + [f"/One_block?view={name}" for name in block]
    + [f"/Depth?variants=norm-none&show={name}" for name in depth]
    + [f"/Trained_model?taken={name}" for name in trained]
)


@pytest.mark.parametrize("theme, width", [("light", 1280), ("dark", 1280), ("light", 390)])
@pytest.mark.parametrize("place", PLACES)
def test_nothing_serious_or_moderate_is_found(open_page, place, theme, width):
    page = open_page(place, theme=theme, width=width)
    settle(page)
    found = Axe().run(page).response["violations"]
    told = [(each["impact"], each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] != "minor"]
    assert not told
