"""What a class shows: to everybody, to its teacher, to one seat."""

from collections.abc import Mapping
from dataclasses import dataclass

Distribution = Mapping[int, Mapping[str, int]]  # round -> answer -> votes


@dataclass(frozen=True, slots=True)
class Started:
    """code: what students type. token: what its teacher shows from now on; it is kept nowhere, and cannot be told again."""

    code: str
    token: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A vote that is stored; at: when, by the database's clock, in seconds since 1970. Sent again, it is when it first came."""

    question: str
    round: int
    at: float


@dataclass(frozen=True, slots=True)
class Vote:
    """What a seat has answered; at: as in Accepted."""

    answer: str
    sure: int
    because: str
    at: float


@dataclass(frozen=True, slots=True)
class Watched:
    """What everybody may see of a class. It names nobody.

    stamp: greater than before where any of the rest but `left` has changed. phase: WAITING, OPEN, CLOSED, DISCUSSION or
    REVEALED. question, round: what is asked, or was last; "" and 0 while nothing has been. left: seconds until it closes,
    by the database's clock, None where it closes by hand or is closed. votes: of this round. distribution: of each round,
    or None while that is not shown, as always while it is open. picked: reasons, in the order in which they were picked;
    none while it is open.
    """

    code: str
    stamp: int
    phase: str
    question: str
    round: int
    left: float | None
    seats: int
    votes: int
    distribution: Distribution | None
    picked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a seat has answered as it did, in its words, without its name. id: what it is picked by."""

    id: int
    round: int
    answer: str
    text: str
    picked: bool


@dataclass(frozen=True, slots=True)
class TeacherView:
    """What its teacher may see of a class: what everybody may, and more.

    began: by the database's clock, in seconds since 1970. planned: the questions given when it was started; asked: those
    that were opened, in that order. shown: whether everybody sees the distribution once the question is not open.
    waiting: (number, nickname) of the seats without a vote in this round. distribution: always, also while it is open.
    reasons: of both rounds of this question, the oldest first.
    """

    code: str
    began: float
    planned: tuple[str, ...]
    asked: tuple[str, ...]
    stamp: int
    phase: str
    question: str
    round: int
    left: float | None
    shown: bool
    seats: int
    votes: int
    waiting: tuple[tuple[int, str], ...]
    distribution: Distribution
    reasons: tuple[Reason, ...]
