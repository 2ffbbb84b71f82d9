"""Tasks: small problems with known answers, each a decorated function."""

# Each file registers its tasks, in this order.
from core.tasks import in_context, knowledge, legal, sentences  # noqa: F401
from core.tasks.task import IGNORE, Task, task

__all__ = ["IGNORE", "Task", "task"]
