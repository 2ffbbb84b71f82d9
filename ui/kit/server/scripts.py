"""The scripts of components, which a browser fetches once.

Streamlit sends a component's script along with every message about it, and a slider that is dragged is a dozen messages a second.
So what it sends is one line, which asks for the script by an address of its own; the address changes with what stands there.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import hashlib
import json

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

_scripts: dict[str, str] = {}  # name -> script


def served(script: str, css: str = "") -> str:
    """Keep a component's script -> what stands for it in messages. css: of the whole page; added to it with the script."""
    if css:
        style = f'document.head.append(Object.assign(document.createElement("style"), {{ textContent: {json.dumps(css)} }}))'
        script = f"{style}\n{script}"
    name = hashlib.sha256(script.encode()).hexdigest()[:20] + ".js"
    _scripts[name] = script
    # ui/kit/server/document/document.py says where the app begins
    return f"""const script = import(new URL("scripts/{name}", window.__streamlit.BACKEND_BASE_URL))
export default async (component) => (await script).default(component)"""


def route(below: str = "") -> Route:
    async def answer(request: Request):
        script = _scripts.get(request.path_params["name"])
        if script is None:
            return PlainTextResponse("Not found", 404)
        return Response(
            script, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
        )

    return Route(f"/{below}/scripts/{{name}}".replace("//", "/"), answer)
