"""What one pass is in figures, below the drawing of its block."""

from html import escape

from core.experiments.forward import Pass
from core.model import cost
from core.settings.wording import KEY, count
from ui.kit.page import capital
from ui.shared.base import weights


def summary(forward_pass: Pass) -> str:
    """As HTML."""
    config = forward_pass.config
    blocks = count(config.n_layers, "block") if config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(config).values())
    operations = sum(cost.flops(config, len(forward_pass.tokens)).values())
    padding = f" + {config.padding} padding" if config.padding else ""
    key = f"<br><i>{capital(KEY)}</i>" if forward_pass.layered else ""
    return (
        f"<b>{parameters:,} parameters</b> in {blocks}<br>{count(forward_pass.n_real, 'token')}{padding} · {operations / 1e6:.3g} MFLOP<br>"
        f"{forward_pass.timing} on {escape(forward_pass.machine.name)}, {forward_pass.machine.dtype}<br><i>{weights(forward_pass)}</i>{key}"
    )
