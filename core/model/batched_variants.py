"""Many variants at once: every part runs once for all the variants that have it, their streams side by side.

The parts are those of core/model/transformer.py and core/model/parts, so each formula stands once; only the loop over variants is gone.
It can be, because variants of one seed start from the same weights wherever shapes agree.
"""

from collections.abc import Callable

import torch

from core.measure.stream_statistics import attention_entropy
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.init import Draw
from core.model.trace import trace
from core.model.transformer import FeedForward, Linear, MultiHeadAttention, Transformer, adder, visible
from core.settings.device import Machine

FAMILY = ("d_model", "n_layers", "seed", "init", "padding", "dropout")  # what all members of one Many have in common
ATTENTION = ("n_heads", "d_head", "scale", "position", "mask", "bias")  # the settings that each part reads beside those
FFN = ("d_ff", "activation", "bias")
NORM = ("placement", "norm", "bias")


def stream_of(config: Config) -> Config:
    """The settings that make the same streams, named once: how words are read from them does not matter, nor, where
    there is no norm, where it stands."""
    return config.replace(
        tied=False, placement=config.placement if config.part("norm").normalises else next(iter(MENUS["placement"]))
    )


def families(configs) -> list[list[int]]:
    """Which configs can run side by side: their numbers."""
    return list(_groups(configs, FAMILY).values())


class Many:
    """Stacks of one family, of the same tokens.

    ids, real: as Transformer takes them. Streams are (V, T, D), one per config, in their order.
    """

    def __init__(self, configs: list[Config], vocabulary, ids, real, machine: Machine):
        self.configs, self.machine = configs, machine
        self.n_real = ids.shape[1] if real is None else int(real.sum())
        first = configs[0]
        self._draw = Draw(first.part("init"), first.seed, kept={})
        inputs = {c.position: c.replace(n_layers=1) for c in configs}
        inputs = {name: self._placed(Transformer(c, vocabulary)).start(ids) for name, c in inputs.items()}
        self._start = torch.cat([inputs[c.position] for c in configs])
        self._allowed = {c.mask: visible(c.part("mask"), ids, real) for c in configs}
        self._parts: list[tuple[str, torch.nn.Module]] = []  # what has weights to be drawn: its site, and itself
        self._layer = 0
        self._sublayers = [
            self._sublayer("attention", ATTENTION, self._attention),
            self._sublayer("ffn", FFN, self._ffn),
        ]

    def streams(self, order):
        """What enters the first pass and what leaves each one: (V, T, D), and the attention entropy in bits: (V,)."""
        x = self._start
        yield x, torch.full((len(x),), torch.nan, device=x.device)
        for at in order:
            self._redraw(at)
            self._entropy = torch.full((len(x),), torch.nan, device=x.device)
            with trace(self._watch, sites=[]):
                for sublayer in self._sublayers:
                    x = sublayer(x)
            yield x, self._entropy

    def _watch(self, site, layer, x):
        if site == "pattern":
            self._entropy[self._reading] = attention_entropy(x, self.n_real)

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

    def _placed(self, module):
        return module.to(self.machine.place, self.machine.precision).requires_grad_(False)

    def _at(self, members):
        return torch.tensor(members, device=self.machine.place)

    def _sublayer(self, name, fields, make) -> Callable:
        """One sub-layer of all variants that have it: x -> x."""
        members = [at for at, config in enumerate(self.configs) if getattr(config, name)]
        if not members:
            return lambda x: x
        residual = f"residual_{name}"
        halves = lambda c: cut(c.part("placement"), self._norm(c), adder("resid_mid", getattr(c, residual)))  # noqa: E731
        before = self._split(members, NORM, lambda c, at: halves(c)[0])
        compute = self._split(members, fields, make)
        after = self._split(members, (*NORM, residual), lambda c, at: halves(c)[1])
        if len(members) == len(self.configs):
            return lambda x: after(x, compute(before(x)))
        at = self._at(members)

        def some(x):
            mine = x[at]
            return x.index_copy(0, at, after(mine, compute(before(mine))))

        return some

    def _norm(self, config):
        return self._placed(config.part("norm")("ln", config.d_model, config.bias))

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
        """One function for all members: each goes to what make(config, members) gives for those that agree in the fields.

        Those that agree are brought side by side, so that a group is a slice: one gather before, and one after.
        """
        groups = list(_groups([self.configs[at] for at in members], fields).values())
        parts = [make(self.configs[members[group[0]]], [members[at] for at in group]) for group in groups]
        if len(parts) == 1:
            return parts[0]
        order = [at for group in groups for at in group]
        sizes = [len(group) for group in groups]
        there, back = self._at(order), self._at(order).argsort()
        sorted_already = order == list(range(len(order)))

        def run(*streams):
            if sorted_already:
                return torch.cat([part(*each) for part, each in zip(parts, zip(*[x.split(sizes) for x in streams]))])
            streams = zip(*[x[there].split(sizes) for x in streams])
            return torch.cat([part(*each) for part, each in zip(parts, streams)])[back]

        return run


class _Read(Exception):
    """Carries what a sub-layer was about to read."""


def cut(place, norm, add) -> tuple[Callable, Callable]:
    """A placement (core/model/parts/placement.py) cut in two at its sub-layer.

    -> (x -> what the sub-layer reads; (x, what the sub-layer wrote) -> what leaves)
    """

    def stop(read):
        raise _Read(read)

    def before(x):
        try:
            return place(x, stop, norm, add)
        except _Read as caught:
            return caught.args[0]

    def after(x, y):
        written = False

        def sublayer(read):
            nonlocal written
            written = True
            return y

        return place(x, sublayer, lambda z: norm(z) if written else z, add)

    return before, after


def _groups(configs, fields) -> dict[tuple, list[int]]:
    groups: dict[tuple, list[int]] = {}
    for at, config in enumerate(configs):
        groups.setdefault(tuple([getattr(config, field) for field in fields]), []).append(at)
    return groups
