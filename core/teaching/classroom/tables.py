"""Tables of classes, the limits of a class, and what may be typed into one.

The tables stand beside those of studies, with a version of their own.
"""

import hashlib
import math
import secrets

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
)

from core.settings.setting import ConfigError
from core.settings.wording import count, shorten
from core.study.database.connection import StoreError
from core.teaching.lessons.language import clean

HOURS = 24  # lifetime of a class; nothing about students is kept for longer
CLASSES = 200  # at once: hardly one in 5,000 of the codes that could be guessed belongs to a class
SEATS = 500  # of a class: a large lecture
QUESTIONS = 100  # of a class
SURE = 3  # the surest; 0 is a guess
ROUNDS = 2  # before the discussion, and after it
SECONDS = 3600  # the longest time of a question
PICKED = 3  # reasons shown at once
LONGEST = {"nickname": 40, "because": 300, "answer": 200, "question": 100}  # characters

# A code is never a word, and none of its letters is taken for another or for a digit.
LETTERS = "BCDFGHJKMNPRTWXY"
CODE = 5  # letters
HASH = 64  # characters of hash_secret()
VERSION = 1
# WAITING: nothing has been asked yet; it is never stored.
WAITING, OPEN, CLOSED, DISCUSSION, REVEALED = "waiting", "open", "closed", "discussion", "revealed"


class ClassError(ConfigError):
    """What a class does not allow or have; the message is shown as it is.

    `field` names the cause: "code", "token", "key" (unknown), "nickname", "question", "round", "seconds", "answer",
    "sure", "because", "pick" (the value given), "class" (full), "vote" (already in), "late", "phase".
    """


metadata = MetaData()

versions = Table(
    "class_version",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),  # 1: of two that create the tables, one fails
    Column("version", Integer, nullable=False),
)

rooms = Table(
    "class_rooms",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("code", String(CODE), nullable=False, unique=True),
    Column("token", String(HASH), nullable=False, unique=True),  # the hash of the teacher's
    Column("began", Double, nullable=False),  # by clock(), as all times here
    Column("stamp", Integer, nullable=False, default=0),  # unused; databases of earlier versions have it
    Column("current", Integer),  # the poll that is open, or was last
    Column("questions", Text, nullable=False),  # names of the planned ones, as JSON
    sqlite_autoincrement=True,  # the number of a deleted row is not used again
)

seats = Table(
    "class_seats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("room", ForeignKey(rooms.c.id, ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),  # 1, 2, … in the order of joining
    Column("key", String(HASH), nullable=False),  # its hash
    Column("nickname", String(LONGEST["nickname"]), nullable=False),
    Column("joined", Double, nullable=False),
    Column("since", Double, nullable=False, default=0.0),  # unused, as the next one
    Column("tries", Integer, nullable=False, default=0),
    UniqueConstraint("room", "number"),
    UniqueConstraint("room", "key"),
    sqlite_autoincrement=True,
)

polls = Table(
    "class_polls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("room", ForeignKey(rooms.c.id, ondelete="CASCADE"), nullable=False),
    Column("question", String(LONGEST["question"]), nullable=False),
    Column("round", Integer, nullable=False, default=1),
    Column("phase", String(10), nullable=False, default=OPEN),  # OPEN also when `closes` has passed
    Column("shown", Boolean, nullable=False, default=False),  # whether everybody sees the distribution
    Column("opened", Double, nullable=False),  # of its newest round, as the next two
    Column("closes", Double),
    Column("closed", Double),
    UniqueConstraint("room", "question"),
    sqlite_autoincrement=True,
)

votes = Table(
    "class_votes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("poll", ForeignKey(polls.c.id, ondelete="CASCADE"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("seat", ForeignKey(seats.c.id, ondelete="CASCADE"), nullable=False),
    Column("answer", String(LONGEST["answer"]), nullable=False),
    Column("sure", Integer, nullable=False),
    Column("because", String(LONGEST["because"]), nullable=False),
    Column("at", Double, nullable=False),
    Column("after", Double, nullable=False),  # seconds after its round was opened
    Column("picked", Integer),  # 1, 2, …: its place among the reasons that everybody sees
    UniqueConstraint("poll", "round", "seat"),  # a vote is there once
    Index("class_votes_by_seat", "seat"),
    sqlite_autoincrement=True,
)


def has_tables(connection: Connection) -> bool:
    """Return whether the tables exist. Raises StoreError for another version."""
    if not inspect(connection).has_table(versions.name):
        return False
    found = connection.scalars(select(versions.c.version)).all()
    if found != [VERSION]:
        raise StoreError(
            f"The classes there have version {', '.join(map(str, found)) or 'none'}, and this version of the project "
            f"knows {VERSION} alone: update the project, or choose another database."
        )
    return True


def create_tables(connection: Connection) -> None:
    """Create the tables where they are missing."""
    if not has_tables(connection):
        metadata.create_all(connection)
        connection.execute(versions.insert().values(only=1, version=VERSION))


def check_text(name: str, value: str, is_needed: bool = False) -> str:
    """Return a text as one clean line. Raises ClassError if it is too long, or empty though needed."""
    text, most = clean(str(value)), LONGEST[name]
    word = "reason" if name == "because" else name
    if len(text) > most:
        raise ClassError(name, f"The {word} has {count(len(text), 'character')}; it may have at most {most}.")
    if is_needed and not text:
        raise ClassError(name, f"The {word} is empty; it must have 1 to {most} characters.")
    return text


def check_sure(value: int) -> int:
    """Return how sure somebody is. Raises ClassError."""
    if type(value) is not int or not 0 <= value <= SURE:
        raise ClassError("sure", f"How sure you are is {shorten(value)}; it must be a whole number from 0 to {SURE}.")
    return value


def check_seconds(seconds: float | None) -> float | None:
    """Return how long a question is open; None until it is closed by hand. Raises ClassError."""
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or math.isnan(seconds) or not 1 <= seconds <= SECONDS:
        raise ClassError("seconds", f"The time is {shorten(seconds)}; it must be 1 to {SECONDS:,} seconds, or none.")
    return float(seconds)


def new_code() -> str:
    """Draw the code of a class."""
    return "".join(secrets.choice(LETTERS) for _ in range(CODE))


def parse_code(typed: str) -> str:
    """Return a code as it is stored: "bcd fg" and "BCD-FG" are the same. "" for what is none."""
    letters = "".join(str(typed)[:100].upper().replace("-", " ").split())
    return letters if len(letters) == CODE and set(letters) <= set(LETTERS) else ""


def hash_secret(secret: str) -> str:
    """Return what is stored of a token or a key: reading the database lets nobody act for another."""
    return hashlib.sha256(str(secret)[:1000].encode("utf-8", "surrogatepass")).hexdigest()
