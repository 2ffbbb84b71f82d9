"""Classes: what is asked, in which order, and every vote once and in time; on SQLite and on PostgreSQL alike."""

import pytest

from core.teaching.classroom import CLOSED, DISCUSSION, OPEN, REVEALED, WAITING, Classroom
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


# A lesson


def test_a_question_in_two_rounds(room):
    where, seen = room.store, room.store.watch(room.code)
    assert (seen.phase, seen.question, seen.round, seen.left, seen.seats, seen.votes) == (OPEN, "q", 1, None, 3, 0)
    room.vote(0, "a"), room.vote(1, "b", because="since it is")
    assert where.of_teacher(room.token).waiting == ((3, "s2"),)
    assert where.of_teacher(room.token).distribution == {1: {"a": 1, "b": 1}} and where.watch(room.code).votes == 2
    where.close(room.token)
    assert room.phase == CLOSED and where.watch(room.code).distribution is None
    where.show(room.token)
    assert where.watch(room.code).distribution == {1: {"a": 1, "b": 1}}
    where.show(room.token, False)
    assert where.watch(room.code).distribution is None
    where.show(room.token)
    where.discuss(room.token)
    assert room.phase == DISCUSSION and where.watch(room.code).distribution
    (reason,) = where.of_teacher(room.token).reasons
    assert (reason.round, reason.answer, reason.text, reason.picked) == (1, "b", "since it is", False)
    where.pick(room.token, [reason.id])
    assert where.watch(room.code).picked == ("since it is",) and where.of_teacher(room.token).reasons[0].picked
    where.again(room.token, 60)
    seen = where.watch(room.code)
    assert (seen.phase, seen.round, seen.votes, seen.distribution, seen.picked) == (OPEN, 2, 0, None, ())
    assert 55 < seen.left <= 60
    room.vote(0, "b", round=2), room.vote(2, "a", round=2)
    where.close(room.token), where.reveal(room.token)
    seen = where.watch(room.code)
    assert (seen.phase, seen.distribution) == (REVEALED, {1: {"a": 1, "b": 1}, 2: {"a": 1, "b": 1}})
    assert {place: vote.answer for place, vote in where.mine(room.code, room.keys[0]).items()} == {
        ("q", 1): "a",
        ("q", 2): "b",
    }
    where.open(room.token, "next")
    assert where.watch(room.code).distribution is None and where.of_teacher(room.token).asked == ("q", "next")


def test_tables_for_the_teacher(room):
    room.vote(2, "b", sure=3, because="=1+1"), room.vote(0, "a")
    room.store.close(room.token), room.store.again(room.token)
    room.vote(0, "b", round=2), room.vote(1, "c", round=2)
    table = room.store.answers(room.token)
    assert list(table.columns) == "class question round seat nickname answer sure because seconds".split()
    assert table.drop(columns="seconds").values.tolist() == [
        [room.code, "q", 1, 1, "s0", "a", 1, ""],
        [room.code, "q", 1, 3, "s2", "b", 3, "=1+1"],
        [room.code, "q", 2, 1, "s0", "b", 1, ""],
        [room.code, "q", 2, 2, "s1", "c", 1, ""],
    ]
    assert table.seconds.between(0, 60).all()
    crossed = room.store.crosstab(room.token, "q")
    assert crossed.loc["a", "b"] == 1 and crossed.to_numpy().sum() == 1 and list(crossed.index) == ["a", "b"]
    with refused("question", "“other” was not asked"):
        room.store.crosstab(room.token, "other")
    empty = lesson(room.store)
    assert len(room.store.answers(empty.token)) == 0 and list(room.store.answers(empty.token).columns) == [*table]


def test_what_is_planned_is_found_again(store):
    started = store.start(["one", "two", "one"])
    view = store.of_teacher(started.token)
    assert (view.planned, view.asked, view.phase, view.code) == (("one", "two"), (), WAITING, started.code)
    assert abs(view.began - store._doors.now()) < 60 and not view.waiting and not view.distribution
    assert store.watch(started.code).phase == WAITING


def test_every_step_may_be_taken_twice(room):
    where, token = room.store, room.token
    room.vote(0)
    for step, phase in ((where.close, CLOSED), (where.discuss, DISCUSSION), (where.again, OPEN), (where.close, CLOSED), (where.reveal, REVEALED)):  # fmt: skip
        step(token), step(token)
        assert room.phase == phase
    where.open(token, "other"), where.open(token, "other", 30)
    assert where.watch(room.code).left > 25  # its time anew
    assert len(stored(where)) == 1


@pytest.mark.parametrize("step", ["close", "discuss", "again", "show", "reveal"])
def test_steps_want_something_asked(store, step):
    started = store.start()
    with refused("phase", "Nothing has been asked"):
        getattr(store, step)(started.token)
    with refused("phase", "Nothing has been asked"):
        store.pick(started.token, [1])
    with refused("question", "Nothing has been asked"):
        store.vote(started.code, store.join(started.code), "q", 1, "a")


