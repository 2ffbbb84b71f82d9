from ui.shared import learning as shared
from ui.training.context import view


@view
def learning(context):
    """Curves: accuracy and loss as they grow, and what each model costs."""
    shared.learning(context.trainings)
