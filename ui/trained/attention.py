"""Views of attention in the text that the model reads; most are those of the page "One block"."""

from functools import partial

import streamlit as st
import torch

from core.experiments.trained import prompt
from core.experiments.trained import prompt as experiment
from core.model.knockout import Cut
from core.settings.wording import count, head_name, number
from ui.kit.page import capital, figure, literal
from ui.kit.store import is_moved
from ui.kit.takeaway import note
from ui.pictures.heatmaps import heatmaps
from ui.shared import attention as shared
from ui.trained.context import put_back, take_out, view, with_knockout


@view.register(
    "layers",
    label="Layer by layer",
    help="what each layer would say next (logit lens), and what reaches a word through all (rollout).",
)
def layers(context):
    forward_pass = with_knockout(context)
    labels = forward_pass.labels
    lens = experiment.logit_lens(context.bench.model, forward_pass, context.word)
    depth = forward_pass.config.n_layers + 1
    cells = torch.tensor(lens.of_last.to_numpy()).view(1, depth, -1)
    rows = ["embedding", *[f"layer {n}" for n in range(1, depth)]]
    here = lens[lens.token == context.after + 1].reset_index()
    last = here.iloc[-1]
    others = here[here.word_id != last.word_id]
    since = int(others.depth.max() + 1) if len(others) else 0
    figure(
        f"When does it know? {'The next word' if context.language else 'The answer'} as each layer would have it (logit lens)",
        f"{'After' if context.language else 'At'} “{labels[context.after]}” the model ends with “{last.word}” ({number(last.probability)}); it is the likeliest from {rows[since]} on. "
        "Colour: probability of the word that the model ends with.",
        forward_pass.weights,
    )
    heatmaps(
        "lens", cells, rows, labels, what="probability of the final answer, read off early", square=False, height=90 + 40 * depth if depth <= 6 else 420,
        alt="Logit lens: probability of the final answer at each layer and token.", texts=[lens.word.tolist()],
    )  # fmt: skip
    note("logit lens", lambda: lens)
    if not forward_pass.sites.get("pattern"):
        return
    rolled = experiment.rollout(forward_pass, context.cuts if forward_pass is context.without else ())
    layer = context.look.layer_of(forward_pass)
    figure(
        f"What reaches a word through {count(len(rolled), 'layer')}? (attention rollout)",
        _reached(context, rolled),
        f"Heads averaged{', a residual counted as much as attention' * forward_pass.config.residual_attention} (Abnar and Zuidema, 2020): what could flow, not what did",
    )
    reached = experiment.reachable(forward_pass)
    chosen = [layer, -1] if layer < len(rolled) - 1 else [-1]
    shown = torch.stack([rolled[at].masked_fill(~reached[at], torch.nan) for at in chosen])
    titles = [f"up to layer {layer + 1}", f"up to layer {len(rolled)}"][-len(shown) :]
    heatmaps(
        "rollout", shown, labels, labels, titles=titles, what="share of the word's stream, row from column", blank="masked",
        alt="Attention rollout.", height=400,
    )  # fmt: skip
    st.caption("Choose the word under Next word, the layer under Attention.")


def _reached(context, rolled) -> str:
    label, row = context.whole.labels[context.after], rolled[-1][context.after].clone()
    own, row[context.after] = row[context.after].item(), 0
    if not row.any():
        return f"“{label}” has nothing but itself to read." if own else f"Nothing of any word reaches “{label}”."
    source = int(row.argmax())
    return f"“{label}” gets {number(row[source].item())} from “{context.whole.labels[source]}”, more than from any other word but itself."


@view.register("attention", label="Attention", help="who reads from whom, in the trained model.")
def attention(context):
    _found(context)
    shared.attention(with_knockout(context), context.look)


def _found(context):
    """Draw what this head does on held-out sentences, where the sentences tell; and the knife."""
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
    """Return what it does in this text."""
    verb = prompt.verb_of(context.prompt)
    if verb is None:
        return ""
    row = context.whole.sites["pattern"][layer][head, verb]
    source = int(row.argmax())
    return (
        f"In this text “{context.whole.labels[verb]}” puts {row[source]:.2f} of it on “{context.whole.labels[source]}”."
    )


@view.register("steps", label="Step by step", help="one head by hand.")
def steps(context):
    shared.steps(with_knockout(context), context.look)


@view.register("heads", label="Heads", help="what each head does differently.")
def heads(context):
    shared.heads(with_knockout(context), context.look)


@view.register("pairs", label="Marked pairs", help="how much attention falls on words that belong together.")
def pairs(context):
    shared.pairs(with_knockout(context), context.look, context.look.prompt)
