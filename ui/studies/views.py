"""Views of a study. They read only the store, wherever the study is trained."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core.experiments.training.plan import BASELINE
from core.measure.verdicts import DIFFERENCE, EQUIVALENT
from core.model.variants import MOST
from core.settings.environment import remove_paths
from core.settings.wording import count
from core.study.conditions import describe_mixed_comparisons
from core.study.database.schema import QUEUED, STATES
from core.study.database.store import taken_ahead
from core.study.picture import count_verdicts, describe_cell, shown_name
from core.study.plan import StudyError
from core.study.summary import MIXED, in_one_column, is_sparse
from core.study.tables import compare_studies, link, load_stored, run_table
from core.study.training_link import read_query
from ui.kit.page import explain_terms, figure, literal, table
from ui.kit.pages import TRAINING
from ui.kit.store import bind, change
from ui.pictures.ablation_matrix import draw_matrix as picture
from ui.shared.trainings import cache_rows, describe_guards, draw_learning
from ui.studies.chooser import draw_rerun_button
from ui.studies.context import NOT_STORED, StudyContext, StudyLook, view
from ui.studies.server import parse_study


def select_cells(table: pd.DataFrame, look: StudyLook) -> pd.DataFrame:
    """Draw filters of task and variant; return the rows that pass both; no choice passes all."""
    left, right = st.columns(2)
    with left:
        tasks = choose_several(
            look, "only_tasks", list(dict.fromkeys(table.task)), placeholder="all tasks"
        )
    with right:
        variants = choose_several(
            look,
            "only_variants",
            list(dict.fromkeys(table.variant)),
            placeholder="all variants",
            format_func=shown_name,
        )
    is_selected = table.task.isin(tasks) | (not tasks)
    return table[is_selected & (table.variant.isin(variants) | (not variants))]


def choose_task(look: StudyLook, tasks: list[str]) -> str:
    """Draw a menu of tasks bound to the link; return the chosen one, else the first."""
    chosen = look.of_task if look.of_task in tasks else tasks[0]
    return st.selectbox("Task", tasks, **bind("of_task", chosen), label_visibility="collapsed")


def choose_several(
    look: StudyLook,
    name: str,
    offered: list[str],
    usual: Sequence[str] = (),
    none: str = "",
    draw: Callable = st.multiselect,
    **words,
) -> list[str]:
    """Draw a multiple choice bound to a setting; return its names, else `usual`; [] for `none`.

    Args:
        look: View settings of the page.
        name: Setting that holds the selection.
        offered: Names to choose from.
        usual: Selection when nothing valid is named.
        none: Value for an empty selection.
        draw: Widget.
        **words: Passed on to the widget.
    """
    selected = getattr(look, name)
    chosen = [] if none and selected == none else _read_names(selected, offered) or list(usual)
    chosen = chosen[: words.get("max_selections")]  # a link may name more
    draw(
        look.settings()[name].label,
        offered,
        **bind(f"{name}_list", chosen, partial(_store_names, name, none)),
        label_visibility="collapsed",
        **words,
    )
    return chosen


def _store_names(name: str, none: str, names: list[str]):
    """Store the selected names in the setting, or `none` for none (a callback)."""
    change(**{name: "~".join(map(_escape, names)) or none})


def _read_names(text: str, offered: list[str]) -> list[str]:
    """Return the offered names that a setting's "~"-joined text has; others are dropped."""
    names = text.split("~") if text else []
    return [option for option in offered if _escape(option) in names]


def _escape(name: str) -> str:
    """Return a name with the separator "~" escaped: studies may use any names."""
    return name.replace("%", "%25").replace("~", "%7E")


