"""What a browser says of a widget and no browser of ours would: a value of another kind, or nonsense of the right one.

Streamlit hands all of it to what reads that widget. What is raised there costs the whole page, in every run, and a traceback in the
log; or a number becomes the value of a list of words. Here it is as if nothing had been said: the widget keeps what it has.

Read in Streamlit 1.67.0, runtime/state/session_state.py: WStates.__getitem__ is the one place where what a browser said is read, and a
KeyError there is what it raises for a widget that it does not know. Of its kinds only one has to be known for each widget: where
nothing was chosen a browser says none, and only components of the first version, of which there is none here, have several.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import json
from typing import Any

from streamlit.runtime.state.common import unpack_widget_state_value
from streamlit.runtime.state.session_state import SessionState, Value, WStates

_plain_calls = SessionState._call_callbacks


def leave_out() -> None:
    """From here on."""
    WStates.__getitem__ = _value  # type: ignore[method-assign]
    WStates.clear = _clear  # type: ignore[method-assign]
    SessionState._call_callbacks = _called  # type: ignore[method-assign]


def _value(told: WStates, widget: str) -> Any:
    held = told.states.get(widget)
    if isinstance(held, Value):
        return held.value
    known = told.widget_metadata.get(widget)
    if held is None or known is None or held.value.WhichOneof("value") not in (None, known.value_type):
        raise KeyError(widget)
    try:
        said = unpack_widget_state_value(held.value)
        # Where JSON holds JSON that is none, Streamlit writes a traceback, and goes on with nothing.
        if known.value_type == "json_value" and isinstance(said, str):
            json.loads(said)
        value = known.deserializer(said)
        if known.value_type == "string_value" and isinstance(value, dict) and not _is_selected(value):
            raise KeyError(widget)
    except Exception:  # whatever a list that is too short, a word that is none of the choices, or no number can lead to
        raise KeyError(widget) from None
    told.states[widget] = Value(value)
    return value


def _is_selected(value: dict[str, Any]) -> bool:
    """Whether these are rows, columns and cells of a table, of which there may be fewer."""
    selected = dict(value["selection"])
    lists = [selected.pop(name, []) for name in ("rows", "columns", "cells")]
    if selected or not all(isinstance(each, list) for each in lists):
        return False
    rows, columns, cells = lists
    return (
        all(type(each) is int and each >= 0 for each in rows)
        and all(isinstance(each, str) for each in columns)
        and all(len(each) == 2 and type(each[0]) is int and each[0] >= 0 and isinstance(each[1], str) for each in cells)
    )


def _clear(told: WStates) -> None:
    """Streamlit reads each value before it drops it, and ends at the first that is not there."""
    told.states.clear()


def _called(state: SessionState, **given: Any) -> None:
    """What is not there is no change, of which a callback would be told."""
    told = state._new_widget_state
    for each in [each for each in told.states if each in told.widget_metadata and each not in told]:
        del told.states[each]
    _plain_calls(state, **given)
