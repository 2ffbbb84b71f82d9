"""Classes: students who predict before they see a result. Who is in, what is asked, and every vote once, on one database.

Whoever imports it gets the whole of it: Classroom is the store, everything else is what it hands out.
"""

from core.teaching.classroom.classroom import Classroom
from core.teaching.classroom.limits import ClassError
from core.teaching.classroom.seen import Accepted, Reason, Started, TeacherView, Vote, Watched
from core.teaching.classroom.tables import CLOSED, DISCUSSION, OPEN, REVEALED, WAITING

__all__ = [
    "CLOSED", "DISCUSSION", "OPEN", "REVEALED", "WAITING",
    "Accepted", "ClassError", "Classroom", "Reason", "Started", "TeacherView", "Vote", "Watched",
]  # fmt: skip
