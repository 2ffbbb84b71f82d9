"""What came of a class, as tables that its teacher takes away."""

import pandas as pd
from sqlalchemy import Connection, select

from core.settings.wording import shorten
from core.teaching.classroom.doors import Room
from core.teaching.classroom.limits import ClassError
from core.teaching.classroom.tables import polls, seats, votes

# seconds: from the opening of the round to the vote
COLUMNS = ["class", "question", "round", "seat", "nickname", "answer", "sure", "because", "seconds"]


def answers(connection: Connection, room: Room) -> pd.DataFrame:
    """One row per vote, in the order of questions, rounds and seats; columns: COLUMNS. Texts are as they were given."""
    columns = (
        polls.c.question, votes.c.round, seats.c.number, seats.c.nickname, votes.c.answer, votes.c.sure, votes.c.because,
        votes.c.after,
    )  # fmt: skip
    query = select(*columns).join_from(votes, polls).join(seats, votes.c.seat == seats.c.id)
    ordered = query.where(polls.c.room == room.id).order_by(polls.c.id, votes.c.round, seats.c.number)
    return pd.DataFrame([(room.code, *line) for line in connection.execute(ordered)], columns=COLUMNS)


def crosstab(connection: Connection, room: Room, question: str) -> pd.DataFrame:
    """Answers of the first round (index) × those of the second (columns): how many seats that voted in both gave the two.

    Both have the same answers in the same order, so that those who stayed with theirs stand on the diagonal.
    """
    poll = connection.scalar(select(polls.c.id).where(polls.c.room == room.id, polls.c.question == question))
    if poll is None:
        raise ClassError("question", f"The question {shorten(question)} was not asked in this class.")
    first, second = votes.alias(), votes.alias()
    both = first.join(second, (first.c.seat == second.c.seat) & (first.c.poll == second.c.poll))
    rounds = (first.c.poll == poll) & (first.c.round == 1) & (second.c.round == 2)
    pairs = connection.execute(select(first.c.answer, second.c.answer).select_from(both).where(rounds)).all()
    given = sorted({answer for pair in pairs for answer in pair})
    table = pd.DataFrame(0, index=pd.Index(given, name="round 1"), columns=pd.Index(given, name="round 2"))
    for one, other in pairs:
        table.loc[one, other] += 1
    return table
