"""Every page with every view, menu entry, end of a range and kind of invalid link."""

import re
from urllib.parse import parse_qsl

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.settings.setting import Setting
from tests.pages import link, session
from ui.kit.pages import CLASS, PAGES, START
from ui.kit.store import kinds_of

SHOWN = [page for page in PAGES if page is not START]
LARGE = 20_001  # characters, more than any text of a link may have but the one that a model reads

# Links with which every view of a page is opened.
STATES = {
    "block": [
        {"weights": "random"},
        {
            "weights": "random",
            "n_layers": "3",
            "mask": "causal",
            "padding": "2",
            "layer": "2",
            "head": "9",
            "token": "99",
        },
        {"weights": "random", "attention": "off"},
        {"weights": "random", "ffn": "off", "norm": "none"},
        {"weights": "random", "attention": "off", "ffn": "off", "text": "one"},
        {
            "weights": "random",
            "placement": "post",
            "norm": "RMSNorm",
            "activation": "swiglu",
            "position": "rope",
            "compare": "on",
        },
        {"weights": "random", "variants": "norm-none~residual_attention-off"},
        {"weights": "trained"},
        {"weights": "trained", "variants": "norm-none"},
        {"weights": "cut", "norm": "none"},
    ],
    "depth": [
        {},
        {"passes": "1", "text": "one"},
        {"passes": "100", "blocks": "separate"},
        {
            "mask": "causal",
            "padding": "3",
            "variants": "padding-0~attention-off~n_heads-1~activation-swiglu",
        },
        {
            "baseline": "norm-none",
            "variants": "ffn-off__residual_attention-off",
            "position": "rope",
            "d_model": "32",
        },
        {
            "init": "normal_1",
            "norm": "none",
            "passes": "40",
            "variants": "norm-LayerNorm~activation-swiglu",
        },
        {"dtype": "bfloat16", "text": "<b>**x**</b> $y$"},
    ],
    "training": [{}, {"task": "induction", "variants": "norm-none", "combine": "on"}],
    "studies": [{}, {"study": "attention"}],
    "trained": [
        {},
        {"out": "1.ffn", "mode": "mean"},
        {"out": "2.4", "mode": "resample"},
        {"model": "norm-none"},
    ],
}

# With trained weights only the sizes that were trained open.
START_WITH = {"block": {"weights": "random"}}

# Beside a wrong value these are kept.
KEPT = {
    "block": {"d_ff": "96", "mask": "causal"},
    "depth": {"d_ff": "96", "mask": "causal"},
    "training": {"d_ff": "96", "seeds": "2"},
    "trained": {"out": "1.ffn", "mode": "mean"},
}

# What a text says wrongly, page by page: the parameter, the text, and what the message must name.
BAD_TEXTS = [
    ("block", "text", "a\0b", "control characters"),
    ("block", "text", "word " * 300, "256"),
    ("block", "variants", "norm-nonce", "LayerNorm, RMSNorm, DyT, none"),
    ("depth", "variants", "nerm-none", "n_heads"),
    ("depth", "baseline", "d_model-7", "from 8 to 1,600"),
    ("depth", "baseline", "d_model-64__n_heads-5", "must divide"),
    ("depth", "grid", "norms-none", "norm"),
    ("depth", "grid", "norm-some", "LayerNorm, RMSNorm, DyT, none"),
    ("trained", "out", "9.1", "2"),
    ("studies", "study", "nonsense", "no study"),
]


def open_page(page, **link: str) -> AppTest:
    app = AppTest.from_file("../app.py", default_timeout=90)
    if page is not START:
        app.switch_page(page.path)
    app.query_params.update(link)
    app.run()
    assert not app.exception, [error.value for error in app.exception]
    assert not any("went wrong" in error.value for error in app.error), [
        error.value for error in app.error
    ]
    return app


def messages(app: AppTest) -> str:
    return (
        " ".join(message.value for message in [*app.warning, *app.error])
        .replace("\\", "")
        .replace("\N{NO-BREAK SPACE}", " ")
    )


def settings_of(page) -> dict[str, tuple[type, Setting]]:
    if page.key not in kinds_of:
        open_page(page)
    return {
        name: (kind, definition)
        for kind in kinds_of[page.key]
        for name, definition in kind.settings().items()
    }


def values(setting: Setting) -> list[str]:
    """Return the extreme values of a setting, or all entries of its menu."""
    if setting.menu:
        return list(setting.menu)
    if setting.kind is bool:
        return ["on", "off"]
    return [str(setting.low), str(setting.high)]


def wrong_values(setting: Setting) -> list[str]:
    if setting.menu or setting.kind is bool:
        return ["<script>alert(1)</script>"]
    return ["wide", str(setting.low - 1), "9" * 5000]


def titled(cases: list) -> dict:
    def title(case):
        return "-".join([case[0].key, *(str(part)[:40] for part in case[1:])])

    return {"argvalues": cases, "ids": [title(case) for case in cases]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.key)
def test_pages_open_without_messages(page):
    app = open_page(page)
    assert not app.error
    assert not app.warning


VIEWS = [
    (page, view, state)
    for page in SHOWN
    for view in page.views
    for state in STATES.get(page.key, [{}])[:1]
]
# Every view in half of the states, and every state in half of the views.
MORE_VIEWS = [
    (page, view, state)
    for page in SHOWN
    for index, view in enumerate(page.views)
    for number, state in enumerate(STATES.get(page.key, [])[1:])
    if (index + number) % 2 == 0
]


