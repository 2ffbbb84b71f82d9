"""Tasks: small problems with known answers, each a decorated function."""

from core.tasks import in_context, knowledge, sentences  # noqa: F401  (each file enters its tasks, in this order)
from core.tasks.task import IGNORE, Task, task

__all__ = ["IGNORE", "Task", "task"]
