"""The view that is open, drawn again and again while something is trained."""

import streamlit as st

from core.experiments.training.plan import Plan
from ui.kit import jobs, takeaway
from ui.kit.guard import fragment
from ui.kit.jobs import StartedTrainings
from ui.kit.pages import TRAINING
from ui.kit.store import has_changed
from ui.training.context import TrainingContext, TrainingLook
from ui.training.finished import FinishedTrainings, to_show


def live(trainings: StartedTrainings | FinishedTrainings, planned: Plan, look: TrainingLook):
    """As the job goes on; once more when it has ended, and then it stands still."""
    if trainings is jobs.started():
        jobs.first_point(trainings)
        jobs.shown(trainings)
    fragment(_view, run_every=jobs.TICK if trainings.going else None)(planned, look)


def _view(planned, look):
    # Looked up anew: what a fragment is handed is kept for as long as somebody's page is open.
    trainings = to_show(planned)
    if has_changed(look) or trainings is None:
        st.rerun()  # all of the page, which reads them and writes the link
    takeaway.begin()  # a fragment is drawn again without the rest of the page: its tables take the place of the old ones
    TRAINING.open_view(TrainingContext(trainings, look))
