"""What lessons can measure. Whoever imports any of it has every reading in the menu."""

# isort: off
from core.teaching.lessons.readings.reading import EXACT, SEED, SENTENCE, Curve, Measured, Reading, measured, reading
from core.teaching.lessons.readings import costs, passes, trainings, language_model  # noqa: F401

__all__ = ["EXACT", "SEED", "SENTENCE", "Curve", "Measured", "Reading", "measured", "reading"]
