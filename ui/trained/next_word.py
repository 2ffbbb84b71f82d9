"""What a knock-out makes of the next word, in words: the probabilities of the few that matter, with the part and without it."""

from core.experiments.trained import prompt
from core.model.knockout import name_of
from core.settings.wording import fixed, number
from ui.kit.page import capital
from ui.trained.context import WHOLE, TrainedContext


def said_after(context: TrainedContext) -> int | None:
    """The word with which the text goes on, where a text is what it is, and it does."""
    there = context.language and context.after + 1 < len(context.prompt.ids)
    return context.prompt.ids[context.after + 1] if there else None


def scores_of(context: TrainedContext) -> dict:
    """Name -> scores of every word as the next one: of the whole model, and of the one with the knock-out."""
    scores = {WHOLE: prompt.logits(context.bench, context.whole, context.after)}
    if context.cuts:
        scores[context.named] = prompt.logits(context.bench, context.without, context.after)
    return scores


def consequence(context: TrainedContext, scores: dict) -> str:
    """The word of the text, what is likeliest without the part, and their rivals in the task: probability → probability."""
    before, now = (each.double().softmax(-1) for each in scores.values())
    best, best_now = int(before.argmax()), int(now.argmax())
    said = said_after(context)
    named = list(dict.fromkeys([best if said is None else said, best_now]))
    named += [word for word in _rivals(context, named) if word not in named]
    text = "; ".join(f"“{context.word(word)}” {_share(before[word])} → {_share(now[word])}" for word in named)
    without = f"without {name_of(context.cuts).replace('− ', '')}"
    if best_now == best:
        return f"{text}. {capital(without)} “{context.word(best)}” stays the likeliest."
    return f"{text}. {capital(without)} the likeliest is “{context.word(best_now)}”, no longer “{context.word(best)}”."


def _share(chance) -> str:
    return fixed(chance.item()) if chance.isfinite() else number(chance.item())


def _rivals(context: TrainedContext, words: list[int]) -> list[int]:
    """The words that are scored against one of these in the task that the model has learnt."""
    learnt, known = context.opened.learnt, context.opened.model.vocabulary
    groups = [[known.index(word) for word in group if word in known] for group in learnt.rivals] if learnt else []
    return [word for group in groups for word in group if set(group) & set(words)]
