"""The tables of classes: beside those of studies where there are any, with a version of their own."""

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

from core.study.database.connection import StoreError
from core.teaching.classroom.given import LENGTH
from core.teaching.classroom.limits import ANSWER, BECAUSE, NICKNAME, QUESTION

VERSION = 1
# WAITING: nothing has been asked yet; it is never stored.
WAITING, OPEN, CLOSED, DISCUSSION, REVEALED = "waiting", "open", "closed", "discussion", "revealed"
HASH = 64  # characters of given.hashed()

metadata = MetaData()

versions = Table(
    "class_version",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),  # 1: two that make the tables at once cannot both
    Column("version", Integer, nullable=False),
)

rooms = Table(
    "class_rooms",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("code", String(LENGTH), nullable=False, unique=True),
    Column("token", String(HASH), nullable=False, unique=True),  # the hash of the teacher's
    Column("began", Double, nullable=False),  # by clock(), as all times here
    Column("stamp", Integer, nullable=False, default=0),  # grows with everything that is seen of a class
    Column("current", Integer),  # the poll that is open, or was last
    Column("questions", Text, nullable=False),  # the names of those that are planned, as JSON
    sqlite_autoincrement=True,  # what is deleted does not give its number to another
)

seats = Table(
    "class_seats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("room", ForeignKey(rooms.c.id, ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),  # 1, 2, … in the order in which they joined
    Column("key", String(HASH), nullable=False),  # the hash of it
    Column("nickname", String(NICKNAME), nullable=False),
    Column("joined", Double, nullable=False),
    Column("since", Double, nullable=False),  # the beginning of the minute in which tries are counted
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
    Column("question", String(QUESTION), nullable=False),
    Column("round", Integer, nullable=False, default=1),
    Column("phase", String(10), nullable=False, default=OPEN),  # OPEN, though `closes` may have passed: see doors.asked
    Column("shown", Boolean, nullable=False, default=False),  # whether everybody sees how the answers are distributed
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
    Column("answer", String(ANSWER), nullable=False),
    Column("sure", Integer, nullable=False),
    Column("because", String(BECAUSE), nullable=False),
    Column("at", Double, nullable=False),
    Column("after", Double, nullable=False),  # seconds after its round was opened
    Column("picked", Integer),  # 1, 2, …: its place among the reasons that everybody sees
    UniqueConstraint("poll", "round", "seat"),  # so no vote can stand twice
    Index("class_votes_by_seat", "seat"),
    sqlite_autoincrement=True,
)


def there(connection: Connection) -> bool:
    """Whether the tables are. Raises StoreError for some that are another's, damaged, or of another version."""
    look = inspect(connection)
    names = set(look.get_table_names()) & set(metadata.tables)
    if not names:
        return False
    for table in metadata.sorted_tables:
        columns = {each["name"] for each in look.get_columns(table.name)} if table.name in names else set()
        lacking = [each.name for each in table.c if each.name not in columns]
        if lacking:
            what = f"column {lacking[0]}" if columns else "columns"
            raise _damaged(f"its table {table.name} has no {what}")
    found = connection.scalars(select(versions.c.version)).all()
    if len(found) != 1 or type(found[0]) is not int:
        raise _damaged(f"its table {versions.name} does not hold one version")
    if found[0] != VERSION:
        raise StoreError(
            f"The classes there have version {found[0]}, and this version of the project knows {VERSION} alone: "
            "update the project, or choose another database."
        )
    return True


def make(connection: Connection) -> None:
    """Make the tables where they are not there yet, in the transaction of the connection."""
    if not there(connection):
        metadata.create_all(connection)
        connection.execute(versions.insert().values(only=1, version=VERSION))


def _damaged(how: str) -> StoreError:
    return StoreError(
        f"What is kept of classes is damaged, or another program's: {how}. Restore it, or choose another database."
    )
