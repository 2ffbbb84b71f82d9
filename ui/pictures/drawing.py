"""The block's picture on the page."""

import streamlit as st

from core.figures.drawing import block_svg
from core.figures.palette import VARIANTS

CSS = f"""
.root {{ font-family: var(--st-font); }}
svg {{ width: 100%; height: auto; display: block; }}
text {{ fill: var(--st-text-color); font-size: 13px; }}
.small {{ font-size: 11px; opacity: 0.85; }} .middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.name {{ font-weight: 600; }} .plus {{ font-size: 15px; }} .cross {{ font-size: 17px; fill: {VARIANTS[0]}; }}
polyline {{ fill: none; stroke: var(--st-text-color); stroke-width: 1.3; }}
.stream {{ stroke: var(--st-blue-color, #0072B2); stroke-width: 4; }}
.cut {{ stroke: {VARIANTS[0]}; stroke-width: 2; stroke-dasharray: 3 4; }}
.head {{ fill: var(--st-text-color); }}
.box {{ fill: var(--st-secondary-background-color); stroke: var(--st-text-color); stroke-width: 1; }}
.sum {{ fill: var(--st-background-color); stroke: var(--st-text-color); stroke-width: 1.3; }}
.off {{ fill: none; stroke: var(--st-text-color); stroke-width: 1; stroke-dasharray: 4 4; opacity: 0.6; }}
rect.changed {{ stroke: {VARIANTS[0]}; stroke-width: 2; opacity: 1; }} text.changed {{ fill: {VARIANTS[0]}; opacity: 1; }}
"""
JS = """export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (root.innerHTML !== data) root.innerHTML = data
}
"""
_drawing = st.components.v2.component("ablation_drawing", html='<div class="root"></div>', css=CSS, js=JS)


def block(p, layer: int, key: str = "drawing", width: int = 330, knocked=None):
    """Draw one block of a pass: what ran is what is drawn. What differs from the defaults, or is cut out, is in orange."""
    _drawing(key=key, data=f'<div style="max-width: {width}px; margin: 0 auto">{block_svg(p, layer, knocked)}</div>')