@view.register(
    "curves",
    label="Curves",
    help=(
        "accuracy and loss on one task: baseline and up to four variants, with intervals over"
        " seeds."
    ),
)
def curves(context: StudyContext):
    """Draw a task's learning curves: baseline, up to four variants; a note for a built-in study."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    summary = context.summary
    left, right = st.columns([1, 2])
    with left:
        name = choose_task(context.look, list(dict.fromkeys(summary.task)))
    lines = summary[(summary.task == name) & (summary.variant != BASELINE)]
    with right:
        # Usually those that end lowest beside the baseline, which diverged first of all.
        comparable = lines[lines.difference.notna() | (lines.diverged > 0)]
        lowest = list(comparable.sort_values("difference", na_position="first").variant[:MOST])
        chosen = choose_several(
            context.look,
            "curves_of",
            list(lines.variant),
            lowest,
            BASELINE,
            max_selections=MOST,
            placeholder="the baseline alone",
            format_func=shown_name,
        )
    runs = load_stored(context.store, context.number, name, chosen)
    if runs is None:
        st.caption("No seed has results for all of these yet.")
        return
    if "rates" in summary:
        st.caption(
            "Each model is shown at its own learning rate. The matrix lists the chosen rates."
        )
    for note in runs.notes:
        st.caption(literal(note))
    if runs.mixed:
        st.caption(f"These curves mix conditions: {literal(runs.mixed)}.")
    draw_learning(runs)


COLUMNS = [
    "task",
    "variant",
    "seed",
    "state",
    "accuracy",
    "step",
    "steps",
    "seconds",
    "ended",
    "device",
    "torch",
    "code",
    "tries",
    "message",
]

FROM_STORE = [name for name in COLUMNS if name != "accuracy"]


@view.register(
    "runs",
    label="Runs",
    help="all runs with state, result, device and versions; filter and open them.",
)
def runs(context: StudyContext):
    """Draw all runs with filters and a link to the selected one; a note for a built-in study."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    rows = context.store.runs(context.number, spec=False)
    frame = pd.DataFrame.from_records(rows, columns=rows[0]._fields)[["id", *FROM_STORE]]
    frame.loc[frame.id.isin(taken_ahead(rows, context.store.now())), "state"] = (
        QUEUED  # as above the table
    )
    frame["accuracy"] = frame.pop("id").map(context.store.results(context.number))
    frame["ended"] = pd.to_datetime(frame.ended, unit="s")
    frame["code"] = frame.code.str[:12]
    frame["message"] = frame.message.map(remove_paths)
    run_states = [state for state in STATES if state in set(frame.state)]
    read = {state: f"{(frame.state == state).sum():,} {state}" for state in run_states}
    states = choose_several(
        context.look,
        "only_states",
        run_states,
        draw=st.pills,
        selection_mode="multi",
        format_func=read.get,
    )
    selected = select_cells(frame, context.look)
    selected = selected[selected.state.isin(states)] if states else selected
    which = (
        0 if len(selected) == len(frame) else hash(tuple(selected.index))
    )  # Streamlit knows a picked row by its place alone
    picked = table(
        selected[COLUMNS],
        "Every run.",
        exported=lambda: _export_run_table(context),
        width="stretch",
        height=420,
        on_select="rerun",
        selection_mode="single-row",
        key=f"run_picked_{context.number}_{which}",
        column_config={
            "accuracy": st.column_config.NumberColumn(format="%.3f"),
            "seconds": st.column_config.NumberColumn("seconds", format="%.1f", help="Worker time."),
            "step": st.column_config.NumberColumn("step", help="Steps completed and stored."),
            "code": st.column_config.TextColumn("code", help="Commit at training time."),
            "tries": st.column_config.NumberColumn("tries", help="Number of attempts."),
        },
    )
    rows = [index for index in picked.selection.rows if index < len(selected)]
    if not rows:
        st.caption(
            f"{len(selected):,} of {len(frame):,} runs. Select a run to open it in {TRAINING.name}."
        )
        return
    _draw_run_link(context, selected.iloc[rows[0]])


def _export_run_table(context: StudyContext) -> pd.DataFrame:
    """Return the table of runs for export, without spec and without paths in messages."""
    table = run_table(context.store, context.number).drop(columns="spec")
    return table.assign(message=table.message.map(remove_paths))


def _draw_run_link(context: StudyContext, picked):
    """Draw a link that opens a row of run_table and its baseline in Training; cache their rows."""
    specs = context.store.specs(context.number)
    spec = specs[picked.task, picked.variant]
    first = specs.get((picked.task, BASELINE))
    params = read_query(link(spec, first, [int(picked.seed)]))
    cache_rows(context.store, context.number, context.name, picked.task, picked.variant)
    label = f"Open {picked.task}, {picked.variant}, seed {picked.seed} in {TRAINING.name}"
    st.page_link(TRAINING.path, label=literal(label), icon=TRAINING.icon, query_params=params)


