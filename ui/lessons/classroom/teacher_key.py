"""The key with which a teacher controls a class: kept in the session and in the browser, never in an address."""

from dataclasses import dataclass

from ui.kit.store import session
from ui.lessons.classroom.browser_key import sync_key

TEACHER_KEYS = "teacher_keys"  # the entry in Visitor.kept: code of a class -> TeacherKey


@dataclass
class TeacherKey:
    """A class's key; "" where it is not known (yet). has_answered: whether the browser has said which key it keeps."""

    value: str = ""
    has_answered: bool = False


def store_teacher_key(code: str, key: str):
    """Keep the key of a class that was started here, typed in, or opened by an old link."""
    session().kept.setdefault(TEACHER_KEYS, {})[code] = TeacherKey(key)


def sync_teacher_key(code: str) -> TeacherKey:
    """Store this session's key for a class in the browser, or take the one that the browser keeps."""
    teacher_key = session().kept.setdefault(TEACHER_KEYS, {}).setdefault(code, TeacherKey())
    from_browser = sync_key(f"ablation-lab-teacher-{code}", teacher_key.value, teacher_key.has_answered)
    if from_browser is not None:
        teacher_key.has_answered = True
        teacher_key.value = teacher_key.value or from_browser
    return teacher_key
