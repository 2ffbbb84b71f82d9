"""The picture of a lesson, in the browser (what is in it: core/teaching/lessons/picture.py)."""

from pathlib import Path

import streamlit as st

from ui.kit.server.scripts import served

CSS = """
.root { font-family: var(--st-font); color: var(--st-text-color); position: relative; } .picture svg { width: 100%; max-width: 460px; height: auto; display: block; }
.picture .wide svg { max-width: 900px; }
.sketches { display: flex; gap: 14px; max-width: 460px; }
.sketches figure { margin: 0; flex: 1 1 0; min-width: 0; }
.sketches figcaption { font-size: 13px; text-align: center; }
"""
_picture = st.components.v2.component(
    "ablation_lesson",
    html='<div class="root"><div class="picture"></div><div hidden></div></div>',
    css=CSS,
    js=served((Path(__file__).parent.parent / "pictures" / "drawing.js").read_text()),
)


def draw(key: str, svg: str):
    _picture(key=key, data={"picture": svg, "clicked": False})
