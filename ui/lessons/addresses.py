"""Addresses of pages, also in a network without internet, and QR codes."""

import re
import socket
from pathlib import Path
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st
from streamlit import config

# bytes of a QR code of which a seventh may be unreadable (ISO/IEC 18004, version 40, level M)
QR = 2331
ONLY_HERE = ("localhost", "127.0.0.1", "[::1]", "::1")


def own_address() -> str:
    """Return the URL of this page as the browser has it; that of localhost if unknown."""
    return st.context.url or "http://localhost:8501/Class"


def shared_address() -> str:
    """Return this page's URL for other computers: with the local address in place of localhost.

    The browser's own URL where it has another host, or none can come.
    """
    url = urlsplit(own_address())
    if url.hostname not in ONLY_HERE or listens_here_alone():
        return own_address()
    port = f":{url.port}" if url.port else ""
    return urlunsplit((url.scheme, f"{local_ip()}{port}", url.path, "", ""))


def address_of(path: str, base: str) -> str:
    """Return the URL of a page, given its file ("pages/8_Class.py") and another page's URL.

    Without parameters.
    """
    name = re.sub(r"^\d+_", "", Path(path).stem)
    url = urlsplit(base)
    folder = url.path.rsplit("/", 1)[0]
    return urlunsplit((url.scheme, url.netloc, f"{folder}/{name}", "", ""))


def listens_here_alone() -> bool:
    """Return whether this server listens to its own computer only."""
    return (config.get_option("server.address") or "") in ONLY_HERE


def local_ip() -> str:
    """Return this computer's IP address in its network, or "localhost"; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(
                ("192.0.2.1", 9)
            )  # an address for documentation (RFC 5737), which is nobody's
            return str(way.getsockname()[0])
        except OSError:
            return "localhost"


def with_params(url: str, **params: str) -> str:
    """Return a URL, which has no parameters yet, with these added and escaped."""
    return f"{url}?{urlencode(params)}"


def qr_svg(text: str) -> str:
    """Return a QR code as SVG, black on white in any theme; "" if the text is too long."""
    if len(text.encode()) > QR:
        return ""
    return segno.make(text, error="m").svg_inline(
        border=3, dark="#000", light="#fff", omitsize=True
    )
