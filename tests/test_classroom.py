"""Classes on SQLite and PostgreSQL: step order, single timely votes, access, limits, expiry."""

import re
import secrets
import time
from types import SimpleNamespace

import pytest
from sqlalchemy import inspect

from core.study.database import connection as databases
from core.study.database.connection import BusyError
from core.study.database.store import Store
from core.teaching import classroom
from core.teaching.classroom import CLOSED, DISCUSSION, OPEN, REVEALED, Classroom
from tests.classes import later, lesson, refused, stored
from tests.databases import database, postgresql  # noqa: F401  (fixtures)
from ui.kit.server.app import delete_old_classes


@pytest.fixture
def store(database):  # noqa: F811
    classroom = Classroom(database)
    yield classroom
    classroom.shut()


@pytest.fixture
def room(store):
    return lesson(store, question="q")


# A lesson


def test_question_in_two_rounds(room):
    where = room.store
    view = room.store.watch(room.code)
    assert (view.phase, view.question, view.round, view.left, view.seats, view.votes) == (
        OPEN,
        "q",
        1,
        None,
        3,
        0,
    )
    room.vote(0, "a"), room.vote(1, "b", because="since it is")
    assert where.watch_as_teacher(room.token).waiting == ((3, "s2"),)
    assert (
        where.watch_as_teacher(room.token).distribution == {1: {"a": 1, "b": 1}}
        and where.watch(room.code).votes == 2
    )
    where.close(room.token)
    assert room.phase == CLOSED and where.watch(room.code).distribution is None
    where.show(room.token)
    assert where.watch(room.code).distribution == {1: {"a": 1, "b": 1}}
    where.show(room.token, False)
    assert where.watch(room.code).distribution is None
    where.show(room.token)
    where.discuss(room.token)
    assert room.phase == DISCUSSION and where.watch(room.code).distribution
    (reason,) = where.watch_as_teacher(room.token).reasons
    assert (reason.round, reason.answer, reason.text, reason.picked) == (
        1,
        "b",
        "since it is",
        False,
    )
    where.pick(room.token, [reason.id])
    assert (
        where.watch(room.code).picked == ("since it is",)
        and where.watch_as_teacher(room.token).reasons[0].picked
    )
    where.open_second_round(room.token, 60)
    view = where.watch(room.code)
    assert (view.phase, view.round, view.votes, view.distribution, view.picked) == (
        OPEN,
        2,
        0,
        None,
        (),
    )
    assert 55 < view.left <= 60
    room.vote(0, "b", round=2), room.vote(2, "a", round=2)
    where.close(room.token), where.reveal(room.token)
    view = where.watch(room.code)
    assert (view.phase, view.distribution) == (REVEALED, {1: {"a": 1, "b": 1}, 2: {"a": 1, "b": 1}})
    assert {
        place: vote.answer for place, vote in where.read_own_votes(room.code, room.keys[0]).items()
    } == {
        ("q", 1): "a",
        ("q", 2): "b",
    }
    where.open(room.token, "next")
    assert where.watch(room.code).distribution is None and where.watch_as_teacher(
        room.token
    ).asked == (
        "q",
        "next",
    )


def test_tables_for_the_teacher(room):
    room.vote(2, "b", sure=3, because="=1+1"), room.vote(0, "a")
    room.store.close(room.token), room.store.open_second_round(room.token)
    room.vote(0, "b", round=2), room.vote(1, "c", round=2)
    table = room.store.read_answers(room.token)
    assert (
        list(table.columns)
        == "class question round seat nickname answer sure because seconds".split()
    )
    assert table.drop(columns="seconds").values.tolist() == [
        [room.code, "q", 1, 1, "s0", "a", 1, ""],
        [room.code, "q", 1, 3, "s2", "b", 3, "=1+1"],
        [room.code, "q", 2, 1, "s0", "b", 1, ""],
        [room.code, "q", 2, 2, "s1", "c", 1, ""],
    ]
    assert table.seconds.between(0, 60).all()
    empty = lesson(room.store)
    assert len(room.store.read_answers(empty.token)) == 0 and list(
        room.store.read_answers(empty.token).columns
    ) == [*table]


