"""Ablation of a head, a sub-layer or a layer's outputs within a pass, with its replacement.

A Lesion is an edit for core.model.trace.trace(): it lives in the pass of whoever opened the trace
and leaves the model as it is. Where the knife goes: for a head, its weighted sum of values (site
z), before W_O; for a sub-layer, the tensor that it adds to the stream (attn_out, mlp_out), biases
included.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from core.model.config import Config
from core.settings.menu import Menu
from core.settings.setting import ConfigError
from core.settings.wording import head_name, replace_unprintable, shorten

NAMED = 40  # parts that a sentence names at most, of thousands that a model may have
# The sites at which a part is cut.
part: Menu[tuple[str, ...]] = Menu("Part")
part.add(
    "head", ("z",), label="Head", help="weighted sum of values (z), before W_O mixes the heads."
)
part.add(
    "attention", ("attn_out",), label="Attention", help="output of the whole sub-layer (attn_out)."
)
part.add("ffn", ("mlp_out",), label="FFN", help="output of the feed-forward network (mlp_out).")
part.add(
    "layer",
    ("attn_out", "mlp_out"),
    label="Layer",
    help="both outputs of the layer (attn_out and mlp_out).",
)
# (x as computed, what was recorded elsewhere) -> x as the model goes on with it
mode: Menu[Callable[[torch.Tensor, "Recorded"], torch.Tensor]] = Menu("Ablation")


@mode.register("zero", label="Zero", help="output set to zero.")
def zero(x: torch.Tensor, recorded: "Recorded") -> torch.Tensor:
    """Return zeros in the shape of x."""
    return torch.zeros_like(x)


@mode.register(
    "mean",
    label="Mean",
    help="output averaged over many texts, by position: removes what is specific to this text.",
)
def mean(x: torch.Tensor, recorded: "Recorded") -> torch.Tensor:
    """Return the recorded mean by position, in the shape of x."""
    assert recorded.mean is not None
    return recorded.mean.to(x).expand_as(x)


@mode.register(
    "resample",
    label="Resample",
    help="output at the same position in another text.",
)
def resample(x: torch.Tensor, recorded: "Recorded") -> torch.Tensor:
    """Return the activation recorded in another text; ValueError if its shape is not that of x."""
    assert recorded.elsewhere is not None
    if recorded.elsewhere.shape != x.shape:
        raise ValueError(
            f"resampling needs another text of the same shape: {tuple(recorded.elsewhere.shape)}"
            f" for {tuple(x.shape)}"
        )
    return recorded.elsewhere.to(x)


@dataclass(frozen=True)
class Recorded:
    """Recorded activations of one part: mean by position (T, d), another text's (B, T, d)."""

    mean: torch.Tensor | None = None
    elsewhere: torch.Tensor | None = None


@dataclass(frozen=True, order=True)
class Cut:
    """Part to ablate. Layers and heads count from 0 here, from 1 in links and on screen."""

    layer: int
    part: str = "head"
    head: int = 0  # of a head only

    @property
    def name(self) -> str:
        """Name: "L2H3" (layer 2, head 3), "attention 2", "FFN 2" or "layer 2"."""
        if self.part == "head":
            return head_name(self.layer, self.head)
        return f"{part.label(self.part)} {self.layer + 1}".replace(
            "Attention", "attention"
        ).replace("Layer", "layer")

    def write(self) -> str:
        """Return the part as text for a link: "2.3" for a head, "2.attention" for the rest."""
        return f"{self.layer + 1}.{self.head + 1 if self.part == 'head' else self.part}"

    def sites(self) -> tuple[str, ...]:
        """Return the hook names at which the part is replaced, without layer: ("z",) for a head."""
        return part[self.part]


def list_cuts(config: Config) -> list[Cut]:
    """List parts that can be ablated: per layer heads, attention, ffn, and layer if it has both."""
    possible = []
    for layer in range(config.n_layers):
        possible += [
            Cut(layer, "head", number) for number in range(config.n_heads) if config.attention
        ]
        if config.attention:
            possible.append(Cut(layer, "attention"))
        if config.ffn:
            possible.append(Cut(layer, "ffn"))
        if config.attention and config.ffn:
            possible.append(Cut(layer, "layer"))
    return possible


