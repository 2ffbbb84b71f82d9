"""Diagram of a block as SVG, drawn from what a pass recorded.

CSS classes carry the meaning, the page's style sheet the colours: `box` a part, `off` a part that
is removed, `changed` one that differs from the defaults, `stream` the residual stream, `cut` where
it is interrupted.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

from core.experiments.forward import Pass
from core.figures import svg
from core.figures.svg import arrow, box, line, part, text
from core.model.config import Config
from core.model.knockout import Cut
from core.model.parts import MENUS
from core.model.parts.position import acts_in_attention, adds_to_tokens
from core.model.variants import difference, encode
from core.settings.wording import count

# x of the first box, from box to box, from row to row, boxes that fit
LEFT = 118
STEP = 11
ROW = 16
MOST = 15


def layers_by_component(config: Config) -> dict[str, list[bool]]:
    """Return whether each layer has "window N", "positions", if set per layer; {} if none."""
    layers = range(config.n_layers)
    rows = {}
    if config.attention and config.window and config.global_every:
        rows[f"window {config.window}"] = [config.window_in(layer) > 0 for layer in layers]
    position = config.part("position")
    if config.attention and config.nope_every and acts_in_attention(position):
        rows["positions"] = [config.position_in(layer) is position for layer in layers]
    return {words: row for words, row in rows.items() if len(row) > 1}


def layers_svg(config: Config, layer: int, y: int) -> tuple[str, int]:
    """Return SVG of squares from y on, `layer` marked, a row per per-layer part; and its height.

    `layer`, from 0, is marked. ("", 0) without such a component.
    """
    rows = layers_by_component(config)
    first = max(0, min(layer - MOST // 2, config.n_layers - MOST))
    shapes = ""
    for index, (words, row) in enumerate(rows.items()):
        top = y + ROW * index
        has = ", ".join(str(number) for number, is_present in enumerate(row, 1) if is_present)
        where = f"{words} in layers {has}" if has else f"{words}: in no layer"
        shapes += f"<g><title>{where}</title>" + text(
            LEFT - 8, top + 9, f"{words} in layer", "small end"
        )
        for number, is_head_present in enumerate(row[first : first + MOST], first):
            kind = "layer there" if is_head_present else "layer"
            if number == layer:
                kind += " here"
            shapes += (
                f'<rect class="{kind}" x="{LEFT + STEP * (number - first)}" y="{top}" width="8"'
                ' height="10"/>'
            )
        shapes += "</g>"
    return shapes, ROW * len(rows) + 4 * bool(rows)


# x of the stream, of the sub-layers, and of what passes them by
STREAM = 58
CENTRE = 196
SIDE = 291
# widths
BOX = 172
NORM = 104
# height of what is clicked: 24 pixels where a page has room for three quarters of the drawing's
# width
TARGET = 32
WIRE = 12  # height of a wire between two boxes
GAP = 3  # between two heads
IN_A_ROW = 4  # heads


# "work", "norm", "residual" or "head 1" -> what a click does, as text of a link and in words
Clicks = dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Sublayer:
    """Parts of a sub-layer that are drawn, with what a click on each does."""

    forward_pass: Pass
    layer: int
    name: str
    site: str  # "attn_out" or "mlp_out": what it adds
    norms: dict[str, str]  # where a norm acts -> its site, "ln1" …
    inside: list[str]  # lines below its name
    changed: bool  # whether something in it differs from the defaults, or is knocked out
    norm_changed: bool
    residual: bool
    is_ablated: bool  # whether what it adds is ablated
    clicks: Clicks  # what a click on each of its parts does
    heads: tuple[bool, ...] = ()  # whether each head is there, where heads are parts of their own
    # y at which it reads the stream beside the other sub-layer; None: where its own branch begins
    reads: int | None = None
    compact: bool = False

    @property
    def target(self) -> int:
        """Height of a clickable part, in pixels: 24 if compact, else 32."""
        return 24 if self.compact else TARGET

    @property
    def wire(self) -> int:
        """Height of a wire between two boxes, in pixels: 7 if compact, else 12."""
        return 7 if self.compact else WIRE

    @property
    def work(self) -> int:
        """Height of the sub-layer's box, in pixels, with its lines, button and heads."""
        lines = 15 * len(self.inside)
        if "heads" in self.clicks:
            lines += self.target - 10 * self.compact
        return 26 + lines + self._heads_height

    @property
    def _heads_height(self) -> int:
        """Height of the heads in the box, in pixels; 0 unless they are parts of their own."""
        rows = -(-len(self.heads) // IN_A_ROW)
        return rows * (TARGET + GAP) + 4 * bool(rows)

    def draw(self, y: int) -> tuple[str, int]:
        """Return the SVG of the sub-layer from height y on, and its own height."""
        if self.site not in self.forward_pass.sites:
            off = self._make_clickable(
                "work", box(CENTRE, y + 10, BOX, self.work, [f"{self.name}: off"], "off changed")
            )
            return line("stream", (STREAM, y), (STREAM, y + self.work + 24)) + off, self.work + 24
        top = y + self.wire  # where the branch leaves the stream
        branch, joint = self._draw_branch(top)
        main, end = self._draw_stream(y, top, joint)
        return branch + main + line("stream", (STREAM, end), (STREAM, end + 6)), end + 6 - y

    def _draw_branch(self, top: int) -> tuple[str, int]:
        """Return the SVG of the branch through the sub-layer, and y of where it ends."""
        begin = (
            [(STREAM, top)]
            if self.reads is None
            else [(STREAM, self.reads), (SIDE, self.reads), (SIDE, top)]
        )
        parts = line("wire", *begin, (CENTRE, top), (CENTRE, top + self.wire)) + arrow(
            CENTRE, top + self.wire
        )
        y = top + self.wire
        if "before" in self.norms:
            parts += self._draw_norm("before", CENTRE, y, NORM)
            y += self.target
            parts += line("wire", (CENTRE, y), (CENTRE, y + self.wire)) + arrow(
                CENTRE, y + self.wire
            )
            y += self.wire
        parts += self._draw_box(y)
        y += self.work
        if "on the output of" in self.norms:
            parts += line("wire", (CENTRE, y), (CENTRE, y + self.wire)) + arrow(
                CENTRE, y + self.wire
            )
            parts += self._draw_norm("on the output of", CENTRE, y + self.wire, NORM)
            y += self.wire + self.target
        joint = y + self.wire + 4
        parts += line("wire", (CENTRE, y), (CENTRE, joint), (STREAM + 9, joint)) + arrow(
            STREAM + 9, joint, "left"
        )
        added = " × ".join(map(str, self.forward_pass.sites[self.site][self.layer].shape))
        scale = self.forward_pass.config.residual_scale
        if not self.compact:
            parts += text(CENTRE + 6, joint - 4, added, "small")
        if scale != "none":
            parts += text(
                CENTRE - 40,
                joint - 4,
                f"× {MENUS['residual_scale'].label(scale)}",
                "small middle changed",
            )
        if self.is_ablated:
            parts += text((CENTRE + STREAM) / 2, joint + 6, "✕", "middle cross")
            parts += text(
                (CENTRE + STREAM) / 2 + 10, joint + 14, f"{self.site} removed", "small changed"
            )
        return parts, joint

    def _draw_box(self, y: int) -> str:
        """Return the SVG of the box, with its heads if they are parts of their own."""
        kind = "box work changed" if self.changed else "box work"
        if "heads" in self.clicks:  # the line that says how many is a button of its own
            first, *others = self.inside
            shapes = box(CENTRE, y, BOX, self.work, [], kind) + text(
                CENTRE, y + 19, self.name, "middle name"
            )
            below = y + 26 + self.target
            shapes += "".join(
                text(CENTRE, below + 15 * n, line, "middle small")
                for n, line in enumerate(others, 1)
            )
            button = box(CENTRE, y + 26, BOX - 24, self.target, [], "head-box")
            button += text(CENTRE, y + 30 + self.target // 2, first, "middle small")
            return self._make_clickable("work", shapes) + self._make_clickable("heads", button)
        shapes = self._make_clickable(
            "work",
            box(
                CENTRE, y, BOX, self.work, [self.name, *self.inside], kind, below=self._heads_height
            ),
        )
        per_row = min(IN_A_ROW, len(self.heads))
        for index, is_present in enumerate(self.heads):
            row, column = divmod(index, IN_A_ROW)
            x = CENTRE + (column - (per_row - 1) / 2) * (TARGET + GAP)
            top = y + self.work - self._heads_height + row * (TARGET + GAP)
            mark, style = (f"{index + 1}", "head-box") if is_present else ("✕", "off changed")
            shapes += self._make_clickable(
                f"head {index + 1}", box(x, top, TARGET, TARGET, [mark], style)
            )
        return shapes

    def _make_clickable(self, name: str, shapes: str, number: str = "") -> str:
        """Group shapes as a clickable part, keyed by name and number, if a click has an effect."""
        return (
            part(f"{self.site} {name}{number}", *self.clicks[name], shapes)
            if name in self.clicks
            else shapes
        )

    def _draw_stream(self, y: int, top: int, joint: int) -> tuple[str, int]:
        """Return SVG of the stream past the sub-layer, y to the sum at `joint`; and its end."""
        parts = line("stream", (STREAM, y), (STREAM, top))
        past = (
            f'<rect class="touch" x="{STREAM - 24}" y="{top}" width="48"'
            f' height="{joint - 9 - top}"/>'
        )
        if self.residual:
            past += line("stream", (STREAM, top), (STREAM, joint - 9))
            past += f'<circle class="sum" cx="{STREAM}" cy="{joint}" r="9"/>'
            past += text(STREAM, joint + 5, "+", "middle plus")
        else:
            middle = (top + joint) / 2
            past += line("cut", (STREAM, top), (STREAM, middle - 14))
            past += line("cut", (STREAM, middle + 14), (STREAM, joint - 9))
            past += text(STREAM, middle + 5, "✕", "middle cross")
            past += text(
                STREAM - 14,
                middle,
                "residual off",
                "small middle changed",
                turn=(STREAM - 14, middle),
            )
            past += f'<circle class="off" cx="{STREAM}" cy="{joint}" r="9"/>'
        parts += self._make_clickable("residual", past)
        end = joint + 9
        if "after" in self.norms:
            parts += line("stream", (STREAM, end), (STREAM, end + 9)) + self._draw_norm(
                "after", STREAM, end + 9, NORM - 4
            )
            end += 9 + self.target
        return parts, end

    def _draw_norm(self, place: str, x: int, y: int, width: int) -> str:
        """Return the SVG of a norm's clickable box; (x, y) is the middle of its upper edge."""
        normed = self.norms[place] in self.forward_pass.sites
        name = self.forward_pass.config.norm if normed else "no norm"
        kind = "box norm" if normed else "off"
        if self.norm_changed:
            kind += " changed"
        number = "" if place == next(iter(self.norms)) else " 2"  # of two, the second
        return self._make_clickable("norm", box(x, y, width, self.target, [name], kind), number)


WIDTH = 300  # of the picture


def block_svg(
    p: Pass,
    layer: int = 0,
    cuts: tuple[Cut, ...] | None = None,
    reference: Config | None = None,
    variant_changes: Collection[str] | None = (),
    compact: bool = False,
) -> str:
    """Return a block as clickable SVG; marks changes from `reference` (None: defaults), or cuts.

    Args:
        p: The recorded pass.
        layer: Index of the layer, from 0.
        cuts: Ablated parts of a trained model: these are marked, and a click adds or removes an
            ablation. None for a block whose settings a click changes.
        reference: Settings that are not marked as changed; None for the defaults.
        variant_changes: Changes (as in a link) that the variant next to this block already has: a
            click adds or removes one. None: this is that variant, and a click changes it.
        compact: Whether only a sub-layer that differs shows all its lines.
    """
    changed = (
        set(p.config.write() if reference is None else difference(p.config, reference))
        if cuts is None
        else set()
    )
    picture = Picture(p, layer, cuts, changed, variant_changes, compact)
    shape = _format_shape(p.sites["resid_pre"][layer])
    strip, height = layers_svg(p.config, layer, 20)
    above = "in"
    if p.config.n_layers > 1:
        above = f"layer {layer + 1} of {p.config.n_layers}"
        if p.config.shared:
            above += ", one block"
    shapes = [text(STREAM, 12, f"{above}: {shape}", "small middle")]
    y = 18 + height
    early = p.config.skip_source(layer)
    if early is not None:
        kind = "small changed" if "skips" in changed else "small"
        shapes.append(text(STREAM + 62, 12, f"+ output of layer {early + 1}", kind))
    if adds_to_tokens(p.config.part("position")) and layer == 0:
        kind = "small changed" if cuts is None else "small"
        shapes.append(
            text(
                STREAM + 62,
                12,
                f"+ {MENUS['position'].label(p.config.position).lower()} positions",
                kind,
            )
        )
    shapes.append(strip)
    attention = picture.attention()
    for sublayer in (attention, picture.ffn(y + attention.wire)):
        part, height = sublayer.draw(y)
        shapes.append(part)
        y += height
    shapes.append(line("stream", (STREAM, y), (STREAM, y + 18)) + arrow(STREAM, y + 18))
    if not compact:
        shapes.append(text(STREAM, y + 34, f"out: {shape}", "small middle"))
    return svg.picture(
        WIDTH, y + (20 if compact else 42), "".join(shapes), describe_block(p.config), role="group"
    )


def describe_block(config: Config) -> str:
    """Describe a block in one sentence, for screen readers."""
    parts = []
    for name, is_present, residual in (
        ("attention", config.attention, config.residual_attention),
        ("feed-forward network", config.ffn, config.residual_ffn),
    ):
        parts.append(
            f"{name}{'' if residual else ' without residual'}" if is_present else f"no {name}"
        )
    normed = config.part("norm").normalises and (config.attention or config.ffn)
    norm = (
        f"with {config.norm} {' and '.join(config.part('placement').norms)} each"
        if normed
        else "without norm"
    )
    order = "in parallel with" if config.parallel and config.attention and config.ffn else "then"
    return f"A transformer block: {parts[0]}, {order} {parts[1]}, {norm}."


@dataclass(frozen=True)
class Picture:
    """Settings of a diagram, from which its sub-layers are made."""

    forward_pass: Pass
    layer: int
    cuts: tuple[Cut, ...] | None
    changed: set[str]  # settings that are marked
    variant_changes: (
        Collection[str] | None
    )  # changes that are shown beside it; None: it is the one that stands beside
    compact: bool = False

    def attention(self) -> Sublayer:
        """Return the attention sub-layer as it is drawn."""
        c = self.forward_pass.config
        inside = [f"{c.n_heads} {'head' if c.n_heads == 1 else 'heads'} × {c.d_head}"]
        if c.n_kv_heads < c.n_heads:
            kind = "MQA" if c.n_kv_heads == 1 else "GQA"
            inside.append(f"{count(c.n_kv_heads, 'key-value head')} ({kind})")
        scale = f"/√{c.d_head}" if c.scale else ""
        gate = " × gate" if c.gate else ""
        inside.append(f"softmax(Q·Kᵀ{scale})·V{gate}")
        inside_attention = acts_in_attention(c.part("position"))
        lines = len(inside)
        for words in list_attention_extras(c, self.layer):  # as many in a line as there is room for
            joined = f"{inside[-1]} · {words}"
            if len(inside) > lines and len(joined) <= 28:
                inside[-1] = joined
            else:
                inside.append(words)
        is_present = "attn_out" in self.forward_pass.sites
        shape = self.forward_pass.sites["pattern"][self.layer].shape if is_present else ()
        inside.append("weights: " + " × ".join(map(str, shape)))
        read = (
            set(Config.settings_read_by("attention"))
            - {"position"}
            - ({"norm_eps", "norm_gain"} if not c.qk_norm else set())
        )
        changed = self._differs("padding", *read) or (
            "position" in self.changed and inside_attention
        )
        heads: tuple[bool, ...] = ()
        if self.cuts is not None and is_present:
            ablated_heads = [
                cut for cut in self.cuts if cut.layer == self.layer and cut.part == "head"
            ]
            heads = tuple(
                Cut(self.layer, "head", number) not in ablated_heads for number in range(c.n_heads)
            )
            changed = bool(ablated_heads)
            named = ", ".join(cut.name for cut in ablated_heads)
            # Its line is there also while it is empty: or the heads below would move away under a
            # quick hand.
            where = " (at z, before W_O)" if len(ablated_heads) < 2 else ""
            inside.append(f"{named} removed{where}" if ablated_heads else "")
        return self._make_sublayer("attention", "Attention", inside, changed, heads)

    def ffn(self, beginning: int) -> Sublayer:
        """Return the feed-forward sub-layer; a parallel one reads the stream at y `beginning`."""
        c = self.forward_pass.config
        is_present = "mlp_out" in self.forward_pass.sites
        hidden = self.forward_pass.sites["mlp_post"][self.layer].shape[-1] if is_present else c.d_ff
        inside = [f"{c.d_model} → {hidden} → {c.d_model}", MENUS["activation"].label(c.activation)]
        reads = beginning if c.parallel and c.attention else None
        changed = self._differs("parallel", *Config.settings_read_by("ffn"))
        return self._make_sublayer("ffn", "Feed-forward", inside, changed, reads=reads)

    def _make_sublayer(
        self,
        part: str,
        name: str,
        inside: list[str],
        changed: bool,
        heads: tuple[bool, ...] = (),
        reads: int | None = None,
    ) -> Sublayer:
        """Collect what is drawn of one sub-layer: its box, norms, residual and heads."""
        if self.forward_pass.dropout and self.forward_pass.config.dropout:
            inside = [*inside, f"dropout {self.forward_pass.config.dropout:g}"]
            changed = True
            if part == "ffn" and self.forward_pass.config.ffn_dropout:
                inside.append("also on hidden units")
        site, norm_site = ("attn_out", "ln1") if part == "attention" else ("mlp_out", "ln2")
        places = self.forward_pass.config.part("placement").norms
        norms = dict(zip(places, (norm_site, f"{norm_site}_post")))
        is_ablated = any(site in cut.sites() for cut in self.cuts or () if cut.layer == self.layer)
        residual = getattr(self.forward_pass.config, f"residual_{part}")
        if self.compact and not changed:
            inside = inside[:1]
        clicks = (
            self._ablation_clicks(part, len(heads))
            if self.cuts is not None
            else self._setting_clicks(part)
        )
        return Sublayer(
            self.forward_pass,
            self.layer,
            name,
            site,
            norms,
            inside,
            changed,
            self._differs("norm", "placement", "norm_eps", "norm_gain"),
            residual,
            is_ablated,
            clicks,
            heads,
            reads,
            self.compact,
        )

    def _differs(self, *fields: str) -> bool:
        """Return whether any of these settings is marked as changed."""
        return not self.changed.isdisjoint(fields)

    def _setting_clicks(self, part: str) -> Clicks:
        """Return {part: (change as in a link, words)} for clicks on the parts of a sub-layer."""
        c = self.forward_pass.config
        fewer = 1 if c.n_heads > 1 else Config().n_heads
        norm = "none" if c.part("norm").normalises else Config().norm
        changes = {
            "work": (part, not getattr(c, part)),
            "residual": (f"residual_{part}", not getattr(c, f"residual_{part}")),
            "norm": ("norm", norm),
        }
        if part == "attention":
            changes["heads"] = ("n_heads", fewer)
        labels = {place: Config.settings()[name].label for place, (name, _) in changes.items()}
        labels["norm"] = f"{'Attention' if part == 'attention' else 'Feed-forward'} norm"
        clicks = {}
        for place, (name, value) in changes.items():
            text = encode({name: value})
            click = _describe_click(name, value, in_this_variant=self.variant_changes is None)
            if self.variant_changes is not None and text in self.variant_changes:
                click = "Already changed in the variant: click to undo."
            clicks[place] = text, f"{labels[place]}. {Config.settings()[name].help} {click}"
        return clicks

    def _ablation_clicks(self, part: str, n_heads: int) -> Clicks:
        """Return {part: (ablation as in a link, words)} that a click adds or removes."""
        cuts = {"work": Cut(self.layer, part)}
        cuts |= {
            f"head {number}": Cut(self.layer, "head", number - 1)
            for number in range(1, n_heads + 1)
        }
        return {
            place: (
                cut.write(),
                (
                    f"{cut.name[0].upper()}{cut.name[1:]}: click to"
                    f" {'restore it' if cut in (self.cuts or ()) else 'remove it'}."
                ),
            )
            for place, cut in cuts.items()
        }


def list_attention_extras(c: Config, layer: int) -> list[str]:
    """List further settings that act in a layer's attention, in words, such as "window 8"."""
    position = c.part("position")
    window = c.window_in(layer)
    parts = []
    if c.part("mask")(1) is not None:
        parts.append(c.mask)
    if c.qk_norm:
        parts.append("QK-norm over all heads" if c.qk_norm_joint else "QK-norm")
    if c.attention_bias != c.bias:
        parts.append("with biases" if c.attention_bias else "no biases")
    if acts_in_attention(position) and c.position_in(layer) is position:
        parts += _name_position(c, layer)
    if c.softmax != Config().softmax:
        parts.append(MENUS["softmax"].label(c.softmax))
    if c.value_residual and layer > 0:
        parts.append("½ values of layer 1")
    if c.score_cap > 0:
        parts.append(f"cap {c.score_cap:g}")
    if window > 0:
        parts.append(f"window {window}")
    if c.padding > 0:
        parts.append(f"{c.padding} padding")
    return parts


def _name_position(c: Config, layer: int) -> list[str]:
    """List a layer's position encoding, with RoPE's share, and its base, if not the defaults."""
    name = MENUS["position"].label(c.position)
    if not c.part("position").turns:
        return [name]
    if c.rope_share < 1:
        name += f" {100 * c.rope_share:.0f} %"
    base = c.rope_base_in(layer)
    return [name] if base == Config().rope_base else [name, f"base {base:,.0f}"]


def _describe_click(name: str, value: Any, in_this_variant: bool) -> str:
    """Return the sentence on the click that sets `name` to `value` in this variant or a new one."""
    change = Config.settings()[name].describe_change(value)
    if value in (False, "none"):
        return (
            "Click to remove it from this variant too."
            if in_this_variant
            else "Click to compare with the block without it."
        )
    if value is True or name == "norm":
        return (
            "Click to restore it in this variant too."
            if in_this_variant
            else "Click to compare with it."
        )
    return (
        f"Click to use {change} in this variant too."
        if in_this_variant
        else f"Click to compare with {change}."
    )


def _format_shape(x: torch.Tensor) -> str:
    """Write a tensor's shape: "12 × 64"."""
    return " × ".join(map(str, x.shape))
