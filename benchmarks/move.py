"""Benchmark of one move of a control: messages, bytes and processor time of the server.

    python -m benchmarks.move [--rounds 4] [--device cuda]

A websocket that speaks Streamlit's own protocol moves a slider again and again, the next time as
soon as the script has ended: the slider of benchmarks/floor.py (the floor); d_ff on One block with
random weights; a part that is switched off and on: with random and with trained weights. Seed and
padding change along, so that no pass is known yet. Rounds of twenty moves, each kind in turn, once
the server has loaded what it loads later; medians.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable

import psutil
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.crowd import channel_of
from benchmarks.serving import server

ROUND = 20  # moves
MOST = 4  # rounds: the trained models have no more passes that are not known yet
# s after which a server has loaded what other pages need, and its workers stand (ui/kit/page.py:
# boot)
WARM = 8
# two blocks beside each other
LIKE_TRAINED = (
    "n_layers=2&position=rope&mask=causal&baseline=n_layers-2__position-rope__mask-causal"
    "&variants=none"
)


async def run(socket, page: str, state: WidgetState | None, query: str) -> list[ForwardMsg]:
    """Run the page's script once, with a widget's state if given. Return the server's messages."""
    message = BackMsg()
    message.rerun_script.query_string = query
    message.rerun_script.page_name = page
    if state is not None:
        message.rerun_script.widget_states.widgets.append(state)
    await socket.send(message.SerializeToString())
    sent = []
    while not sent or sent[-1].WhichOneof("type") != "script_finished":
        sent.append(ForwardMsg())
        sent[-1].ParseFromString(await asyncio.wait_for(socket.recv(), 60))
    return sent


def on_one_block(sent: list[ForwardMsg]) -> Callable[[int], WidgetState]:
    """Return a function from a move's number to its widget state: another d_ff."""
    channel = next(filter(None, map(channel_of, sent)))
    return lambda number: channel.say(
        number, d_ff=str(64 + 8 * (number % 50)), seed=str(number // 50)
    )


def a_part(sent: list[ForwardMsg]) -> Callable[[int], WidgetState]:
    """Return a function from a move's number to its widget state: a residual on or off."""
    channel = next(filter(None, map(channel_of, sent)))

    def say(number: int) -> WidgetState:
        residual = "on" if number % 2 == 0 else "off"
        seed = number // 34 % 3  # of each part three models ship
        return channel.say(
            number, residual_ffn=residual, padding=str(number // 2 % 17), seed=str(seed)
        )

    return say


def on_floor(sent: list[ForwardMsg]) -> Callable[[int], WidgetState]:
    """Return a function from a move's number to its widget state, for the one-slider app."""
    slider = next(
        item.delta.new_element.slider.id
        for item in sent
        if item.delta.new_element.HasField("slider")
    )

    def state(number: int) -> WidgetState:
        moved = WidgetState(id=slider)
        moved.double_array_value.data.append(number % 100)
        return moved

    return state


class Case:
    """Moves of one kind by one user, and the figures of each round."""

    def __init__(self, address: str, process, page: str, states: Callable, query: str):
        self.address = address
        self.process = process
        self.page = page
        self.states = states
        self.query = query
        self.number = 0
        self.rounds = []

    async def open(self):
        """Connect to the server and run the page once."""
        self.socket = await websockets.connect(
            self.address.replace("http", "ws") + "/_stcore/stream",
            subprotocols=["streamlit"],
            max_size=None,
            compression=None,
        )
        self.state = self.states(await run(self.socket, self.page, None, self.query))

    async def round(self) -> tuple[int, float, float, float]:
        """Make twenty moves. Return messages, kB, processor ms and elapsed ms of one.

        Returns:
            Messages and kB of the last move; processor time and elapsed time per move, in ms.
        """
        before = sum(self.process.cpu_times()[:2])
        began = time.perf_counter()
        for _ in range(ROUND):
            self.number += 1
            sent = await run(self.socket, self.page, self.state(self.number), self.query)
        took = sum(self.process.cpu_times()[:2]) - before
        waited = time.perf_counter() - began
        return (
            len(sent),
            sum(item.ByteSize() for item in sent) / 1000,
            1e3 * took / ROUND,
            1e3 * waited / ROUND,
        )


async def in_turn(cases: list[Case], rounds: int):
    """Run rounds of all cases in turn, so that all meet the same machine; the first is warm-up."""
    for case in cases:
        await case.open()
    await asyncio.sleep(WARM)
    for number in range(rounds + 1):
        for case in cases:
            figures = await case.round()
            if number > 0:  # the first round is warm-up
                case.rounds.append(figures)
    for case in cases:
        await case.socket.close()


def main():
    """Print messages, kB and milliseconds of one move of each kind."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--rounds", type=int, default=MOST, choices=range(1, MOST + 1))
    args.add_argument("--device", default="auto", help="where the passes are run")
    arguments = args.parse_args()
    place = f"device={arguments.device}&"
    kinds = {
        "One block, a slider": (on_one_block, "weights=random"),
        "a part, random weights": (a_part, "weights=random&" + LIKE_TRAINED),
        "a part, trained weights": (a_part, ""),
    }
    with server(app="benchmarks/floor.py") as floor, server() as ours:
        floor_address, floor_process = floor
        simple = Case(floor_address, psutil.Process(floor_process.pid), "", on_floor, "")
        cases = {"one slider, nothing else": simple}
        address, app_process = ours
        process = psutil.Process(app_process.pid)
        for name, (states, query) in kinds.items():
            cases[name] = Case(address, process, "One_block", states, place + query)
        asyncio.run(in_turn(list(cases.values()), arguments.rounds))
    for name, case in cases.items():
        messages, size, took, waited = map(statistics.median, zip(*case.rounds))
        print(
            f"{name:26} {messages:3.0f} messages, {size:5.0f} kB, {took:5.1f} ms of processor time,"
            f" {waited:5.1f} ms a move"
        )


if __name__ == "__main__":
    main()
