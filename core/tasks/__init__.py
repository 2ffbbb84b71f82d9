"""Tasks: small problems with known answers, each a decorated function."""

# Each file registers its tasks, in this order.
from core.tasks import in_context, knowledge, sentences, legal  # noqa: F401, I001
from core.tasks.task import IGNORE, Task, task

__all__ = ["IGNORE", "Task", "task"]
