"""Text on screen, token by token: some can be clicked, some are shaded by a weight."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.model.generate import Step
from core.settings.wording import number
from ui.kit.panel.control import register_handler
from ui.kit.server.scripts import component
from ui.kit.store import session

PICKED = "picked_step"  # kept for a visitor: which step of the text is open


def opened_step(key: str, steps: Sequence[Step]) -> int:
    """Return the index of the generated word that is open, from 0; 0 before any click."""
    return min(session().kept.get(f"{PICKED}_{key}", 0), len(steps) - 1)


def attention_read(step: Step, layer: int, head: int, length: int) -> list[float | None]:
    """Return each earlier token's attention weight, None outside the window; [] without any.

    Args:
        step: Generated word.
        layer: Layer from 0.
        head: Head from 0.
        length: Number of tokens before the word; those outside the window are None.
    """
    if not step.patterns:
        return []
    weights = step.patterns[layer][head].tolist()
    return [None] * (length - len(weights)) + weights


def draw_generated_text(
    key: str,
    labels: Sequence[str],
    steps: Sequence[Step],
    word_of: Callable[[int], str],
    layer: int,
    head: int,
    unknown: Collection[int] = (),
):
    """Draw a text and its generated words; a click opens a generated word, see opened_step().

    Args:
        key: Key of the component.
        labels: Words of the given text.
        steps: Generated words.
        word_of: Returns the word of a token id.
        layer: Layer whose attention shades the words, from 0.
        head: Head whose attention shades the words, from 0.
        unknown: Indices of given words that are not in the vocabulary.
    """
    chosen = opened_step(key, steps)
    start = len(labels)
    weights = attention_read(steps[chosen], layer, head, start + chosen)
    tokens = []
    for n, label in enumerate(labels):
        is_read = not weights or weights[n] is not None
        tokens.append(
            Chip(
                label,
                "attended to" if is_read else "not attended to",
                weights[n] if weights else None,
                unknown=n in unknown,
            )
        )
    for n, step in enumerate(steps, start):
        tip = (
            f"model probability {number(step.probability)},"
            f" sampling probability {number(step.chance)}"
        )
        tokens.append(
            Chip(word_of(step.token), tip, weights[n] if n < len(weights) else None, pick=True)
        )
    draw_chips(
        key,
        tokens,
        alt=f"The text, token by token, {len(steps)} of them generated.",
        selected=start + chosen,
        on_pick=lambda index: session().kept.update({f"{PICKED}_{key}": index - start}),
    )


CSS = """
.root { display: flex; flex-wrap: wrap; gap: 5px 4px; font-family: var(--st-font); font-size: 14px;
  line-height: 1.35; color: var(--st-text-color); align-items: flex-start; }
.chip { font: inherit; color: inherit; border: 1px solid transparent; border-radius: 5px;
  padding: 1px 5px; min-height: 1.4em; white-space: pre;
  background: color-mix(in srgb, var(--st-primary-color) calc(0.45 * var(--share, 0%)),
    transparent);
  display: flex; flex-direction: column; align-items: center; }
.chip small { font-size: 12px; line-height: 1; opacity: 0.85; min-height: 12px; }
.made { border-color: var(--st-border-color);
  background: color-mix(in srgb, var(--st-primary-color) calc(0.45 * var(--share, 0%)),
    var(--st-secondary-background-color));
  cursor: pointer; }
.made:hover { border-color: var(--st-primary-color); }
.selected { border: 2px solid var(--st-primary-color); font-weight: 600; }
.unknown { border-bottom: 2px dotted #D55E00; }
"""
_chips = component(
    "chips", Path(__file__).with_suffix(".js"), CSS, '<div class="root" role="group"></div>'
)


@dataclass(frozen=True)
class Chip:
    """Token of the text: its label, tooltip and shade, and whether it can be clicked."""

    text: str
    tip: str = ""
    weight: float | None = None  # 0 to 1, for its shade
    pick: bool = False
    unknown: bool = False


def draw_chips(
    key: str,
    tokens: list[Chip],
    *,
    alt: str,
    selected: int | None = None,
    on_pick: Callable[[int], object] | None = None,
):
    """Draw tokens in a row that wraps; `on_pick(index)`, from 0, is called on a click, if any."""

    def pick(index: int):
        if on_pick and 0 <= index < len(tokens) and tokens[index].pick:
            on_pick(index)

    listed = [token.__dict__ for token in tokens]
    data = {"tokens": listed, "selected": selected, "alt": alt, "set": register_handler(key, pick)}
    _chips(key=key, data=json.dumps(data))
