"""Layers that differ from each other, as rows of small boxes: which have a window, and which know positions."""

from core.figures.svg import text
from core.model.config import Config
from core.model.parts.position import acts_in_attention

LEFT, STEP, ROW, MOST = 118, 11, 16, 15  # x of the first box, from box to box, from row to row, boxes that fit


def patterns(config: Config) -> dict[str, list[bool]]:
    """What some layers have and others have not: words -> of each layer, whether it has it."""
    layers, rows = range(config.n_layers), {}
    if config.attention and config.window and config.global_every:
        rows[f"window {config.window}"] = [config.window_in(layer) > 0 for layer in layers]
    position = config.part("position")
    if config.attention and config.nope_every and acts_in_attention(position):
        rows["positions"] = [config.position_in(layer) is position for layer in layers]
    return {words: row for words, row in rows.items() if len(row) > 1}


def layers_svg(config: Config, layer: int, y: int) -> tuple[str, int]:
    """A row for each such pattern, its layers from the first to the last; those around this one, where they are many -> (SVG, height)"""
    rows = patterns(config)
    first = max(0, min(layer - MOST // 2, config.n_layers - MOST))
    shapes = ""
    for at, (words, row) in enumerate(rows.items()):
        top = y + ROW * at
        has = ", ".join(str(number) for number, there in enumerate(row, 1) if there)
        shapes += f"<g><title>{words} in layers {has or 'none'}</title>" + text(
            LEFT - 8, top + 9, f"{words} in layer", "small end"
        )
        for number, there in enumerate(row[first : first + MOST], first):
            kind = ("layer there" if there else "layer") + " here" * (number == layer)
            shapes += f'<rect class="{kind}" x="{LEFT + STEP * (number - first)}" y="{top}" width="8" height="10"/>'
        shapes += "</g>"
    return shapes, ROW * len(rows) + 4 * bool(rows)
