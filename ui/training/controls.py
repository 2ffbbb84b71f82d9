"""Controls of Training: start, stop, progress, presets, and opening a trained model."""

import html
from collections.abc import Callable
from functools import partial

import streamlit as st

from core.checkpoints import native
from core.experiments.training.plan import Plan, showcase
from core.experiments.training.results import last_value
from core.export.sheets import slug
from core.settings.memory import MemoryLimitError
from core.settings.wording import capitalise, count
from core.study.ladder import write_ladder
from core.tasks import task
from core.train import State
from core.train.budget import estimate_seconds_left, format_duration, max_seconds
from ui.kit import jobs, takeaway
from ui.kit.guard import fragment
from ui.kit.jobs import StartedTrainings
from ui.kit.page import literal
from ui.kit.pages import STUDIES, TRAINED_MODEL, TRAINING
from ui.kit.panel.control import Control, control_of, html_control
from ui.kit.rights import may_write
from ui.kit.store import change, reset, settings_of, value
from ui.shared.models import OPEN, add_model
from ui.shared.new_study import hand_over_study
from ui.training.context import TrainingContext, TrainingLook
from ui.training.finished import FinishedTrainings, find_finished, select_trainings


def trained_models(trainings: StartedTrainings | FinishedTrainings) -> list[tuple[str, int]]:
    """Return (model's name, seed) of every model trained at least one step, not diverged."""
    states = trainings.states
    return [
        (arm.name, seed)
        for arm in trainings.plan.arms
        for seed in trainings.plan.seeds
        if (arm.name, seed) in states
        and states[arm.name, seed].step
        and not states[arm.name, seed].diverged
    ]


def _open_selected_model(offered: dict[str, tuple[str, int]], plan: Plan):
    """Add the selected model, a label in `offered`, to the session; Trained model then opens it.

    A callback; offered values are (model's name, seed).
    """
    trainings = select_trainings(plan)
    state = trainings.states.get(offered.get(st.session_state.take_apart)) if trainings else None
    if state is None:  # it has been forgotten since
        return
    arm, seed = offered[st.session_state.take_apart]
    name = f"{state.training.task}: {arm}, seed {seed}, step {state.step:,}"
    try:
        st.session_state[OPEN] = add_model(native.open_training(state, name))
    except MemoryLimitError as error:
        st.toast(literal(error), icon=":material/block:", duration="long")


def model_files(
    trainings: StartedTrainings | FinishedTrainings | None,
) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return trained models' files: label -> (name, function returning zip bytes); {} if none."""
    files: dict[str, tuple[str, Callable[[], bytes]]] = {}
    for arm, seed in trained_models(trainings) if trainings else []:
        state = trainings.states[arm, seed]
        accuracy = last_value(trainings.runs[arm, seed])
        name = f"{state.training.task}: {arm}, seed {seed}"
        write = partial(_zip_model, state, name, accuracy)
        files[f"Model: {arm}, seed {seed}"] = (f"{slug(name)}.zip", write)
    return files


def _zip_model(state: State, name: str, accuracy: float) -> bytes:
    """Return a trained model's zip archive as bytes; `accuracy` is a share."""
    return native.zip_files(native.trained_model_files(state, name, accuracy))


def task_row(training) -> list[Control]:
    """Return the task's menu, and a text: its help, chance level, best accuracy and an example."""
    learnt = task[training.task]
    reads, answer = learnt.example().split(": ", 1)[1].split(" → ")
    # A long answer stands below what is read, word under word.
    gap = (
        " → "
        if len(reads + answer) < 80
        else "<br><span style='opacity:.75;visibility:hidden'>For example</span> "
    )
    about = (
        f"{html.escape(capitalise(task.help(training.task)))} <span style='opacity:.75'>Chance"
        f" {100 * learnt.chance:.3g} %, best possible {100 * learnt.best:g} %.</span><div><span"
        " style='opacity:.75'>For example</span>"
        f" <code>{html.escape(reads)}</code>{gap}<code>{html.escape(answer)}</code></div>"
    )
    return [control_of(training, "task"), html_control(about)]


