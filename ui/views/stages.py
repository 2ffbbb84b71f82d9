import streamlit as st

from core import charts
from core.experiments.stages import stages as table_of
from core.measure import meter
from ui.page import chart, figure
from ui.page import table as show_table
from ui.views.base import pick, sure, views, weights


@views
def stages(seen, look):
    """Stages: the numbers at every point of the block."""
    pick("layer", seen=seen)
    table = table_of(seen, look.layer_of(seen))
    first, last = table.iloc[0], table.iloc[-1]
    figure(
        "How large are the numbers at each stage?",
        sure(
            f"Standard deviation goes from {first['std']:.3g} at the input to {last['std']:.3g} at the output. ",
            first["std"],
            last["std"],
        )
        + "Padding tokens are counted in. " * (seen.config.padding > 0)
        + "Line: lowest to highest; bar: mean ± one standard deviation; tick: mean.",
        weights(seen),
    )
    drawn = table.assign(
        stage=[charts.word(at, name) for at, name in enumerate(table.stage)],
        **{"from": table["mean"] - table["std"], "to": table["mean"] + table["std"]},
    )
    chart(charts.stages(), drawn, "Spread of the numbers at every stage of the block.", height=36 * len(table) + 60)
    number = {
        name: st.column_config.NumberColumn(meter.label(name), help=meter.help(name), format="%.4g") for name in meter
    }
    number["zeros"] = st.column_config.NumberColumn(meter.label("zeros"), help=meter.help("zeros"), format="percent")
    words = {
        "stage": "Stage",
        "site": st.column_config.TextColumn("Site", help="TransformerLens's name"),
        "shape": "Shape",
    }
    show_table(table, "Statistics of every stage.", column_config=number | words)
