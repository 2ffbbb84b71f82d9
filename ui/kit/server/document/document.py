"""What the server answers to the address of a page: Streamlit's own document, with what it needs put right.

Opened at the address of a page, such as /One_block, Streamlit's front end does not know where the app begins. It first asks
/One_block/_stcore/health and /One_block/_stcore/host-config, which are not there, and then / (UriUtil in its bundle: it goes by
window.__streamlit.BACKEND_BASE_URL, or else tries the address and the one above it). Here it is told. And the picture in the
browser's tab is the app's own from the first moment. And see browser.js and frame.css.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import base64
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

import streamlit
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from streamlit import config

from ui.kit.server import scripts

ROOT = Path(__file__).parent.parent.parent.parent.parent
ICON = Path(__file__).parent / "icon.svg"
# As index.html finds its own scripts; where a host has said something already, that holds.
BEGINS = '<script>window.__streamlit = { BACKEND_BASE_URL: new URL("./", document.baseURI).href, ...window.__streamlit }</script>'


@cache
def icon() -> str:
    """The app's icon, as an address that holds it: given a path, Streamlit reads and encodes it in every run of a page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(ICON.read_bytes()).decode()}"


def document() -> str:
    """Streamlit's document, which is told where the app begins, with the app's name and icon."""
    text = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    script = f"<script>{(Path(__file__).parent / 'browser.js').read_text(encoding='utf-8')}</script>"
    style = f"<style>{(Path(__file__).parent / 'frame.css').read_text(encoding='utf-8')}</style>"
    for theirs, ours in (
        ("<head>", f"<head>{BEGINS}{script}{style}"),
        ("./favicon.png", icon()),
        ("<title>Streamlit</title>", "<title>Ablation Lab</title>"),
    ):
        text = text.replace(theirs, ours, 1)
    return text


def pages() -> list[str]:
    """The address of each page below that of the app, as Streamlit makes it from the names of the files."""
    return ["", *(re.sub(r"^\d+_", "", path.stem) for path in sorted((ROOT / "pages").glob("*.py")))]


class Name(Convertor[str]):
    """What could be the name of a page in an address: of what Streamlit serves itself some has a point in it, or begins with _."""

    regex = "[^/._][^/.]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


def routes() -> list[Route]:
    page, named = document(), {name.lower(): name for name in pages()}

    async def answer(_):
        # No other request tells the address of the page: the key of whoever runs the server may stand in it.
        return HTMLResponse(page, headers={"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer"})

    async def mistyped(request):
        """A page whose name is written otherwise, or else the start page, which says that there is none of this name."""
        name = request.path_params["name"]
        meant = meant_by(name)
        if meant is None or meant == name:
            return await answer(request)
        return redirect(meant, request)

    async def with_a_slash(request):
        """A page whose address ends with a slash: the one without."""
        name = request.path_params["name"]
        return redirect(f"../{quote(meant_by(name) or name)}", request)

    async def without_its_slash(request):
        """The app's own address without the slash at its end, where it begins further down."""
        return redirect(f"{below.rpartition('/')[2]}/", request)

    def meant_by(name: str) -> str | None:
        return named.get(name.lower().replace("-", "_").replace(" ", "_"))

    def redirect(to: str, request) -> RedirectResponse:
        # Seen from where it was asked for: behind a proxy, what a request says of scheme, host, port and path may be wrong.
        return RedirectResponse(f"{to}?{request.url.query}".removesuffix("?"))

    below = (config.get_option("server.baseUrlPath") or "").strip("/")
    register_url_convertor("name", Name())
    known = [Route(f"/{below}/{name}".replace("//", "/"), answer) for name in pages()]
    if below:
        known.append(Route(f"/{below}", without_its_slash))
    for ending, reply in (("", mistyped), ("/", with_a_slash)):
        known.append(Route(f"/{below}/{{name:name}}{ending}".replace("//", "/"), reply))
    return [*known, scripts.route(below)]
