"""Words that depend on each other, and how much attention falls on those pairs."""

from collections.abc import Iterable

import pandas as pd

from core.experiments.forward import Pass

Pair = tuple[int, int]  # a reader, and what it depends on: token numbers


def share(p: Pass, layer: int, pairs: Iterable[Pair]) -> pd.DataFrame:
    """Share of the marked readers' attention that falls on what they depend on: head, value, uniform.

    pairs: (reader, what it depends on), token numbers from 0. For each reader the weights on all its marked words are
    added up; the share is the mean over readers. `uniform` is the same for attention spread evenly over all that a
    reader may see: what no particular interest would give.
    """
    readers: dict[int, list[int]] = {}
    for reader, other in pairs:
        readers.setdefault(reader, []).append(other)
    pattern, allowed = p.sites["pattern"][layer], p.allowed_in(layer)
    rows = []
    for head in range(len(pattern)):
        shares = [pattern[head, reader, others].sum().item() for reader, others in readers.items()]
        even = [
            allowed[reader, others].sum().item() / max(1, allowed[reader].sum().item())
            for reader, others in readers.items()
        ]
        rows.append((head + 1, sum(shares) / len(shares), sum(even) / len(even)))
    return pd.DataFrame(rows, columns=["head", "value", "uniform"])


def read_pairs(text: str, n_tokens: int) -> tuple[tuple[Pair, ...], list[str]]:
    """Pairs from a link, "12-1,13-1" with tokens counted from 1 -> (pairs from 0, sentences about what was wrong)."""
    pairs: list[Pair] = []
    notes = []
    for part in filter(None, text.split(",")):
        ends = part.split("-")
        if len(ends) == 2 and all(e.isascii() and e.isdigit() and len(e) < 5 and 1 <= int(e) <= n_tokens for e in ends):
            pair = (int(ends[0]) - 1, int(ends[1]) - 1)
            pairs += [pair] if pair not in pairs else []
        else:
            notes.append(
                f"pairs holds {part[:20]!r}; a pair is two token numbers from 1 to {n_tokens}, as in 12-2. It was left out."
            )
    return tuple(pairs), notes[:3]


def write_pairs(pairs: Iterable[Pair]) -> str:
    """The link's form of pairs."""
    return ",".join(f"{a + 1}-{b + 1}" for a, b in pairs)
