"""The block as a picture (SVG), drawn from what a pass recorded: a part is there if its tensors were.

Classes carry the meaning, the page's style sheet the colours: `box` a part, `off` a part that is gone, `changed` one
that differs from the defaults, `stream` the residual stream, `cut` where it is cut.
"""

from html import escape

import torch

from core.experiments.forward import Pass
from core.figures.sublayer import STREAM, Sublayer
from core.figures.svg import arrow, line, text
from core.model.config import Config
from core.model.knockout import Cut
from core.model.parts import MENUS
from core.model.parts.placement import norm_place
from core.model.parts.position import acts_in_attention, adds_to_tokens

WIDTH = 300  # of the picture


def block_svg(p: Pass, layer: int = 0, knocked: tuple[Cut, ...] | None = None) -> str:
    """One block of the stack, from its input at the top to its output at the bottom. knocked: what is cut out of a trained
    model is marked where the knife goes, and what differs from the defaults of settings is not."""
    shapes, y = [], 18
    knocked = knocked if knocked is None else tuple(cut for cut in knocked if cut.layer == layer)
    shape = _shape(p.sites["resid_pre"][layer])
    many = f"layer {layer + 1} of {p.config.n_layers}" if p.config.n_layers > 1 else "in"
    shapes.append(text(STREAM, 12, f"{many}: {shape}", "small middle"))
    if adds_to_tokens(p.config.part("position")) and layer == 0:
        name = MENUS["position"].label(p.config.position).lower()
        shapes.append(text(STREAM + 58, 12, f"+ {name} positions", "small" + " changed" * (knocked is None)))
    for draw in (_attention, _ffn):
        part, height = draw(p, layer, y, knocked)
        shapes.append(part)
        y += height
    shapes.append(line("stream", (STREAM, y), (STREAM, y + 18)) + arrow(STREAM, y + 18))
    shapes.append(text(STREAM, y + 34, f"out: {shape}", "small middle"))
    label = escape(describe(p.config), quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {y + 42}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(shapes)}</svg>"
    )


def describe(config: Config) -> str:
    """The block in one sentence, for those who cannot see the picture."""
    parts = []
    for name, there, residual in (
        ("attention", config.attention, config.residual_attention),
        ("feed-forward network", config.ffn, config.residual_ffn),
    ):
        parts.append(f"{name}{'' if residual else ' without residual'}" if there else f"no {name}")
    normed = config.part("norm").normalises and (config.attention or config.ffn)
    norm = f"{config.norm} {norm_place(config.part('placement'))} each" if normed else "no norm"
    return f"A transformer block: {parts[0]}, then {parts[1]}; {norm}."


def _attention(p: Pass, layer: int, y: int, knocked: tuple[Cut, ...] | None) -> tuple[str, int]:
    c = p.config
    inside = [f"{c.n_heads} head{'s' * (c.n_heads != 1)} × {c.d_head}"]
    inside.append(f"softmax(Q·Kᵀ{f'/√{c.d_head}' if c.scale else ''})·V")
    inside_attention = acts_in_attention(c.part("position"))
    extra = [c.mask] * (c.part("mask")(1) is not None) + [MENUS["position"].label(c.position)] * inside_attention
    extra += [f"{c.padding} padding"] * (c.padding > 0)
    if extra:
        inside.append(" · ".join(extra))
    changed = _differs(c, "n_heads", "d_head", "scale", "mask", "padding", "bias") or inside_attention
    there = "attn_out" in p.sites
    shape = p.sites["pattern"][layer].shape if there else ()
    inside.append("weights: " + " × ".join(map(str, shape)))
    heads = [cut.name.removeprefix("head ") for cut in knocked or () if cut.part == "head"]
    if heads:
        inside.append(f"✕ z of head {', '.join(heads)}{', before W_O' * (len(heads) < 3)}")
    changed = changed if knocked is None else bool(heads)
    gone = any("attn_out" in cut.sites() for cut in knocked or ())
    return _sublayer(p, layer, "Attention", "attn_out", inside, changed, c.residual_attention, gone).draw(y)


def _ffn(p: Pass, layer: int, y: int, knocked: tuple[Cut, ...] | None) -> tuple[str, int]:
    c, there = p.config, "mlp_out" in p.sites
    hidden = p.sites["mlp_post"][layer].shape[-1] if there else c.d_ff
    inside = [f"{c.d_model} → {hidden} → {c.d_model}", MENUS["activation"].label(c.activation)]
    changed = _differs(c, "activation", "d_ff", "bias")
    changed = changed and knocked is None
    gone = any("mlp_out" in cut.sites() for cut in knocked or ())
    return _sublayer(p, layer, "Feed-forward", "mlp_out", inside, changed, c.residual_ffn, gone).draw(y)


def _sublayer(
    p: Pass, layer: int, name: str, site: str, inside: list[str], changed: bool, residual: bool, gone: bool
) -> Sublayer:
    if p.dropout and p.config.dropout:
        inside, changed = [*inside, f"dropout {p.config.dropout:g} acts"], True
    norm_changed = _differs(p.config, "norm", "placement")
    norm_site = "ln1" if site == "attn_out" else "ln2"
    return Sublayer(p, layer, name, site, norm_site, inside, changed, norm_changed, residual, gone)


def _shape(x: torch.Tensor) -> str:
    return " × ".join(map(str, x.shape))


def _differs(config: Config, *fields: str) -> bool:
    """Whether any of these settings is not its default, or not what it follows."""
    return not config.write().keys().isdisjoint(fields)
