"""Benchmark of a class of many students on one server.

    python -m benchmarks.class_crowd [--students 100] [--processes 2]

Real websocket sessions join, vote within five seconds, and are counted. A student opens the page by
the class's code, joins, waits for the question, chooses an answer and sends it. Prints how long a
vote takes from sending to "accepted" and how slow sliders of others become meanwhile. Also prints
how many votes were lost or doubled (either is a failure: exit status 1). Several server processes
stand behind nginx, and share PostgreSQL or SQLite (ABLATION_DATABASE_URL).
"""

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import crowd
from benchmarks.serving import balanced, server, visitor
from core.study.database.connection import VARIABLE
from core.teaching.classroom import Classroom

WITHIN = 5.0  # seconds in which all vote
EVERY = 2.0  # between two looks of a student's page (ui/lessons/classroom/student.py)


class Student:
    """Websocket session of one student. Widgets are found by the ends of their ids."""

    def __init__(self, socket, query: str):
        self.socket = socket
        self.query = query
        self.told = ""
        self.widgets = {}
        self.options = {}
        self.states = {}
        self.parts = {}
        self.looks = ""

    async def run(self, button: str = "", part: str = ""):
        """Run the page's script once and wait until it has finished.

        Args:
            button: Key of a button to click; then only its fragment runs.
            part: Id of another fragment to run alone.
        """
        message = BackMsg()
        request = message.rerun_script
        request.query_string = self.query
        request.page_name = "Class"
        for name, value in self.states.items():
            state = request.widget_states.widgets.add(id=self.widgets[name])
            if isinstance(value, list):
                state.string_array_value.data[:] = value
            else:
                state.string_value = value
        request.fragment_id = part or self.parts.get(button, "")
        if button:
            request.widget_states.widgets.add(id=self.widgets[button], trigger_value=True)
        await self.socket.send(message.SerializeToString())
        self.told = ""
        while await self.receive() not in ("script_finished", "fragment_finished"):
            pass

    async def receive(self) -> str:
        """Receive one message, note its widgets and fragments, and return its type."""
        answer = ForwardMsg()
        answer.ParseFromString(await asyncio.wait_for(self.socket.recv(), 120))
        self._note(answer.delta.new_element, answer.delta.fragment_id)
        if answer.WhichOneof("type") == "auto_rerun":
            self.looks = answer.auto_rerun.fragment_id
        return answer.WhichOneof("type")

    def _note(self, element, part: str):
        """Note the ids and options of a new widget, and the text of an alert."""
        for kind in ("button", "radio", "button_group"):
            widget = getattr(element, kind)
            if widget.id:
                self.widgets[_key(widget.id)] = widget.id
                self.parts[_key(widget.id)] = part
            if kind == "radio" and widget.id:
                self.options[_key(widget.id)] = list(widget.options)
            if kind == "button_group" and widget.id:
                self.options[_key(widget.id)] = [option.content for option in widget.options]
        self.told += element.alert.body


def _key(widget_id: str) -> str:
    """Return a widget's key, which stands at the end of its id."""
    return (
        widget_id.rsplit("-None-", 1)[-1] if "-None-" in widget_id else widget_id.rsplit("-", 1)[-1]
    )


def find_widget(student: Student, part_of_key: str) -> str:
    """Return the key of the first widget whose key contains this text; raise if there is none."""
    return next(name for name in student.widgets if part_of_key in name)


async def attend(
    address: str,
    code: str,
    opened: asyncio.Event,
    joined: list,
    votes: list,
    problems: list,
    delay_s: float,
):
    """Take part in a lesson as one student; append the vote's seconds or the problem."""
    try:
        where = address.replace("http", "ws", 1) + "/_stcore/stream"
        async with websockets.connect(
            where, max_size=None, subprotocols=["streamlit"], **visitor()
        ) as socket:
            student = Student(socket, f"code={code}")
            await student.run()
            await student.run(button=find_widget(student, "join"))
            joined.append(1)
            await asyncio.sleep(random.uniform(0, EVERY))
            while not opened.is_set():  # as the browser does
                await student.run(part=student.looks)
                await asyncio.sleep(EVERY)
            await asyncio.sleep(delay_s)
            while not any(
                "answer_" in name for name in student.widgets
            ):  # what all see is up to a second old
                await student.run()
                await asyncio.sleep(1)
            answer = find_widget(student, "answer_")
            student.states[answer] = random.choice(student.options[answer])
            sure = find_widget(student, "sure_")
            student.states[sure] = [random.choice(student.options[sure])]
            begun = time.perf_counter()
            await student.run(button=find_widget(student, "send_"))
            votes.append(time.perf_counter() - begun)
            if "Vote recorded" not in student.told:
                problems.append(student.told or "no answer")
    except Exception as error:  # whatever it is, this student is lost
        problems.append(repr(error)[:200])


