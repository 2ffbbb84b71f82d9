"""Hooks: the model calls tap(site, x), and trace() around a pass records and edits activations.

Open traces live in a ContextVar, so users in other threads of one process never see each other's,
and the model carries no state. The hook names are TransformerLens's.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar

import torch

# (hook name, layer, activation) -> activation that the model goes on with, or None to leave it
Edit = Callable[[str, int, torch.Tensor], torch.Tensor | None]

SITES = {
    "embed_raw": "token embeddings plus positions before a norm on them, where there is one",
    "ln_embed": "output of the norm on embeddings",
    "embed": "token embeddings plus positions: the input of the first block",
    "resid_pre": "residual stream at the input of a block",
    "ln1": "output of the norm of the attention sub-layer",
    "q": "queries per head, after rotary positions",
    "k": "keys per key-value head, after rotary positions",
    "v": "values per key-value head",
    "scores": "query·key, scaled, capped, with position bias, before the mask",
    "pattern": "attention weights: softmax of the masked scores, before dropout",
    "gate": "gate of each head, a factor per dimension",
    "z": "weighted sum of values per head, gated, before the output projection",
    "attn_raw": "output of attention before a norm on it, where there is one",
    "ln1_post": "output of the second norm of the attention sub-layer",
    "attn_out": "output of the attention sub-layer, added to the residual stream",
    "resid_mid": "residual stream after attention, before any norm",
    "ln2": "output of the norm of the feed-forward sub-layer",
    "mlp_pre": "hidden units before the activation",
    "mlp_post": "hidden units after the activation, before dropout",
    "mlp_raw": "output of the feed-forward network before a norm on it, where there is one",
    "ln2_post": "output of the second norm of the feed-forward sub-layer",
    "mlp_out": "output of the feed-forward sub-layer, added to the residual stream",
    "resid_post": "residual stream after the feed-forward network, before any norm",
    "ln_final": "output of the final norm, before unembedding",
    "logits": "logits over the vocabulary",
}

_open: ContextVar[tuple["Trace", ...]] = ContextVar("open traces", default=())


def tap(site: str, x: torch.Tensor) -> torch.Tensor:
    """Return x after each open trace of this context, outer first, edits and then records it."""
    for watcher in _open.get():
        x = watcher.see(site, x)
    return x


class Trace(dict[str, list[torch.Tensor]]):
    """Record of a pass's activations by hook name: one tensor per layer, in order of calls.

    >>> with trace() as activations:
    ...     logits = model(tokens)
    >>> activations["pattern"][0]                        # layer 0, (batch, heads, query, key)

    Traces nest: the outer one acts first.

    Args:
        edits: Called in order as `edit(site, layer, x)` on every activation, before it is recorded.
            Each returns the tensor to go on with, or None to leave it.
        sites: Hook names to record; None for all.

    Raises:
        ValueError: A hook name is unknown.
    """

    def __init__(self, *edits: Edit, sites: Iterable[str] | None = None):
        super().__init__()
        unknown = set(sites or ()) - set(SITES)
        if unknown:
            raise ValueError(
                f"there is no site {', '.join(sorted(unknown))}; the sites are {', '.join(SITES)}"
            )
        self.edits = edits
        self._keep = SITES.keys() if sites is None else set(sites)
        self._seen: dict[str, int] = {}

    def see(self, site: str, x: torch.Tensor) -> torch.Tensor:
        """Apply all edits in order, record the result if its site is to be kept, and return it."""
        values = self._seen
        layer = values[site] = values.get(site, -1) + 1
        for edit in self.edits:
            changed = edit(site, layer, x)
            if changed is not None:
                x = changed
        if site in self._keep:
            if layer:
                self[site].append(x)
            else:
                self[site] = [x]
        return x

    def __enter__(self) -> "Trace":
        self._token = _open.set((*_open.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _open.reset(self._token)


trace = Trace  # with trace() as activations: …
