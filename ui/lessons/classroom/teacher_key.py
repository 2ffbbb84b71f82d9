"""The key with which a teacher controls a class: kept in the session and in the browser, never in an address."""

from dataclasses import dataclass

from ui.kit.session.visitor import calm_visitor
from ui.lessons.classroom.browser_key import sync_key

DESKS = "teacher_keys"  # the entry in Visitor.kept: code of a class -> TeacherKey


@dataclass
class TeacherKey:
    """A class's key; "" where it is not known (yet). has_answered: whether the browser has said which key it keeps."""

    value: str = ""
    has_answered: bool = False


def teacher_key(code: str) -> TeacherKey:
    """Return this session's key for a class."""
    return calm_visitor().kept.setdefault(DESKS, {}).setdefault(code, TeacherKey())


def store_teacher_key(code: str, key: str):
    """Take note of the key of a class that was started here, typed in, or opened by an old link."""
    calm_visitor().kept.setdefault(DESKS, {})[code] = TeacherKey(key)


def sync_teacher_key(code: str) -> TeacherKey:
    """Let the browser keep the key, or read the one that it keeps."""
    held = teacher_key(code)
    told = sync_key(f"ablation-lab-teacher-{code}", held.value, held.has_answered)
    if told is not None:
        held.has_answered = True
        held.value = held.value or told
    return held
