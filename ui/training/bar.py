"""Start, stop, how far it is and how long it will take; beside it the experiments, and the way to take a model apart."""

import streamlit as st

from core.experiments.training.plan import Plan
from core.settings.wording import count
from core.train.budget import duration, expected, max_seconds
from ui.kit import jobs
from ui.kit.guard import fragment
from ui.kit.page import literal
from ui.kit.store import value
from ui.training import experiments, take_apart
from ui.training.finished import finished

ANEW = "Train it anew, here"


def bar(planned: Plan, kinds):
    """Start, stop, how far it is and how long it will take. Looks at the job again and again while it is going."""
    trainings = jobs.started()
    going = bool(trainings) and trainings.going
    if going:
        fragment(_bar, run_every=jobs.TICK)(planned, kinds, going)
    else:
        _bar(planned, kinds, going)  # no fragment: a click on Start draws the whole page at once


def _bar(planned, kinds, was_going):
    trainings = jobs.started()
    if trainings:
        trainings.job.poll()
    if value("begin") or was_going != (bool(trainings) and trainings.going):
        st.rerun()  # all of the page: with or without its timers, and with the settings of an experiment
    same = bool(trainings) and trainings.plan == planned
    known = None if same else finished(planned)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if trainings and trainings.going:
            st.button("Stop", icon=":material/stop:", key="stop", on_click=jobs.stop)
            if not same:
                st.button("Train the new settings", key="anew", type="primary", on_click=jobs.begin, args=(planned,))
        elif same and trainings.job.stopped:
            st.button("Continue", icon=":material/play_arrow:", key="resume", type="primary", on_click=jobs.resume)
        else:
            anew = bool(known) and known.anew
            st.button(
                ANEW if anew else "Start", icon=":material/play_arrow:", key="start", type="primary", on_click=jobs.begin,
                args=(planned,), disabled=same and trainings.job.done and not trainings.job.error,
            )  # fmt: skip
        said = _said(planned, trainings, same, known)
        if trainings and trainings.going:
            st.progress(min(1.0, trainings.job.progress), text=said)
        else:
            st.markdown(f":small[{said}]", width="stretch")
        shown = known or trainings
        if shown and not shown.going:
            take_apart.menu(shown)
        experiments.menu(kinds)
    if known:
        st.caption(known.said)
    why = jobs.refused(planned)
    if why:
        st.error(literal(why), icon=":material/timer_off:")


def _said(planned, trainings, same, known) -> str:
    if trainings and trainings.going:
        other = "" if same else f" The settings have changed since the start. The new ones mean {_takes(planned)}."
        return f"{literal(jobs.status(trainings.job))}.{other}"
    if same:
        return literal(jobs.status(trainings.job))
    if known:
        nothing, begins = "Start has no training left to do.", "" if known.anew else "Start begins "
        return nothing if known.states else f"{begins}{_takes(planned)}."
    changed = "The settings have changed since this was trained. " if trainings else ""
    return f"{changed}Start begins {_takes(planned)}."


def _takes(planned) -> str:
    """What there is to train, and how long that takes here."""
    pool = jobs.workers()
    states = planned.states().values()
    new = [state for state in states if not pool.is_known(state)]
    soon = (
        f"{count(len(states), 'training')} of {count(planned.training.steps, 'step')}: about "
        f"{duration(expected(new, pool.count, pool.pace))} on {count(pool.count, 'worker')}"
    )
    if len(new) < len(states):
        soon += f", {len(states) - len(new)} of them known already"
    elif expected(new, pool.count, pool.pace) > max_seconds():
        soon += f"; at most {duration(max_seconds())} are allowed"
    return soon
