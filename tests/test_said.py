"""Words on screen: one thing is one thing and not "1 things"; a head has one name wherever it stands."""

import re

import pytest

from core.settings.wording import KEY
from tests import pages
from tests.pages import written
from tests.test_page import fine
from ui.block import view as block
from ui.depth import view as depth
from ui.kit import takeaway
from ui.pictures import heatmaps
from ui.trained import view as model

PAGES = {
    "pages/1_One_block.py": ("view", block),
    "pages/2_Depth.py": ("show", depth),
    "pages/5_Trained_model.py": ("taken", model),
}
THINGS = "heads|blocks|layers|tokens|words|passes|variants|parts|seeds|steps|trainings|workers|numbers|pairs|texts|sentences|dimensions"


@pytest.fixture
def said(monkeypatch):
    """A page with these settings -> every sentence on it, on its pictures, and of its tables."""
    drawn = []

    def pack(*given, **words):
        titles = [*(words.get("titles") or []), words.get("what", ""), words.get("alt", "")]
        drawn.extend([*titles, *map(str, given[1]), *map(str, (given[2:] or [None])[0] or [])])
        drawn.extend(each for row in words.get("tips") or [] for each in row)
        return made(*given, **words)

    def note(name, make):
        drawn.append(name)

    made = heatmaps.pack
    monkeypatch.setattr(heatmaps, "pack", pack)
    for module in (heatmaps, takeaway):
        monkeypatch.setattr(module, "note", note)

    def opened(page, **params) -> list[str]:
        drawn.clear()
        app = fine(pages.opened(page, **params))
        lists = [each for box in [*app.selectbox, *app.multiselect] for each in box.options] + [
            each.proto.body for each in app.get("html")
        ]
        lists += written(app)
        told = [each.value for each in [*app.markdown, *app.caption, *app.info, *app.warning]]
        return [
            each.replace("\\", "")
            for each in [*told, *lists, *(each.label for each in [*app.button, *app.toggle]), *drawn]
        ]

    return opened


@pytest.mark.slow
@pytest.mark.parametrize("page, view", [(page, view) for page, (_, views) in PAGES.items() for view in views])
def test_one_of_a_thing_is_not_called_many(said, page, view):
    least = {
        "pages/1_One_block.py": {"n_heads": "1", "text": "word", "compare": "on"},
        "pages/2_Depth.py": {"n_heads": "1", "passes": "1", "blocks": "separate", "text": "word", "variants": "", "grid": "norm-LayerNorm__placement-pre__residual-both__activation-gelu__n_heads-1"},
        "pages/5_Trained_model.py": {"prompt": "the"},
    }[page]  # fmt: skip
    found = said(page, **{PAGES[page][0]: view}, **{name: value for name, value in least.items() if value})
    assert found and not [each for each in found if re.search(rf"(?<![\d.,/\-−])\b1 ({THINGS})\b", each)]


NAMED = [
    *[("pages/1_One_block.py", {"view": view, "n_layers": "3", "layer": "2", "head": "4"}) for view in ("attention", "steps", "heads", "pairs")],
    *[("pages/1_One_block.py", {"maps": maps, "n_layers": "3", "layer": "2", "head": "4"}) for maps in ("one", "lines")],
    *[("pages/5_Trained_model.py", {"taken": view, "layer": "2", "head": "4"}) for view in model],
    *[("pages/5_Trained_model.py", {"taken": view, "out": "2.4~1.1"}) for view in model],
    ("app.py", {}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page, params", NAMED, ids=str)
def test_a_head_has_its_layer_in_its_name_where_there_are_several(said, page, params):
    found = said(page, **params)
    grid = (
        {f"head {n}" for n in range(1, 5)} if params.get("taken") in ("credit", "sweep") else set()
    )  # a map's columns
    others = [each.replace(KEY, "").replace(KEY.capitalize(), "") for each in found if each not in grid]
    names = {name.lower() for each in others for name in re.findall(r"\bhead [\d.]*\d", each, re.IGNORECASE)}
    assert names and not [name for name in names if not re.fullmatch(r"head \d\.\d", name)]
    assert sum(KEY.lower() in each.lower() for each in found) == 1
    assert not any(re.search(r"layer \d, head \d", each) for each in found if KEY.lower() not in each.lower())
