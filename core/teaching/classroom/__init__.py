"""Classes: students predict before they see a result. Who is in, what is asked, and every vote once, in one database."""

from core.teaching.classroom.classroom import (
    Classroom,
    Distribution,
    Reason,
    Started,
    TeacherView,
    Vote,
    Watched,
)
from core.teaching.classroom.tables import CLOSED, DISCUSSION, OPEN, REVEALED, WAITING, ClassError

__all__ = [
    "CLOSED", "DISCUSSION", "OPEN", "REVEALED", "WAITING",
    "ClassError", "Classroom", "Distribution", "Reason", "Started", "TeacherView", "Vote", "Watched",
]  # fmt: skip
