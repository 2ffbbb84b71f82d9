"""View of the next token, with and without an ablation."""

from contextlib import closing

import streamlit as st
import torch

from core.experiments.trained import prompt
from core.experiments.trained import prompt as experiment
from core.figures.charts import trained as charts
from core.figures.spec import word_label
from core.model.knockout import Cut, name_of
from core.settings.setting import ConfigError
from core.settings.wording import fixed, number
from ui.kit.page import chart, figure, literal
from ui.kit.panel.control import Control, choice
from ui.kit.panel.panel import draw_bar
from ui.pictures.chips import draw_generated_text, opened_step
from ui.trained.context import WHOLE, TrainedContext, view


def next_token_of(context: TrainedContext) -> int | None:
    """Return the id of the prompt's own token behind `context.after`; None at its end.

    None also for models of other tasks.
    """
    has_next = context.predicts_next_token and context.after + 1 < len(context.prompt.ids)
    return context.prompt.ids[context.after + 1] if has_next else None


def compute_logits(context: TrainedContext) -> dict[str, torch.Tensor]:
    """Return model's name (WHOLE or the ablation's) -> logits (V,) of the next token."""
    scores = {WHOLE: prompt.next_token_logits(context.bench, context.full_pass, context.after)}
    if context.cuts:
        scores[context.ablation_name] = prompt.next_token_logits(
            context.bench, context.ablated_pass, context.after
        )
    return scores


def describe_change(context: TrainedContext, logits_by_model: dict[str, torch.Tensor]) -> str:
    """Describe next, top and rival tokens before and after an ablation; full model first."""
    before, now = (logits.double().softmax(-1) for logits in logits_by_model.values())
    best = int(before.argmax())
    best_now = int(now.argmax())
    next_token = next_token_of(context)
    named = list(dict.fromkeys([best if next_token is None else next_token, best_now]))
    named += [word for word in _rivals(context, named) if word not in named]
    text = "; ".join(
        f"“{context.word(word)}” {_format_probability(before[word])} →"
        f" {_format_probability(now[word])}"
        for word in named
    )
    without = f"without {name_of(context.cuts).replace('− ', '')}"
    if best_now == best:
        return f"{text}. Top prediction {without}: still “{context.word(best)}”."
    return (
        f"{text}. Top prediction {without}: “{context.word(best_now)}” instead of"
        f" “{context.word(best)}”."
    )


def _format_probability(chance: torch.Tensor) -> str:
    """Return a 0-d tensor as text, fixed-point unless it is infinite or NaN."""
    return fixed(chance.item()) if chance.isfinite() else number(chance.item())


def _rivals(context: TrainedContext, token_ids: list[int]) -> list[int]:
    """Return the ids of all tokens in these tokens' groups of rivals, such as was and were."""
    learnt = context.opened.learnt
    words_known = context.opened.model.vocabulary
    groups = (
        [
            [words_known.index(word) for word in group if word in words_known]
            for group in learnt.rivals
        ]
        if learnt
        else []
    )
    return [word for group in groups for word in group if set(group) & set(token_ids)]


