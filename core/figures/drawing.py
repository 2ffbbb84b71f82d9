"""The block as a picture (SVG), drawn from what a pass recorded: a part is there if its tensors were.

Classes carry the meaning, the page's style sheet the colours: `box` a part, `off` a part that is gone, `changed` one
that differs from the defaults, `stream` the residual stream, `cut` where it is cut.
"""

from html import escape

import torch

from core.experiments.forward import Pass
from core.model.config import Config
from core.model.knockout import Cut
from core.model.parts import MENUS
from core.model.parts.position import acts_in_attention, adds_to_tokens

WIDTH, STREAM, CENTRE = 300, 58, 196  # the picture, the stream's x, the sub-layers' x
BOX = 172

Point = tuple[float, float]


def block_svg(p: Pass, layer: int = 0, knocked: tuple[Cut, ...] | None = None) -> str:
    """One block of the stack, from its input at the top to its output at the bottom. knocked: what is cut out of a trained
    model is marked where the knife goes, and what differs from the defaults of settings is not."""
    made, y = [], 18
    knocked = knocked if knocked is None else tuple(cut for cut in knocked if cut.layer == layer)
    shape = _shape(p.sites["resid_pre"][layer])
    many = f"layer {layer + 1} of {p.config.n_layers}" if p.config.n_layers > 1 else "in"
    made.append(_text(STREAM, 12, f"{many}: {shape}", "small middle"))
    if adds_to_tokens(p.config.part("position")) and layer == 0:
        name = MENUS["position"].label(p.config.position).lower()
        made.append(_text(STREAM + 58, 12, f"+ {name} positions", "small" + " changed" * (knocked is None)))
    for draw in (_attention, _ffn):
        part, height = draw(p, layer, y, knocked)
        made.append(part)
        y += height
    made.append(_line("stream", (STREAM, y), (STREAM, y + 18)) + _arrow(STREAM, y + 18))
    made.append(_text(STREAM, y + 34, f"out: {shape}", "small middle"))
    label = escape(describe(p.config), quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {y + 42}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(made)}</svg>"
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
    norm = f"{config.norm} {config.part('placement').where} each" if normed else "no norm"
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
    return _sublayer(p, layer, y, "Attention", there, inside, changed, "ln1", c.residual_attention, gone)


def _ffn(p: Pass, layer: int, y: int, knocked: tuple[Cut, ...] | None) -> tuple[str, int]:
    c, there = p.config, "mlp_out" in p.sites
    hidden = p.sites["mlp_post"][layer].shape[-1] if there else c.d_ff
    inside = [f"{c.d_model} → {hidden} → {c.d_model}", MENUS["activation"].label(c.activation)]
    changed = _differs(c, "activation", "d_ff", "bias")
    changed = changed and knocked is None
    gone = any("mlp_out" in cut.sites() for cut in knocked or ())
    return _sublayer(p, layer, y, "Feed-forward", there, inside, changed, "ln2", c.residual_ffn, gone)


