"""The view that is open, drawn again and again while something is trained."""

import streamlit as st

from ui.kit import jobs, takeaway
from ui.kit.guard import fragment
from ui.kit.jobs import StartedTrainings
from ui.kit.pages import TRAINING
from ui.kit.session import values
from ui.training.context import TrainingContext, TrainingLook


def live(trainings: StartedTrainings, look: TrainingLook):
    """As the job goes on; once more when it has ended, and then it stands still."""
    jobs.first_point(trainings)
    jobs.shown(trainings)
    fragment(_view, run_every=jobs.TICK if trainings.going else None)(look)


def _view(look):
    if values.moved(look):
        st.rerun()  # all of the page, which reads them and writes the link
    takeaway.begin()  # a fragment is drawn again without the rest of the page: its tables take the place of the old ones
    TRAINING.open_view(TrainingContext(jobs.started(), look))
