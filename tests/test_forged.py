"""What no browser would say of a widget is as if it had not been said: another kind of value, or nonsense of the right one."""

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.session_state import SessionState, WStates
from streamlit.testing.v1 import AppTest

from ui.kit.server import forged

KINDS = {
    "trigger_value": True, "bool_value": True, "double_value": 1.5, "int_value": 7, "string_value": "nonsense", "bytes_value": b"\xff",
    "json_value": "[[1]]", "json_trigger_value": "7", "double_array_value": [2.0], "int_array_value": [9], "string_array_value": ["nonsense"],
    "string_trigger_value": "nonsense", "file_uploader_state_value": None, "chat_input_value": "nonsense", "arrow_value": None,
}  # fmt: skip
SOUND = {  # name -> its kind, what a browser says, what the page then has, what it has at first
    "button": ("trigger_value", True, True, False), "switch": ("bool_value", True, True, False), "number": ("double_value", 3.0, 3, 1),
    "chosen": ("string_value", "b", "b", "a"), "radio": ("string_value", "b", "b", "a"), "several": ("string_array_value", ["b"], ["b"], ["a"]),
    "pills": ("string_array_value", ["b"], ["b"], ["a"]), "slider": ("double_array_value", [4.0], 4, 1), "steps": ("string_array_value", ["b"], "b", "a"),
    "text": ("string_value", "words", "words", "said"), "area": ("string_value", "words", "words", "said"),
    "lines": ("string_value", '{"selection": {"rows": [1], "columns": [], "cells": []}}', [1], []),
    "files": ("file_uploader_state_value", None, [], []), "drawn": ("json_value", '{"a": 1}', 1, 0),
}  # fmt: skip
NONSENSE = {
    "button": [False], "number": [float("nan"), float("inf"), 1e300], "chosen": ["nonsense", "", "\0"], "radio": ["nonsense"], "several": [["nonsense"], ["a"] * 9, []],
    "pills": [["nonsense"], ["a", "a"]], "slider": [[], [float("nan")], [1.0, 2.0], [1e300]], "steps": [["nonsense"], [], ["a", "b", "c"]],
    "lines": ["", "no json", "[]", "7", '{"selection": 7}', '{"selection": {"rows": "x"}}', *(f'{{"selection": {{"rows": {each}}}}}' for each in ('["a"]', "[[0]]", '{"0": 1}', "null", "[0.5]", "[true]", "[null]", "5", "[-1]", "[-99999999]")), '{"selection": []}', '{"selection": {"rows": [0], "cells": [1]}}', '{"selection": {"rows": [0], "cells": [[0]]}}', '{"selection": {"rows": [0], "cells": [["x", 0]]}}', '{"selection": {"columns": [0]}}', '{"selection": {"rows": [0], "x": [1]}}'], "drawn": ["7", "[[1]]", "null", '"x"'],
}  # fmt: skip


def page():
    import pandas as pd
    import streamlit as st

    called = st.session_state.setdefault("called", [])

    def change(name):
        called.append(name)

    def told(name):
        return {"key": name, "on_change": change, "args": [name]}

    letters = ["a", "b", "c"]
    st.button("button", key="button", on_click=change, args=["button"])
    st.toggle("switch", **told("switch"))
    st.number_input("number", 0, 9, 1, **told("number"))
    st.selectbox("chosen", letters, **told("chosen"))
    st.radio("radio", letters, **told("radio"))
    st.multiselect("several", letters, ["a"], **told("several"))
    st.pills("pills", letters, selection_mode="multi", default=["a"], **told("pills"))
    st.slider("slider", 0, 9, 1, **told("slider"))
    st.select_slider("steps", letters, **told("steps"))
    st.text_input("text", "said", **told("text"))
    st.text_area("area", "said", **told("area"))
    st.dataframe(
        pd.DataFrame({"x": [1, 2]}), key="lines", on_select=lambda: change("lines"), selection_mode="multi-row"
    )
    st.file_uploader("files", accept_multiple_files=True, **told("files"))
    drawn = st.components.v2.component("drawn_here", html="<p></p>")
    drawn(key="drawn", default={"a": 0}, on_a_change=lambda: change("drawn"))


