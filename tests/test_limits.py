"""Teacher's link: neither the address nor a forged message changes a locked setting."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.pages import components, controls, links, move_control, send, setting
from tests.pages import words as shown_words
from tests.test_page import fine, opened
from ui.kit.limits import PARAMETER, Limits, read_limits
from ui.kit.pages import DEPTH, ONE_BLOCK, PAGES, TRAINING

NAMES = some.lists(some.from_regex(r"\A[a-z_.]{1,20}\Z"), max_size=5, unique=True).map(tuple)
BLOCK = Limits(
    pages=("block",), views=("block.attention", "block.cost"), moved=("d_model",), locked=("norm",)
)


def with_link(limits: Limits, **link) -> Limits:
    return dataclasses.replace(limits, link={"weights": "random"} | link)


def locked(limits: Limits = BLOCK, page=ONE_BLOCK, **params):
    """Open a session with a teacher's link made of these settings."""
    text = with_link(limits, **params).write()
    return fine(
        opened(
            page.path,
            **({"weights": "random"} if page is ONE_BLOCK else {}) | {PARAMETER: text} | params,
        )
    )


@given(
    some.builds(
        Limits,
        pages=NAMES.filter(bool),
        views=NAMES,
        moved=NAMES,
        locked=NAMES,
        large=some.booleans(),
    )
)
def test_limits_are_read_as_they_were_written(limits):
    assert read_limits(limits.write()) == limits
    escaped = dataclasses.replace(limits, link={"text": "ä <b>~-.", "norm": "none"})
    assert read_limits(escaped.write()) == dataclasses.replace(
        escaped, link={k: v for k, v in escaped.link.items() if k not in limits.moved}
    )


def test_links_that_were_written_with_a_seal_still_open():
    assert read_limits(f"{BLOCK.write()}~seal-0123456789ab") == BLOCK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "moon-1",
        "x" * 5000,
    ],
)
def test_unreadable_limits_limit_nothing(text):
    assert read_limits(text) is None
    app = fine(opened(ONE_BLOCK.path, only=text))
    assert len(links(app)) == len(PAGES)


def test_only_what_was_ticked_is_there():
    app = locked(norm="RMSNorm", d_model="96")
    assert list(links(app)) == [ONE_BLOCK.name]
    assert shown_words(app, "view") == ["Attention", "Cost"]
    names = controls(app)
    assert (
        "d_model" in names
        and "n_heads" not in names
        and "norm" not in names
        and "compared_with" not in names
        and "text" not in names
    )
    html_of_words = [control["html"] for control in _words(app)]
    assert any("RMSNorm" in item for item in html_of_words)
    assert setting(app, "norm") == "RMSNorm" and setting(app, "d_model") == 96


def _words(app):
    from tests.pages import components

    panels = components(app, "ablation_panel")
    return [
        control
        for panel in panels
        for group in json.loads(panel.json)["groups"]
        for control in group["controls"]
        if control["kind"] == "words"
    ]


@pytest.mark.parametrize(
    "name, value",
    [
        ("norm", "none"),
        ("n_heads", "8"),
        ("view", "steps"),
        ("text", "another one"),
        ("variants", "ffn-off"),
        ("seed", "3"),
    ],
)
def test_address_cannot_change_locked_settings(name, value):
    app = locked(norm="RMSNorm")
    before = {item: setting(app, item) for item in ("norm", "n_heads", "text", "variants", "seed")}
    app = fine(
        send(app, {"*": None, name: value, "d_model": "128"})
    )  # as the browser's Back says it
    assert {item: setting(app, item) for item in before} == before and setting(
        app, "d_model"
    ) == 128
    assert setting(app, "view") in ("attention", "cost")


def test_address_without_limits_keeps_them():
    app = locked(norm="RMSNorm")
    for text in (
        None,
        Limits(pages=("block", "depth"), moved=("norm", "n_heads")).write(),
        Limits(pages=("depth",)).write(),
    ):
        if text is None:
            del app.query_params[PARAMETER]
        else:
            app.query_params[PARAMETER] = text
        app.query_params["n_heads"] = "8"
        app = fine(app.run())
        assert setting(app, "n_heads") == 4 and list(links(app)) == [ONE_BLOCK.name]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page is not ONE_BLOCK], ids=lambda page: page.key
)
def test_excluded_page_shows_only_way_back(page):
    app = locked(page=page)
    assert not controls(app) and any(
        "does not include this page" in note.value for note in app.info
    )
    assert len(app.get("page_link")) == 1
    assert not app.button and not app.slider and not app.text_input


def test_diagram_click_cannot_change_locked_settings():
    from tests.pages import clicked

    app = locked()
    drawing = next(iter(components(app, "ablation_drawing")))
    assert json.loads(drawing.json)["clicked"] is False
    app = fine(clicked(app, drawing, "residual_attention-off"))
    assert setting(app, "variants") in ("", "none") and setting(app, "residual_attention") is True


def test_locked_values_travel_to_other_pages():
    limits = Limits(pages=("block", "depth", "training"), moved=("passes",))
    app = locked(limits, norm="RMSNorm", d_model="96")
    for page in (DEPTH, TRAINING):
        app = fine(app.switch_page(page.path).run())
        assert setting(app, "norm") == "RMSNorm" and setting(app, "d_model") == 96
    app = fine(app.switch_page(DEPTH.path).run())
    app = fine(move_control(app, "passes", "20"))
    assert setting(app, "passes") == 20
