import html

import pandas as pd
import streamlit as st

from core.experiments.trained import read
from core.tasks import IGNORE
from core.text import shown
from ui.page import figure
from ui.pins import COLOURS
from ui.takeaway import note
from ui.training import base
from ui.training.base import views

CELL = "padding:2px 7px;text-align:center;white-space:nowrap;border-radius:4px;"
RIGHT, WRONG = "background:rgba(0,158,115,.22)", "background:rgba(213,94,0,.28);font-weight:600"


@views
def answers(running, look):
    """Answers: what each model says to one sequence, place by place."""
    base.pick_sequence(running)
    learnt, tokens, targets = base.sequence(running, look)
    places = range(len(tokens))
    readings = {
        arm: read(running.job.states[arm.name, running.plan.seeds[0]], tokens, targets) for arm in base.shown(running)
    }
    words = learnt.vocabulary

    def row(name, cells):
        return f"<tr><th style='text-align:left;padding-right:14px;font-weight:400;white-space:nowrap'>{name}</th>{cells}</tr>"

    def cell(text, style=""):
        return f"<td style='{CELL}{style}'>{html.escape(shown(text))}</td>"

    wanted = [words[targets[n]] if targets[n] != IGNORE else "·" for n in places]
    rows = [
        row("reads", "".join(cell(words[tokens[n]]) for n in places)),
        row("should answer", "".join(cell(word, "opacity:.75") for word in wanted)),
    ]
    for arm, found in readings.items():
        dot = f"<span style='color:{COLOURS[arm.place]}'>●</span> {html.escape(base.label(running, arm))}"
        cells = "".join(_answer(cell, words, found, n, targets[n] != IGNORE) for n in places)
        rows.append(row(dot, cells))
    figure("What does each model answer?", _said(readings, running))
    st.html(
        f"<div style='overflow-x:auto'><table class='answers' style='border-spacing:2px;border-collapse:separate'>{''.join(rows)}</table></div>"
    )
    st.caption(
        "Green: right. Orange: wrong. Pale: not scored. · : nothing is asked there. Chosen: the word with the highest score. "
        f"Models of seed {running.plan.seeds[0]}, as far as they are trained."
    )
    note("answers", lambda: _table(readings, words, tokens, targets, places))


def _answer(cell, words, found, n, asked: bool) -> str:
    if not asked:
        return cell("")
    style = {True: RIGHT, False: WRONG, None: "opacity:.45"}[found.right[n]]
    return cell(words[found.answers[n]], style)


def _said(readings, running) -> str:
    told = []
    for arm, found in readings.items():
        marks = [right for right in found.right if right is not None]
        told.append(f"{arm.name} {sum(marks)} of {len(marks)}")
    return f"Right here: {'; '.join(told)}."


def _table(readings, words, tokens, targets, places) -> pd.DataFrame:
    rows = [
        (
            arm.name,
            n + 1,
            words[tokens[n]],
            words[targets[n]],
            words[found.answers[n]],
            found.right[n],
            found.probability[n],
        )
        for arm, found in readings.items()
        for n in places
        if targets[n] != IGNORE
    ]
    return pd.DataFrame(
        rows, columns=["variant", "place", "reads", "target", "answer", "right", "probability_of_target"]
    )