@pytest.fixture
def app(monkeypatch):
    for owner, name in ((WStates, "__getitem__"), (WStates, "clear"), (SessionState, "_call_callbacks")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # as it was, afterwards
    forged.leave_out()
    return AppTest.from_function(page, default_timeout=60).run()


def state(app, name: str, kind: str, content) -> WidgetState:
    made = WidgetState(id=next(each for each in ids(app) if each.endswith(f"-{name}")))
    field = getattr(made, kind)
    if isinstance(content, list) or (kind in ("string_trigger_value", "chat_input_value") and content):
        field.data.extend(content) if isinstance(content, list) else setattr(field, "data", content)
    elif content is None:
        field.SetInParent()
    else:
        setattr(made, kind, content)
    return made


def ids(app) -> list[str]:
    return [*app.session_state._state._state._new_widget_state.widget_metadata]


def say(app, states: list[WidgetState]):
    """As a browser does that says this and nothing else -> whose callbacks were called"""
    before = len(app.session_state["called"])
    app._run(WidgetStates(widgets=states))
    assert not app.exception, app.exception
    return app.session_state["called"][before:]


def values(app) -> dict:
    had = {name: app.session_state[name] for name in SOUND}
    return had | {"lines": had["lines"]["selection"]["rows"], "drawn": had["drawn"]["a"]}


def sound(app) -> list[WidgetState]:
    return [state(app, name, kind, content) for name, (kind, content, *_) in SOUND.items()]


AT_FIRST = {name: first for name, (*_, first) in SOUND.items()}
SAID = {name: value for name, (_, _, value, _) in SOUND.items()} | {"button": False}  # once the run is over


def test_what_a_browser_says_arrives_and_its_callback_is_called_once(app):
    assert values(app) == AT_FIRST
    changed = [name for name, (_, _, value, first) in SOUND.items() if value != first]
    assert sorted(say(app, sound(app))) == sorted(changed)
    assert values(app) == SAID
    assert say(app, [each for each in sound(app) if "button" not in each.id]) == [] and values(app) == SAID


@pytest.mark.parametrize("told", [False, True], ids=["at first", "once it was told"])
@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_is_as_if_it_had_not_been_said(app, kind, told):
    if told:
        say(app, sound(app))
    others = [name for name, (own, *_) in SOUND.items() if own != kind]
    assert say(app, [state(app, name, kind, KINDS[kind]) for name in others]) == []
    assert values(app) == (SAID if told else AT_FIRST)
    app.run()
    assert values(app) == (SAID if told else AT_FIRST) and not app.exception


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_in_the_first_message_of_a_session_is_none_either(app, kind):
    """Before the server knows of any widget."""
    others = [state(app, name, kind, KINDS[kind]) for name, (own, *_) in SOUND.items() if own != kind]
    first = AppTest.from_function(page, default_timeout=60)._run(WidgetStates(widgets=others))
    assert ids(first) == ids(app) and not first.exception
    assert values(first) == AT_FIRST and say(first, sound(first)) and values(first) == SAID


@pytest.mark.parametrize("name, content", [(name, each) for name, contents in NONSENSE.items() for each in contents])
def test_nonsense_of_the_right_kind_raises_nothing(app, name, content, caplog):
    say(app, [state(app, name, SOUND[name][0], content)])
    assert values(app)["lines"] == []  # no row that a page would look for
    say(app, [])
    say(app, sound(app))
    assert values(app) == SAID and not [each for each in caplog.records if each.exc_info]


def test_a_field_that_was_emptied_is_empty_and_can_be_filled_again(app):
    for _ in range(2):
        number = WidgetState(id=state(app, "number", "double_value", 1.0).id)
        say(app, [number])  # as a browser says none
        assert app.session_state["number"] == 1
        assert say(app, [state(app, "number", "string_value", "4")]) == [] and app.session_state["number"] == 1
        assert say(app, [state(app, "number", "double_value", 4.0)]) == ["number"] and app.session_state["number"] == 4


def test_what_cannot_be_read_keeps_nothing_else_in_the_session(app):
    known = WStates()
    for name in ("a", "b"):
        known.set_widget_from_proto(WidgetState(id=name, bool_value=True))
    known.clear()
    assert not known.states