def test_steps_may_be_repeated(room):
    where = room.store
    token = room.token
    room.vote(0)
    key = room.keys[1]
    assert (
        where.join(room.code.lower(), "new name", key) == key
        and where.join(room.code, "", key) == key
    )
    assert where.watch_as_teacher(token).waiting == ((2, "new name"), (3, "s2"))
    for step, phase in (
        (where.close, CLOSED),
        (where.discuss, DISCUSSION),
        (where.open_second_round, OPEN),
        (where.close, CLOSED),
        (where.reveal, REVEALED),
    ):
        step(token), step(token)
        assert room.phase == phase
    where.open(token, "other"), where.open(token, "other", 30)
    assert where.watch(room.code).left > 25  # its time anew
    assert len(stored(where)) == 1


def test_steps_out_of_order_are_refused_without_effect(room):
    where = room.store
    token = room.token
    for step in (where.discuss, where.open_second_round, where.show, where.reveal):
        with refused("phase", "“q” is open"):
            step(token)
    with refused("phase", "is open"):
        where.pick(token, [])
    where.close(token), where.open_second_round(token), where.close(token)
    with refused("phase", "2 rounds"):
        where.open_second_round(token)
    with refused("phase", "second round"):
        where.discuss(token)
    where.reveal(token)
    for step in (where.discuss, where.open_second_round):
        with refused("phase", "revealed"):
            step(token)
    with refused("question", "already asked"):
        where.open(token, "q")
    assert room.phase == REVEALED


def test_new_question_closes_previous_one(room):
    room.store.open(room.token, "next")
    with refused("moved_on", "round 1"):
        room.vote(0)
    assert room.vote(0, question="next").answer == "yes"
    room.store.close(room.token), room.store.open_second_round(room.token)
    with refused("moved_on", "round 2"):
        room.vote(1, question="next")
    assert [line[1:4] for line in stored(room.store)] == [("next", 1, 1)]


# Votes


def test_vote_counts_once_and_stays(room):
    first = room.vote(0, "a", because="so")
    assert room.vote(0, "a", because="so") == first == room.vote(0, " a ", because="so\n")
    for other in (
        {"answer": "b"},
        {"answer": "a", "sure": 2},
        {"answer": "a", "because": "not so"},
    ):
        with refused("vote", "cannot be changed"):
            room.vote(0, **{"because": "so", **other})
    room.store.open(room.token, "next")
    assert (
        room.vote(0, "a", because="so") == first
    )  # a connection that comes back late finds its vote accepted
    assert len(stored(room.store)) == 1


def test_late_is_said_by_the_clock_of_the_database(room):
    where = room.store
    where.open(room.token, "q", 30)
    later(where, 29)
    before = room.vote(0)
    later(where, 2)
    view = where.watch(room.code)
    assert (view.phase, view.left, view.votes) == (CLOSED, None, 1)
    with refused("late", "too late"):
        room.vote(1)
    assert room.vote(0).at == pytest.approx(before.at - 2)
    where.show(room.token)
    assert where.watch(room.code).distribution == {1: {"yes": 1}}
    where.open_second_round(room.token, 5)
    later(where, 6)
    with refused("late", "too late"):
        room.vote(0, round=2)
    where.close(room.token), where.reveal(room.token)
    with refused("late", "too late"):
        room.vote(1, round=2)
    assert len(stored(where)) == 1 and where.read_answers(room.token).seconds.tolist() == [
        pytest.approx(29, abs=1)
    ]


def test_at_most_three_reasons_of_the_question_are_picked(room):
    where = room.store
    other = lesson(room.store)
    for seat in range(3):
        room.vote(seat, because=f"because {seat}" if seat else "")
    where.open(other.token, "q"), other.vote(0, because="elsewhere")
    (strange,) = where.watch_as_teacher(other.token).reasons
    where.close(room.token)
    first, two = where.watch_as_teacher(room.token).reasons
    where.pick(room.token, [two.id, first.id, two.id])
    assert where.watch(room.code).picked == ("because 2", "because 1")
    for ids, words in (
        ([strange.id], "not a reason given"),
        ([first.id - 1], "not a reason"),
        (["x", None], "not a reason"),
        ([1, 2, 3, 4], "4 reasons are selected; at most 3"),
    ):
        with refused("pick", words):
            where.pick(room.token, ids)
    assert where.watch(room.code).picked == ("because 2", "because 1")
    where.pick(room.token, [])
    assert where.watch(room.code).picked == ()


