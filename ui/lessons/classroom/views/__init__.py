"""The views of the page "Class": each is one decorated function in a file of its own, called with a ClassContext."""

# Who looks. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.lessons.classroom.views import student, projector, teacher  # noqa: F401, I001  # fmt: skip
