from core.experiments.block.attention import scaling, walk
from core.model.parts import MENUS
from core.settings.wording import in_sentence
from ui.kit.page import figure
from ui.kit.panel.control import numbered
from ui.kit.panel.panel import bar
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, picks, sure, weights


def steps(forward_pass, look):
    """One head by hand, from queries to output."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    stages = walk(forward_pass, layer, head)
    names = [f"{n} {stage.name}" for n, stage in enumerate(stages, 1)]
    bar("lens", picks("layer", "head", forward_pass=forward_pass), [numbered("Step", "step", names)])
    step = stages[min(look.step, len(stages)) - 1]
    figure(
        f"{look.step}. {step.name}: {step.formula}",
        step.explanation + _entropies(forward_pass, layer, head, step),
        weights(forward_pass),
    )
    by_token = step.columns == "token"
    matrix = step.matrix.masked_fill(step.matrix == -float("inf"), float("nan"))
    heatmaps(
        f"step_{step.columns}",
        matrix[None],
        forward_pass.labels,
        forward_pass.labels if by_token else [str(n + 1) for n in range(matrix.shape[1])],
        colTips=None if by_token else [f"dimension {n + 1}" for n in range(matrix.shape[1])],
        what="weight" if step.name == "Softmax" else "value",
        alt=f"{step.name}, one row per token.",
        diverging=step.name != "Softmax",
        square=by_token,
        numbers=True,
        blank="minus infinity: may not look",
        height=470,
    )


def _entropies(forward_pass, layer, head, step) -> str:
    if step.name not in ("Raw scores", "Scaled scores", "Softmax"):
        return ""
    bits, config = scaling(forward_pass, layer, head), forward_pass.config
    softmax = in_sentence(MENUS["softmax"].label(config.softmax))
    left = "" if config.part("softmax").sums_to_one else ", with nothing left over,"
    return " " + sure(
        f"Entropy of this head's {softmax}: {bits['scaled']:.2f} bits with scores divided by √{config.d_head}, "
        f"{bits['unscaled']:.2f} bits without; attending evenly{left} would be {bits['uniform']:.2f}.",
        *bits.values(),
    )