@view.register("words", label="Next token", help="next-token probabilities and generated text.")
def words(context: TrainedContext):
    """Draw next-token probabilities and generated text, with and without the ablation."""
    after = context.after
    labels = context.prompt.labels
    draw_bar("lens", [_token_control(context)])
    scores = compute_logits(context)
    next_token = next_token_of(context)
    extra = () if next_token is None else (next_token,)
    table = experiment.next_words(
        scores, context.sampling, context.opened.tokens.label, included=extra
    )
    # Two tokens may read alike: each has a row of its own.
    rows = {token: row for row, token in enumerate(dict.fromkeys(table.token))}
    table["label"] = [word_label(rows[token], text) for token, text in zip(table.token, table.word)]
    left, right = st.columns([2, 3], gap="medium")
    with left:
        asks = "Next token after"
        axis = "probability of the next token"
        if not context.predicts_next_token:
            asks = "Prediction at"
            axis = "probability of the answer"
        if context.cuts:
            explanation = describe_change(context, scores)
        else:
            top_token = describe_top_token(context, scores[WHOLE], next_token_of(context))
            explanation = f"Top prediction: {top_token}"
        ticks = "Grey ticks: sampling probability after temperature, top-k and top-p"
        sampling = context.sampling
        if sampling.temperature == 1 and sampling.top_k <= 0 and sampling.top_p >= 1:
            ticks += " (at their current settings these change nothing)"
        figure(f"{asks} “{labels[after]}”", explanation, ticks)
        height = 110 + 26 * len(rows)
        chart(charts.next_words(axis), table, "Next-token probabilities.", height=height)
    with right:
        if not context.predicts_next_token:
            only = "This model was trained to answer at every position, not to generate text."
            st.info(only, icon=":material/info:")
            return
        _draw_text(context, after, WHOLE, ())
        if context.cuts:
            _draw_text(context, after, context.model_name, context.cuts)


def describe_top_token(
    context: TrainedContext, logits: torch.Tensor, next_token: int | None
) -> str:
    """Return how a sentence ends: “top token” (%), and how likely the text's `next_token` is."""
    chances = logits.double().softmax(-1)
    best = int(chances.argmax())
    if next_token is None:
        return f"“{context.word(best)}” ({number(100 * chances[best].item())} %)."
    share = f"{number(100 * chances[next_token].item())} %"
    if next_token == best:
        return f"“{context.word(next_token)}” ({share}), as in the text."
    return (
        f"“{context.word(best)}” ({number(100 * chances[best].item())} %). The text"
        f" has “{context.word(next_token)}” ({share})."
    )


def _token_control(context: TrainedContext) -> Control:
    """Return the control that selects the token to predict after."""
    labels = context.prompt.labels
    name = "after" if context.predicts_next_token else "at"
    numbers = range(1, len(labels) + 1)
    words = [f"{name} token {n}: … {' '.join(labels[max(0, n - 5) : n])}" for n in numbers]
    return choice("After", "token", context.after + 1, numbers, words)


def _draw_text(context: TrainedContext, after: int, name: str, cuts: tuple[Cut, ...]):
    """Draw text generated behind token `after`, from 0, word by word; a click shows attention.

    `cuts` are ablated; () for the full model.
    """
    place = st.empty()
    steps = []
    try:
        going_on = experiment.continuation(
            context.bench, context.prompt, after, context.sampling, cuts, context.look.mode
        )
        with closing(going_on):  # a large one has its turn as long as it is not
            for step in going_on:
                steps.append(step)
                if len(steps) % 4 == 1:  # words appear as they are chosen
                    words = [
                        *context.prompt.labels[: after + 1],
                        *(context.word(s.token) for s in steps),
                    ]
                    place.markdown(literal(" ".join(words)))
    except ConfigError as error:
        place.info(literal(error), icon=":material/info:")
        return
    key = f"text_{'without' if cuts else 'whole'}"
    chosen = opened_step(key, steps)
    with place.container(gap="xxsmall"):
        figure(
            f"Generated text: {name}",
            f"Click a generated word to see its attention. Seed {context.sampling.draw}.",
        )
        step = steps[chosen]
        layer = context.look.layer_of(context.full_pass)
        head = context.look.head_of(context.full_pass)
        labels = context.prompt.labels[: after + 1]
        draw_generated_text(key, labels, steps, context.word, layer, head, context.prompt.unknown)
        read = (
            f"Shading shows {context.full_pass.head_name(layer, head)}'s attention from the token"
            " before the clicked word, which predicted it"
        )
        if any(
            cut.layer == layer and (cut == Cut(layer, "head", head) or "attn_out" in cut.sites())
            for cut in cuts
        ):
            read += " (ablated: not used)"
        st.caption(
            literal(
                f"“{context.word(step.token)}”: model probability {number(step.probability)},"
                f" sampling probability {number(step.chance)}. {read}."
            )
        )
