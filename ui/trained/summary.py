"""What a model is in figures, below the drawing of its block."""

from html import escape

from core.settings.wording import count
from ui.trained.context import TrainedContext


def summary(context: TrainedContext) -> str:
    """As HTML."""
    opened, config = context.opened, context.opened.config
    heads = f"× {count(config.n_heads, 'head')}" if config.attention else "without attention"
    return (
        f"<b>{opened.parameters:,} parameters</b>, {count(config.n_layers, 'layer')} {heads}<br>"
        f"{len(opened.model.vocabulary):,} words · {count(len(context.prompt.ids), 'token')} · {context.whole.timing} on {escape(context.whole.machine.name)}<br>"
        f"<i>Trained weights: {escape(opened.task or 'from a file')}</i>"
    )
