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


def left(now, words) -> str:
    """How much time is left, behind what is said; "" where none runs."""
    return f" · {words['class_left'].format(n=int(now.left))}" if now.left is not None else ""


def answered(now, words, behind: str = ""):
    """How many have answered, as a bar. now: of everybody, or the teacher's."""
    told = words["class_answered"].format(votes=now.votes, seats=now.seats) + behind
    st.progress(min(1.0, now.votes / max(1, now.seats)), text=f"**{literal(told)}**")


def distribution(of: Asked, now: Watched, words, revealed: bool, key: str = "distribution"):
    """now: of everybody, or the teacher's. revealed: whether the right answer is marked."""
    votes = {round: each for round, each in (now.distribution or {}).items() if each}
    if not votes:
        return
    out = outcome(of.lesson) if revealed and of.kind != CHECK and of.lesson else None
    counts = of.counts(votes, out)
    picture.draw(key, f'<div class="wide">{tally_svg(counts, words["class_votes"])}</div>')
    told = [words["class_guesses"]] * of.is_number + [words["class_rounds"]] * (len(votes) > 1)
    told += [words["class_green"]] * any(count.right for count in counts)
    if told:
        st.caption(literal(" ".join(told)))


def reasons(picked, words):
    """Lines that the teacher has picked."""
    if picked:
        st.markdown(f"**{literal(words['class_reasons'])}**")
    for line in picked:
        st.markdown(f"> {literal(line)}")