async def move_sliders(address: str, until: asyncio.Event, moves: list, count: int = 5):
    """Move sliders of One block as `count` users, once a second; append the seconds of each."""

    async def open_socket():
        where = address.replace("http", "ws", 1) + "/_stcore/stream"
        async with websockets.connect(
            where, max_size=None, subprotocols=["streamlit"], **visitor()
        ) as socket:
            channel, _ = await crowd.run(socket)
            number = 1
            while not until.is_set():
                begun = time.perf_counter()
                channel, _ = await crowd.run(socket, channel, random.choice(crowd.VALUES), number)
                moves.append(time.perf_counter() - begun)
                number += 1
                await asyncio.sleep(1)

    await asyncio.gather(*(open_socket() for _ in range(count)))


async def run_lesson(address: str, room: Classroom, students: int) -> bool:
    """Run one lesson and print its figures. Return whether every vote was stored once."""
    started = room.start(["heads"])
    opened = asyncio.Event()
    joined = []
    votes = []
    problems = []
    over = asyncio.Event()
    before = []
    during = []
    quiet = asyncio.create_task(move_sliders(address, over, before))
    await asyncio.sleep(10)
    over.set()
    await quiet
    over = asyncio.Event()
    busy = asyncio.create_task(move_sliders(address, over, during))
    begun = time.perf_counter()
    class_of = [
        asyncio.create_task(
            attend(
                address, started.code, opened, joined, votes, problems, random.uniform(0, WITHIN)
            )
        )
        for _ in range(students)
    ]
    while len(joined) + len(problems) < students:
        await asyncio.sleep(0.1)
    print(f"{len(joined)} joined within {time.perf_counter() - begun:.1f} s")
    await asyncio.sleep(5)  # all of them look whether there is a question
    await asyncio.to_thread(room.open, started.token, "heads")
    opened.set()
    await asyncio.gather(*class_of)
    over.set()
    await busy
    table = await asyncio.to_thread(room.read_answers, started.token)
    doubled = int(table.duplicated(["question", "round", "seat"]).sum())
    accepted = len(votes) - sum(
        "Your vote" not in problem for problem in problems if "Error" not in problem
    )
    ranked = sorted(votes)
    print(
        f"vote to accepted: median {1000 * statistics.median(ranked):.0f} ms, p95"
        f" {1000 * ranked[int(0.95 * len(ranked)) - 1]:.0f} ms, worst {1000 * ranked[-1]:.0f} ms"
    )
    print(
        f"{len(table)} of {students} votes stored, {students - len(table)} lost, {doubled} doubled"
    )
    slower = statistics.median(during) / statistics.median(before)
    print(
        f"sliders of others: median {1000 * statistics.median(before):.0f} ms before,"
        f" {1000 * statistics.median(during):.0f} ms meanwhile: {slower:.2f} times"
    )
    for problem in problems[:5]:
        print("problem:", problem)
    await asyncio.to_thread(room.end, started.token)
    return len(table) == students == accepted and not doubled and not problems


def main():
    """Start the servers and run the lesson; the exit status is 1 if votes were lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ.setdefault(VARIABLE, f"sqlite:///{folder}/classes.sqlite")
        if args.processes > 1:
            behind = [stack.enter_context(server())[0] for _ in range(args.processes)]
            address = stack.enter_context(balanced(behind))
        else:
            address, _ = stack.enter_context(server())
        fine = asyncio.run(run_lesson(address, Classroom(), args.students))
    sys.exit(not fine)


if __name__ == "__main__":
    main()
