"""A text that goes on, as chips: each generated word can be opened, and shows what was read to choose it."""

from collections.abc import Callable, Collection, Sequence

from core.model.generate import Step
from core.settings.wording import number
from ui.kit.store import session
from ui.pictures.chips import Chip, chips

PICKED = "picked_step"  # kept for a visitor: which step of the text is open


def opened_step(key: str, steps: Sequence[Step]) -> int:
    """Return which generated word is open, counted from 0."""
    return min(session().kept.get(f"{PICKED}_{key}", 0), len(steps) - 1)


def weights_read(step: Step, layer: int, head: int, length: int) -> list[float | None]:
    """Return the attention weight of every token before a generated word, None where it is outside the window or the context.

    length: how many tokens there are before it. The list is empty where the model has no attention.
    """
    if not step.patterns:
        return []
    weights = step.patterns[layer][head].tolist()
    return [None] * (length - len(weights)) + weights


def generated(
    key: str,
    labels: Sequence[str],
    steps: Sequence[Step],
    word: Callable[[int], str],
    layer: int,
    head: int,
    unknown: Collection[int] = (),
):
    """Draw the text and its generated words.

    Args:
        labels: the words that the text began with. unknown: which of them the model does not know.
        layer, head: whose attention shades the words, both counted from 0.
    """
    chosen, start = opened_step(key, steps), len(labels)
    weights = weights_read(steps[chosen], layer, head, start + chosen)
    tokens = []
    for n, label in enumerate(labels):
        is_read = not weights or weights[n] is not None
        tokens.append(
            Chip(label, "read" if is_read else "not read", weights[n] if weights else None, unknown=n in unknown)
        )
    for n, each in enumerate(steps, start):
        tip = f"chance {number(each.chance)}, model's probability {number(each.probability)}"
        tokens.append(Chip(word(each.token), tip, weights[n] if n < len(weights) else None, pick=True))
    chips(
        key, tokens, alt=f"The text, word by word, {len(steps)} of them generated.", selected=start + chosen,
        on_pick=lambda at: session().kept.update({f"{PICKED}_{key}": at - start}),
    )  # fmt: skip
