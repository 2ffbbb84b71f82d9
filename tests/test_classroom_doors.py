"""Who comes in to a class and what they see of it; what is kept, where and for how long; on both databases."""

import dataclasses
import re
import secrets
import sqlite3
import time
from types import SimpleNamespace

import pytest
from sqlalchemy import exc, inspect

from core.settings.setting import ConfigError
from core.study.database import connection as databases
from core.study.database.connection import Busy, StoreError
from core.study.database.store import Store
from core.teaching.classroom import OPEN, Classroom, given, tables
from tests.classes import later, lesson, refused, stored
from tests.databases import database, postgresql  # noqa: F401  (fixtures)


@pytest.fixture
def store(database):  # noqa: F811
    made = Classroom(database)
    yield made
    made.shut()


@pytest.fixture
def room(store):
    return lesson(store, asked="q")


# Nobody sees or changes what is not theirs


def test_two_classes_never_mix(store):
    one, two = lesson(store), lesson(store, 1)
    for each in (one, two):
        store.open(each.token, "q")
    one.vote(0, "a"), two.vote(0, "b")
    for key in (one.keys[1], secrets.token_urlsafe(16), "", one.token):
        for use in (store.mine, lambda code, key: store.vote(code, key, "q", 1, "a")):
            with refused("key", f"no seat of class {two.code}"):
                use(two.code, key)
        if key:
            with refused("key", "no seat"):
                store.join(two.code, "me", key)
    store.close(one.token), store.show(one.token)
    assert store.watch(two.code).phase == OPEN and store.watch(two.code).votes == 1
    assert store.watch(one.code).distribution == {1: {"a": 1}} and store.watch(one.code).seats == 3
    assert set(store.answers(two.token)["class"]) == {two.code} and len(store.answers(two.token)) == 1
    assert store.of_teacher(two.token).waiting == () and len(store.of_teacher(one.token).waiting) == 2
    store.end(one.token)
    assert stored(store) == [(two.code, "q", 1, 1, "b")] and store.watch(two.code).seats == 1


def test_forged_tokens_and_codes_open_nothing(room):
    where = room.store
    for token in ("", room.code, room.keys[0], room.token[:-1], room.token + "A", given.hashed(room.token), "\ud800\0", "x" * 10**6):  # fmt: skip
        calls = [where.of_teacher, where.end, where.close, where.discuss, where.again, where.show, where.reveal, where.answers]  # fmt: skip
        calls += [lambda t: where.open(t, "x"), lambda t: where.pick(t, []), lambda t: where.crosstab(t, "q")]
        for call in calls:
            with refused("token", "No class has this teacher's key"):
                call(token)
    absent = "".join(next(c for c in given.LETTERS if c != mine) for mine in room.code)
    for code in ("", absent, room.code + "B", room.code[:4], "IIIII", "' OR 1", "\ud800\0", "x" * 10**6, room.token):
        for call in (where.watch, where.join, lambda c: where.mine(c, room.keys[0])):
            with refused("code", "There is no class .*five letters.*24 hours"):
                call(code)
    assert room.phase == OPEN and where.watch(room.code).seats == 3


def test_a_code_is_read_as_people_write_it(room):
    a, b = room.code[:2], room.code[2:]
    for typed in (room.code.lower(), f" {a} {b}\n", f"{a}-{b}".lower()):
        assert room.store.watch(typed).code == room.code
    assert not set(given.LETTERS) & set("ILOQ01") and re.fullmatch(f"[{given.LETTERS}]{{5}}", room.code)


def test_secrets_are_stored_as_hashes_alone(room):
    with room.store._doors.reading() as connection:
        lines = [
            repr(connection.exec_driver_sql(f"SELECT * FROM {name}").all())
            for name in ("class_rooms", "class_seats", "class_polls", "class_votes")
        ]
    for secret in (room.token, *room.keys):
        assert secret not in "".join(lines)
    assert given.hashed(room.token) in lines[0] and given.hashed(room.keys[0]) in lines[1]