@pytest.mark.parametrize("page, view, state", **titled(VIEWS))
def test_views_open(page, view, state):
    app = open_page(page, **{page.parameter: view}, **state)
    assert not app.error
    assert session(app).page == page.key
    for text in [*app.markdown, *app.caption]:
        assert "None" not in text.value.split(), text.value


@pytest.mark.slow
@pytest.mark.parametrize("page, view, state", **titled(MORE_VIEWS))
def test_views_open_in_all_states(page, view, state):
    test_views_open(page, view, state)


def list_entries() -> list[tuple]:
    """Return (page, setting, value): every value on one page, every setting on each of its pages.

    Pages that share a setting take turns with its values, and each begins with another one.
    """
    pages_of = {}
    for page in SHOWN:
        for name, (_, page_setting) in settings_of(page).items():
            has_values = page_setting.kind is not str or page_setting.menu
            # The views of Class ask for a class, which tests/test_class_page.py has.
            if has_values and not page_setting.once and page is not CLASS:
                pages_of.setdefault(name, []).append(page)
    entries = []
    for name, pages in pages_of.items():
        every = values(settings_of(pages[0])[name][1])
        turns = [(pages[n % len(pages)], value) for n, value in enumerate(every)]
        turns += [(page, every[n % len(every)]) for n, page in enumerate(pages[len(every) :])]
        entries += [
            (page, name, value)
            for page, value in turns
            if (name, value) not in (("device", "cuda"), ("device", "mps"))
        ]
    return entries


ENTRIES = list_entries()


@pytest.mark.slow
@pytest.mark.parametrize("page, name, value", **titled(ENTRIES))
def test_menu_entries_and_number_bounds_open(page, name, value):
    message = messages(open_page(page, **START_WITH.get(page.key, {}) | {name: value}))
    # Settings that exclude each other, or a model that is too large for this machine, are named and
    # nothing more.
    assert not message or name in message or "ABLATION_MAX_MB" in message


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.key)
def test_wrong_values_are_named_with_allowed_ones(page, keep, number):
    """A link with a wrong value of every setting, or of every one but those in KEPT, which stay."""
    others = KEPT.get(page.key, {}) if keep else {}
    wrong = {}
    for name, (_, page_setting) in settings_of(page).items():
        if (page_setting.kind is str and not page_setting.menu) or page_setting.once:
            continue
        texts = wrong_values(page_setting)
        if name not in others and number < len(texts):
            wrong[name] = texts[number]
    app = open_page(page, **wrong, **others)
    text_of_page = messages(app)
    for name, text in wrong.items():
        assert re.search(rf"sets {name} to |\b{name} is ", text_of_page), name
        assert settings_of(page)[name][1]._allowed_near(text) in text_of_page, name
        assert name not in link(app), name
    assert others.items() <= link(app).items()


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.key)
def test_unknown_name_in_link_is_named(page):
    assert "nonsense" in messages(open_page(page, nonsense="1"))


TEXTS = [
    (page, name)
    for page in SHOWN
    for name, (kind, page_setting) in settings_of(page).items()
    if page_setting.kind is str and not page_setting.menu
]


@pytest.mark.parametrize("page, name", **titled(TEXTS))
def test_too_long_text_is_named(page, name):
    assert f"{name} " in messages(open_page(page, **{name: "x" * LARGE}))


@pytest.mark.parametrize("key, name, text, allowed", BAD_TEXTS)
def test_unreadable_text_is_named_with_allowed_form(key, name, text, allowed):
    page = next(page for page in PAGES if page.key == key)
    message = messages(open_page(page, **{name: text}))
    assert name in message
    assert allowed in message


@st.composite
def links(draw):
    """Return a page, and a link of known and unknown names with any values."""
    page = draw(st.sampled_from(SHOWN))
    page_setting = settings_of(page)
    entries = sorted(
        {value for _, setting in page_setting.values() for value in setting.menu or ()}
    )
    names = st.sampled_from(list(page_setting)) | st.text(min_size=1, max_size=12)
    numbers = st.integers(-(10**12), 10**12).map(str) | st.floats().map(str)
    values = st.text(max_size=60) | numbers | st.sampled_from([*entries, "on", "off"])
    link = draw(st.dictionaries(names, values, max_size=6))
    return page, {
        name: value
        for name, value in link.items()
        if name.replace("\0", "").strip() and name != "begin"
    }


@pytest.mark.slow
@given(links())
@settings(max_examples=100)
def test_links_never_break_a_page(page_and_link):
    page, link = page_and_link
    open_page(page, **link)


def test_missing_device_in_link_is_named(monkeypatch):
    if torch.cuda.is_available():
        monkeypatch.setattr("core.settings.device.available_devices", lambda: ("cpu",))
    page = next(page for page in PAGES if page.key == "block")
    assert "device is cuda" in messages(open_page(page, device="cuda"))


@pytest.mark.slow
def test_start_page_links_open_without_messages():
    page_links = open_page(START).get("page_link")
    links = [link for element in page_links if (link := element.proto).query_string]
    assert len(page_links) >= 8
    assert links
    for shown_link in links:
        page = next(page for page in SHOWN if page.name_in_address == shown_link.page)
        app = open_page(page, **dict(parse_qsl(shown_link.query_string)))
        assert not messages(app)