def test_steps_out_of_their_order_are_refused_and_change_nothing(room):
    where, token = room.store, room.token
    for step in (where.discuss, where.again, where.show, where.reveal):
        with refused("phase", "“q” is open; close it first"):
            step(token)
    with refused("phase", "is open"):
        where.pick(token, [])
    where.close(token), where.again(token), where.close(token)
    with refused("phase", "both were"):
        where.again(token)
    with refused("phase", "discussion is over"):
        where.discuss(token)
    where.reveal(token)
    for step in (where.discuss, where.again):
        with refused("phase", "is revealed"):
            step(token)
    with refused("question", "asked in this class before"):
        where.open(token, "q")
    assert room.phase == REVEALED


def test_a_new_question_closes_the_one_before(room):
    room.store.open(room.token, "next")
    with refused("question", "By now “next” is open, in round 1"):
        room.vote(0)
    assert room.vote(0, question="next").question == "next"
    room.store.close(room.token), room.store.again(room.token)
    with refused("question", "is open, in round 2"):
        room.vote(1, question="next")
    assert [line[1:4] for line in stored(room.store)] == [("next", 1, 1)]


# Votes


def test_a_vote_is_there_once_and_stays_as_it_is(room):
    first = room.vote(0, "a", because="so")
    assert room.vote(0, "a", because="so") == first == room.vote(0, " a ", because="so\n")
    for other in ({"answer": "b"}, {"answer": "a", "sure": 2}, {"answer": "a", "because": "not so"}):
        with refused("vote", "already in. It cannot be changed"):
            room.vote(0, **{"because": "so", **other})
    room.store.open(room.token, "next")
    assert room.vote(0, "a", because="so") == first  # a connection that comes back late finds its vote accepted
    assert len(stored(room.store)) == 1


def test_late_is_said_by_the_clock_of_the_database(room):
    where = room.store
    where.open(room.token, "q", 30)
    later(where, 29)
    before = room.vote(0)
    stamp = where.watch(room.code).stamp
    later(where, 2)
    seen = where.watch(room.code)
    assert (seen.phase, seen.left, seen.votes) == (CLOSED, None, 1) and seen.stamp > stamp
    with refused("late", "does not count"):
        room.vote(1)
    assert room.vote(0).at == pytest.approx(before.at - 2)
    where.show(room.token)
    assert where.watch(room.code).distribution == {1: {"yes": 1}} and where.watch(room.code).stamp > seen.stamp
    where.again(room.token, 5)
    later(where, 6)
    with refused("late", "does not count"):
        room.vote(0, round=2)
    where.close(room.token), where.reveal(room.token)
    with refused("late", "does not count"):
        room.vote(1, round=2)
    assert len(stored(where)) == 1 and where.answers(room.token).seconds.tolist() == [pytest.approx(29, abs=1)]


def test_the_stamp_grows_with_everything_that_is_seen(room):
    where, token, stamps = room.store, room.token, []
    steps = [
        lambda: None, lambda: room.vote(0, because="so"), lambda: where.join(room.code), lambda: where.close(token),
        lambda: where.show(token), lambda: where.discuss(token), lambda: where.join(room.code, "new", room.keys[0]),
        lambda: where.pick(token, [where.of_teacher(token).reasons[0].id]), lambda: where.again(token),
        lambda: where.close(token), lambda: where.reveal(token), lambda: where.open(token, "next"),
    ]  # fmt: skip
    for step in steps:
        step()
        stamps.append(where.watch(room.code).stamp)
    assert stamps == sorted(set(stamps))
    where.join(room.code, key=room.keys[0])
    assert where.watch(room.code).stamp == stamps[-1] == where.of_teacher(token).stamp


def test_three_reasons_at_most_and_only_those_of_the_question(room):
    where, other = room.store, lesson(room.store)
    for seat in range(3):
        room.vote(seat, because=f"because {seat}" if seat else "")
    where.open(other.token, "q"), other.vote(0, because="elsewhere")
    (strange,) = where.of_teacher(other.token).reasons
    where.close(room.token)
    one, two = where.of_teacher(room.token).reasons
    where.pick(room.token, [two.id, one.id, two.id])
    assert where.watch(room.code).picked == ("because 2", "because 1")
    for ids, words in (([strange.id], "no reason given"), ([one.id - 1], "no reason"), (["x", None], "no reason"), ([1, 2, 3, 4], "4 reasons are picked; at most 3")):  # fmt: skip
        with refused("pick", words):
            where.pick(room.token, ids)
    assert where.watch(room.code).picked == ("because 2", "because 1")
    where.pick(room.token, [])
    assert where.watch(room.code).picked == ()
