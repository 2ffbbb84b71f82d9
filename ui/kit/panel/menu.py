"""The menu of pages: links that hold the settings as they are. One component, where six links of Streamlit's resolve six paths on
disk, and are sent and laid out one by one, with every move."""

import re
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from ui.kit.server.scripts import served
from ui.kit.session import limits, values

HERE = Path(__file__).parent
TURN = (HERE / "turn.js").read_text()  # before the script of whatever leads to another page
_menu = st.components.v2.component(
    "ablation_menu",
    html=(HERE / "menu.html").read_text(),
    js=served(TURN + (HERE / "menu.js").read_text(), css=(HERE / "menu.css").read_text()),
    isolate_styles=False,
)


def menu(pages, here):
    """Draw it, on this page."""
    links = [
        {
            "key": there.key,
            "name": there.name,
            "icon": there.icon.split("/")[1].strip(":"),
            "to": _address(there.path, values.link_to(there.key)),
            "here": there is here,
        }
        for there in pages
        if limits.allows(there.key)
    ]
    if links and limits.limits() and limits.limits().large:
        links[0]["large"] = True
    _menu(key="menu", data=links, on_back_change=lambda: None)


def _address(path: str, params: dict[str, str]) -> str:
    """Of a page, as seen from any other."""
    name = re.sub(r"^\d+_", "", Path(path).stem) if path.startswith("pages/") else "."
    params = params | limits.parameter()
    return f"{name}?{urlencode(params)}" if params else name
