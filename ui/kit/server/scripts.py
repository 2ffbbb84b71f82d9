"""Scripts of components, which a browser fetches once.

Streamlit sends a component's script along with every message about it: with a slider under the hand
that is a dozen times a second. So what it sends is one line, which imports the script from an
address that changes with its text.

The server imports this module before there is a runtime: no component may be registered here.
"""

import hashlib
import json
import re
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

HERE = Path(__file__).parent
PAGES = HERE.parent.parent.parent / "pages"
PATHS = [
    "/" + re.sub(r"^\d+_", "", path.stem) for path in sorted(PAGES.glob("*.py"))
]  # as addresses end
STORE = f"const PATHS = {json.dumps(PATHS)}\n{(HERE.parent / 'panel' / 'store.js').read_text()}"

FOCUS = ":focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }\n"

_scripts: dict[str, str] = {}  # name -> script


def _store_text(script: str) -> str:
    """Store a script to be fetched; return its file name, a hash of its text."""
    name = hashlib.sha256(script.encode()).hexdigest()[:20] + ".js"
    _scripts[name] = script
    return name


def _with_styles(script: str, css: str) -> str:
    """Return a script that first adds styles to the page."""
    style = f'Object.assign(document.createElement("style"), {{ textContent: {json.dumps(css)} }})'
    return f"document.head.append({style})\n{script}"


BROWSER = _store_text(
    _with_styles(
        (HERE / "browser.js").read_text(encoding="utf-8"),
        (HERE / "frame.css").read_text(encoding="utf-8"),
    )
)


def store_script(script: str, css: str = "") -> str:
    """Store a component's script for browsers to fetch; return the JavaScript that runs it.

    browser.js comes along, with the styles of all pages. A browser runs a module once for a
    document, however many components import it.

    Args:
        script: JavaScript with a default export, as Streamlit's components have.
        css: Styles of the whole page, which are added to it with the script.
    """
    name = _store_text(_with_styles(script, css) if css else script)
    # Pages are one level below the app's address, wherever a proxy puts that.
    return f"""const load = (name) => import(new URL(`./scripts/${{name}}`, document.baseURI))
const loaded = Promise.all([load("{name}"), load("{BROWSER}")])
export default async (component) => (await loaded)[0].default(component)"""


def with_store(script: str, css: str = "") -> str:
    """Store a component's script with store.js before it; return JavaScript that imports it."""
    return store_script(STORE + script, css)


def component(name: str, script: Path, css: str, html: str = '<div class="root"></div>'):
    """Register a component that can change settings; return st.components' function drawing it."""
    return st.components.v2.component(
        f"ablation_{name}", html=html, css=FOCUS + css, js=with_store(script.read_text())
    )


def scripts_route(base: str) -> Route:
    """Return the route of all scripts, below the base path ("" or "/path")."""

    async def answer(request: Request) -> Response:
        script = _scripts.get(request.path_params["name"])
        if script is None:
            return PlainTextResponse("Not found", 404)
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(script, media_type="text/javascript", headers=headers)

    return Route(f"{base}/scripts/{{name}}", answer)
