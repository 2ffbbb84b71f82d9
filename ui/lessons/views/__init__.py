"""The views of the page "Lessons": each is one decorated function in a file of its own, called with a LessonsContext."""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.lessons.views import every, one, report, teacher_link  # noqa: F401  # fmt: skip
