"""Many variants at once: every part runs once for all the variants that have it, their streams side by side.

The parts are those of core/model.py and core/parts, so each formula stands once; only the loop over variants is gone.
It can be, because variants of one seed start from the same weights wherever shapes agree.
"""

from collections.abc import Callable

import torch

from core.config import Config
from core.device import Machine
from core.model import FeedForward, Linear, MultiHeadAttention, Transformer, adder, visible
from core.parts.init import Draw
from core.streams import attention_entropy
from core.trace import trace

FAMILY = ("d_model", "n_layers", "seed", "init", "padding", "dropout")  # what all members of one Many have in common
ATTENTION = ("n_heads", "scale", "position", "mask", "bias")  # the settings that each part reads beside those
FFN = ("d_ff", "activation", "bias")
NORM = ("norm", "bias")


def stream_of(config: Config) -> Config:
    """The settings that make the same streams, named once: where there is no norm, it does not matter where it stands."""
    return config.replace(placement="pre") if config.norm == "none" else config


def families(configs) -> list[list[int]]:
    """Which configs can run side by side: their numbers."""
    return list(_groups(configs, FAMILY).values())


class Many:
    """Stacks of one family, of the same tokens.

    ids, real: as Transformer takes them. Streams are (V, T, D), one per config, in their order.
    """

    def __init__(self, configs: list[Config], vocabulary, ids, real, machine: Machine):
        self.configs, self.machine, self.n_real = (
            configs,
            machine,
            int(real.sum()) if real is not None else ids.shape[1],
        )
        first = configs[0]
        self._draw = Draw(first.part("init"), first.seed, kept={})
        inputs = {c.position: c.replace(n_layers=1) for c in configs}
        inputs = {name: self._placed(Transformer(c, vocabulary)).start(ids) for name, c in inputs.items()}
        self._start = torch.cat([inputs[c.position] for c in configs])
        self._allowed = {c.mask: visible(c.part("mask"), ids, real) for c in configs}
        self._parts: list[tuple[str, torch.nn.Module]] = []  # what has weights to be drawn: its site, and itself
        self._sublayers = self._block()
        self._layer = 0

    def streams(self, order):
        """What enters the first pass and what leaves each one: (V, T, D), and the attention entropy in bits: (V,)."""
        x = self._start
        yield x, torch.full((len(x),), torch.nan)
        for at in order:
            self._entropy = torch.full((len(x),), torch.nan, device=x.device)
            with trace(self._watch, sites=[]):
                self._redraw(at)
                for members, sublayer in self._sublayers:
                    x = sublayer(x) if members is None else x.index_copy(0, members, sublayer(x[members]))
            yield x, self._entropy

    def _redraw(self, layer: int):
        """Give the parts the weights of another layer: drawing is all that has to be done again for it."""
        if layer == self._layer:
            return
        self._layer = layer
        self._draw.kept.clear()
        for site, part in self._parts:
            draw = self._draw.at(f"blocks.{layer}.{site}")
            for linear in [each for each in part.children() if isinstance(each, Linear)]:
                for name, drawn in zip(("weight", "bias"), linear.drawn(draw)):
                    if drawn is not None:
                        linear._parameters[name] = drawn.to(self.machine.place, self.machine.precision)

    def _watch(self, site, layer, x):
        if site == "pattern":
            self._entropy[self._reading] = attention_entropy(x, self.n_real)

    def _placed(self, module):
        return module.to(self.machine.place, self.machine.precision).requires_grad_(False)

    def _at(self, members):
        return torch.tensor(members, device=self.machine.place)

    def _block(self) -> list:
        """The sub-layers of a block of all variants: [(which variants, or None for all; x -> x)]."""
        made = []
        for name, fields, make in (("attention", ATTENTION, self._attention), ("ffn", FFN, self._ffn)):
            for (there, _), members in _groups(self.configs, (name, "placement")).items():
                if there:
                    whole = len(members) == len(self.configs)
                    sublayer = self._sublayer(name, members, fields, make)
                    made.append((None if whole else self._at(members), sublayer))
        return made

    def _sublayer(self, name, members, fields, make) -> Callable:
        """One sub-layer of variants that put the norm in the same place."""
        residual = f"residual_{name}"
        place = self.configs[members[0]].part("placement")
        compute = self._split(members, fields, make)
        norm = self._split(members, NORM, lambda c, at: self._placed(c.part("norm")("ln", c.d_model, c.bias)))
        add = self._split(members, (residual,), lambda c, at: adder("resid_mid", getattr(c, residual)))
        return lambda x: place(x, compute, norm, add)

    def _attention(self, config, members):
        module = self._part("attn", MultiHeadAttention, config)
        reading, allowed = self._at(members), self._allowed[config.mask]

        def attend(x):
            self._reading = reading
            return module(x, allowed)

        return attend

    def _ffn(self, config, members):
        return self._part("mlp", FeedForward, config)

    def _part(self, site, kind, config):
        module = self._placed(kind(config, self._draw.at(f"blocks.0.{site}")))
        self._parts.append((site, module))
        return module

    def _split(self, members, fields, make) -> Callable:
        """One function for all members: each goes to what make(config, members) gives for those that agree in the fields."""
        groups = _groups([self.configs[at] for at in members], fields)
        parts = [
            (self._at(group), make(self.configs[members[group[0]]], [members[at] for at in group]))
            for group in groups.values()
        ]
        if len(parts) == 1:
            return parts[0][1]

        def run(*streams):
            out = torch.empty_like(streams[0])
            for at, part in parts:
                out.index_copy_(0, at, part(*[x.index_select(0, at) for x in streams]))
            return out

        return run


def _groups(configs, fields) -> dict[tuple, list[int]]:
    groups: dict[tuple, list[int]] = {}
    for at, config in enumerate(configs):
        groups.setdefault(tuple([getattr(config, field) for field in fields]), []).append(at)
    return groups