def _sublayer(
    p: Pass,
    layer: int,
    y: int,
    name: str,
    there: bool,
    inside: list[str],
    changed: bool,
    norm_site: str,
    residual: bool,
    gone: bool,
) -> tuple[str, int]:
    """One sub-layer with its norm and its residual -> (SVG, height)."""
    if p.dropout and p.config.dropout:
        inside, changed = [*inside, f"dropout {p.config.dropout:g} acts"], True
    work = 26 + 15 * len(inside)
    if not there:
        parts = _line("stream", (STREAM, y), (STREAM, y + work + 24))
        parts += _box(CENTRE, y + 10, BOX, work, [f"{name}: off"], "off changed")
        return parts, work + 24
    site = "attn_out" if norm_site == "ln1" else "mlp_out"
    normed, where = norm_site in p.sites, _where(p, norm_site, site)
    norm_class = "box norm" if normed else "off"
    norm_class += " changed" * (_differs(p.config, "norm", "placement"))
    norm_name = p.config.norm if normed else "no norm"
    top = y + 12  # where the branch leaves the stream
    parts = _line("wire", (STREAM, top), (CENTRE, top), (CENTRE, top + 12)) + _arrow(CENTRE, top + 12)
    at = top + 12
    if where == "before":
        parts += _box(CENTRE, at, 104, 24, [norm_name], norm_class)
        parts += _line("wire", (CENTRE, at + 24), (CENTRE, at + 36)) + _arrow(CENTRE, at + 36)
        at += 36
    parts += _box(CENTRE, at, BOX, work, [name, *inside], "box work" + " changed" * changed)
    at += work
    if where == "between":
        parts += _line("wire", (CENTRE, at), (CENTRE, at + 12)) + _arrow(CENTRE, at + 12)
        parts += _box(CENTRE, at + 12, 104, 24, [norm_name], norm_class)
        at += 36
    joint = at + 16
    parts += _line("wire", (CENTRE, at), (CENTRE, joint), (STREAM + 9, joint)) + _arrow(STREAM + 9, joint, "left")
    parts += _text(CENTRE + 6, joint - 4, _shape(p.sites[site][layer]), "small")
    if gone:
        parts += _text((CENTRE + STREAM) / 2, joint + 6, "✕", "middle cross")
        parts += _text((CENTRE + STREAM) / 2 + 10, joint + 14, f"{site} knocked out", "small changed")
    parts += _line("stream", (STREAM, y), (STREAM, top))
    if residual:
        parts += _line("stream", (STREAM, top), (STREAM, joint - 9))
        parts += f'<circle class="sum" cx="{STREAM}" cy="{joint}" r="9"/>' + _text(
            STREAM, joint + 5, "+", "middle plus"
        )
    else:
        middle = (top + joint) / 2
        parts += _line("cut", (STREAM, top), (STREAM, middle - 14)) + _line(
            "cut", (STREAM, middle + 14), (STREAM, joint - 9)
        )
        parts += _text(STREAM, middle + 5, "✕", "middle cross")
        parts += _text(STREAM - 14, middle, "residual off", "small middle changed", turn=(STREAM - 14, middle))
        parts += f'<circle class="off" cx="{STREAM}" cy="{joint}" r="9"/>'
    end = joint + 9
    if where == "after":
        parts += _line("stream", (STREAM, end), (STREAM, end + 9))
        parts += _box(STREAM, end + 9, 100, 24, [norm_name], norm_class)
        end += 33
    return parts + _line("stream", (STREAM, end), (STREAM, end + 6)), end + 6 - y


def _where(p: Pass, norm_site: str, site: str) -> str:
    """Where the norm of a sub-layer acted: before it, between it and the sum, or after the sum; as it was computed."""
    if norm_site not in p.sites:
        placed: str = p.config.part("placement").where
        return placed
    order, joined = list(p.sites), "resid_mid" if norm_site == "ln1" else "resid_post"
    if order.index(norm_site) < order.index(site):
        return "before"
    return "between" if order.index(norm_site) < order.index(joined) else "after"


def _shape(x: torch.Tensor) -> str:
    return " × ".join(map(str, x.shape))


def _differs(config: Config, *fields: str) -> bool:
    """Whether any of these settings is not its default, or not what it follows."""
    return not config.write().keys().isdisjoint(fields)


def _box(x: float, y: float, width: int, height: int, lines: list[str], kind: str) -> str:
    made = f'<rect class="{kind}" x="{x - width / 2}" y="{y}" width="{width}" height="{height}" rx="5"/>'
    step, first = 15, y + height / 2 - 7.5 * (len(lines) - 1) + 4
    for at, line in enumerate(lines):
        kind = " name" if at == 0 else " small changed" if line.startswith("✕") else " small"
        made += _text(x, first + at * step, line, f"middle{kind}")
    return made


def _text(x: float, y: float, words: str, kind: str, turn: Point | None = None) -> str:
    turned = f' transform="rotate(-90 {turn[0]} {turn[1]})"' if turn else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{turned}>{escape(words)}</text>'


def _line(kind: str, *points: Point) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def _arrow(x: float, y: float, way: str = "down") -> str:
    corners = {"down": ((-4, -7), (4, -7), (0, 0)), "left": ((7, -4), (7, 4), (0, 0))}[way]
    return f'<polygon class="head" points="{" ".join(f"{x + dx},{y + dy}" for dx, dy in corners)}"/>'
