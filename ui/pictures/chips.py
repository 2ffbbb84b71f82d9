"""A text on screen, token by token: some can be picked, some are shaded by a weight."""

import json
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from ui.kit.panel.control import handle
from ui.kit.panel.script import with_store

CSS = """
.root { display: flex; flex-wrap: wrap; gap: 5px 4px; font-family: var(--st-font); font-size: 15px; line-height: 1.35;
  color: var(--st-text-color); align-items: flex-start; }
.chip { font: inherit; color: inherit; border: 1px solid transparent; border-radius: 5px; padding: 1px 5px; min-height: 1.4em; white-space: pre;
  background: color-mix(in srgb, var(--st-primary-color) calc(0.45 * var(--share, 0%)), transparent); display: flex; flex-direction: column; align-items: center; }
.chip small { font-size: 10px; line-height: 1; opacity: 0.85; min-height: 10px; }
.made { border-color: var(--st-border-color); background: color-mix(in srgb, var(--st-primary-color) calc(0.45 * var(--share, 0%)), var(--st-secondary-background-color)); cursor: pointer; }
.made:hover, .made:focus-visible { border-color: var(--st-primary-color); outline: none; }
.selected { border: 2px solid var(--st-primary-color); font-weight: 600; }
.unknown { border-bottom: 2px dotted #D55E00; }
"""
_chips = st.components.v2.component(
    "ablation_chips",
    html='<div class="root" role="group"></div>',
    css=CSS,
    js=with_store((Path(__file__).parent / "chips.js").read_text()),
)


@dataclass(frozen=True)
class Chip:
    text: str
    tip: str = ""
    weight: float | None = None  # 0 to 1, for its shade
    pick: bool = False
    unknown: bool = False


def chips(key: str, tokens: list[Chip], *, alt: str, selected: int | None = None, on_pick=None):
    """Draw them in a row that wraps. on_pick(number) is called on a click."""

    def pick(at: int):
        if on_pick and 0 <= at < len(tokens) and tokens[at].pick:
            on_pick(at)

    listed = [token.__dict__ for token in tokens]
    data = {"tokens": listed, "selected": selected, "alt": alt, "set": handle(key, pick)}
    _chips(key=key, data=json.dumps(data))
