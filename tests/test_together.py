"""What is said of several parts together, on made-up numbers: each sentence, reached and worked out another way."""

import math

import pandas as pd
import pytest

from ui.training.together import pairs_said, worth_said

NAN = math.nan
A, B = "− FFN", "− norm"


def worth(*rows) -> str:
    """rows: part, loss, its interval."""
    return worth_said(pd.DataFrame(rows, columns=["part", "removed", "removed_low", "removed_high"]))


def pairs(*rows) -> str:
    """rows: interaction, its interval."""
    named = [(A, B, *row) for row in rows]
    return pairs_said(pd.DataFrame(named, columns=["one", "other", "interaction", "low", "high"]))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(A, NAN, NAN, NAN)], "Nothing can be said before all have been trained a little."),
        ([(A, 0.25, NAN, NAN), (B, 0.1, NAN, NAN)], "Alone, − FFN costs the most: 25.0 points. One seed says nothing about noise."),
        ([(A, 0.5, -0.1, 0.9), (B, 0.2, 0.1, 0.3)], "Alone, − norm costs the most of those that can be told from seed noise: 20.0 points."),
        ([(A, 0.5, -0.1, 0.9), (B, 0.2, -0.1, 0.3)], "Alone, no loss can be told from seed noise; the largest is 50.0 points, of − FFN."),
        ([(A, -0.035, -0.1, 0.1), (B, -0.174, -0.3, -0.1)], "Alone, none of them costs anything on average."),
        ([(A, 0.0, 0.0, 0.0), (B, -0.1, -0.3, 0.1)], "Alone, none of them costs anything on average."),
    ],
)  # fmt: skip
def test_what_each_part_is_worth(rows, said):
    assert worth(*rows) == said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(NAN, NAN, NAN)], "Nothing can be said before all have been trained a little."),
        ([(0.0, 0.0, 0.0)], "The losses add up."),
        ([(0.3, NAN, NAN)], "− FFN and − norm: the losses overlap, by 30.0 points. One seed says nothing about noise."),
        ([(-0.3, -0.4, -0.2)], "− FFN and − norm: the losses make each other worse, by 30.0 points."),
        ([(0.3, 0.1, 0.4), (0.5, -0.1, 0.9)], "− FFN and − norm: the losses overlap, by 30.0 points."),
        ([(-0.3, -0.7, 0.2)], "No interaction can be told from seed noise; the largest is 30.0 points, of − FFN and − norm."),
    ],
)  # fmt: skip
def test_whether_losses_add_up(rows, said):
    assert pairs(*rows) == said
