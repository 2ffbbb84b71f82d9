import html

import pandas as pd
import streamlit as st

from core.experiments.training.trained import read
from core.model.text import shown
from core.tasks import IGNORE
from ui.kit.page import figure
from ui.kit.pins import COLOURS
from ui.kit.takeaway import note
from ui.shared.trainings import arms_shown, label
from ui.training.context import view
from ui.training.sequence import pick_sequence, sequence, without_models

LINE, SHORTEST = 100, 5  # characters in a line, and what the shortest word takes of it
CELL = "padding:2px 7px;text-align:center;white-space:nowrap;border-radius:4px;"
HEAD = "text-align:left;padding-right:14px;font-weight:400;white-space:nowrap;min-width:9.5rem"
RIGHT, WRONG = "background:rgba(0,158,115,.22)", "background:rgba(213,94,0,.28);font-weight:600"


@view
def answers(context):
    """Answers: what each model says to one sequence, place by place."""
    if without_models(context):
        return
    trainings = context.trainings
    pick_sequence(context)
    learnt, tokens, targets = sequence(context)
    words, seed = learnt.vocabulary, trainings.plan.seeds[0]
    readings = {arm: read(trainings.states[arm.name, seed], tokens, targets) for arm in arms_shown(trainings)}
    figure("What does each model answer?", _said(readings))
    tables = "".join(_lines_of(words, tokens, targets, readings, places) for places in _lines(words, tokens))
    st.html(f"<div style='overflow-x:auto'>{tables}</div>")
    st.caption(
        "Green: right. Orange: wrong. Pale: not scored. · : nothing is asked there. Chosen: the word with the highest score. "
        f"Models of seed {seed}, as far as they are trained."
    )
    note("answers", lambda: _table(readings, words, tokens, targets))


def _lines(words, tokens):
    """The places of a sequence, cut into lines that fit on the page."""
    line, used = [], 0
    for place, token in enumerate(tokens):
        width = max(SHORTEST, len(words[token]) + 3)
        if line and used + width > LINE:
            yield line
            line, used = [], 0
        line, used = [*line, place], used + width
    yield line


def _lines_of(words, tokens, targets, readings, places) -> str:
    """What is read, what should be answered, and what each model answers, one below the other."""
    wanted = [words[targets[n]] if targets[n] != IGNORE else "·" for n in places]
    rows = [
        _row("reads", [_cell(words[tokens[n]]) for n in places]),
        _row("should answer", [_cell(word, "opacity:.75") for word in wanted]),
    ]
    for arm, reading in readings.items():
        dot = f"<span style='color:{COLOURS[arm.colour]}'>●</span> {html.escape(label(arm))}"
        rows.append(_row(dot, [_answer(words, reading, n) if targets[n] != IGNORE else _cell("") for n in places]))
    style = "border-spacing:2px;border-collapse:separate;margin-bottom:12px"
    return f"<table class='answers' style='{style}'>{''.join(rows)}</table>"


def _row(name, cells) -> str:
    return f"<tr><th style='{HEAD}'>{name}</th>{''.join(cells)}</tr>"


def _cell(text, style="") -> str:
    return f"<td style='{CELL}{style}'>{html.escape(shown(text))}</td>"


def _answer(words, reading, place) -> str:
    style = {True: RIGHT, False: WRONG, None: "opacity:.45"}[reading.right[place]]
    return _cell(words[reading.answers[place]], style)


def _said(readings) -> str:
    phrases = []
    for arm, reading in readings.items():
        marks = [right for right in reading.right if right is not None]
        phrases.append(f"{arm.name} {sum(marks)} of {len(marks)}")
    return f"Right here: {'; '.join(phrases)}."


def _table(readings, words, tokens, targets) -> pd.DataFrame:
    rows = [
        (
            arm.name,
            n + 1,
            words[tokens[n]],
            words[target],
            words[reading.answers[n]],
            reading.right[n],
            reading.probability[n],
        )
        for arm, reading in readings.items()
        for n, target in enumerate(targets)
        if target != IGNORE
    ]
    return pd.DataFrame(
        rows, columns=["variant", "place", "reads", "target", "answer", "right", "probability_of_target"]
    )