# Who sees and changes what


def test_classes_never_mix(store):
    first = lesson(store)
    two = lesson(store, 1)
    for room in (first, two):
        store.open(room.token, "q")
    first.vote(0, "a"), two.vote(0, "b")
    for key in (first.keys[1], secrets.token_urlsafe(16), "", first.token):
        with refused("key", f"not joined class {two.code}"):
            store.read_own_votes(two.code, key)
        with refused("key", "not joined class"):
            store.vote(two.code, key, "q", 1, "a")
    with refused("key", "not joined class"):
        store.join(two.code, "me", first.keys[0])
    store.close(first.token), store.show(first.token)
    assert store.watch(two.code).phase == OPEN and store.watch(two.code).votes == 1
    assert (
        store.watch(first.code).distribution == {1: {"a": 1}} and store.watch(first.code).seats == 3
    )
    assert set(store.read_answers(two.token)["class"]) == {two.code}
    store.end(first.token)
    assert stored(store) == [(two.code, "q", 1, 1, "b")] and store.watch(two.code).seats == 1


def test_only_the_teachers_key_controls_a_class(room):
    where = room.store
    calls = [
        where.watch_as_teacher,
        where.end,
        where.close,
        where.discuss,
        where.open_second_round,
        where.show,
        where.reveal,
    ]
    calls += [
        where.read_answers,
        lambda token: where.open(token, "x"),
        lambda token: where.pick(token, []),
    ]
    for token in (
        "",
        room.code,
        room.keys[0],
        room.token[:-1],
        classroom.hash_secret(room.token),
        "\ud800\0",
    ):
        for call in calls:
            with refused("token", "teacher key"):
                call(token)
    assert room.phase == OPEN and where.watch(room.code).seats == 3
    with where.database.reading() as connection:
        rows = [
            repr(connection.execute(table.select()).all())
            for table in classroom.metadata.sorted_tables
        ]
    for secret in (room.token, *room.keys):  # they are stored as hashes alone
        assert secret not in "".join(rows) and classroom.hash_secret(secret) in "".join(rows)


def test_public_view_names_nobody(room):
    room.vote(0, "a", because="so")
    room.store.close(room.token), room.store.show(room.token)
    for view in (room.store.watch(room.code), room.store.watch_as_teacher(room.token).reasons):
        assert not [name for name in ("s0", "s1", room.token, *room.keys) if name in repr(view)]


def test_codes_are_read_as_people_write_them(room):
    a = room.code[:2]
    b = room.code[2:]
    for typed in (room.code.lower(), f" {a} {b}\n", f"{a}-{b}".lower()):
        assert room.store.watch(typed).code == room.code
    assert not set(classroom.LETTERS) & set("ILOQ01") and re.fullmatch(
        f"[{classroom.LETTERS}]{{5}}", room.code
    )
    for code in ("", room.code + "B", room.code[:4], "IIIII", "' OR 1", "\ud800\0", room.token):
        with refused("code", "There is no class .*five letters.*24 hours"):
            room.store.watch(code)


# Limits


def test_limits_are_said(store, monkeypatch):
    for name, limit in (("CLASSES", 2), ("SEATS", 4), ("QUESTIONS", 2)):
        monkeypatch.setattr(classroom, name, limit)
    room = lesson(store, 4)
    _ = store.start()
    with refused("class", "limit of 2 classes"):
        store.start()
    with refused("full", f"Class {room.code} is full: all of its 4 seats"):
        store.join(room.code)
    assert store.join(room.code, key=room.keys[0]) == room.keys[0]
    store.open(room.token, "a"), store.open(room.token, "b")
    with refused("class", "limit of 2 questions"):
        store.open(room.token, "c")
    with refused("question", "3 questions are planned; a class may ask at most 2"):
        store.start("abc")
    store.end(room.token)
    assert store.start().code


