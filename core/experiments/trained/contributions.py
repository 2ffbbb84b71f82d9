"""Direct logit attribution: the logit difference as a sum over heads and sub-layers.

The last norm is taken as the linear map that it was in this pass (its scale as measured). Then the
contribution of each part to the stream can be computed by itself, and all of them sum to the logit
difference (Elhage et al., 2021; Wang et al., 2022). In a post-norm model every norm in the stream
is taken so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import nn

from core.experiments.trained.knockout import Bench, Sites, cached_effect
from core.measure.intervals import Paired, correct_together, paired
from core.model.block import Block, Join
from core.model.knockout import Cut
from core.model.transformer import Transformer
from core.settings.memory import max_mb, room_for
from core.settings.progress import track
from core.settings.wording import count, head_name

ROOM = 1 << 22  # numbers that the parts of some questions may take at once


@dataclass(frozen=True)
class Part:
    """Head or sub-layer with a contribution; layers and heads from 0."""

    # embedding, head, attention (what is not by heads: its bias, or what a knock-out put there),
    # ffn, norms
    kind: str
    layer: int = 0
    head: int = 0

    @property
    def name(self) -> str:
        """Name on screen, such as "L2H3", "FFN 2" or "norm biases"."""
        return {
            "embedding": "embedding",
            "head": head_name(self.layer, self.head),
            "attention": f"attention {self.layer + 1}, bias",
            "ffn": f"FFN {self.layer + 1}",
            "norms": "norm biases",
        }[self.kind]


def list_parts(model: Transformer) -> list[Part]:
    """List the parts whose contributions sum to the logits: embedding, per layer, norms last."""
    listed = [Part("embedding")]
    for layer, block in enumerate(_blocks(model)):
        if block.attn is not None:
            listed += [Part("head", layer, number) for number in range(block.attn.n_heads)]
            listed.append(Part("attention", layer))
        if block.mlp is not None:
            listed.append(Part("ffn", layer))
    return [*listed, Part("norms")]


def _blocks(model: Transformer) -> list[Block]:
    """Return the block of each layer; a shared block appears once per layer."""
    every = [model.blocks[model.config.block_of(layer)] for layer in range(model.config.n_layers)]
    return [block for block in every if isinstance(block, Block)]


@torch.inference_mode()
def contributions(
    model: Transformer,
    written: Sites,
    right: torch.Tensor,
    wrong: torch.Tensor,
    cuts: tuple[Cut, ...] = (),
) -> torch.Tensor:
    """Return each part's contribution to logits[right] − logits[wrong]: float32 (parts, Q).

    On the CPU. They sum to that difference before a soft-cap.

    Args:
        model: The model.
        written: Outputs of every part at the asked positions, as recorded by knockout.Written.
        right: Ids of the correct tokens: int (Q).
        wrong: Ids of the wrong tokens: int (Q).
        cuts: Ablations under which it was recorded.
    """
    index_of = {part: index for index, part in enumerate(list_parts(model))}
    # (parts, Q, D): they sum to the model's stream
    stream = _place_part(written["embed", 0], 0, len(index_of))
    early: dict[int, torch.Tensor] = {}
    for layer, block in enumerate(_blocks(model)):
        earlier = model.config.skip_source(layer)
        if model.skip is not None and earlier in early:
            stream = stream + model.skip[earlier] * early.pop(earlier)
        lost = {site for cut in cuts if cut.layer == layer for site in cut.sites()}
        if block.attn is not None:
            wrote = torch.zeros_like(stream)
            if "attn_out" in lost:  # what the heads computed was thrown away
                wrote[index_of[Part("attention", layer)]] = written["attn_out", layer]
            else:
                out = written.get(("attn_raw", layer), written["attn_out", layer])
                z = written["z", layer]
                heads = torch.einsum(
                    "qhd,ohd->hqo", z, block.attn.out.weight.view(out.shape[-1], *z.shape[1:])
                )
                first = index_of[Part("head", layer, 0)]
                wrote[first : first + len(heads)] = heads
                wrote[index_of[Part("attention", layer)]] = out - heads.sum(0)
            stream = _write_by_parts(
                block,
                stream,
                wrote,
                "attn_out" in lost,
                block.add_attention,
                block.attention_norms,
            )
        if block.mlp is not None:
            thrown_away = "mlp_out" in lost
            site = "mlp_raw" if ("mlp_raw", layer) in written and not thrown_away else "mlp_out"
            wrote = _place_part(written[site, layer], index_of[Part("ffn", layer)], len(index_of))
            stream = _write_by_parts(
                block, stream, wrote, thrown_away, block.add_ffn, block.ffn_norms
            )
        if model.config.feeds_skip(layer):  # of no other: each is as large as the stream
            early[layer] = stream
    stream = _norm_by_parts(model.ln_final, stream)
    words = model.embed if model.unembed is None else model.unembed.weight
    return torch.einsum("pqd,qd->pq", stream, words[right] - words[wrong]).float().cpu()


def _place_part(
    x: torch.Tensor, index: int, n_parts: int
) -> torch.Tensor:  # (Q, D) -> (parts, Q, D)
    """Return one part's output in its own slice, zeros for all other parts."""
    parts = x.new_zeros(n_parts, *x.shape)
    parts[index] = x
    return parts