@view.register(
    "compare",
    label="Compare",
    help="this study and another one, cell by cell, on the seeds they share.",
)
def compare(context: StudyContext):
    """Draw a comparison of two stored studies, cell by cell; a note if there are not two."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    if not context.others:
        st.caption("There is no other study to compare with.")
        return
    against = context.look.against if context.look.against in context.others else context.others[0]
    words: dict[str, Any] = {
        "format_func": lambda name: f"vs {name}",
        "label_visibility": "collapsed",
    }
    name = st.selectbox("Against", context.others, **bind("against", against), **words)
    compared = compare_studies(context.store, context.number, context.store.find(name))
    if compared.empty:
        st.caption(
            f"{literal(context.name)} and {literal(name)} have no task and variant in common."
        )
        return
    selected: Any = select_cells(compared, context.look)
    n_clear = int((selected.verdict == DIFFERENCE).sum())
    n_equal = int((selected.verdict == EQUIVALENT).sum())
    same = (selected.settings == "same").sum()
    figure(
        f"{context.name} vs {name}",
        f"{count(len(selected), 'shared cell')} ({same} with the same settings); "
        f"{count(n_clear, 'significant difference')} (paired t-test, Holm-corrected), {n_equal}"
        " equivalent within the margin.",
    )
    _draw_mixed(selected.mixed)
    words = {"other_accuracy": f"accuracy, {name}", "accuracy": f"accuracy, {context.name}"}
    words |= {"low": "95 % CI low", "high": "95 % CI high"}
    table(
        selected.rename(columns=words),
        "This study and the other, cell by cell.",
        exported=selected,
        width="stretch",
    )


@view.register("source", label="File", help="the study file, and skipped variants.")
def source(context: StudyContext):
    """Draw the study's TOML file and its notes."""
    st.code(context.source, language="toml", line_numbers=True, height=420)
    try:
        study = parse_study(context.source)
    except StudyError as error:
        st.caption(
            "This version of the project no longer supports this study file:"
            f" {literal(error.problems[0])}"
        )
        return
    for note in study.notes:
        st.caption(literal(note))
    st.caption(
        "From the command line: save it as `study.toml`, then run `python -m core.study run"
        " study.toml`."
    )


READING = (
    "Numbers are the difference from the baseline in percentage points, with its 95 % CI, corrected"
    " for the other variants. “=”: equivalent within the margin. Faded: undecided."
)
FLOOR = (
    " Bar at the foot of a cell: noise floor, from the baseline with other seeds or rewritten."
    " 25 points fill the cell."
)
TESTS = (
    "Paired t-tests over seeds. p and intervals are Holm-corrected per task. The chance of any"
    " false difference is at most 5 % per task, not per study, over all looks. An interval excludes"
    " 0 exactly where p < 0.05; the intervals of a task are not simultaneous. A run has learnt a"
    " task from halfway between chance and the best possible accuracy. Where only some runs learnt"
    " a task, cells say how many did, and these counts are compared with the baseline's"
    " (Boschloo's exact test). Equivalence assumes that other runs scatter as these did: few runs"
    " do not exclude rare failures. Equivalent models may still learn at different speeds, which"
    " the curves show."
)


@view.register(
    "matrix",
    label="Matrix",
    help="effect of each variant on each task, with intervals; click a cell to open it.",
)
def matrix(context: StudyContext):
    """Draw filters, the ablation matrix, notes on its verdicts, and the same as a table."""
    selected = select_cells(context.summary, context.look)
    if selected.empty:
        st.caption("No results for this selection.")
        return
    figure(
        "Change in accuracy by variant and task",
        f"Click a cell to see its learning curves in {TRAINING.name}. {READING}",
    )
    st.caption(count_verdicts(selected))
    if "guards" in selected and selected.guards.iloc[0] != "none":
        st.caption(describe_guards(selected.guards.iloc[0].split(", ")))
    mixed = selected.mixed[selected.variant != BASELINE]
    if _draw_mixed(mixed) and context.store is not None:
        draw_rerun_button(context.store, context.number)
    drawn = in_one_column(selected, "change in accuracy") if is_sparse(selected) else selected
    picture(drawn, "study_matrix", partial(_cache_cell, context))
    floor = FLOOR if "noise_floor" in selected and selected.noise_floor.notna().any() else ""
    st.caption(f"{TESTS}{floor}", help=explain_terms(TESTS))
    with st.expander("Table view"):
        hidden = ["link"] if any(selected.mixed) else ["link", MIXED]
        named = selected.drop(columns=hidden).assign(variant=selected.variant.map(shown_name))
        table(
            named, "Accuracy, difference and cost of each cell.", exported=selected, width="stretch"
        )
        for line in selected[selected.diverged > 0].itertuples():
            st.caption(literal(describe_cell(line)))


def _draw_mixed(texts) -> bool:
    """Draw how many comparisons mix conditions, and which; return whether any does.

    Args:
        texts: Column mixed of a table, one text per comparison.
    """
    sentence = describe_mixed_comparisons(texts)
    if sentence:
        st.caption(f"{literal(sentence)} A difference may come from these alone.")
    return bool(sentence)


def _cache_cell(context: StudyContext, line):
    """Cache the rows of a clicked cell, for Training (a callback)."""
    if context.store is not None:
        name, variant = getattr(line, "cell", (line.task, line.variant))
        cache_rows(context.store, context.number, context.name, name, variant)
