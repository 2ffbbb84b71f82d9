import pandas as pd
import streamlit as st

from core.experiments.forward import continuation
from core.model.text import shown
from core.settings.setting import ConfigError
from core.settings.wording import count, number
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import figure, literal
from ui.kit.takeaway import note
from ui.pictures.chips import generated, opened_step
from ui.shared.base import pick


@view.register("text", label="Text", help="how the sentence goes on, word by word.")
def text(context):
    forward_pass, look = context.forward_pass, context.look
    if forward_pass.config.attention:
        pick("layer", "head", forward_pass=forward_pass)
    given = forward_pass.tokens[: forward_pass.n_real]
    config, machine, kind = forward_pass.config, forward_pass.machine, forward_pass.kind
    try:
        words, steps = continuation(config, given, machine, kind, context.sampling, look.context)
    except ConfigError as error:
        st.info(literal(error), icon=":material/info:")
        return
    figure("How does the text go on?", _about(kind, words, look.context, len(given) + len(steps)), forward_pass.weights)
    beside.no_difference()
    key = beside.keyed("text")
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    labels = forward_pass.labels[: forward_pass.n_real]
    generated(key, labels, steps, lambda token: shown(words[token]), layer, head)
    st.caption(literal(_chosen(forward_pass, words, steps, opened_step(key, steps), look)))
    rows = [(words[step.token], step.probability, step.chance) for step in steps]
    table = pd.DataFrame(rows, columns=["word", "probability", "chance"])
    note(beside.named("Words that the text goes on with"), lambda: table)


def _about(kind: str, words, context: int, length: int) -> str:
    """Return what the model chooses from, and whether its context has slid."""
    from_what = f"It chooses among the {count(len(words), 'word')} that it knows"
    if kind == "random":
        from_what = f"It was never trained: it chooses among the {count(len(words), 'different word')} of your sentence"
    slides = "its context is never full" if length - 1 <= context else "when its context is full, it slides"
    return f"{from_what}. It reads at most {count(context, 'token')}: {slides}. Click a new word to see what was read to choose it."


def _chosen(forward_pass, words, steps, opened: int, look) -> str:
    step, before = steps[opened], forward_pass.n_real + opened
    said = f"“{shown(words[step.token])}” was chosen with a chance of {number(step.chance)} (the model gave it {number(step.probability)})"
    read = f"It was chosen after reading the words {max(0, before - look.context) + 1} to {before}."
    if step.patterns:
        head = forward_pass.head_name(look.layer_of(forward_pass), look.head_of(forward_pass))
        read += f" Shaded is what {head} read, from the last of them."
    return f"{said}. {read}"
