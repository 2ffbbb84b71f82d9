from ui.shared import learning as shared
from ui.training.base import views


@views
def learning(running, look):
    """Curves: accuracy and loss as they grow, and what each model costs."""
    shared.learning(running)
