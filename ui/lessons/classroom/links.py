"""Addresses of a class: for students, for the projector, and as a QR code. Also where there is no network beyond the room."""

import re
import socket
from pathlib import Path
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st
from streamlit import config

QR = 2331  # bytes that one holds of which a seventh may be unreadable (ISO/IEC 18004, version 40, level M)
ONLY_HERE = ("localhost", "127.0.0.1", "[::1]", "::1")


def base() -> str:
    """The address of the page of classes."""
    return address_of("pages/8_Class.py")


def address_of(path: str) -> str:
    """The address of a page by its file, as the browser has it; of this computer in the room, where the browser is on it."""
    name = re.sub(r"^\d+_", "", Path(path).stem)
    url = urlsplit(st.context.url or "http://localhost:8501/Class")
    host = url.netloc
    if url.hostname in ONLY_HERE and not listens_here_alone():
        port = f":{url.port}" if url.port else ""
        host = f"{in_the_room()}{port}"
    below = url.path.rsplit("/", 1)[0]
    return urlunsplit((url.scheme, host, f"{below}/{name}", "", ""))


def listens_here_alone() -> bool:
    """Whether no other computer can reach this server."""
    return (config.get_option("server.address") or "") in ONLY_HERE


def in_the_room() -> str:
    """The address of this computer in its network. Nothing is sent: it is only asked by which way something would be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(("192.0.2.1", 9))  # an address for documentation (RFC 5737), which is nobody's
            return str(way.getsockname()[0])
        except OSError:
            return "localhost"


def link(to: str, **params: str) -> str:
    return f"{to}?{urlencode(params)}"


def qr_svg(text: str) -> str:
    """Black on white, whatever the theme: so that every phone reads it. "" for more than a QR code holds."""
    if len(text.encode()) > QR:
        return ""
    return segno.make(text, error="m").svg_inline(border=3, dark="#000", light="#fff", omitsize=True)
