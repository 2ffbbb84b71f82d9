"""The store of settings under fast input: no change is lost, repeated or misapplied."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.testing.v1 import AppTest

import ui.kit.panel.panel
from core.model.config import Config
from core.train.settings import Learner, Training
from tests.pages import link, move, send_deltas, session, setting
from ui.block.context import BlockConfig
from ui.kit import store
from ui.kit.store import ALL, Session, apply, link_of

KINDS = {"one_block": (Config,), "training": (Training, Learner)}


def texts_of(setting) -> list[str]:
    """Return texts that a link may have for a setting: valid ones and an invalid one."""
    if setting.menu:
        return [*setting.menu, "nonsense"]
    if setting.kind is bool:
        return ["on", "off", "maybe"]
    if setting.kind is str:
        return ["", "text"]
    return [setting.write(setting.kind(value)) for value in (setting.low, setting.high)] + [
        "nonsense"
    ]


def deltas(page: str):
    """Return a strategy for one change of a page: a setting, a reset to default, or a link."""
    definition = {
        name: setting for kind in KINDS[page] for name, setting in kind.settings().items()
    }
    often = [
        name
        for name in ("d_model", "n_heads", "d_ff", "d_head", "task", "steps")
        if name in definition
    ]
    names = some.one_of(some.sampled_from(often), some.sampled_from([*definition]))
    single = names.flatmap(
        lambda name: some.tuples(
            some.just(name), some.sampled_from([*texts_of(definition[name]), None])
        )
    )
    link = some.lists(single.filter(lambda change: change[1] is not None), max_size=3).map(dict)
    return some.one_of(
        single.map(lambda change: dict([change])), link.map(lambda params: {ALL: None, **params})
    )


def applied(page: str, changes: list[dict]) -> dict[str, str]:
    """Return the choices after these changes, each made once and in this order."""
    choices: dict[str, str] = {}
    for delta in changes:
        choices, _ = apply(choices, delta, KINDS[page])
    return choices


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    monkeypatch.setattr(store, "kinds_of", dict(KINDS))


@pytest.mark.parametrize("page", KINDS)
@given(data=some.data())
@settings(max_examples=80)
def test_lost_doubled_and_late_messages_apply_once_in_order(page, data):
    session_ = Session(page=page)
    changes: list[dict] = []
    messages: list[dict] = []
    for _ in range(data.draw(some.integers(1, 6))):
        changes += data.draw(some.lists(deltas(page), min_size=1, max_size=3))
        waiting = [[n, page, delta] for n, delta in enumerate(changes, 1) if n > session_.number]
        messages.append({"session": session_.id, "deltas": waiting})
        for index in data.draw(some.lists(some.integers(0, len(messages) - 1), max_size=3)):
            session_.take(messages[index])  # an old one once more, or none at all
    session_.take(messages[-1])
    assert session_.number == len(changes)
    assert session_.choices == applied(page, changes)


@pytest.mark.parametrize("page", KINDS)
@given(data=some.data())
@settings(max_examples=80)
def test_settings_are_nearest_valid_to_choices(page, data):
    changes = data.draw(some.lists(deltas(page), max_size=8))
    choices = applied(page, changes)
    chosen, _ = store.build(link_of(choices, KINDS[page]), KINDS[page])
    for kind, kind_settings in zip(KINDS[page], chosen):
        values, _ = kind.values(link_of(choices, KINDS[page]))
        mended, problems = kind.repair(values)
        assert kind_settings == mended
        # A conflict of two choices may have to change a third setting: d_head 1 rules out RoPE.
        untouched = kind.settings().keys() - values.keys() - {error.field for error in problems}
        assert all(
            kind_settings.follows(name) or kind.settings()[name].follows is None
            for name in untouched
        )


@pytest.mark.parametrize("page", KINDS)
@given(data=some.data())
@settings(max_examples=60)
def test_link_restores_state_that_wrote_it(page, data):
    choices = applied(page, data.draw(some.lists(deltas(page), max_size=6)))
    repeated, problems = apply({}, {ALL: None, **link_of(choices, KINDS[page])}, KINDS[page])
    assert (repeated, problems) == (choices, [])


@given(data=some.data())
@settings(max_examples=60)
def test_locked_settings_stay(data):
    locked = {"d_model", "norm"}
    choices, _ = apply({}, {"d_model": "96"}, (Config,))
    for delta in data.draw(some.lists(deltas("one_block"), max_size=6)):
        choices, _ = apply(choices, delta, (Config,), locked)
    assert choices["Config.d_model"] == "96" and "Config.norm" not in choices


def test_trained_weights_have_own_choices_per_page():
    kinds = (BlockConfig,)
    choices, _ = apply({"Config.d_model": "96"}, {"norm": "none"}, kinds)
    assert link_of(choices, kinds) == {"norm": "none"}
    choices, _ = apply(choices, {"weights": "random"}, kinds)
    assert link_of(choices, kinds) == {"d_model": "96", "weights": "random"}
    choices, _ = apply(choices, {ALL: None, "d_ff": "100", "weights": "random"}, kinds)
    assert link_of(choices, kinds) == {"d_ff": "100", "weights": "random"}
    assert choices["BlockConfig.norm"] == "none"


def test_messages_from_before_restart_are_ignored():
    session_ = Session(page="one_block")
    session_.take({"session": "another", "deltas": [[1, "one_block", {"d_model": "96"}]]})
    assert session_.choices == {} and session_.number == 0


def page(name):
    """Draw a page with every control of its settings and nothing else."""
    import streamlit as st

    from tests.test_quick_hands import KINDS
    from ui.kit import store
    from ui.kit.panel.panel import acknowledge, draw_panel

    current = store.session()
    store.kinds_of[name] = KINDS[name]
    current.take(store.read_message())
    current.open(name, {}, False)
    page_settings, notes = current.settings(KINDS[name])
    st.caption(f"{len(notes)} notes")
    groups = dict.fromkeys(
        definition.group for variant in page_settings for definition in variant.settings().values()
    )
    draw_panel(groups, *page_settings, on_reset=print, label="")
    acknowledge("")


class QuickUser:
    """User at a browser who moves controls faster than the page can follow."""

    def __init__(self, name, monkeypatch):
        self.app = AppTest.from_function(page, args=(name,), default_timeout=60).run()
        self.drawn = self.cut = 0
        draw = ui.kit.panel.panel.control_of

        def of(*args):
            self.drawn += 1
            if self.drawn == self.cut:
                raise RerunException(RerunData())
            return draw(*args)

        monkeypatch.setattr(ui.kit.panel.panel, "control_of", of)

    def move(self, cut: int, **texts: str):
        """Change settings; the run stops after so many controls, and another follows."""
        self.drawn = 0
        self.cut = cut
        send_deltas(self.app, *({name: text} for name, text in texts.items())).run()
        assert not self.app.exception, [error.value for error in self.app.exception]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_interrupted_run_loses_no_change(name, monkeypatch):
    @given(some.lists(some.tuples(deltas(name), some.integers(0, 30)), min_size=1, max_size=4))
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def hold(changes):
        with monkeypatch.context() as patch:
            user = QuickUser(name, patch)
            for delta, cut in changes:
                user.drawn = 0
                user.cut = cut
                send_deltas(user.app, delta).run()
            assert session(user.app).choices == applied(name, [delta for delta, _ in changes])
            for kind_settings in session(user.app).settings(KINDS[name])[0]:
                values = {field: setting(user.app, field) for field in kind_settings.settings()}
                assert values == dataclasses.asdict(kind_settings)

    hold()


@pytest.mark.parametrize("cut", range(0, 24, 3))
def test_seven_presses_on_width_change_the_width_alone(cut, monkeypatch):
    user = QuickUser("one_block", monkeypatch)
    for width in range(72, 121, 8):
        user.move(cut, d_model=str(width))
    assert link(user.app) == {"d_model": "120"}


@pytest.mark.parametrize("name, value, meets", [("d_ff", 512, 128), ("d_head", 8, 32)])
def test_chosen_value_stays_when_width_passes_its_default(name, value, meets, monkeypatch):
    user = QuickUser("one_block", monkeypatch)
    move(user.app, **{name: value}).run()
    for width in (meets, 2 * meets):
        move(user.app, d_model=width).run()
        assert setting(user.app, name) == value and link(user.app)[name] == str(value)


def test_width_passes_values_that_heads_do_not_divide(monkeypatch):
    user = QuickUser("one_block", monkeypatch)
    move(user.app, n_heads=16).run()
    for width, heads, notes in ((72, 12, 1), (80, 16, 0), (88, 11, 1), (88, 11, 1), (96, 16, 0)):
        move(user.app, d_model=width).run()
        assert setting(user.app, "n_heads") == heads
        assert user.app.caption[0].value == f"{notes} notes"
    move(user.app, d_model=88).run()
    move(user.app, n_heads=8).run()  # now these are wanted
    move(user.app, d_model=96).run()
    assert setting(user.app, "n_heads") == 8