GIVEN = {
    "answer": ({"answer": "\0\x1b"}, "The answer is empty; it must have 1 to 200"),
    "long": ({"answer": "x" * 201}, "The answer has 201 characters; it may have at most 200"),
    "because": ({"because": "x" * 301}, "The reason has 301 characters; it may have at most 300"),
    "sure": ({"sure": 4}, "is 4; it must be a whole number from 0 to 3"),
    "sure, yes": ({"sure": True}, "is True"),
}


@pytest.mark.parametrize(("values", "words"), GIVEN.values(), ids=GIVEN)
def test_invalid_votes_are_refused_in_words(room, values, words):
    with refused(next(iter(values)), words):
        room.vote(0, **values)
    assert stored(room.store) == []


def test_invalid_questions_are_refused_in_words(room):
    for seconds in (0, 3601, float("nan"), float("inf"), "ten", True):
        for call in (
            lambda s: room.store.open(room.token, "x", s),
            lambda s: room.store.open_second_round(room.token, s),
        ):
            with refused("seconds", "The time is .*; it must be 1 to 3,600 seconds, or none"):
                call(seconds)
    with refused("nickname", "The nickname has 41 characters; it may have at most 40"):
        room.store.join(room.code, "x" * 41)


# The database


def test_tables_are_created_with_first_class_only(database, tmp_path):  # noqa: F811
    classroom = Classroom(database)
    assert classroom.sweep() == 0
    for ask, field in (
        (classroom.watch, "code"),
        (classroom.join, "code"),
        (classroom.watch_as_teacher, "token"),
        (classroom.end, "token"),
    ):
        with refused(field, "no class"):
            ask("BCDFG")
    assert list(tmp_path.iterdir()) == []
    started = classroom.start()
    with classroom.database.reading() as connection:
        names = set(inspect(connection).get_table_names())
    assert names == {"class_version", "class_rooms", "class_seats", "class_polls", "class_votes"}
    other = Store(database)
    assert other.studies() == [] and Classroom(database).watch(started.code).code == started.code
    other.close(), classroom.shut()


def test_server_deletes_class_after_a_day(store, monkeypatch):
    monkeypatch.setenv(
        "ABLATION_DATABASE_URL", store.database.url.render_as_string(hide_password=False)
    )
    old = lesson(store, question="q")
    old.vote(0, because="so")
    later(store, 23.9 * 3600)
    new = lesson(store, question="q")
    new.vote(0)
    delete_old_classes()
    assert old.phase == OPEN
    later(store, 0.2 * 3600)
    for call, field in (
        (lambda: store.watch(old.code), "code"),
        (lambda: store.end(old.token), "token"),
    ):
        with refused(field, "24 hours"):
            call()
    delete_old_classes()
    assert stored(store) == [(new.code, "q", 1, 1, "yes")]
    store.end(new.token)
    with store.database.reading() as connection:
        for table in (classroom.rooms, classroom.seats, classroom.polls, classroom.votes):
            assert connection.execute(table.select()).first() is None


def test_lost_database_answer_is_retried_without_duplicates(store, monkeypatch):
    """The connection breaks after each second commit, before it can confirm it."""
    calls = []

    def lose_every_second(call, seconds):
        def call_with_failures():
            result = call()
            calls.append(1)
            if len(calls) % 2:
                raise BusyError("the connection broke")
            return result

        return databases.patiently(call_with_failures, seconds)

    store.start()
    monkeypatch.setattr(
        databases, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None)
    )
    monkeypatch.setattr("core.teaching.classroom.patiently", lose_every_second)
    started = store.start()
    key = store.join(started.code, "me")
    store.open(started.token, "q")
    store.vote(started.code, key, "q", 1, "a")
    store.close(started.token), store.open_second_round(started.token)
    monkeypatch.undo()
    assert (
        stored(store) == [(started.code, "q", 1, 1, "a")] and store.watch(started.code).seats == 1
    )
    with store.database.reading() as connection:
        assert len(connection.execute(classroom.rooms.select()).all()) == 2
