"""The transformer: attention, feed-forward network, block, stack. Everything worth seeing passes through a tap."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.config import Config
from core.model.dropout import drop
from core.model.parts.activation import inputs
from core.model.parts.init import Draw
from core.model.parts.norm import norm
from core.model.parts.placement import norm_place
from core.model.trace import tap


class Part(nn.Module):
    """A module that costs little to call: at the smallest sizes a fifth of a pass is nn.Module at work.

    Hooks are looked for once, then it goes straight to forward. Its parts stand in its own __dict__ too, so that
    `self.attn` is found at once, and not only after Python has failed to find it anywhere else.
    """

    _parameters: dict[str, Any]  # of a Linear: weight and bias

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            return super().__call__(*args, **named)
        return self.forward(*args, **named)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)


class Linear(Part):
    """x·Wᵀ + b. Several maps of one input may be stacked: each part of the weight is drawn from its own stream.

    So a fused query-key-value matrix holds the same numbers as three separate ones would.
    """

    def __init__(self, fan_in: int, parts: dict[str, int], bias: bool, draw: Draw):
        super().__init__()
        self.fan_in, self.parts, self.biased = fan_in, parts, bias
        weight, added = self.drawn(draw)
        self.weight = nn.Parameter(weight)
        self.bias = None if added is None else nn.Parameter(added)

    def drawn(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor | None]:
        """-> the weight, and the bias or None, as they are drawn below one path."""
        weight = torch.cat([draw.weight(f"W_{name}", n, self.fan_in) for name, n in self.parts.items()])
        if not self.biased:
            return weight, None
        return weight, torch.cat([draw.bias(f"b_{name}", n, self.fan_in) for name, n in self.parts.items()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (…, fan_in) -> (…, sum of parts)
        return F.linear(x, self._parameters["weight"], self._parameters.get("bias"))


class MultiHeadAttention(Part):
    """softmax(Q·Kᵀ/√d_head)·V in n_heads subspaces of d_head numbers each (Vaswani et al., 2017, section 3.2)."""

    def __init__(self, config: Config, draw: Draw | None = None):
        super().__init__()
        draw = draw or drawing(config, "blocks.0.attn")
        width, inner = config.d_model, config.n_heads * config.d_head
        self.n_heads = config.n_heads
        self.factor = 1 / math.sqrt(config.d_head) if config.scale else 1.0
        self.dropout = config.dropout
        self.position = config.part("position")(config)
        self.qkv = Linear(width, {"Q": inner, "K": inner, "V": inner}, config.bias, draw)
        self.out = Linear(inner, {"O": width}, config.bias, draw)

    def forward(
        self, x: torch.Tensor, allowed: torch.Tensor | None = None, kept: Any = None
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) True where a query may look -> (B, T, D)
        """kept: keys and values of the tokens before these (core/model/kv_cache.py), which the new ones are added to."""
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4).unbind()
        q, k = self.position.rotate(q, k, 0 if kept is None else kept.length)
        q, k, v = tap("q", q), tap("k", k), tap("v", v)  # (B, H, T, d_head)
        if kept is not None:
            k, v = kept.add(k, v)  # (B, H, K, d_head): from here on there are more keys than queries
        scores = tap("scores", self.position.bias((q @ k.mT).mul_(self.factor)))  # (B, H, T, T)
        pattern = drop(tap("pattern", weights(scores, allowed)), self.dropout)
        z = tap("z", pattern @ v)
        return tap("attn_out", drop(self.out(z.transpose(1, 2).flatten(2)), self.dropout))


def weights(scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """Softmax over what a query may look at; a query that may look at nothing gets zeros.

    (…, T, T), bool broadcastable to it -> (…, T, T)
    """
    if allowed is None:
        return scores.softmax(-1)
    alone = ~allowed.any(-1, keepdim=True)
    # A row of −inf would give NaN, and NaN gradients even if it were overwritten: such rows pass the softmax unmasked.
    return scores.masked_fill(~(allowed | alone), -math.inf).softmax(-1).masked_fill(alone, 0.0)


class FeedForward(Part):
    """activation(x·W_in + b_in)·W_out + b_out, on each token by itself (Vaswani et al., 2017, section 3.3)."""

    def __init__(self, config: Config, draw: Draw | None = None):
        super().__init__()
        draw = draw or drawing(config, "blocks.0.mlp")
        self.activation = config.part("activation")
        self.dropout = config.dropout
        hidden = dict.fromkeys(("in", "gate")[: inputs(self.activation)], config.d_ff)
        self.w_in = Linear(config.d_model, hidden, config.bias, draw)
        self.w_out = Linear(config.d_ff, {"out": config.d_model}, config.bias, draw)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        hidden = tap("mlp_post", self.activation(tap("mlp_pre", self.w_in(x))))  # (B, T, d_ff)
        return tap("mlp_out", drop(self.w_out(hidden), self.dropout))


class Block(Part):
    """Attention, then the feed-forward network, each with its norm and its residual.

    A sub-layer that is switched off is gone, its norm and its residual with it. A residual that is switched off hands
    on what the sub-layer computed, instead of adding it.
    """

    def __init__(self, config: Config, layer: int = 0, draw: Draw | None = None):
        super().__init__()
        draw = (draw or drawing(config)).at(f"blocks.{layer}")
        normalise, width = config.part("norm"), config.d_model
        self.place: Callable[..., torch.Tensor] = config.part("placement")
        self.attn = self.mlp = None
        if config.attention:
            self.attn = MultiHeadAttention(config, draw.at("attn"))
            self.ln1 = normalise("ln1", width, config.bias)
            self.add_attention = adder("resid_mid", config.residual_attention)
        if config.ffn:
            self.mlp = FeedForward(config, draw.at("mlp"))
            self.ln2 = normalise("ln2", width, config.bias)
            self.add_ffn = adder("resid_post", config.residual_ffn)

    def forward(
        self, x: torch.Tensor, allowed: torch.Tensor | None = None, kept: Any = None
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) -> (B, T, D)
        x = tap("resid_pre", x)
        attn = self.attn
        if attn is not None:
            x = self.place(x, lambda y: attn(y, allowed, kept), self.ln1, self.add_attention)
        if self.mlp is None:
            return tap("resid_post", x)
        return self.place(x, self.mlp, self.ln2, self.add_ffn)


def adder(site: str, residual: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """How a sub-layer's output joins the stream: added where the residual is on, in its place where it is off."""
    return partial(added if residual else replaced, site)


