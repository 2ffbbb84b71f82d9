"""Scripts of components that change settings: each begins with the browser's side of the store."""

import json
import re
from pathlib import Path

from ui.kit.server.scripts import served

HERE = Path(__file__).parent
PAGES = HERE.parent.parent.parent / "pages"
PATHS = ["/" + re.sub(r"^\d+_", "", path.stem) for path in sorted(PAGES.glob("*.py"))]  # as addresses end
STORE = f"const PATHS = {json.dumps(PATHS)}\n{(HERE / 'store.js').read_text()}"


def with_store(script: str, css: str = "") -> str:
    """Return what Streamlit is given as the script of a component that calls `store.change`. css: of the whole page."""
    return served(STORE + script, css=css)
