"""Rights to change shared state: studies, and models downloaded onto the server.

Everybody has them with ABLATION_READ_ONLY=0, else a user who opened a link with ?key=…, the value
of ABLATION_KEY in the environment or in Streamlit's secrets. The key is taken out of the address at
once (ui/kit/address.py), and no link that a page writes holds it.
"""

import hmac
import os

import streamlit as st

from core.settings.environment import is_read_only
from ui.kit import address
from ui.kit.store import session

VARIABLE = "ABLATION_KEY"
PARAMETER = "key"
HOLDS = "holds_the_key"  # key of a session's `kept`
REASON = "Only the administrator of this server can change what all users share."
WRONG = "The key in this link is not valid for this server, so nothing can be changed."


def may_write() -> bool:
    """Return whether this user may change shared state: with ABLATION_READ_ONLY=0 or the key."""
    return not is_read_only() or bool(session().kept.get(HOLDS))


def take_key() -> list[str]:
    """Grant rights in this session for a valid key in the address; return [] or [what is wrong]."""
    key = address.pop_secret(PARAMETER)
    if key is None:
        return []
    if not _is_key(key):
        return [WRONG]
    session().kept[HOLDS] = True
    return []


def _is_key(candidate: str) -> bool:
    """Return whether this is the server's key, in constant time; False if it has none."""
    key = os.environ.get(VARIABLE, "") or _secret()
    return bool(key) and hmac.compare_digest(candidate.encode(errors="replace"), key.encode())


def _secret() -> str:
    """Return the key in Streamlit's secrets, or ""."""
    try:
        return str(st.secrets.get(VARIABLE, ""))
    except Exception:  # there are no secrets, or their file cannot be read
        return ""
