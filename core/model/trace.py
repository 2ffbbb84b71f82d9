"""tap(site, x) in the model, trace() around a call: watch and edit activations by name.

The open traces live in a ContextVar, so users in other threads of one process never see each
other's, and the model itself carries no state. Site names are TransformerLens's, so that what is
learned here can be used there.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar

import torch

Edit = Callable[
    [str, int, torch.Tensor], torch.Tensor | None
]  # (site, layer, x) -> x to go on with, or None: leave it

SITES = {
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

_open: ContextVar[tuple["trace", ...]] = ContextVar("open traces", default=())


def tap(site: str, x: torch.Tensor) -> torch.Tensor:
    """The identity, unless a trace is open in this context."""
    for watcher in _open.get():
        x = watcher.see(site, x)
    return x


class trace(dict[str, list[torch.Tensor]]):
    """Site -> the tensors seen there, one per layer (or per pass) in order of calls.

    >>> with trace() as t:
    ...     logits = model(tokens)
    >>> t["pattern"][0]                                  # layer 0, (batch, heads, query, key)

    Each edit is called as `edit(site, layer, x)` on everything tapped and returns the tensor to go
    on with, or None
    for "leave it". Edits run in order and before recording. `sites` limits what is kept. Traces
    nest: the outer one
    sees first.
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

    def __enter__(self) -> "trace":
        self._token = _open.set((*_open.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _open.reset(self._token)