def added(site: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return tap(site, x + y)


def replaced(site: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return tap(site, y)


class Transformer(nn.Module):
    """Embedding and positions, n_layers blocks, last norm (where the placement normalises before the sum) and unembedding.

    Tied, the embedding is read the other way round (Press and Wolf, 2017), and there is no unembedding of its own.
    """

    def __init__(self, config: Config, vocabulary: Iterable[str], draw: Draw | None = None):
        """vocabulary: the tokens as strings; token number i is vocabulary[i], and its vector depends on the string.

        draw: where the initial weights come from, if not from config.init and config.seed.
        """
        super().__init__()
        draw = draw or drawing(config)
        self.config, self.vocabulary = config, tuple(vocabulary)
        self.mask = config.part("mask")
        self.embed = nn.Parameter(draw.at("embed").rows(self.vocabulary, config.d_model))
        self.position = config.part("position")(config, draw.at("pos_embed"))
        self.blocks = nn.ModuleList(Block(config, layer, draw) for layer in range(config.n_layers))
        # Where no norm acts on the stream itself, it is read through one more (GPT-2's ln_f).
        last = norm["none"] if norm_place(config.part("placement")) == "after" else config.part("norm")
        self.ln_final = last("ln_final", config.d_model, config.bias)
        self.unembed: Linear | None = None
        if not config.tied:
            self.unembed = Linear(config.d_model, {"U": len(self.vocabulary)}, False, draw.at("unembed"))

    def stream(
        self, tokens: torch.Tensor, real: torch.Tensor | None = None, order: list[int] | None = None, past: Any = None
    ) -> torch.Tensor:  # int (B, T), bool (B, T) False where padding -> (B, T, D)
        """What leaves the last block, before the last norm. order: which blocks to go through; all, once, if None.

        past: a core.model.kv_cache.Past, to read on where it ended. Without padding, and all blocks, once.
        """
        if past is not None:
            x: torch.Tensor = past.go_on(self, tokens)
            return x
        x, allowed = self.start(tokens), self.allowed(tokens, real)
        for block in self.blocks if order is None else [self.blocks[at] for at in order]:
            x = block(x, allowed)
        return x

    def start(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:  # int (B, T) -> (B, T, D)
        """What enters the first block. start: how many tokens were read before these."""
        return tap("embed", drop(self.position.embed(self.embed[tokens], start), self.config.dropout))

    def forward(
        self, tokens: torch.Tensor, real: torch.Tensor | None = None, order: list[int] | None = None, past: Any = None
    ) -> torch.Tensor:  # int (B, T), bool (B, T) -> (B, T, V)
        return self.read(self.stream(tokens, real, order, past))

    def read(self, stream: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, V)
        """The scores of every word, from what leaves the last block."""
        stream = self.ln_final(stream)
        return tap("logits", F.linear(stream, self.embed) if self.unembed is None else self.unembed(stream))

    def allowed(self, tokens: torch.Tensor, real: torch.Tensor | None = None) -> torch.Tensor | None:
        """Which key each query may see, or None for all: bool, broadcastable to (B, H, T, T)."""
        return visible(self.mask, tokens, real)


def visible(
    mask: Callable[..., torch.Tensor | None], tokens: torch.Tensor, real: torch.Tensor | None = None
) -> torch.Tensor | None:
    """What a mask and the padding leave to be seen: bool, broadcastable to (B, H, T, T), or None for everything."""
    allowed = mask(tokens.shape[-1], tokens.device)
    if real is None:
        return allowed
    keys = real[:, None, None, :]
    return keys if allowed is None else keys & allowed


def drawing(config: Config, path: str = "") -> Draw:
    """Where the initial weights below a path come from."""
    draw = Draw(config.part("init"), config.seed)
    return draw.at(path) if path else draw