def read_cuts(text: str, config: Config) -> tuple[tuple[Cut, ...], list[str]]:
    """Parse parts from a link, "2.3~1.ffn", each once and sorted; also notes on unknown ones.

    A note is a sentence, on up to three.
    """
    cut_of = {cut.write(): cut for cut in list_cuts(config)}
    names = dict.fromkeys(filter(None, text.split("~")))  # each once
    wrong = [name for name in names if name not in cut_of][:3]
    some = ", ".join(list(cut_of)[:NAMED]) + (
        f" and {len(cut_of) - NAMED:,} more" if len(cut_of) > NAMED else ""
    )
    has = f"Choose from {some}." if cut_of else "It has no components that can be removed."
    notes = [
        f"out: this model has no component {replace_unprintable(name[:20])}, so it is ignored."
        f" {has}"
        for name in wrong
    ]
    return tuple(sorted(cut_of[name] for name in names if name in cut_of)), notes


def write_cuts(chosen: Iterable[Cut]) -> str:
    """Return parts, sorted by layer, as text for a link, from 1: "1.ffn~2.3"; "" for none."""
    return "~".join(cut.write() for cut in sorted(chosen))


def name_of(chosen: Iterable[Cut]) -> str:
    """Name the ablation of some parts, by layer: "− FFN 1, − L2H3"; "full model" for none."""
    return ", ".join(f"− {cut.name}" for cut in sorted(chosen)) or "full model"


@dataclass(frozen=True)
class Lesion:
    """Edit of a trace that ablates parts.

    Args:
        cuts: Parts to ablate.
        mode: Replacement: zero, mean or resample.
        recorded: For mean and resample, (site, layer) to the replacement: z by heads (H, positions,
            d_head) or (B, H, T, d_head), attn_out and mlp_out (positions, d_model) or (B, T,
            d_model). The last position of a mean stands for all later ones.
        first: Index of the first layer of the pass.
        start: Position of the first token of the pass.

    Raises:
        ConfigError: The mode is unknown, or an activation that it needs was not recorded.
    """

    cuts: tuple[Cut, ...]
    mode: str = "zero"
    recorded: dict[tuple[str, int], Recorded] = field(default_factory=dict)
    first: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        if self.mode not in mode:
            raise ConfigError(
                "mode",
                f"mode is {shorten(self.mode)}; it must be one of {', '.join(mode)}.",
                "zero",
            )
        if self.mode != "zero":
            needed = [(site, cut.layer) for cut in self.cuts for site in cut.sites()]
            missing = [key for key in needed if key not in self.recorded]
            if missing:
                raise ConfigError(
                    "mode",
                    f"mode is {self.mode}, but no activations were recorded at {missing[0]}.",
                    "zero",
                )

    def __call__(self, site: str, layer: int, x: torch.Tensor) -> torch.Tensor | None:
        """Return the activation with the parts replaced, or None if none is at this site."""
        cuts = [cut for cut in self.cuts if cut.layer == layer + self.first and site in cut.sites()]
        if not cuts:
            return None
        replace = mode[self.mode]
        recorded = self.recorded.get((site, layer + self.first), Recorded())
        if recorded.mean is not None:
            recorded = Recorded(self._mean_by_token(recorded.mean, x), recorded.elsewhere)
        if site != "z":
            return replace(x, recorded)
        x = x.clone()
        for cut in cuts:
            own_means = Recorded(
                None if recorded.mean is None else recorded.mean[cut.head],
                None if recorded.elsewhere is None else recorded.elsewhere[:, cut.head],
            )
            x[:, cut.head] = replace(x[:, cut.head], own_means)
        return x

    def _mean_by_token(self, mean: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the mean at each token's position, or the last known: (…, P, d) -> (…, T, d)."""
        positions = self.start + torch.arange(x.shape[-2], device=mean.device)
        return mean[..., positions.clamp(max=mean.shape[-2] - 1), :]
