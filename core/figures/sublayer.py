"""One sub-layer of the block as a picture: where its branch leaves the stream, where its norm acts, where it is added."""

from dataclasses import dataclass

from core.experiments.forward import Pass
from core.figures.svg import arrow, box, line, text
from core.model.parts.placement import norm_place

STREAM, CENTRE = 58, 196  # x of the stream, of the sub-layers
BOX, NORM = 172, 104  # widths


@dataclass(frozen=True)
class Sublayer:
    """What is to be drawn of it."""

    seen: Pass
    layer: int
    name: str
    site: str  # "attn_out" or "mlp_out": what it adds
    norm_site: str  # "ln1" or "ln2"
    inside: list[str]  # lines below its name
    changed: bool  # whether something in it differs from the defaults, or is knocked out
    norm_changed: bool
    residual: bool
    gone: bool  # whether what it adds is knocked out

    @property
    def work(self) -> int:
        """The height of its box."""
        return 26 + 15 * len(self.inside)

    def draw(self, y: int) -> tuple[str, int]:
        """From here on down -> (SVG, height)"""
        if self.site not in self.seen.sites:
            off = box(CENTRE, y + 10, BOX, self.work, [f"{self.name}: off"], "off changed")
            return line("stream", (STREAM, y), (STREAM, y + self.work + 24)) + off, self.work + 24
        top = y + 12  # where the branch leaves the stream
        branch, joint = self._branch(top)
        main, end = self._stream(y, top, joint)
        return branch + main + line("stream", (STREAM, end), (STREAM, end + 6)), end + 6 - y

    def _branch(self, top: int) -> tuple[str, int]:
        """Out of the stream and through the sub-layer -> (SVG, y of where it comes back)"""
        parts = line("wire", (STREAM, top), (CENTRE, top), (CENTRE, top + 12)) + arrow(CENTRE, top + 12)
        at = top + 12
        if self._norm_place == "before":
            parts += self._norm(CENTRE, at, NORM)
            parts += line("wire", (CENTRE, at + 24), (CENTRE, at + 36)) + arrow(CENTRE, at + 36)
            at += 36
        parts += box(CENTRE, at, BOX, self.work, [self.name, *self.inside], "box work" + " changed" * self.changed)
        at += self.work
        if self._norm_place == "on the output of":
            parts += line("wire", (CENTRE, at), (CENTRE, at + 12)) + arrow(CENTRE, at + 12)
            parts += self._norm(CENTRE, at + 12, NORM)
            at += 36
        joint = at + 16
        parts += line("wire", (CENTRE, at), (CENTRE, joint), (STREAM + 9, joint)) + arrow(STREAM + 9, joint, "left")
        added = " × ".join(map(str, self.seen.sites[self.site][self.layer].shape))
        parts += text(CENTRE + 6, joint - 4, added, "small")
        if self.gone:
            parts += text((CENTRE + STREAM) / 2, joint + 6, "✕", "middle cross")
            parts += text((CENTRE + STREAM) / 2 + 10, joint + 14, f"{self.site} knocked out", "small changed")
        return parts, joint

    def _stream(self, y: int, top: int, joint: int) -> tuple[str, int]:
        """Past the sub-layer, whole or cut -> (SVG, y of its end)"""
        parts = line("stream", (STREAM, y), (STREAM, top))
        if self.residual:
            parts += line("stream", (STREAM, top), (STREAM, joint - 9))
            parts += f'<circle class="sum" cx="{STREAM}" cy="{joint}" r="9"/>'
            parts += text(STREAM, joint + 5, "+", "middle plus")
        else:
            middle = (top + joint) / 2
            parts += line("cut", (STREAM, top), (STREAM, middle - 14))
            parts += line("cut", (STREAM, middle + 14), (STREAM, joint - 9))
            parts += text(STREAM, middle + 5, "✕", "middle cross")
            parts += text(STREAM - 14, middle, "residual off", "small middle changed", turn=(STREAM - 14, middle))
            parts += f'<circle class="off" cx="{STREAM}" cy="{joint}" r="9"/>'
        end = joint + 9
        if self._norm_place == "after":
            parts += line("stream", (STREAM, end), (STREAM, end + 9)) + self._norm(STREAM, end + 9, NORM - 4)
            end += 33
        return parts, end

    def _norm(self, x: int, y: int, width: int) -> str:
        normed = self.norm_site in self.seen.sites
        name = self.seen.config.norm if normed else "no norm"
        return box(x, y, width, 24, [name], ("box norm" if normed else "off") + " changed" * self.norm_changed)

    @property
    def _norm_place(self) -> str:
        return norm_place(self.seen.config.part("placement"))
