"""The menu of pages: links that hold the settings as they are.

One component, where links of Streamlit's are sent and laid out one by one with every move.
"""

import re
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from ui.kit import limits
from ui.kit.panel.script import with_store
from ui.kit.store import allows, kinds_of, session

HERE = Path(__file__).parent
_menu = st.components.v2.component(
    "ablation_menu",
    html=(HERE / "menu.html").read_text(),
    js=with_store((HERE / "menu.js").read_text(), css=(HERE / "menu.css").read_text()),
    isolate_styles=False,
)


def draw_menu(pages, here):
    """Draw the links to these pages, on the page `here`."""
    teacher_limits = session().limits
    links = [
        {
            "key": page.key,
            "name": page.name,
            "icon": page.icon.split("/")[1].strip(":"),
            "to": _address_of(page),
            "here": page is here,
        }
        for page in pages
        if allows(page.key)
    ]
    if links and teacher_limits and teacher_limits.large:
        links[0]["large"] = True
    _menu(key="menu", data=links)


def link_to(page: str) -> dict[str, str]:
    """Return the parameters with which the menu leads to a page: its settings as they are."""
    once = {name for kind in kinds_of.get(page, ()) for name, known in kind.settings().items() if known.once}
    return {name: text for name, text in session().link(page).items() if name not in once}


def _address_of(page) -> str:
    """Return the address of a page, as seen from any other."""
    name = name_in_address(page.path) or "."
    params = link_to(page.key)
    teacher_limits = session().limits
    if teacher_limits:
        params[limits.PARAMETER] = teacher_limits.write()
    return f"{name}?{urlencode(params)}" if params else name


def name_in_address(path: str) -> str:
    """Return what the address of a page ends with; nothing for the start page."""
    return re.sub(r"^\d+_", "", Path(path).stem) if path.startswith("pages/") else ""
