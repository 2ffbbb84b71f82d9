"""What may be brought to a class, and how much of it: said in words where it is too much, and else kept as it is."""

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from core.teaching.classroom import Classroom, classroom, given, steps, votes
from tests.classes import DAY, later, lesson, refused, stored
from tests.databases import database, postgresql  # noqa: F401  (fixtures)
from ui.kit.server.app import delete_old_classes


@pytest.fixture
def store(database):  # noqa: F811
    made = Classroom(database)
    yield made
    made.shut()


@pytest.fixture
def room(store):
    return lesson(store, asked="q")


def test_limits_are_said(store, monkeypatch):
    (
        monkeypatch.setattr(classroom, "ALIVE", 2),
        monkeypatch.setattr(votes, "SEATS", 4),
        monkeypatch.setattr(steps, "POLLS", 2),
    )
    monkeypatch.setattr(votes, "JOINS", 3)
    made, _ = lesson(store), store.start()
    with refused("class", "There are 2 classes now"):
        store.start()
    with refused("class", "3 have joined class .* within a minute"):
        store.join(made.code)
    assert store.join(made.code, key=made.keys[0]) == made.keys[0]  # who has a seat may always come back
    later(store, 61)
    store.join(made.code)
    with refused("class", f"Class {made.code} is full: all of its 4 seats"):
        store.join(made.code)
    store.open(made.token, "a"), store.open(made.token, "b")
    with refused("class", "has asked 2 questions"):
        store.open(made.token, "c")
    store.end(made.token)
    assert store.start().code


def test_where_there_are_as_many_classes_as_may_be_one_that_nobody_joined_gives_way(store, monkeypatch):
    monkeypatch.setattr(classroom, "ALIVE", 3)
    taught, first, second = lesson(store), store.start(), store.start()
    with refused("class", "There are 3 classes now"):
        store.start()
    later(store, 601)
    store.join(second.code)
    third = store.start()
    with refused("code", "There is no class"):
        store.watch(first.code)
    for code in (taught.code, second.code, third.code):
        assert store.watch(code)
    with refused("class", "There are 3 classes now"):
        store.start()


@pytest.mark.parametrize("happens", ["joined", "opened", "closed", "voted"])
def test_where_all_are_joined_one_in_which_nothing_happens_for_an_hour_gives_way(store, monkeypatch, happens):
    """One program that takes a seat in each class it starts would else have kept all others from starting one for a day."""
    monkeypatch.setattr(classroom, "ALIVE", 2)
    busy, quiet = lesson(store, asked="q"), lesson(store, asked="q")
    later(store, 3601)
    {
        "joined": lambda: store.join(busy.code),
        "opened": lambda: store.open(busy.token, "r"),
        "closed": lambda: store.close(busy.token),
        "voted": lambda: busy.vote(0, "a"),
    }[happens]()
    new = store.start()
    with refused("code", "There is no class"):
        store.watch(quiet.code)
    store.join(new.code)
    for _ in range(2):
        with refused("class", "There are 2 classes now"):
            store.start()
        later(store, 1790)
    store.join(new.code)
    later(store, 30)
    assert store.start() and store.watch(new.code)
    with refused("code", "There is no class"):
        store.watch(busy.code)


def test_of_a_full_class_the_seat_that_has_been_idle_longest_gives_way(store, monkeypatch):
    """One program that takes all seats would else have locked the class for its day. Who has voted keeps the seat."""
    monkeypatch.setattr(votes, "SEATS", 3)
    made = lesson(store, seats=3)
    later(store, 601)
    with refused("class", "is full"):  # nothing has been asked: who listens has missed nothing
        store.join(made.code)
    store.open(made.token, "q")
    made.vote(0, "a")
    with refused("class", "is full"):  # it is still open
        store.join(made.code)
    store.close(made.token)
    new = [store.join(made.code, "new"), store.join(made.code, "newer")]
    with refused("class", "is full"):
        store.join(made.code)
    for key in made.keys[1:]:
        with refused("key", "no seat of class"):
            store.join(made.code, key=key)
    for key in (made.keys[0], *new):
        assert store.join(made.code, key=key) == key
    assert [line[3:] for line in stored(store)] == [(1, "a")] and store.watch(made.code).seats == 3


def test_the_server_deletes_what_is_over_by_itself(store, monkeypatch):
    monkeypatch.setenv("ABLATION_DATABASE_URL", store._doors.url.render_as_string(hide_password=False))
    made = lesson(store, asked="q")
    made.vote(0, "a")
    delete_old_classes()
    assert stored(store)
    later(store, DAY)
    delete_old_classes()
    assert not stored(store)


def test_a_lecture_may_join_at_once(store):
    """A hundred within a minute, three hundred within two."""
    assert votes.JOINS >= 300 and votes.SEATS >= 300
    made = lesson(store, 100)
    assert store.watch(made.code).seats == 100


