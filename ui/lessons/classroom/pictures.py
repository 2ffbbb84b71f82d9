"""What a class sees together: how many answered what, and reasons without names."""

import streamlit as st

from core.figures.tally import tally_svg
from core.teaching.asked import CHECK, Asked
from core.teaching.classroom import Watched
from core.teaching.lessons.outcome import outcome
from ui.kit.page import literal
from ui.lessons import picture


def students(many: int, words) -> str:
    """How many are in the class."""
    return words["class_student" if many == 1 else "class_students"].format(n=many)


def distribution(of: Asked, now: Watched, words, revealed: bool, key: str = "distribution"):
    """now: of everybody, or the teacher's. revealed: whether the right answer is marked."""
    if not now.distribution:
        return
    out = outcome(of.lesson) if revealed and of.kind != CHECK and of.lesson else None
    counts = of.counts(now.distribution, out)
    if counts:
        picture.draw(key, tally_svg(counts, words["class_votes"]))
        if len(now.distribution) > 1:
            st.caption(literal(words["class_rounds"]))


def reasons(picked, words):
    """Lines that the teacher has picked."""
    if picked:
        st.markdown(f"**{literal(words['class_reasons'])}**")
    for line in picked:
        st.markdown(f"> {literal(line)}")
