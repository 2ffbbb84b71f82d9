"""Batched passes of many variants: each part runs once for all variants that have it.

The parts are those of core/model/transformer and core/model/parts. They can be shared because
variants of one seed start from the same weights wherever shapes agree.
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
from core.model.trace import trace
from core.model.transformer import Transformer, combine_masks
from core.settings.device import Machine

Map = Callable[..., torch.Tensor]  # streams (V, T, D) side by side -> the same
# (settings, indices of the variants that have them) -> one function for all of them
Make = Callable[[Config, list[int]], Map]
Module = TypeVar("Module", bound=torch.nn.Module)

# Settings in which the variants of a batch agree, and those that each part reads besides.
FAMILY = ("d_model", "n_layers", "seed", "init", "padding", "dropout", "shared")
ATTENTION, FFN, NORM = map(Config.settings_read_by, ("attention", "ffn", "norm"))


def group_into_batches(configs: Sequence[Config]) -> list[list[int]]:
    """Group configs that run as one batch (equal in FAMILY); return the indices of each group."""
    return list(_group_by_fields(configs, FAMILY).values())


def count_layer_parameters(configs: Sequence[Config]) -> int:
    """Count attention and FFN parameters in a layer of a batch; equal sub-layers count once."""
    single = [config.replace(n_layers=1) for config in configs]
    parts = (("attention", ATTENTION), ("ffn", FFN))
    return sum(
        parameters(single[group[0]])[part]
        for part, fields in parts
        for group in _group_by_fields(single, (part, *fields)).values()
    )


class BatchedVariants:
    """Untrained models of one family that read the same tokens, as one batch.

    Args:
        configs: Settings of each variant; they must agree in FAMILY.
        vocabulary: Tokens as strings.
        ids: Token ids, (1, T).
        real: False where a token is padding, (1, T); None without padding.
        machine: Device and precision.
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
        inputs = {
            key: self._move_to_machine(Transformer(c, vocabulary)).embed_tokens(ids)
            for key, c in {_read_by_input(c): c.replace(n_layers=1) for c in configs}.items()
        }
        self._start = torch.cat([inputs[_read_by_input(c)] for c in configs])
        self._allowed = {c.mask: combine_masks(c.part("mask"), ids, real) for c in configs}
        # (path below a block, module) of each part whose weights are drawn again for each layer
        self._parts: list[tuple[str, torch.nn.Module]] = []
        self._layer = 0
        self._sublayers = [
            self._make_sublayer("attention", ATTENTION, self._make_attention),
            self._make_sublayer(
                "ffn", FFN, lambda config, members: self._make_part("mlp", FeedForward, config)
            ),
        ]

    def run_layers(self, order: Iterable[int]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield (streams (V, T, D), attention entropies (V,), bits or NaN): the input, each layer.

        Args:
            order: Indices of the layers to run.

        Yields:
            The streams of all variants, and the entropies in bits: NaN for the input and without
            attention.
        """
        x = self._start
        first = self.configs[0]
        yield x, torch.full((len(x),), torch.nan, device=x.device)
        skip = [index for index, config in enumerate(self.configs) if config.skips]
        skipping = self._index_tensor(skip)
        early: dict[int, torch.Tensor] = {}
        for layer in order:
            self._redraw(first.block_of(layer))
            self._entropy = torch.full((len(x),), torch.nan, device=x.device)
            block_input = x
            with trace(self._store_entropy, sites=[]):
                for sublayer in self._sublayers:
                    x = sublayer(x, block_input)
            if skip:
                partner = self.configs[skip[0]].skip_source(layer + 1)  # of the next layer
                if self.configs[skip[0]].feeds_skip(layer):
                    early[layer] = x[skipping]
                if partner in early:  # the skip's weight is 1 before training
                    x = x.index_add(0, skipping, early[partner])
            yield x, self._entropy

    def _store_entropy(self, site: str, layer: int, x: torch.Tensor) -> None:
        """Store the pattern's entropy for variants with attention; changes nothing (an edit)."""
        if site == "pattern":
            self._entropy[self._reading] = attention_entropy(x, self.n_real)

    def _redraw(self, layer: int) -> None:
        """Give attention and FFN the weights of a layer, from 0, unless they have them already."""
        if layer == self._layer:
            return
        self._layer = layer
        self._drawn.clear()
        for site, part in self._parts:
            if isinstance(part, MultiHeadAttention):
                part.set_layer(layer)
                self._move_to_machine(part)
            draw = self._draw.below(f"blocks.{layer}.{site}")
            for linear in [module for module in part.children() if isinstance(module, Linear)]:
                for name, drawn in zip(("weight", "bias"), linear.draw_parameters(draw)):
                    if drawn is not None:
                        linear._parameters[name] = drawn.to(
                            self.machine.torch_device, self.machine.precision
                        )

    def _move_to_machine(self, module: Module) -> Module:
        """Move a module to the machine's device and precision, without gradients."""
        return module.to(self.machine.torch_device, self.machine.precision).requires_grad_(False)

    def _index_tensor(self, members: list[int]) -> torch.Tensor:
        """Return indices of variants as a tensor on the device."""
        return torch.tensor(members, device=self.machine.torch_device)

    def _make_sublayer(self, name: str, fields: tuple[str, ...], make: Make) -> Map:
        """Return (x, block input) -> x: a sub-layer on variants with `name`, x on others."""
        members = [index for index, config in enumerate(self.configs) if getattr(config, name)]
        if not members:
            return lambda x, block_input: x
        residual = f"residual_{name}"

        def make_read(config: Config, members: list[int]) -> Map:
            placement = config.part("placement")
            norms = self._make_norms(config)
            reads_block_input = config.parallel and name == "ffn"
            return lambda x, block_input: placement.read(
                block_input if reads_block_input else x, norms
            )

        def make_write(config: Config, members: list[int]) -> Map:
            placement = config.part("placement")
            norms = self._make_norms(config)
            scale = config.part("residual_scale")(config.d_model)
            join = self._move_to_machine(Join("", "", getattr(config, residual), scale))
            return lambda x, y: placement.write(x, y, join, norms)

        read = self._make_by_group(members, NORM, make_read)
        compute = self._make_by_group(members, fields, make)
        write = self._make_by_group(members, (*NORM, residual), make_write)
        if len(members) == len(self.configs):
            return lambda x, block_input: write(x, compute(read(x, block_input)))
        indices = self._index_tensor(members)

        def some(x: torch.Tensor, block_input: torch.Tensor) -> torch.Tensor:
            part = x[indices]
            return x.index_copy(0, indices, write(part, compute(read(part, block_input[indices]))))

        return some

    def _make_norms(self, config: Config) -> list[torch.nn.Module]:
        """Create the norms of one sub-layer; all norms start from the same weights."""
        make = config.part("norm")
        return [
            self._move_to_machine(
                make("", config.d_model, config.bias, config.norm_eps, config.norm_gain)
            )
            for _ in config.part("placement").norms
        ]

    def _make_attention(self, config: Config, members: list[int]) -> Map:
        """Return x -> output: attention of the variants `members`, with settings they share."""
        module = self._make_part("attn", MultiHeadAttention, config)
        reading = self._index_tensor(members)
        allowed = self._allowed[config.mask]
        memory = Memory()

        def attend(x: torch.Tensor) -> torch.Tensor:
            self._reading = reading
            read: torch.Tensor = module(x, allowed, memory=memory)
            return read

        return attend

    def _make_part(
        self, site: str, module_class: Callable[[Config, Draw], Module], config: Config
    ) -> Module:
        """Create a sub-layer and register it, so that _redraw() draws its weights per layer."""
        module = self._move_to_machine(module_class(config, self._draw.below(f"blocks.0.{site}")))
        self._parts.append((site, module))
        return module

    def _make_by_group(self, members: list[int], fields: tuple[str, ...], make: Make) -> Map:
        """Call `make` per group of members equal in fields; return one function of all members.

        It takes and returns streams of all members, in their order. Members of a group are made
        neighbours, so that a group is a slice of the batch.
        """
        groups = list(_group_by_fields([self.configs[index] for index in members], fields).values())
        parts = [
            make(self.configs[members[group[0]]], [members[index] for index in group])
            for group in groups
        ]
        if len(parts) == 1:
            return parts[0]
        order = [index for group in groups for index in group]
        sizes = [len(group) for group in groups]
        to_groups = self._index_tensor(order)
        back = self._index_tensor(order).argsort()
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


def _read_by_input(config: Config) -> tuple[Any, ...]:
    """Return the settings, beside FAMILY, that the first block's input depends on."""
    normed = [getattr(config, name) for name in NORM] if config.embedding_norm else []
    return (config.position, *normed)


def _group_by_fields(
    configs: Iterable[Config], fields: tuple[str, ...]
) -> dict[tuple[Any, ...], list[int]]:
    """Group configs by the values of some fields: {values: indices of the configs}."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, config in enumerate(configs):
        groups.setdefault(tuple([getattr(config, field) for field in fields]), []).append(index)
    return groups
