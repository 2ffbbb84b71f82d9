"""Settings under quick hands: runs that are cut short, and a browser that answers before it has heard of the last one."""

import dataclasses
from collections import deque

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as some
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

import ui.kit.panel.control
from core.model.config import Config
from core.train.learner import Learner
from core.train.settings import Training
from tests.pages import control, controls, move, said, setting, states
from ui.kit.session.visitor import VISITOR

KINDS = {"one_block": (Config,), "training": (Training, Learner)}


def page(name):
    """A page with every control of its settings, and nothing else."""
    import streamlit as st

    from tests.test_quick_hands import KINDS
    from ui.kit.panel.panel import panel
    from ui.kit.session import values

    made, notes = values.settings(name, *KINDS[name])
    st.caption(f"{len(notes)} notes")
    groups = dict.fromkeys(known.group for each in made for known in each.settings().values())
    panel(groups, *made, back=print, label="")


class Hands:
    """A visitor at a browser: moves what the browser shows, faster than the page can follow."""

    def __init__(self, name, monkeypatch):
        self.app = AppTest.from_function(page, args=(name,), default_timeout=60).run()
        self.waiting, self.drawn = deque(), 0
        self.said, self.number = {}, 0  # as panel.js keeps them
        draw = ui.kit.panel.control.shows

        def shows(*given, **more):
            self.drawn += 1
            if self.waiting and self.drawn > self.waiting[0][0]:
                _, states = self.waiting.popleft()
                self.drawn = 0
                raise RerunException(RerunData(widget_states=states))
            return draw(*given, **more)

        monkeypatch.setattr(ui.kit.panel.control, "shows", shows)

    def move(self, moves):
        """moves: [(name, to which share of its way, after how many controls the next move cuts the run short)], all on what
        the browser shows now -> [(name, value)] of those that it shows"""
        app = self.app
        shown = controls(app)
        self.said = {key: told for key, told in self.said.items() if key in {each["key"] for each in shown.values()}}
        made, messages = [], []
        for name, share, cut in moves:
            if name not in shown:
                continue  # one choice alone is not drawn
            told, value = put(shown[name], share, app.session_state[VISITOR].shown[name][-1])
            if told == self.said.get(shown[name]["key"], shown[name]["value"]):
                continue  # it was there already
            self.said[shown[name]["key"]] = told
            self.number += 1
            made.append((name, value))
            messages.append((cut, states(app, said(app, self.number, self.said))))
        if made:
            self.waiting.extend((cut, states) for (cut, _), (_, states) in zip(messages, messages[1:]))
            self.drawn = 0
            app._run(messages[0][1])
            while self.waiting:  # it had fewer controls than that, and so was not cut short
                self.drawn = 0
                app._run(self.waiting.popleft()[1])
            assert not app.exception, [each.value for each in app.exception]
        return made


def put(one: dict, share: float, shown):
    """Move a control to a share of its way -> (what the browser says then, the value there)"""
    kind, *offered = shown.offers
    if kind == "switch":
        return share > 0.5, share > 0.5
    if kind == "range":
        told = one["low"] + round(share * (one["high"] - one["low"]) / one["step"]) * one["step"]
        told = min(told, one["high"])
        return told, shown.reader(told)
    at = round(share * (len(offered) - 1))
    return at, offered[at]


def asked_for(kinds, moves):
    """What the settings are after some moves, by the words of the README: what was moved is what was asked for, as nearly as
    it can be; all else has its default, or follows."""
    last = dict(moves)
    return [kind.mended({name: last[name] for name in last if name in kind.settings()})[0] for kind in kinds]


def fields(name):
    """Every setting of a page that is drawn, those that others follow more often than the rest."""
    names = dict.fromkeys(field for kind in KINDS[name] for field in kind.settings())
    return some.one_of(
        some.sampled_from(["d_model", "n_heads", "d_ff", "d_head", "task", "steps"]), some.sampled_from([*names])
    )


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", KINDS)
def test_no_move_is_lost_and_nothing_is_set_that_nobody_touched(name, part, monkeypatch):
    hands = some.lists(
        some.lists(some.tuples(fields(name), some.floats(0, 1), some.integers(0, 30)), min_size=1, max_size=5),
        min_size=1, max_size=3,
    )  # fmt: skip

    @seed(part)
    @given(hands)
    @settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def hold(bursts):
        with monkeypatch.context() as patch:
            visitor = Hands(name, patch)
            moves = []
            for burst in bursts:
                moves += visitor.move(burst)
                for each in asked_for(KINDS[name], moves):
                    assert {field: setting(visitor.app, field) for field in each.settings()} == dataclasses.asdict(each)

    hold()


@pytest.mark.parametrize("cut", range(0, 24, 3))
def test_seven_presses_on_width_change_the_width_alone(cut, monkeypatch):
    visitor = Hands("one_block", monkeypatch)
    width = control(visitor.app, "d_model")
    steps = (width["high"] - width["low"]) // 8
    visitor.move([("d_model", (7 + n) / steps, cut) for n in range(1, 8)])
    assert visitor.app.query_params == {"d_model": "120"}


@pytest.mark.parametrize("name, value, meets", [("d_ff", 512, 128), ("d_head", 8, 32)])
def test_what_was_set_stays_when_the_width_passes_where_it_would_be_the_same(name, value, meets, monkeypatch):
    visitor = Hands("one_block", monkeypatch)
    move(visitor.app, **{name: value}).run()
    for width in (meets, 2 * meets):
        move(visitor.app, d_model=width).run()
        assert setting(visitor.app, name) == value and visitor.app.query_params[name] == str(value)


def test_a_width_that_the_heads_do_not_divide_is_passed_without_losing_them(monkeypatch):
    visitor = Hands("one_block", monkeypatch)
    move(visitor.app, n_heads=16).run()
    for width, heads, notes in ((72, 12, 1), (80, 16, 0), (88, 11, 1), (88, 11, 1), (96, 16, 0)):
        move(visitor.app, d_model=width).run()
        assert setting(visitor.app, "n_heads") == heads
        assert visitor.app.caption[0].value == f"{notes} notes"
    move(visitor.app, d_model=88).run()
    move(visitor.app, n_heads=8).run()  # now these are wanted
    move(visitor.app, d_model=96).run()
    assert setting(visitor.app, "n_heads") == 8


def test_a_browser_that_was_told_of_another_link_meanwhile_is_told_again(monkeypatch):
    """It asks for the last run before it has heard of the link of the run before: what it says of its address is old."""
    told = []
    send = QueryParams._send_query_param_msg
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda self: (told.append(self.to_dict()), send(self)))
    app = AppTest.from_file("../app.py", default_timeout=60).switch_page("pages/2_Depth.py").run()
    for width, address in ((72, {}), (80, {"d_model": "72"}), (72, {"d_model": "72"})):
        app.query_params.clear()
        for name, value in address.items():
            app.query_params[name] = value
        told.clear()
        move(app, d_model=width).run()
        assert not app.exception and told[-1:] == [{"d_model": str(width)}]
