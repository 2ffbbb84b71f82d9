"""Many variants at once: each part runs once for all variants that have it.

The parts are those of core/model/transformer and core/model/parts, so each formula stands once;
only the loop over variants is gone. It can be, because variants of one seed start from the same
weights wherever shapes agree.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from core.measure.stream_statistics import attention_entropy
from core.model.attention import Memory, MultiHeadAttention
from core.model.block import FeedForward, Join
from core.model.config import Config
from core.model.cost import parameters
from core.model.layers import Linear
from core.model.parts.init import Draw
from core.model.parts.placement import halves, norm_places
from core.model.trace import trace
from core.model.transformer import Transformer, visible
from core.settings.device import Machine

Map = Callable[..., torch.Tensor]  # streams (V, T, D) side by side -> the same
Make = Callable[
    [Config, list[int]], Map
]  # (settings, numbers of the variants that have them) -> what they go through
Made = TypeVar("Made", bound=torch.nn.Module)

# What all members of one Many have in common, and the settings that each part reads besides.
FAMILY = ("d_model", "n_layers", "seed", "init", "padding", "dropout", "shared")
ATTENTION, FFN, NORM = map(Config.read_by, ("attention", "ffn", "norm"))


def families(configs: Sequence[Config]) -> list[list[int]]:
    """Which configs can run side by side: their numbers."""
    return list(_groups(configs, FAMILY).values())


def numbers(configs: Sequence[Config]) -> int:
    """Return how many weights the sub-layers of Many hold; each different setting has its own."""
    single = [config.replace(n_layers=1) for config in configs]
    parts = (("attention", ATTENTION), ("ffn", FFN))
    return sum(
        parameters(single[group[0]])[part]
        for part, fields in parts
        for group in _groups(single, (part, *fields)).values()
    )


class Many:
    """Stacks of one family, of the same tokens.

    ids, real: as Transformer takes them. Streams are (V, T, D), one per config, in their order.
    """

    def __init__(
        self,
        configs: list[Config],
        vocabulary: Iterable[str],
        ids: torch.Tensor,
        real: torch.Tensor | None,
        machine: Machine,
    ):
        self.configs = configs
        self.machine = machine
        self.n_real = ids.shape[1] if real is None else int(real.sum())
        first = configs[0]
        self._drawn: dict[tuple[str, tuple[int, ...]], torch.Tensor] = {}
        self._draw = Draw(first.part("init"), first.seed, drawn_tensors=self._drawn)
        different = {c.position: c.replace(n_layers=1) for c in configs}
        inputs = {
            name: self._placed(Transformer(c, vocabulary)).start(ids)
            for name, c in different.items()
        }
        self._start = torch.cat([inputs[c.position] for c in configs])
        self._allowed = {c.mask: visible(c.part("mask"), ids, real) for c in configs}
        self._parts: list[
            tuple[str, torch.nn.Module]
        ] = []  # what has weights to be drawn: its site, and itself
        self._layer = 0
        self._sublayers = [
            self._sublayer("attention", ATTENTION, self._attention),
            self._sublayer(
                "ffn", FFN, lambda config, members: self._part("mlp", FeedForward, config)
            ),
        ]

    def streams(self, order: Iterable[int]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the stream before the first pass and after each, (V, T, D), with entropies (V,)."""
        x = self._start
        first = self.configs[0]
        yield x, torch.full((len(x),), torch.nan, device=x.device)
        skip = [index for index, config in enumerate(self.configs) if config.skips]
        skipping = self._at(skip)
        early: dict[int, torch.Tensor] = {}
        for layer in order:
            self._redraw(first.block_of(layer))
            self._entropy = torch.full((len(x),), torch.nan, device=x.device)
            block_input = x
            with trace(self._watch, sites=[]):
                for sublayer in self._sublayers:
                    x = sublayer(x, block_input)
            if skip:
                partner = self.configs[skip[0]].early_of(layer + 1)  # of the next layer
                if self.configs[skip[0]].is_early(layer):
                    early[layer] = x[skipping]
                if partner in early:
                    x = x.index_add(
                        0, skipping, early[partner]
                    )  # times 1, as the number is before training
            yield x, self._entropy

    def _watch(self, site: str, layer: int, x: torch.Tensor) -> None:
        if site == "pattern":
            self._entropy[self._reading] = attention_entropy(x, self.n_real)

    def _redraw(self, layer: int) -> None:
        """Give the parts the weights of another layer by drawing them again."""
        if layer == self._layer:
            return
        self._layer = layer
        self._drawn.clear()
        for site, part in self._parts:
            if isinstance(part, MultiHeadAttention):
                part.in_layer(layer)
                self._placed(part)
            draw = self._draw.at(f"blocks.{layer}.{site}")
            for linear in [module for module in part.children() if isinstance(module, Linear)]:
                for name, drawn in zip(("weight", "bias"), linear.drawn(draw)):
                    if drawn is not None:
                        linear._parameters[name] = drawn.to(
                            self.machine.torch_device, self.machine.precision
                        )

    def _placed(self, module: Made) -> Made:
        return module.to(self.machine.torch_device, self.machine.precision).requires_grad_(False)

    def _at(self, members: list[int]) -> torch.Tensor:
        return torch.tensor(members, device=self.machine.torch_device)

    def _sublayer(self, name: str, fields: tuple[str, ...], make: Make) -> Map:
        """Return one sub-layer of all variants that have it: (x, block input) -> x."""
        members = [index for index, config in enumerate(self.configs) if getattr(config, name)]
        if not members:
            return lambda x, block_input: x
        residual = f"residual_{name}"

        def cut(c: Config) -> tuple[Map, Map]:
            make = c.part("norm")
            norms = [
                make("ln", c.d_model, c.bias, c.norm_eps) for _ in norm_places(c.part("placement"))
            ]
            join = Join("", "", getattr(c, residual), c.part("residual_scale")(c.d_model))
            first, *second = map(self._placed, norms)
            return halves(c.part("placement"), first, self._placed(join), *second)

        def before(c: Config, members: list[int]) -> Map:
            read = cut(c)[0]
            beside = c.parallel and name == "ffn"
            return lambda x, block_input: read(block_input if beside else x)

        read = self._split(members, NORM, before)
        compute = self._split(members, fields, make)
        join = self._split(members, (*NORM, residual), lambda c, members: cut(c)[1])
        if len(members) == len(self.configs):
            return lambda x, block_input: join(x, compute(read(x, block_input)))
        indices = self._at(members)

        def some(x: torch.Tensor, block_input: torch.Tensor) -> torch.Tensor:
            part = x[indices]
            return x.index_copy(0, indices, join(part, compute(read(part, block_input[indices]))))

        return some

    def _attention(self, config: Config, members: list[int]) -> Map:
        module = self._part("attn", MultiHeadAttention, config)
        reading = self._at(members)
        allowed = self._allowed[config.mask]
        memory = Memory()

        def attend(x: torch.Tensor) -> torch.Tensor:
            self._reading = reading
            read: torch.Tensor = module(x, allowed, memory=memory)
            return read

        return attend

    def _part(self, site: str, kind: Callable[[Config, Draw], Made], config: Config) -> Made:
        module = self._placed(kind(config, self._draw.at(f"blocks.0.{site}")))
        self._parts.append((site, module))
        return module

    def _split(self, members: list[int], fields: tuple[str, ...], make: Make) -> Map:
        """Return one function for all members, made once for each group that agrees in the fields.

        Those that agree are brought side by side, so that a group is a slice: one gather before,
        and one after.
        """
        groups = list(_groups([self.configs[index] for index in members], fields).values())
        parts = [
            make(self.configs[members[group[0]]], [members[index] for index in group])
            for group in groups
        ]
        if len(parts) == 1:
            return parts[0]
        order = [index for group in groups for index in group]
        sizes = [len(group) for group in groups]
        to_groups = self._at(order)
        back = self._at(order).argsort()
        sorted_already = order == list(range(len(order)))

        def run(*streams: Any) -> torch.Tensor:
            if sorted_already:
                return torch.cat(
                    [
                        part(*inputs)
                        for part, inputs in zip(parts, zip(*[x.split(sizes) for x in streams]))
                    ]
                )
            sorted_now = zip(*[x[to_groups].split(sizes) for x in streams])
            return torch.cat([part(*inputs) for part, inputs in zip(parts, sorted_now)])[back]

        return run


def _groups(configs: Iterable[Config], fields: tuple[str, ...]) -> dict[tuple[Any, ...], list[int]]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, config in enumerate(configs):
        groups.setdefault(tuple([getattr(config, field) for field in fields]), []).append(index)
    return groups
