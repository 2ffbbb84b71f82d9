"""One sub-layer of the block as a picture: where its branch leaves the stream, where its norm acts, where it is added."""

from dataclasses import dataclass

from core.experiments.forward import Pass
from core.figures.svg import arrow, box, line, part, text
from core.model.parts import MENUS

STREAM, CENTRE, SIDE = 58, 196, 291  # x of the stream, of the sub-layers, and of what passes them by
BOX, NORM = 172, 104  # widths


Clicks = dict[
    str, tuple[str, str]
]  # "work", "norm", "residual" or "head 1" -> what a click does, as text of a link and in words


@dataclass(frozen=True)
class Sublayer:
    """What is to be drawn of it."""

    seen: Pass
    layer: int
    name: str
    site: str  # "attn_out" or "mlp_out": what it adds
    norms: dict[str, str]  # where a norm acts -> its site, "ln1" …
    inside: list[str]  # lines below its name
    changed: bool  # whether something in it differs from the defaults, or is knocked out
    norm_changed: bool
    residual: bool
    gone: bool  # whether what it adds is knocked out
    clicks: Clicks  # what a click on each of its parts does
    heads: tuple[bool, ...] = ()  # whether each head is there, where heads are parts of their own
    reads: int | None = (
        None  # y at which it reads the stream beside the other sub-layer; None: where its own branch begins
    )

    @property
    def work(self) -> int:
        """The height of its box."""
        return 26 + 15 * len(self.inside) + 26 * bool(self.heads)

    def draw(self, y: int) -> tuple[str, int]:
        """From here on down -> (SVG, height)"""
        if self.site not in self.seen.sites:
            off = self._part("work", box(CENTRE, y + 10, BOX, self.work, [f"{self.name}: off"], "off changed"))
            return line("stream", (STREAM, y), (STREAM, y + self.work + 24)) + off, self.work + 24
        top = y + 12  # where the branch leaves the stream
        branch, joint = self._branch(top)
        main, end = self._stream(y, top, joint)
        return branch + main + line("stream", (STREAM, end), (STREAM, end + 6)), end + 6 - y

    def _branch(self, top: int) -> tuple[str, int]:
        """Out of the stream and through the sub-layer -> (SVG, y of where it comes back)"""
        begin = [(STREAM, top)] if self.reads is None else [(STREAM, self.reads), (SIDE, self.reads), (SIDE, top)]
        parts = line("wire", *begin, (CENTRE, top), (CENTRE, top + 12)) + arrow(CENTRE, top + 12)
        at = top + 12
        if "before" in self.norms:
            parts += self._norm("before", CENTRE, at, NORM)
            parts += line("wire", (CENTRE, at + 24), (CENTRE, at + 36)) + arrow(CENTRE, at + 36)
            at += 36
        parts += self._work(at)
        at += self.work
        if "on the output of" in self.norms:
            parts += line("wire", (CENTRE, at), (CENTRE, at + 12)) + arrow(CENTRE, at + 12)
            parts += self._norm("on the output of", CENTRE, at + 12, NORM)
            at += 36
        joint = at + 16
        parts += line("wire", (CENTRE, at), (CENTRE, joint), (STREAM + 9, joint)) + arrow(STREAM + 9, joint, "left")
        added = " × ".join(map(str, self.seen.sites[self.site][self.layer].shape))
        scale = self.seen.config.residual_scale
        parts += text(CENTRE + 6, joint - 4, added, "small")
        if scale != "none":
            parts += text(CENTRE - 40, joint - 4, f"× {MENUS['residual_scale'].label(scale)}", "small middle changed")
        if self.gone:
            parts += text((CENTRE + STREAM) / 2, joint + 6, "✕", "middle cross")
            parts += text((CENTRE + STREAM) / 2 + 10, joint + 14, f"{self.site} knocked out", "small changed")
        return parts, joint

    def _work(self, y: int) -> str:
        """Its box, with its heads where they are parts of their own."""
        kind, room = "box work" + " changed" * self.changed, 26 * bool(self.heads)
        shapes = box(CENTRE, y, BOX, self.work, [self.name, *self.inside], kind, below=room)
        shapes = self._part("work", shapes)
        if "heads" in self.clicks:  # the line that says how many
            shapes += self._part(
                "heads", f'<rect class="touch" x="{CENTRE - 50}" y="{y + 22}" width="100" height="16"/>'
            )
        width = min(24.0, (BOX - 16) / max(1, len(self.heads)))
        for number, there in enumerate(self.heads, 1):
            x = CENTRE + (number - (len(self.heads) + 1) / 2) * width
            mark = [str(number)] if width >= 12 else []
            one = box(
                x, y + self.work - 26, width - 4, 18, mark if there else ["✕"], "head-box" if there else "off changed"
            )
            shapes += self._part(f"head {number}", one)
        return shapes

    def _part(self, name: str, shapes: str, number: str = "") -> str:
        return part(f"{self.site} {name}{number}", *self.clicks[name], shapes) if name in self.clicks else shapes

    def _stream(self, y: int, top: int, joint: int) -> tuple[str, int]:
        """Past the sub-layer, whole or cut -> (SVG, y of its end)"""
        parts = line("stream", (STREAM, y), (STREAM, top))
        past = f'<rect class="touch" x="{STREAM - 24}" y="{top}" width="48" height="{joint - 9 - top}"/>'
        if self.residual:
            past += line("stream", (STREAM, top), (STREAM, joint - 9))
            past += f'<circle class="sum" cx="{STREAM}" cy="{joint}" r="9"/>'
            past += text(STREAM, joint + 5, "+", "middle plus")
        else:
            middle = (top + joint) / 2
            past += line("cut", (STREAM, top), (STREAM, middle - 14))
            past += line("cut", (STREAM, middle + 14), (STREAM, joint - 9))
            past += text(STREAM, middle + 5, "✕", "middle cross")
            past += text(STREAM - 14, middle, "residual off", "small middle changed", turn=(STREAM - 14, middle))
            past += f'<circle class="off" cx="{STREAM}" cy="{joint}" r="9"/>'
        parts += self._part("residual", past)
        end = joint + 9
        if "after" in self.norms:
            parts += line("stream", (STREAM, end), (STREAM, end + 9)) + self._norm("after", STREAM, end + 9, NORM - 4)
            end += 33
        return parts, end

    def _norm(self, place: str, x: int, y: int, width: int) -> str:
        normed = self.norms[place] in self.seen.sites
        name = self.seen.config.norm if normed else "no norm"
        kind = ("box norm" if normed else "off") + " changed" * self.norm_changed
        number = " 2" * (place != next(iter(self.norms)))  # of two, the second
        return self._part("norm", box(x, y, width, 24, [name], kind), number)
