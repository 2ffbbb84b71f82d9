import math
from decimal import Decimal

import streamlit as st

from core.experiments.block.stages import moments, normalised, normed, norms, read_vector
from core.figures.charts import stream as charts
from core.model.parts import MENUS
from core.settings.setting import ConfigError
from core.settings.wording import count, number
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import capital, chart, figure, literal, small_table
from ui.kit.store import bind
from ui.shared.base import pick, sure, weights


@view
def norm(context):
    """Norm: what LayerNorm does to one token."""
    _of_a_token(context.forward_pass, context.look)
    if not beside.second():
        _of_a_vector(context.look, context.forward_pass.config.norm_eps)


def _of_a_token(forward_pass, look):
    sites = norms(forward_pass)
    if not sites and forward_pass.config.part("norm").normalises:
        st.info("Both sub-layers are off, and their norms with them.", icon=":material/toggle_off:")
        return
    if not sites:
        st.info("There is no norm in this block. Choose one under Parts.", icon=":material/toggle_off:")
        return
    pick("token", "layer", forward_pass=forward_pass)
    for site, (sublayer, place) in sites.items():
        table, numbers = normalised(forward_pass, look.layer_of(forward_pass), site, look.token_of(forward_pass))
        where = "attention" if sublayer == "attention" else "the feed-forward network"
        called = f"Norm {site[2]}" if site[3:] == "" else f"Second norm {site[2]}"
        biased = "bias" in dict(forward_pass.config.part("norm")("", 1, forward_pass.config.bias).named_parameters())
        gain = f"Gain is 1{' and bias 0' * biased} before any training."
        if forward_pass.kind != "random":
            gain = f"Then it is multiplied by the gain{', and the bias is added' * biased}, as learnt."
        figure(
            f"{called}, {place} {where}: “{forward_pass.labels[look.token_of(forward_pass)]}” before and after",
            sure(f"{_formula(forward_pass.config.norm, numbers)} {gain}", numbers["variance"]),
            weights(forward_pass),
        )
        chart(charts.before_after(), table, f"The token's vector before and after {called.lower()}.", height=260)


def _formula(name: str, n: dict) -> str:
    """What a norm of the menu does, with the numbers of one vector; in its own words where it has no formula."""
    return _filled(name, "formula", n, mean=number(n["mean"], 4)) or capital(MENUS["norm"].help(name))


def _worked(name: str, value: float, n: dict) -> str:
    """The formula for one number, up to its result; nothing where a norm has none."""
    mean = number(n["mean"], 4)
    return _filled(name, "worked", n, x=number(value, 4), mean=f"({mean})" if n["mean"] < 0 else mean)


def _filled(name: str, which: str, n: dict, **words) -> str:
    """A norm's own sentence with the numbers in it, or "" where it has none."""
    part = MENUS["norm"][name]
    if not getattr(part, which):
        return ""
    scale, epsilon = n[part.divides_by], n["epsilon"]
    size = number(math.sqrt(scale + epsilon), 4)
    return getattr(part, which).format(scale=number(scale, 4), epsilon=f"{Decimal(str(epsilon)):f}", size=size, **words)


def _of_a_vector(look, eps):
    """The same with numbers of one's own, by every norm of the menu."""
    st.markdown("**Try it with numbers of your own**")
    st.text_input(
        "Vector", **bind("vector", look.vector), placeholder="3.2, −1.5, 0.8, 2.1 …", label_visibility="collapsed"
    )
    try:
        values = read_vector(look.vector)
    except ConfigError as error:
        st.error(literal(error))
        return
    if not values:
        st.caption("Type numbers with commas between them, and see what each norm makes of them.")
        return
    numbers, table = moments(values, eps), normed(values, eps)
    figure(
        f"What does each norm make of {count(len(values), 'number')}?",
        f"Mean {number(numbers['mean'], 4)}, variance {number(numbers['variance'], 4)} (divided by {len(values)}), mean square {number(numbers['mean square'], 4)}. "
        "Gain 1, bias 0.",
    )
    for name in MENUS["norm"]:
        worked = f"First number: {_worked(name, values[0], numbers)}{number(table[name][0], 4)}."
        st.markdown(
            f":small[**{literal(MENUS['norm'].label(name))}.** {literal(f'{_formula(name, numbers)} {worked}')}]"
        )
    labels = {name: MENUS["norm"].label(name) for name in MENUS["norm"]}
    shown = table.astype({"place": str}).rename(columns=labels)
    for name in ("typed", *labels.values()):
        shown[name] = [number(value, 4) for value in shown[name]]
    small_table(shown, "The typed vector, and what each norm makes of it.", taken=table.rename(columns=labels))
