"""Small problems with known answers, each of which needs some part of the model: every one is a decorated definition."""

from core.tasks import in_context, knowledge, sentences  # noqa: F401  (each file enters its tasks, in this order)
from core.tasks.task import IGNORE, Task, task

__all__ = ["IGNORE", "Task", "task"]
