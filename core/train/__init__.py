"""Training: settings, a stream of rows, and chunks that can be pickled."""

from core.train.run import Row, State, chunk, held_out, model, start, train
from core.train.settings import Training, decay, optimiser

__all__ = [
    "Row",
    "State",
    "Training",
    "chunk",
    "decay",
    "held_out",
    "model",
    "optimiser",
    "start",
    "train",
]