def test_who_tries_too_often_waits_a_minute(room, monkeypatch):
    monkeypatch.setattr(votes, "TRIES", 3)
    room.vote(0, "a")
    for answer, again in (("b", refused("vote", "already in")), ("c", refused("vote", "already in"))):
        with again:
            room.vote(0, answer)
    for answer in "ab":
        with refused("tries", "You have sent 3 votes within a minute"):
            room.vote(0, answer)
    room.vote(1)  # another seat may
    later(room.store, 61)
    room.vote(0, "a")
    assert len(stored(room.store)) == 2


GIVEN = {
    "answer": ({"answer": ""}, "The answer is empty; it must have 1 to 200"),
    "controls": ({"answer": "\0\x1b"}, "The answer is empty"),
    "long": ({"answer": "x" * 201}, "The answer has 201 characters; it may have at most 200"),
    "because": ({"because": "x" * 301}, "The reason has 301 characters; it may have at most 300"),
    "sure": ({"sure": 4}, "How sure you are is 4; it must be a whole number from 0 to 3"),
    "sure, a word": ({"sure": "very"}, "is “very”"),
    "sure, yes": ({"sure": True}, "is True"),
    "round": ({"round": 3}, "The round is 3; it must be 1 or 2"),
    "question": ({"question": "x" * 101}, "The question has 101 characters"),
}


@pytest.mark.parametrize(("values", "words"), GIVEN.values(), ids=GIVEN)
def test_what_cannot_be_voted_is_said(room, values, words):
    with refused(next(iter(values)), words):
        room.vote(0, **values)
    assert stored(room.store) == []


def test_what_a_teacher_cannot_ask_is_said(room):
    for seconds in (0, -1, 3601, float("nan"), float("inf"), "ten", True):
        for call in (lambda s: room.store.open(room.token, "x", s), lambda s: room.store.again(room.token, s)):
            with refused("seconds", "The time is .*; it must be 1 to 3,600 seconds, or none"):
                call(seconds)
    for name in ("", "\n", "x" * 101):
        with refused("question", "The question (is empty|has 101 characters)"):
            room.store.open(room.token, name)
    with refused("question", "101 questions are planned; a class may ask at most 100"):
        room.store.start(str(n) for n in range(101))
    with refused("nickname", "The nickname has 41 characters; it may have at most 40"):
        room.store.join(room.code, "x" * 41)


TEXTS = ["<script>alert(1)</script>", "**bold** [x](y) $x^2$ :red[x]", "👩🏽‍🏫 🏳️‍🌈", "מימין לשמאל \u200f12", "'; DROP TABLE class_votes; --", "=1+1", "Zoë Žižek", "e\u0301", "\ufffe \U0010ffff", "％s {0} \\x00"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_any_characters_come_back_as_they_were(room, text):
    store, key = room.store, room.store.join(room.code, text)
    store.vote(room.code, key, "q", 1, text, 0, text)
    assert store.vote(room.code, key, "q", 1, text, 0, text).round == 1
    (line,) = store.answers(room.token).itertuples()
    assert line.nickname == line.answer == line.because == text
    assert store.of_teacher(room.token).reasons[0].text == store.mine(room.code, key)["q", 1].because == text


def test_who_turns_the_writing_round_turns_nobody_elses(room):
    """A name may hold any script, but nothing that goes on behind it: the list of who has not answered would be turned."""
    room.store.join(room.code, "\u2069\u202eZorro\u2066")
    assert [name for _, name in room.store.of_teacher(room.token).waiting][-1] == "Zorro"


def test_what_no_database_holds_is_cleaned(room):
    key = room.store.join(room.code, " a\0b\ud800c\n\td\x85 ")
    room.store.vote(room.code, key, "q", 1, "x\0\udfff", 0, "\0\ud83d")
    (line,) = room.store.answers(room.token).itertuples()
    assert (line.nickname, line.answer, line.because) == ("abc  d", "x", "")
    assert room.store.of_teacher(room.token).reasons == ()  # nothing is left of it


@pytest.mark.parametrize("text", ["\u200b", "\u202e\u2066", " \u200d \ufeff", "\u3164", "\u2800\u115f", "\u034f\ufe0f"])
def test_a_nickname_that_nobody_would_see_is_none(text):
    assert given.text("nickname", text) == ""


@drawn(st.text(max_size=40))
def test_cleaned_text_is_text_that_stays(text):
    once = given.text("nickname", text)
    assert given.text("nickname", once) == once and len(once) <= len(text)
    once.encode("utf-8")
    assert once.isprintable() or not any(c < " " or "\x7f" <= c <= "\x9f" for c in once)


def test_a_seat_taken_again_is_the_same(room):
    store, key = room.store, room.keys[0]
    assert store.join(room.code.lower(), "new name", key) == key and store.join(room.code, "", key) == key
    assert store.of_teacher(room.token).waiting == ((1, "new name"), (2, "s1"), (3, "s2"))
