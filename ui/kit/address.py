"""The browser's address: the link with which a page was opened, and the keys that came with it.

What its parameters mean: store.py and core/settings/setting.py. The browser writes the link of the
present settings
itself (panel/store.js).
"""

from pathlib import Path
from typing import NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx

from ui.kit import limits
from ui.kit.store import session

SECRETS = (
    "key",
    "teacher",
)  # parameters that let somebody in: kept in the session, never written into a link
PRESENT = "present"  # presentation mode, which the browser draws (panel/menu.js)
MENU = (  # says, while a page is asked for, that the menu asks for it and not the browser's Back
    "menu"
)
# Entries in Session.kept: keys that came with the address and were not used yet, and those that the
# address has.
GIVEN = "secrets"
TAKEN = "secrets_taken"


def take_address():
    """Store the address's secrets in the session, for pop_secret(), and a first link's limits."""
    link = st.query_params.to_dict()
    current = session()
    secrets = {name: link[name] for name in SECRETS if name in link}
    if secrets and secrets != current.kept.get(
        TAKEN
    ):  # Streamlit repeats the address until the browser has written another
        current.kept[TAKEN] = secrets
        current.kept.setdefault(GIVEN, {}).update(secrets)
    if current.limits is None and limits.PARAMETER in link:
        current.limits = limits.read_limits(link[limits.PARAMETER])


def pop_secret(name: str) -> str | None:
    """Return and forget the secret that came with the address under this name; else None."""
    return session().kept.get(GIVEN, {}).pop(name, None)


def read_link() -> dict[str, str]:
    """Return the address's parameters but secrets and "menu", "present", "limits": name -> text.

    Unknown names are included.
    """
    no_settings = (*SECRETS, MENU, PRESENT, limits.PARAMETER)
    return {
        name: text for name, text in st.query_params.to_dict().items() if name not in no_settings
    }


def is_back() -> bool:
    """Return whether the browser came to this page by going back or forward, not by the menu."""
    return get_script_run_ctx().is_history_navigation and MENU not in st.query_params


def go_to(path: str) -> NoReturn:
    """End this run and open the page of a script, such as "pages/1_One_block.py".

    Its link has no settings.
    """
    context = get_script_run_ctx()
    script = str((Path(context.main_script_path).parent / path).resolve())
    pages = context.pages_manager.get_pages().items()
    page = next(page for page, entry in pages if entry["script_path"] == script)
    raise RerunException(
        RerunData(
            query_string="",
            page_script_hash=page,
            cached_message_hashes=context.cached_message_hashes,
            context_info=context.context_info,
        )
    )
