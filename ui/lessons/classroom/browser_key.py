"""A key that stays in the browser, so that a reload, or a lost connection, leads back to what it opens."""

import re
from pathlib import Path

import streamlit as st

from ui.kit.server.scripts import served

KEY = re.compile(r"[\w-]{10,60}")

_component = st.components.v2.component(
    "ablation_seat",
    html="<div></div>",
    js=served((Path(__file__).parent / "browser_key.js").read_text()),
)


def sync_key(place: str, key: str, has_answered: bool) -> str | None:
    """Store a key in the browser and read back what stands there.

    Args:
        place: the name under which the browser keeps it.
        key: the key to store; "" to read only.
        has_answered: whether the browser has said before what it has.

    Returns:
        The browser's key, "" if it has none, and None as long as it has not answered.
    """
    data = {"place": place, "key": key, "asked": has_answered}
    key = _component(key=place, data=data, on_kept_change=lambda: None).kept
    if not isinstance(key, str):
        return None
    return key if KEY.fullmatch(key) else ""