def test_what_everybody_sees_names_nobody(room):
    room.vote(0, "a", because="so")
    room.store.close(room.token), room.store.show(room.token)
    for seen in (room.store.watch(room.code), room.store.of_teacher(room.token).reasons):
        assert not [each for each in ("s0", "s1", room.token, *room.keys) if each in repr(seen)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        room.store.watch(room.code).stamp = 0


# Where it is kept


def names(where) -> set[str]:
    with Classroom(where)._doors.reading() as connection:
        return set(inspect(connection).get_table_names())


def test_nothing_is_made_before_a_class_is_started_and_studies_are_left_alone(database, tmp_path):  # noqa: F811
    own = Classroom(database)
    assert own.sweep() == 0
    for ask, field in ((own.watch, "code"), (own.join, "code"), (own.of_teacher, "token"), (own.end, "token")):
        with refused(field, "no class"):
            ask("BCDFG")
    assert list(tmp_path.iterdir()) == []
    started = own.start()
    assert names(database) == {"class_version", "class_rooms", "class_seats", "class_polls", "class_votes"}
    other = Store(database)
    assert other.studies() == [] and own.watch(started.code).seats == 0
    assert Classroom(database).watch(started.code).code == started.code
    own.end(started.token)
    other.close(), own.shut()


def test_an_error_of_a_class_is_one_that_pages_show(store):
    with pytest.raises(ConfigError) as caught:
        store.watch("x")
    assert str(caught.value) == "There is no class “x”: a code has five letters, and a class ends after 24 hours."


def test_a_class_is_gone_after_a_day_and_swept(store):
    old, new = lesson(store, asked="q"), None
    old.vote(0, because="so")
    later(store, 23.9 * 3600)
    new = lesson(store, asked="q")
    new.vote(0)
    assert old.phase == OPEN and store.sweep() == 0
    later(store, 0.2 * 3600)
    for call, field in ((lambda: store.watch(old.code), "code"), (lambda: store.of_teacher(old.token), "token"), (lambda: store.end(old.token), "token"), (lambda: old.vote(1), "code")):  # fmt: skip
        with refused(field, "24 hours"):
            call()
    assert store.sweep() == 1 and store.sweep() == 0 and stored(store) == [(new.code, "q", 1, 1, "yes")]
    store.end(new.token)
    with store._doors.reading() as connection:
        assert all(connection.execute(table.select()).first() is None for table in tables.metadata.sorted_tables if table is not tables.versions)  # fmt: skip


def test_a_code_that_a_class_has_is_not_given_to_another(store, monkeypatch):
    codes = iter(["BCDFG", "BCDFG", "BCDFH", "BCDFG"])
    monkeypatch.setattr(given, "new_code", lambda: next(codes))
    assert [store.start().code, store.start().code] == ["BCDFG", "BCDFH"]
    later(store, 25 * 3600)
    assert store.start().code == "BCDFG"  # that class is over


DAMAGED = {
    "no votes": ("DROP TABLE class_votes", "its table class_votes has no columns"),
    "no column": ("ALTER TABLE class_seats RENAME COLUMN tries TO other", "class_seats has no column tries"),
    "no version": ("DELETE FROM class_version", "class_version does not hold one version"),
    "a newer one": ("UPDATE class_version SET version = 7", "version 7, and this version of the project knows 1 alone"),
}


@pytest.mark.parametrize(("statement", "words"), DAMAGED.values(), ids=DAMAGED)
def test_tables_that_are_not_what_they_were_are_refused_in_words(room, database, statement, words):  # noqa: F811
    with room.store._doors.writing() as connection:
        connection.exec_driver_sql(statement)
    other = Classroom(database)
    for call in (other.start, other.sweep, lambda: other.watch(room.code)):
        with pytest.raises(StoreError, match=words):
            call()
    other.shut()


def test_a_database_that_is_busy_says_so_and_then_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr("core.study.database.connection.PATIENCE", 0.1)
    monkeypatch.setattr("core.teaching.classroom.doors.WITHIN", 0.0)
    made = lesson(Classroom(str(tmp_path / "x.sqlite")), asked="q")
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="locked by another program"):
        made.vote(0)
    assert made.store.watch(made.code).votes == 0  # who looks need not wait
    other.execute("ROLLBACK")
    made.vote(0)
    assert made.store.watch(made.code).votes == 1


def test_a_process_that_asks_for_too_much_at_once_is_told_to_wait(room, monkeypatch):
    monkeypatch.setattr("core.teaching.classroom.doors.WITHIN", 0.0)

    def full():
        raise exc.TimeoutError("QueuePool limit of size 5 overflow 10 reached")

    monkeypatch.setattr(room.store._doors.engine.pool, "connect", full)
    for call in (lambda: room.store.watch(room.code), lambda: room.vote(0)):
        with pytest.raises(Busy, match="is asked for more than it can do now") as caught:
            call()
        assert caught.value.told == "The store is asked for more than it can do now."


def test_an_answer_of_the_database_that_is_lost_is_asked_for_again_and_nothing_stands_twice(store, monkeypatch):
    """As when the connection breaks after the commit, before it could say that all was well."""
    lost, doors = [], store._doors
    whole = doors._connected

    def losing(call):
        found = whole(call)
        lost.append(1)
        if len(lost) % 2:
            raise Busy("the connection broke")
        return found

    store.start()
    monkeypatch.setattr(databases, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None))
    monkeypatch.setattr(doors, "_connected", losing)
    started = store.start()
    key = store.join(started.code, "me")
    store.open(started.token, "q")
    store.vote(started.code, key, "q", 1, "a")
    store.close(started.token), store.again(started.token)
    monkeypatch.undo()
    assert stored(store) == [(started.code, "q", 1, 1, "a")] and store.watch(started.code).seats == 1
    with doors.reading() as connection:
        assert len(connection.execute(tables.rooms.select()).all()) == 2
