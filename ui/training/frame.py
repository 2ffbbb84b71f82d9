"""What stands around the views of the page "Training": the task, the start button with its progress, the experiments."""

import html
from functools import partial

import streamlit as st

from core.checkpoints import own
from core.checkpoints.zips import zipped
from core.experiments.training.plan import Plan
from core.experiments.training.results import last
from core.experiments.training.showcase import showcase
from core.export.slug import slug
from core.settings.wording import count
from core.tasks import task
from core.train.budget import duration, expected, max_seconds, span
from ui.kit import controls, jobs, takeaway
from ui.kit.guard import fragment
from ui.kit.page import capital, literal
from ui.shared import models as choose
from ui.training.base import TrainingLook, views


def task_row(training):
    """Which task, and what it is: an example drawn from it, what guessing gets right, what it is said to need."""
    left, right = st.columns([2, 7], vertical_alignment="center")
    with left:
        controls.control(training, "task", label_visibility="collapsed")
    learnt = task[training.task]
    reads, answer = learnt.example().split(": ", 1)[1].split(" → ")
    # A long answer stands below what is read, word under word.
    gap = " → " if len(reads + answer) < 80 else "<br><span style='opacity:.75;visibility:hidden'>For example</span> "
    with right:
        st.html(
            "<div style='font-size:.9rem;line-height:1.45'>"
            f"{html.escape(capital(task.help(training.task).split(' Example (')[0]))} "
            f"<span style='opacity:.75'>Chance {100 * learnt.chance:.3g} %, best possible {100 * learnt.best:g} %.</span>"
            f"<div style='overflow-x:auto;white-space:nowrap'><span style='opacity:.75'>For example</span> "
            f"<code>{html.escape(reads)}</code>{gap}<code>{html.escape(answer)}</code></div></div>"
        )


def bar(planned: Plan, kinds):
    """Start, stop, how far it is and how long it will take. Looks at the job again and again while it is going."""
    running = jobs.running()
    going = bool(running) and running.going
    if going:
        fragment(_bar, run_every=jobs.TICK)(planned, kinds, going)
    else:
        _bar(planned, kinds, going)  # no fragment: a click on Start draws the whole page at once


def _bar(planned, kinds, was_going):
    running = jobs.running()
    if running:
        running.job.poll()
    if controls.value("begin") or was_going != (bool(running) and running.going):
        st.rerun()  # all of the page: with or without its timers, and with the settings of an experiment
    same = bool(running) and running.plan == planned
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running and running.going:
            st.button("Stop", icon=":material/stop:", key="stop", on_click=jobs.stop)
            if not same:
                st.button("Train the new settings", key="anew", type="primary", on_click=jobs.begin, args=(planned,))
        elif same and running.job.stopped:
            st.button("Continue", icon=":material/play_arrow:", key="resume", type="primary", on_click=jobs.resume)
        else:
            st.button(
                "Start", icon=":material/play_arrow:", key="start", type="primary", on_click=jobs.begin,
                args=(planned,), disabled=same and running.job.done and not running.job.error,
            )  # fmt: skip
        said = _said(planned, running, same)
        if running and running.going:
            st.progress(min(1.0, running.job.progress), text=said)
        else:
            st.markdown(f":small[{said}]", width="stretch")
        if running and not running.going and _trained(running):
            _take_apart(running)
        _experiments(kinds)
    why = jobs.refused(planned)
    if why:
        st.error(literal(why), icon=":material/timer_off:")


def _said(planned, running, same) -> str:
    if running and running.going:
        other = "" if same else " The settings have changed since the start."
        return f"{literal(jobs.status(running.job))}.{other}"
    pool = jobs.workers()
    many = len(planned.arms) * planned.trial.seeds
    states = planned.states().values()
    least, most = (expected(states, pool.count, pace) for pace in pool.pace.span)
    soon = (
        f"{count(many, 'training')} of {count(planned.training.steps, 'step')}: about "
        f"{span(least, most)} on {count(pool.count, 'worker')}"
    )
    known = pool.known(states)
    if known:
        soon += ", all known already: Start shows them at once" if known == many else f", {known} of them known already"
    elif least > max_seconds():
        soon += f"; at most {duration(max_seconds())} are allowed"
    if not running:
        return f"{soon}."
    if same:
        return literal(jobs.status(running.job))
    return f"The settings have changed since this was trained. Start trains the new ones. {soon}."


def _trained(running) -> list:
    """(arm, seed) of every model that learnt something and did not diverge."""
    states = running.job.states
    return [
        (arm.name, seed)
        for arm in running.plan.arms
        for seed in running.plan.seeds
        if states[arm.name, seed].step and not states[arm.name, seed].diverged
    ]


def _take_apart(running):
    """Open one of the models on the page for that."""
    offered = {f"{arm}, seed {seed}": (arm, seed) for arm, seed in _trained(running)}
    st.menu_button(
        "Take one apart", list(offered), key="take_apart", icon=":material/content_cut:", type="tertiary",
        on_click=_opened, args=(offered,), help="Open a trained model on the page Trained model: its heads, its answers, knock-outs.",
    )  # fmt: skip


def _opened(offered):
    if st.session_state.take_apart in offered:
        choose.trained(*offered[st.session_state.take_apart])


def models(running) -> dict:
    """Every trained model as a file to take away: label -> (name of the file, what makes it)."""
    made = {}
    for arm, seed in _trained(running) if running else []:
        state, accuracy = running.job.states[arm, seed], last(running.runs[arm, seed])
        name = f"{state.training.task}: {arm}, seed {seed}"
        made[f"Model: {arm}, seed {seed}"] = (f"{slug(name)}.zip", partial(_packed, state, name, accuracy))
    return made


def _packed(state, name, accuracy) -> bytes:
    return zipped(own.write_trained(state, name, accuracy))


def _experiments(kinds):
    st.menu_button(
        "Experiments", list(showcase), key="experiments", icon=":material/science:", type="tertiary",
        format_func=showcase.label, on_click=_picked, args=(kinds,),
    )  # fmt: skip


def _picked(kinds):
    if st.session_state.experiments:
        _show(st.session_state.experiments, kinds)


def _show(name: str, kinds):
    controls.take(showcase[name](), *kinds)
    controls.put(begin=True, trained="learning")


def body(planned: Plan, look: TrainingLook, kinds):
    """The view that is chosen; before anything was started, what there is to start."""
    running = jobs.running()
    if not running:
        _cards(kinds)
        return
    controls.buttons("View", views, "trained", wrap=True)
    jobs.first_point(running)
    jobs.shown(running)
    fragment(_view, run_every=jobs.TICK if running.going else None)(look)


def _view(look):
    if controls.moved(look):
        st.rerun()  # all of the page, which reads them and writes the link
    takeaway.begin()  # a fragment is drawn again without the rest of the page: its tables take the place of the old ones
    views[look.trained](jobs.running(), look)


def _cards(kinds):
    st.markdown("**Press Start, or begin with an experiment**")
    with st.grid("auto", min_column_width=300):
        for name in showcase:
            with st.container(border=True, height="stretch", gap="xxsmall"):
                st.button(
                    f"**{showcase.label(name)}**", key=f"card_{name}", icon=":material/science:", on_click=_show,
                    args=(name, kinds), type="tertiary",
                )  # fmt: skip
                st.caption(capital(showcase.help(name)))