def _start_selected_experiment(kinds: tuple[type, ...]):
    """Start the preset that is selected in the menu, if one is (a callback)."""
    if st.session_state.experiments:
        _start_experiment(st.session_state.experiments, kinds)


def _start_experiment(preset: str, kinds: tuple[type, ...]):
    """Set the preset's settings, with which the next run starts training (a callback)."""
    reset(*kinds, **showcase[preset])
    change(begin=True, trained="learning")


def draw_preset_cards(kinds: tuple[type, ...]):
    """Draw a card for each preset; a click starts it."""
    st.markdown(
        "**Press Start** to train the baseline and the variants chosen under “Compare with”, on"
        " several seeds. Or click a preset, which brings its own settings:"
    )
    with st.grid("auto", min_column_width=300):
        for name in showcase:
            with st.container(border=True, height="stretch", gap="xxsmall", key=f"preset_{name}"):
                st.button(
                    f"**{showcase.label(name)}**",
                    key=f"card_{name}",
                    icon=":material/science:",
                    on_click=_start_experiment,
                    args=(name, kinds),
                    type="tertiary",
                )
                st.caption(capitalise(showcase.help(name)))


def draw_live_view(
    trainings: StartedTrainings | FinishedTrainings, planned: Plan, look: TrainingLook
):
    """Draw the open view, redrawn while the training runs, and once at its end."""
    if trainings is jobs.last_trainings():
        jobs.wait_for_first_point(trainings)
        jobs.mark_as_shown(trainings)
    fragment(_draw_view, run_every=jobs.TICK if trainings.going else None)(planned, look)


def _draw_view(planned: Plan, look: TrainingLook):
    """Draw the open view with the current results (a fragment)."""
    # Looked up anew: what a fragment is handed is kept for as long as somebody's page is open.
    trainings = select_trainings(planned)
    if settings_of(TrainingLook) != look or trainings is None:
        st.rerun()  # all of the page, which reads them and writes the link
    # a fragment is drawn again without the rest of the page: its tables take the place of the old
    # ones
    takeaway.clear_tables()
    TRAINING.open_view(TrainingContext(trainings, look))


ANEW = "Retrain here"


def draw_training_bar(planned: Plan, kinds: tuple[type, ...]):
    """Draw start, stop and progress, refreshed while the job runs; `kinds`: classes of settings."""
    trainings = jobs.last_trainings()
    going = bool(trainings) and trainings.going
    if going:
        fragment(_draw_training_bar, run_every=jobs.TICK)(planned, kinds, going)
    else:  # no fragment: a click on Start draws the whole page at once
        with (
            st.container()
        ):  # as a fragment has one: the old buttons give their places to the new ones
            _draw_training_bar(planned, kinds, going)


