"""One sub-layer of the block as a picture: where its branch leaves the stream, where its norm acts, where it is added."""

from dataclasses import dataclass

from core.experiments.forward import Pass
from core.figures.svg import arrow, box, line, part, text
from core.model.parts import MENUS

STREAM, CENTRE, SIDE = 58, 196, 291  # x of the stream, of the sub-layers, and of what passes them by
BOX, NORM = 172, 104  # widths
TARGET = 32  # height of what is clicked: 24 pixels where a page has room for three quarters of the drawing's width
GAP = 3  # between two heads
IN_A_ROW = 4  # heads


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
        return 26 + 15 * len(self.inside) + self._room + (TARGET if "heads" in self.clicks else 0)

    @property
    def _room(self) -> int:
        """The height that its heads take, where they are parts of their own."""
        rows = -(-len(self.heads) // IN_A_ROW)
        return rows * (TARGET + GAP) + 4 * bool(rows)

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
            at += TARGET
            parts += line("wire", (CENTRE, at), (CENTRE, at + 12)) + arrow(CENTRE, at + 12)
            at += 12
        parts += self._work(at)
        at += self.work
        if "on the output of" in self.norms:
            parts += line("wire", (CENTRE, at), (CENTRE, at + 12)) + arrow(CENTRE, at + 12)
            parts += self._norm("on the output of", CENTRE, at + 12, NORM)
            at += 12 + TARGET
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
        kind = "box work" + " changed" * self.changed
        if "heads" in self.clicks:  # the line that says how many is a button of its own
            first, *others = self.inside
            shapes = box(CENTRE, y, BOX, self.work, [], kind) + text(CENTRE, y + 19, self.name, "middle name")
            below = y + 26 + TARGET
            shapes += "".join(text(CENTRE, below + 15 * n, each, "middle small") for n, each in enumerate(others, 1))
            button = box(CENTRE, y + 26, BOX - 24, TARGET, [], "head-box")
            button += text(CENTRE, y + 30 + TARGET // 2, first, "middle small")
            return self._part("work", shapes) + self._part("heads", button)
        shapes = self._part("work", box(CENTRE, y, BOX, self.work, [self.name, *self.inside], kind, below=self._room))
        many = min(IN_A_ROW, len(self.heads))
        for at, there in enumerate(self.heads):
            row, column = divmod(at, IN_A_ROW)
            x = CENTRE + (column - (many - 1) / 2) * (TARGET + GAP)
            top = y + self.work - self._room + row * (TARGET + GAP)
            mark, of = (f"{at + 1}", "head-box") if there else ("✕", "off changed")
            shapes += self._part(f"head {at + 1}", box(x, top, TARGET, TARGET, [mark], of))
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
            end += 9 + TARGET
        return parts, end

    def _norm(self, place: str, x: int, y: int, width: int) -> str:
        normed = self.norms[place] in self.seen.sites
        name = self.seen.config.norm if normed else "no norm"
        kind = ("box norm" if normed else "off") + " changed" * self.norm_changed
        number = " 2" * (place != next(iter(self.norms)))  # of two, the second
        return self._part("norm", box(x, y, width, TARGET, [name], kind), number)
