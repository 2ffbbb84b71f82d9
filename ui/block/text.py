"""View of generated text, with attention at each generated token."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.experiments.forward import Pass, continuation
from core.model.text import shorten_token
from core.settings.setting import ConfigError
from core.settings.wording import count, number
from ui.block.context import BlockContext, BlockLook, view
from ui.kit import side_by_side
from ui.kit.page import figure, literal
from ui.kit.takeaway import offer_table
from ui.pictures.chips import draw_generated_text, opened_step
from ui.shared.base import draw_picks


@view.register("text", label="Text", help="generated text, token by token.")
def text(context: BlockContext):
    """Draw a continuation of the text; a click on a generated token shows its attention."""
    forward_pass = context.forward_pass
    look = context.look
    if forward_pass.config.attention:
        draw_picks("layer", "head", forward_pass=forward_pass)
    tokens = forward_pass.tokens[: forward_pass.n_real]
    config = forward_pass.config
    machine = forward_pass.machine
    kind = forward_pass.kind
    try:
        words, steps = continuation(config, tokens, machine, kind, context.sampling, look.context)
    except ConfigError as error:
        st.info(literal(error), icon=":material/info:")
        return
    figure(
        "Generated text",
        _describe_sampling(kind, words, look.context, len(tokens) + len(steps)),
        forward_pass.weights,
    )
    side_by_side.caption_no_difference()
    key = side_by_side.key_of_side("text")
    layer = look.layer_of(forward_pass)
    head = look.head_of(forward_pass)
    labels = forward_pass.labels[: forward_pass.n_real]
    draw_generated_text(key, labels, steps, lambda token: shorten_token(words[token]), layer, head)
    st.caption(literal(_describe_token(forward_pass, words, steps, opened_step(key, steps), look)))
    rows = [(words[step.token], step.probability, step.chance) for step in steps]
    table = pd.DataFrame(rows, columns=["word", "probability", "chance"])
    offer_table(side_by_side.with_side_name("Generated tokens"), lambda: table)


def _describe_sampling(
    weights_kind: str, vocabulary: Sequence[str], context_length: int, n_tokens: int
) -> str:
    """Return sentences on the vocabulary sampled from and on the context length.

    `n_tokens` counts prompt and generated words.
    """
    from_what = f"Sampled from a vocabulary of {count(len(vocabulary), 'token')}"
    if weights_kind == "random":
        from_what = (
            f"Untrained model, sampled from the {count(len(vocabulary), 'distinct token')} of your"
            " sentence"
        )
    tokens = count(context_length, "token")
    size = tokens if n_tokens - 1 <= context_length else f"the last {tokens}"
    return f"{from_what}. Context: {size}. Click a generated word to see its attention."


def _describe_token(
    forward_pass: Pass, vocabulary: Sequence[str], steps, step_index: int, look: BlockLook
) -> str:
    """Return sentences on generated token `step_index`, from 0: probabilities, context, shading."""
    step = steps[step_index]
    before = forward_pass.n_real + step_index
    sentence = (
        f"“{shorten_token(vocabulary[step.token])}”: model probability {number(step.probability)},"
        f" sampling probability {number(step.chance)}"
    )
    read = f"Context: tokens {max(0, before - look.context) + 1} to {before}."
    if step.patterns:
        head = forward_pass.head_name(look.layer_of(forward_pass), look.head_of(forward_pass))
        read += (
            f" Shading shows {head}'s attention from the token before the clicked word, which"
            " predicted it."
        )
    return f"{sentence}. {read}"