def _write_by_parts(
    block: Block,
    stream: torch.Tensor,
    wrote: torch.Tensor,
    is_replaced: bool,
    join: Join,
    norms: Sequence[nn.Module],
) -> torch.Tensor:  # 2 × (parts, Q, D) -> the same
    """Return the stream by parts, (parts, Q, D), after a sub-layer wrote to it.

    Args:
        block: Block of the sub-layer.
        stream: Residual stream before the sub-layer, by parts.
        wrote: Output of the sub-layer, by parts.
        is_replaced: Whether the output replaces an ablated one: then neither norms nor scale
            change it before it is added.
        join: Residual connection of the sub-layer.
        norms: Norms of the sub-layer.
    """
    steps = [partial(_norm_by_parts, norm) for norm in norms]
    add = (lambda x, _: join.join_unscaled(x, wrote)) if is_replaced else join
    return block.placement.write(stream, wrote, add, steps)


def _norm_by_parts(norm: Any, parts: torch.Tensor) -> torch.Tensor:
    """Apply a norm, as a linear map, to each part; the last part takes its bias."""
    shares: torch.Tensor = norm.linear(parts, parts.sum(0))
    bias = getattr(norm, "bias", None)
    if bias is not None:
        shares[-1] = shares[-1] + bias
    return shares


def bench_contributions(
    bench: Bench, cuts: tuple[Cut, ...] = (), mode: str = "zero"
) -> torch.Tensor:
    """Return each part's contribution to right − wrong, mean per text: (parts, N), cached."""

    def make() -> tuple[torch.Tensor, int]:
        q = bench.questions
        blocks = []
        written = cached_effect(bench, cuts, mode).written
        right = q.right.to(bench.device)
        wrong = bench.whole.wrong.to(bench.device)
        # Held at once for one question: four tables of all parts, and one of each early layer that
        # a late one reads.
        config = bench.model.config
        early = sum(map(config.feeds_skip, range(config.n_layers)))
        numbers = (4 + early) * len(list_parts(bench.model)) * config.d_model
        # Questions at once: at most half of what one run may use.
        per_slice = max(1, 4 * min(ROOM, max_mb() << 15) // numbers)
        starts = range(0, len(right), per_slice)
        with room_for(4 * per_slice * numbers, "Computing all contributions"):
            for start in track(
                starts,
                len(starts),
                f"Contributions of all components, {count(len(right), 'question')}",
            ):
                some = slice(start, start + per_slice)
                blocks.append(
                    contributions(
                        bench.model,
                        {key: x[some] for key, x in written.items()},
                        right[some],
                        wrong[some],
                        cuts,
                    )
                )
        mean = q.per_text(torch.cat(blocks, 1))
        return mean, mean.numel() * 8

    return bench.opened.results.get((bench.key, "contributions", cuts, mode), make)


def mean_difference(bench: Bench, cuts: tuple[Cut, ...] = (), mode: str = "zero") -> float:
    """Return the logit difference right − wrong, mean over texts, before a soft-cap."""
    return bench_contributions(bench, cuts, mode).sum(0).mean().item()


def table(bench: Bench, cuts: tuple[Cut, ...] = (), mode: str = "zero") -> pd.DataFrame:
    """Tabulate contributions: name, kind, layer, head (from 1), value, low, high, p, share.

    To right − wrong: mean over texts, 95 % CI, p (Holm), share of the sum.
    """
    effects = bench_contributions(bench, cuts, mode)
    total = effects.sum(0).mean().item()
    values = {
        part: dict(enumerate(of_part.tolist()))
        for part, of_part in zip(list_parts(bench.model), effects)
    }
    nothing = dict.fromkeys(range(effects.shape[1]), 0.0)
    compared = correct_together(
        lambda part, level: paired(values[part], nothing, level=level), values
    )
    rows = [
        (
            part.name,
            part.kind,
            part.layer + 1,
            part.head + 1,
            *index[:3],
            index.p,
            index.mean / total if total else float("nan"),
        )
        for part, index in compared.items()
    ]
    return pd.DataFrame(
        rows, columns=["name", "kind", "layer", "head", "value", "low", "high", "p", "share"]
    )


def compare_contributions(bench: Bench, cuts: tuple[Cut, ...], mode: str) -> pd.DataFrame:
    """Tabulate later heads' and FFNs' contributions before, after, change; biggest rise first.

    Returns name, kind, layer, head (from 1), before, after, change (after − before, largest first),
    low, high, p (paired t-test over texts, Holm). Parts before or parallel to an ablated one have
    the same output, so they are left out. (Their contribution may still change, because the last
    norm then divides by another value.)
    """
    before = bench_contributions(bench)
    after = bench_contributions(bench, cuts, mode)
    cut = {Part("head", cut.layer, cut.head) for cut in cuts if cut.part == "head"}
    ablated = {(cut.layer, "head") for cut in cuts if "attn_out" in cut.sites()}
    ablated |= {(cut.layer, "ffn") for cut in cuts if "mlp_out" in cut.sites()}
    first = min((cut.layer, cut.part == "ffn") for cut in cuts)
    later = {
        part: (a, other)
        for part, a, other in zip(list_parts(bench.model), before, after)
        if part.kind in ("head", "ffn")
        and part not in cut
        and (part.layer, part.kind) not in ablated
        and (
            part.layer > first[0]
            if bench.model.config.parallel
            else (part.layer, part.kind == "ffn") > first
        )
    }

    def compare(part: Part, level: float) -> Paired:
        a, other = (dict(enumerate(values.tolist())) for values in later[part])
        return paired(other, a, level=level)

    changes = correct_together(compare, later)
    rows = [
        (
            part.name,
            part.kind,
            part.layer + 1,
            part.head + 1,
            a.mean().item(),
            other.mean().item(),
            *changes[part][:3],
            changes[part].p,
        )
        for part, (a, other) in later.items()
    ]
    columns = ["name", "kind", "layer", "head", "before", "after", "change", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        "change", ascending=False, ignore_index=True
    )
