"""The link in the browser's address: written there once the address is that of the page that runs.

A click on another page asks for it with the address still that of the page before. What the browser is told of a link
until it has turned to the new one goes to the old one, and leaves an entry of its history with the settings of another
page: Back would lead there. So a page that was just turned to ends with a part that nobody sees: it answers when the
address is the page's.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx

from ui.kit.guard import fragment
from ui.kit.session import limits
from ui.kit.session.visitor import calm_visitor, visitor

_turned = st.components.v2.component(
    "ablation_turned",
    js="""
export default ({ data, setTriggerValue }) => {
  const look = () => location.pathname.endsWith(data) ? setTriggerValue("here", true) : (timer = setTimeout(look, 50))
  let timer
  look()
  return () => clearTimeout(timer)
}
""",
)


SECRETS = ("key", "teacher")  # parameters of a link that let somebody in: noted by take_secrets(), never written
MENU = "menu"  # by which the address says, while a page is asked for, that the menu asks for it (ui/kit/panel/menu.js)

GIVEN = "secrets"  # the entry in Visitor.kept: keys that came with the address and were not used yet


def turn():
    """At the beginning of a page: what another page had to tell is no longer true."""
    held = visitor()
    take_secrets()
    held.link, held.by_menu = None, MENU in st.query_params
    limits.take(st.query_params.to_dict())


def take_secrets():
    """Move the keys in the address into the session. browser.js leaves no entry of the history that holds one."""
    link = st.query_params.to_dict()
    given = {name: link.pop(name) for name in SECRETS if name in link}
    if given:
        visitor().kept.setdefault(GIVEN, {}).update(given)
        st.query_params.from_dict(link)


def pop_secret(name: str) -> str | None:
    """Return the key that came with the address under this name, once."""
    return calm_visitor().kept.get(GIVEN, {}).pop(name, None)


def go_to(path: str) -> NoReturn:
    """Turn to the page of this script (as "pages/1_One_block.py"), with nothing in its link. As st.switch_page, which empties the
    address of the page that is left first: an entry of the history that nobody has seen, to which Back would lead."""
    context = get_script_run_ctx()
    script = str((Path(context.main_script_path).parent / path).resolve())
    pages = context.pages_manager.get_pages().items()
    page = next(page for page, known in pages if known["script_path"] == script)
    raise RerunException(
        RerunData(
            query_string="",
            page_script_hash=page,
            cached_message_hashes=context.cached_message_hashes,
            context_info=context.context_info,
        )
    )


def is_back() -> bool:
    """Whether the browser goes through its history, back or forth. The menu turns to a page in the same way, with a mark."""
    return get_script_run_ctx().is_history_navigation and not visitor().by_menu


def opened() -> dict[str, str]:
    """The link with which the page was asked for."""
    link = st.query_params.to_dict()
    link.pop(MENU, None)
    link.pop(limits.PARAMETER, None)
    return link


def lacks_limits() -> bool:
    """Whether the address has lost a teacher's limits: opened again it would lead to the whole app."""
    return limits.parameter().get(limits.PARAMETER) != st.query_params.get(limits.PARAMETER)


def is_here() -> bool:
    """Whether the browser's address was that of this page when it asked for this run."""
    asked, here = get_script_run_ctx().context_info, st.context.url
    return not here or _path(asked.url) == _path(here)


def _path(url: str) -> str:
    """Of an address, which comes from the browser and may be none."""
    with suppress(ValueError):
        return urlsplit(url).path.rstrip("/")
    return ""


def write():
    """Tell the browser of the link, if it has not been told."""
    held = calm_visitor()
    if held.link is not None:
        held.sent, held.link, held.told = held.link, None, time.monotonic()
        st.query_params.from_dict(held.sent | limits.parameter())


def write_when_here():
    """At the end of a page: the same, once the address is this page's."""
    if visitor().link is not None:
        fragment(_answer)(_path(st.context.url))


def _answer(path: str):
    if _turned(key="turned", data=path, on_here_change=lambda: None).here:
        write()
