"""Concurrent votes from threads and processes: every accepted vote is stored exactly once.

One of the processes is killed.
"""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from core.teaching.classroom import Classroom
from tests.classes import lesson, refused, stored
from tests.databases import database, postgresql  # noqa: F401  (fixtures)

ROOT = Path(__file__).parent.parent
SEATS = 60
VOTER = """
import sys
from core.teaching.classroom import Classroom
where, code, answer, *keys = sys.argv[1:]
store = Classroom(where)
print("ready", flush=True)
sys.stdin.readline()
for key in keys:
    store.vote(code, key, "q", 1, answer, 1)
    print(key, flush=True)
"""


@pytest.fixture
def store(database):  # noqa: F811
    classroom = Classroom(database)
    yield classroom
    classroom.shut()


def at_once(*calls) -> list[BaseException]:
    """Call each function in its own thread. Return the exceptions."""
    problems = []
    ready = threading.Barrier(len(calls))

    def work(call):
        ready.wait()
        try:
            call()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def voter(where, room, answer, keys) -> subprocess.Popen:
    """Start a process that votes for these seats and prints the key of each accepted vote."""
    call = [sys.executable, "-c", VOTER, where, room.code, answer, *keys]
    pipe = subprocess.PIPE
    process = subprocess.Popen(call, cwd=ROOT, text=True, stdin=pipe, stdout=pipe)
    assert process.stdout.readline() == "ready\n"
    return process


def test_sixty_simultaneous_double_votes_count_once(store):
    room = lesson(store, SEATS, "q")
    accepted = []

    def vote(seat):
        for _ in range(2):
            accepted.append((seat, room.vote(seat, f"answer {seat % 3}", because="so").at))

    assert at_once(*[lambda seat=seat: vote(seat) for seat in range(SEATS)]) == []
    assert (
        len(accepted) == 2 * SEATS and len(set(accepted)) == SEATS
    )  # the second time says when the first one came
    assert sorted(line[3] for line in stored(store)) == list(range(1, SEATS + 1))
    assert (
        store.watch(room.code).votes == SEATS and store.watch_as_teacher(room.token).waiting == ()
    )


def test_simultaneous_answers_of_a_seat_count_once(store):
    room = lesson(store, 2, "q")
    problems = at_once(*[lambda answer=answer: room.vote(0, answer) for answer in "abcdef"])
    assert len(problems) == 5 and {error.field for error in problems} == {"vote"}
    (line,) = stored(store)
    assert "already" in str(problems[0])


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 20])
def test_killed_process_loses_no_accepted_vote(store, database, after):  # noqa: F811
    room = lesson(store, 200, "q")
    process = voter(database, room, "yes", room.keys)
    process.stdin.write("\n")
    process.stdin.flush()
    accepted = [process.stdout.readline().strip() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    remaining = (
        process.stdout.read()
    )  # communicate() passes over what was read ahead with the lines above
    process.wait(timeout=60)
    accepted += [key for key in remaining.split() if key in room.keys]
    actual = sorted(line[3] for line in stored(store))
    # What it was about when it was killed may be there, too, though it could not say so; it may be
    # sent again.
    assert actual in ([*range(1, len(accepted) + 1)], [*range(1, len(accepted) + 2)])
    for seat in range(len(accepted) + 2):
        room.vote(seat)
    with refused("vote", "cannot be changed"):
        room.vote(0, "no")
    assert len(stored(store)) == len(accepted) + 2


def test_restarted_server_keeps_votes(postgresql):  # noqa: F811
    where = postgresql.new()
    store = Classroom(where)
    room = lesson(store, 3, "q")
    for seat, end in enumerate((postgresql.stop, postgresql.kill)):
        room.vote(seat)
        end()
        postgresql.start()
    room.vote(2), room.vote(0)
    assert len(stored(store)) == 3
    store.shut()
