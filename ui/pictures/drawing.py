"""Diagram of a block as a component."""

from collections.abc import Callable
from html import escape
from pathlib import Path

import streamlit as st

from core.experiments.forward import Pass
from core.figures.drawing import block_svg
from core.figures.palette import VARIANTS
from ui.kit.panel.control import register_handler
from ui.kit.server.scripts import component
from ui.kit.store import is_movable

CSS = f"""
.root {{ font-family: var(--st-font); position: relative; }}
/* A block's words have their own size. */
.block {{ max-width: var(--ablation-block, 300px); margin: 0 auto; }}
.clicked .part {{ cursor: pointer; }}
.clicked .part:is(:hover, :focus-visible) :is(rect:not(.touch), circle) {{
  stroke: var(--st-primary-color); stroke-width: 2.5; }}
.clicked .part:is(:hover, :focus-visible) polyline {{ stroke: var(--st-primary-color); }}
.touch {{ fill: transparent; }}
.clicked .part:is(:hover, :focus-visible) .touch {{
  fill: color-mix(in srgb, var(--st-primary-color) 18%, transparent); }}
.head-box {{ fill: var(--st-background-color); stroke: var(--st-text-color); stroke-width: 1; }}
.tip {{ position: absolute; display: none; pointer-events: none; z-index: 5; left: 0; right: 0;
  max-width: 300px; padding: 4px 9px; font-size: 14px; line-height: 20px; border-radius: 4px;
  background: var(--st-text-color); color: var(--st-background-color); }}
/* One line for the name, two for the hint, which gives way to what a part does. */
.above {{ display: var(--ablation-hint, block); color: var(--st-text-color); font-size: 14px;
  line-height: 20px; height: 64px; margin-bottom: 4px; overflow: hidden; }}
.tip.hint {{ top: 22px; height: 42px; max-width: none; padding: 0; overflow: hidden;
  background: var(--st-background-color); color: var(--st-primary-color); }}
.above.compact {{ height: auto; margin: 0; }}
.above.compact > :last-child {{ white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }}
.picture:has(.compact) + .tip.hint {{ top: 0; }}
svg {{ width: 100%; height: auto; max-height: var(--ablation-room, none); display: block; }}
text {{ fill: var(--st-text-color); font-size: 14px; }}
.small {{ font-size: var(--ablation-small, 12px); opacity: 0.85; }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.name {{ font-weight: 600; }} .plus {{ font-size: 16px; }}
.cross {{ font-size: 16px; fill: {VARIANTS[0]}; }}
.below {{ color: var(--st-text-color); font-size: 14px; line-height: 20px; margin: 8px 0 0; }}
.below i {{ font-style: normal; opacity: 0.7; }}
polyline {{ fill: none; stroke: var(--st-text-color); stroke-width: 1.3; }}
.stream {{ stroke: var(--st-blue-color, #0072B2); stroke-width: 4; }}
.cut {{ stroke: {VARIANTS[0]}; stroke-width: 2; stroke-dasharray: 3 4; }}
.head {{ fill: var(--st-text-color); }}
.box {{ fill: var(--st-secondary-background-color); stroke: var(--st-text-color);
  stroke-width: 1; }}
.sum {{ fill: var(--st-background-color); stroke: var(--st-text-color); stroke-width: 1.3; }}
.layer {{ fill: none; stroke: var(--st-text-color); stroke-width: 0.8; opacity: 0.7; }}
.layer.there {{ fill: var(--st-text-color); }}
.layer.here {{ stroke: var(--st-primary-color); stroke-width: 2.5; opacity: 1; }}
.off {{ fill: none; stroke: var(--st-text-color); stroke-width: 1; stroke-dasharray: 4 4;
  opacity: 0.6; }}
rect.changed {{ stroke: {VARIANTS[0]}; stroke-width: 2; opacity: 1; }}
text.changed {{ fill: {VARIANTS[0]}; opacity: 1; }}
"""
SCRIPT = Path(__file__).with_suffix(".js")
HTML = '<div class="root"><div class="picture"></div><div class="tip" role="status"></div></div>'
_drawing = component("drawing", SCRIPT, CSS, HTML)


def columns_with_diagram() -> list:
    """Return [a narrow column for the block diagram, a wide one for a view]."""
    with st.container(key="with_diagram"):  # named in ui/kit/server/frame.css
        return st.columns([31, 69], gap="medium")


def draw_block(
    forward_pass: Pass,
    layer: int,
    key: str = "drawing",
    cuts=None,
    reference=None,
    compared_variants=(),
    above: str = "",
    below: str = "",
    on_pick: Callable | None = None,
    locked_with: str = "variants",
    compact: bool = False,
):
    """Draw block `layer` (from 0) of a pass; a click only calls on_pick, unless locked.

    Changed or ablated parts are orange.

    Args:
        forward_pass: Forward pass.
        layer: Layer from 0.
        key: Key of the component.
        cuts: Ablated components of a trained model; None to mark changed settings instead.
        reference: Settings that are not marked as changed; the defaults if None.
        compared_variants: Link texts of compared variants, which a click adds or removes; None if a
            click changes this block itself.
        above: HTML above the diagram.
        below: HTML below the diagram.
        on_pick: Called with the text of a clicked part (core.figures.svg.part).
        locked_with: Setting; if a teacher's link locks it, nothing can be clicked.
        compact: Whether another diagram stands above or below.
    """
    svg = block_svg(forward_pass, layer, cuts, reference, compared_variants, compact)
    if not is_movable(locked_with):
        on_pick = None

    def pick(text: str):
        if on_pick and f'data-part="{escape(text, quote=True)}"' in svg:
            on_pick(text)

    name = f'<div class="above{" compact" * compact}">{above}</div>' if above else ""
    words = f'<p class="below">{below}</p>' if below else ""
    picture = f'{name}<div class="block">{svg}</div>{words}'
    removed = compared_variants and tuple(
        compared_variants
    )  # Streamlit asks pandas of each list whether it is a table
    data = {
        "picture": picture,
        "clicked": on_pick is not None,
        "gone": removed,
        "set": register_handler(key, pick),
    }
    _drawing(key=key, data=data)