def _draw_training_bar(planned: Plan, kinds: tuple[type, ...], was_going: bool):
    """Draw the training's buttons and state once; rerun the page when it has begun or ended."""
    trainings = jobs.last_trainings()
    if trainings:
        trainings.job.poll()
    if value("begin") or was_going != (bool(trainings) and trainings.going):
        # all of the page: with or without its timers, and with the settings of an experiment
        st.rerun()
    same = bool(trainings) and trainings.plan == planned
    finished_trainings = None if same else find_finished(planned)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if trainings and trainings.going:
            st.button("Stop", icon=":material/stop:", key="stop", on_click=jobs.stop)
            if not same:
                st.button(
                    "Train the new settings",
                    key="anew",
                    type="primary",
                    on_click=jobs.start_training,
                    args=(planned,),
                )
        elif same and trainings.job.stopped:
            st.button(
                "Continue",
                icon=":material/play_arrow:",
                key="resume",
                type="primary",
                on_click=jobs.resume,
            )
        else:
            anew = bool(finished_trainings) and finished_trainings.anew
            st.button(
                ANEW if anew else "Start",
                icon=":material/play_arrow:",
                key="start",
                type="primary",
                on_click=jobs.start_training,
                args=(planned,),
                disabled=same and trainings.job.done and not trainings.job.error,
            )
        displayed = finished_trainings or trainings
        if displayed and not displayed.going:
            offered = {
                f"{arm}, seed {seed}": (arm, seed) for arm, seed in trained_models(displayed)
            }
            if offered:
                st.menu_button(
                    "Inspect a trained model",
                    list(offered),
                    key="take_apart",
                    icon=":material/content_cut:",
                    type="tertiary",
                    on_click=_open_selected_model,
                    args=(offered, displayed.plan),
                    help=(
                        f"Open a trained model on the {TRAINED_MODEL.name} page: its heads,"
                        " predictions and ablations."
                    ),
                )
        st.menu_button(
            "Presets",
            list(showcase),
            key="experiments",
            icon=":material/science:",
            type="tertiary",
            format_func=showcase.label,
            on_click=_start_selected_experiment,
            args=(kinds,),
        )
        _draw_sizes_button(planned)
        sentence = _describe_status(planned, trainings, same, finished_trainings)
        if trainings and trainings.going:
            st.progress(min(1.0, trainings.job.progress), text=sentence)
        else:
            st.markdown(sentence, width="stretch")
    why = jobs.reason_refused(planned)
    if why:
        st.error(literal(why), icon=":material/timer_off:")


def _draw_sizes_button(planned: Plan):
    """Draw a button that drafts a study of these models at several sizes, on Studies.

    Nothing without a variant, or without the right to start a study.
    """
    if len(planned.arms) == 1 or not may_write():
        return
    pressed = st.button(
        "At other sizes",
        key="at_sizes",
        icon=":material/stairs:",
        type="tertiary",
        help=(
            "Do these effects hold in larger models? Drafts a study with the same variants at sizes"
            " 1 to 4, which set width, layers, heads and steps. Each model gets its best learning"
            " rate."
        ),
    )
    if pressed:
        hand_over_study(write_ladder(planned))
        st.switch_page(STUDIES.path)


def _describe_status(
    planned: Plan,
    trainings: StartedTrainings | None,
    is_planned: bool,
    finished_trainings: FinishedTrainings | None,
) -> str:
    """Return text on the training: its state, "Already trained", or the planned one's cost.

    `is_planned`: whether `trainings` are of the plan.
    """
    if trainings and trainings.going:
        other = (
            ""
            if is_planned
            else f" Settings have changed since the start. New settings: {_describe_cost(planned)}."
        )
        return f"{literal(jobs.describe_status(trainings.job))}.{other}"
    if is_planned:
        return literal(jobs.describe_status(trainings.job))
    if finished_trainings:
        adds = (
            " Retrain to get the *Answers* and *Attention* tabs."
            if finished_trainings.anew and not finished_trainings.states
            else ""
        )
        return (
            "Already trained; results below."
            if finished_trainings.states
            else f"{_describe_cost(planned)}.{adds}"
        )
    changed = "The results below are for earlier settings. " if trainings else ""
    return f"{changed}{_describe_cost(planned)}."


def _describe_cost(planned: Plan) -> str:
    """Return a phrase on the runs to train and the expected time."""
    pool = jobs.workers()
    states = planned.states().values()
    new = [state for state in states if not pool.is_known(state)]
    soon = (
        f"{count(len(states), 'run')} × {count(planned.training.steps, 'step')}, about "
        f"{format_duration(estimate_seconds_left(new, pool.count, pool.pace))} on"
        f" {count(pool.count, 'worker')}"
    )
    if len(new) < len(states):
        soon += f" ({len(states) - len(new)} cached)"
    elif estimate_seconds_left(new, pool.count, pool.pace) > max_seconds():
        soon += f"; at most {format_duration(max_seconds())} are allowed"
    return soon
