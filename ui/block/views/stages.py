import streamlit as st

from core.experiments.block.stages import stages as table_of
from core.figures.charts import stream as charts
from core.figures.spec import word
from core.measure.tensor_meters import meter
from core.settings.wording import number
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.kit.page import table as show_table
from ui.shared.base import pick, sure, weights


@view
def stages(context):
    """Stages: the numbers at every point of the block."""
    forward_pass = context.forward_pass
    pick("layer", forward_pass=forward_pass)
    table = table_of(forward_pass, context.look.layer_of(forward_pass))
    first, last = table.iloc[0], table.iloc[-1]
    figure(
        "How large are the numbers at each stage?",
        sure(
            _change(number(first["std"]), number(last["std"])),
            first["std"],
            last["std"],
        )
        + "Padding tokens are counted in. " * (forward_pass.config.padding > 0)
        + "Line: lowest to highest; bar: mean ± one standard deviation; tick: mean.",
        weights(forward_pass),
    )
    drawn = table.assign(
        stage=[word(at, name) for at, name in enumerate(table.stage)],
        **{"from": table["mean"] - table["std"], "to": table["mean"] + table["std"]},
    )
    chart(charts.stages(), drawn, "Spread of the numbers at every stage of the block.", height=36 * len(table) + 60)
    numbers = {
        name: st.column_config.NumberColumn(
            meter.label(name),
            help=meter.help(name),
            format="percent" if name == "zeros" else "%.3g",
            width=54 if beside.alone() else 70,
        )
        for name in meter
    }
    words = {  # as wide as all of them have room for beside the drawing, on a page of 1280 pixels
        "stage": st.column_config.TextColumn("Stage", width=152),
        "site": st.column_config.TextColumn("Site", help="TransformerLens's name", width=66),
        "shape": st.column_config.TextColumn("Shape", width=60),
    }
    # Beside another the numbers come first.
    order = None if beside.alone() else ["stage", *meter, "site", "shape"]
    show_table(table, "Statistics of every stage.", column_config=numbers | words, column_order=order)


def _change(before: str, after: str) -> str:
    """Say how the standard deviation changes from the input to the output."""
    if before == after:
        return f"Standard deviation is {after} at the input and at the output. "
    return f"Standard deviation goes from {before} at the input to {after} at the output. "
