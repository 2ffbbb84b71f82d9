from functools import partial

import streamlit as st

from core.experiments.trained import prompt
from core.model.knockout import Cut
from core.settings.wording import count, head_name
from ui.kit.page import capital, literal
from ui.kit.store import is_moved
from ui.shared import attention as one_block
from ui.trained.context import put_back, take_out, view, with_knockout


@view
def attention(context):
    """Attention: who reads from whom, in the trained model."""
    _found(context)
    one_block.attention(with_knockout(context), context.look)


def _found(context):
    """What this head does on held-out sentences, where the sentences tell; and the knife."""
    if not context.readings:
        return
    layer, head = context.look.layer_of(context.whole), context.look.head_of(context.whole)
    each = next(each for each in context.readings if (each.layer, each.head) == (layer, head))
    best = context.readings[0]
    cut = Cut(layer, "head", head)
    sentence = (
        f"**{capital(cut.name)}**, across a clause with a noun of the other number. The word before the verb, where the verb is "
        f"chosen, puts **{each.before.mean:.2f}** of its attention on the subject. The verb itself puts **{each.verb.mean:.2f}** there (95 % interval {each.verb.low:.2f} to "
        f"{each.verb.high:.2f}, {count(each.verb.n, 'held-out sentence')}; an even spread: {each.even:.2f})."
    )
    if each is not best:
        sentence += f" The head that reads the subject most is {head_name(best.layer, best.head)}: the word before the verb puts {best.before.mean:.2f} there, the verb {best.verb.mean:.2f}."
    sentence += " " + literal(_here(context, layer, head))
    left, right = st.columns([7, 3], vertical_alignment="center")
    with left:
        st.markdown(f":small[{sentence}]")
    if not is_moved("out"):
        return
    with right:
        out = cut in context.cuts
        st.button(
            f"Put {cut.name} back" if out else f"Remove {cut.name}", key="remove_head", icon=":material/content_cut:",
            on_click=put_back if out else partial(take_out, taken="knockout"), args=(cut.write(),), type="secondary" if out else "primary", width="stretch",
        )  # fmt: skip


def _here(context, layer, head) -> str:
    """What it does in this text."""
    verb = prompt.verb_of(context.prompt)
    if verb is None:
        return ""
    row = context.whole.sites["pattern"][layer][head, verb]
    source = int(row.argmax())
    return (
        f"In this text “{context.whole.labels[verb]}” puts {row[source]:.2f} of it on “{context.whole.labels[source]}”."
    )
