import pandas as pd
import streamlit as st

from core.experiments.training.plan import BASELINE
from core.settings.environment import without_paths
from core.study.database.schema import QUEUED, STATES
from core.study.database.store import taken_ahead
from core.study.link import read_query
from core.study.tables import link, run_table
from ui.kit.page import literal, table
from ui.kit.pages import TRAINING
from ui.shared.known import hand_over
from ui.studies.cells import cells, several
from ui.studies.context import NOT_STORED, view

COLUMNS = ["task", "variant", "seed", "state", "accuracy", "step", "steps", "seconds", "ended", "device", "torch", "code", "tries", "message"]  # fmt: skip

FROM_STORE = [name for name in COLUMNS if name != "accuracy"]


@view
def runs(context):
    """Runs: every training by itself: its state, its end, where and with what it ran; filter them, and open any."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    rows = context.store.runs(context.number, spec=False)
    frame = pd.DataFrame.from_records(rows, columns=rows[0]._fields)[["id", *FROM_STORE]]
    frame.loc[frame.id.isin(taken_ahead(rows, context.store.now())), "state"] = QUEUED  # as above the table
    frame["accuracy"] = frame.pop("id").map(context.store.results(context.number))
    frame["ended"] = pd.to_datetime(frame.ended, unit="s")
    frame["code"] = frame.code.str[:12]
    frame["message"] = frame.message.map(without_paths)
    there = [state for state in STATES if state in set(frame.state)]
    read = {state: f"{(frame.state == state).sum():,} {state}" for state in there}
    states = several(
        context.look, "only_states", there, draw=st.pills, selection_mode="multi", format_func=read.get,
    )  # fmt: skip
    kept = cells(frame, context.look)
    kept = kept[kept.state.isin(states)] if states else kept
    which = 0 if len(kept) == len(frame) else hash(tuple(kept.index))  # Streamlit knows a picked row by its place alone
    picked = table(
        kept[COLUMNS], "Every run.", taken=lambda: _taken(context), width="stretch", height=420,
        on_select="rerun", selection_mode="single-row", key=f"run_picked_{context.number}_{which}",
        column_config={
            "accuracy": st.column_config.NumberColumn(format="%.3f"),
            "seconds": st.column_config.NumberColumn("seconds", format="%.1f", help="Of a worker's time."),
            "step": st.column_config.NumberColumn("step", help="Steps that are done and stored."),
            "code": st.column_config.TextColumn("code", help="The commit it was trained with."),
            "tries": st.column_config.NumberColumn("tries", help="How many times it was begun."),
        },
    )  # fmt: skip
    rows = [at for at in picked.selection.rows if at < len(kept)]
    if not rows:
        st.caption(
            f"{len(kept):,} of {len(frame):,} runs. Pick one (the box at its left) to open it on the page {TRAINING.name}."
        )
        return
    _open(context, kept.iloc[rows[0]])


def _taken(context):
    table = run_table(context.store, context.number).drop(columns="spec")
    return table.assign(message=table.message.map(without_paths))


def _open(context, picked):
    """A link to a run, beside its baseline with the same seed."""
    specs = context.store.specs(context.number)
    own, first = specs[picked.task, picked.variant], specs.get((picked.task, BASELINE))
    params = read_query(link(own, first, [int(picked.seed)]))
    hand_over(context.store, context.number, context.name, picked.task, picked.variant)
    label = f"Open {picked.task}, {picked.variant}, seed {picked.seed} on the page {TRAINING.name}"
    st.page_link(TRAINING.path, label=literal(label), icon=TRAINING.icon, query_params=params)
