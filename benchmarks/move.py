"""What one move of a control costs the server: messages, bytes and processor time; beside the floor of a one-slider app.

    python -m benchmarks.move [--moves 200] [--device cuda]

A websocket that speaks Streamlit's own protocol moves a slider again and again, the next time as soon as the script has ended:
d_ff on One block with random weights, and the slider of benchmarks/floor.py, in turn. Medians over rounds of twenty moves. Then a
part is switched off and on, each time with other padding, so that no pass is known yet: with random and with trained weights.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable

import psutil
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.crowd import message_of, panel_of
from benchmarks.serving import server

ROUND = 20  # moves
LIKE_TRAINED = "n_layers=2&position=rope&mask=causal&baseline=n_layers-2__position-rope__mask-causal&variants=none"  # two blocks beside each other


async def run(socket, page: str, state: WidgetState | None, query: str) -> list[ForwardMsg]:
    """One run of the script -> what it sent."""
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
    """-> what makes a move's state of its number"""
    panel, keys, session = next(filter(None, map(panel_of, sent)))
    return moved(panel, session, lambda number: {keys["d_ff"]: 64 + 8 * (number % 50)})


def moved(panel: str, session: str, values: Callable[[int], dict]) -> Callable[[int], WidgetState]:
    """-> what makes a move's state of its number"""
    said = lambda number: json.dumps({"moved": message_of(session, number, values(number))})  # noqa: E731
    return lambda number: WidgetState(id=panel, json_value=said(number))


def a_part(sent: list[ForwardMsg]) -> Callable[[int], WidgetState]:
    """The same of a residual that is switched off and on."""
    panel, keys, session = next(filter(None, map(panel_of, sent)))
    return moved(
        panel, session, lambda number: {keys["residual_ffn"]: number % 2 == 0, keys["padding"]: number // 2 % 17}
    )


def on_floor(sent: list[ForwardMsg]) -> Callable[[int], WidgetState]:
    """The same of the one-slider app."""
    slider = next(each.delta.new_element.slider.id for each in sent if each.delta.new_element.HasField("slider"))

    def state(number: int) -> WidgetState:
        moved = WidgetState(id=slider)
        moved.double_array_value.data.append(number % 100)
        return moved

    return state


async def measured(address, process, page, states, moves, query) -> tuple[int, float, float, float]:
    """-> (messages, kB, ms of processor time and ms by the clock of a move)"""
    messages, size, took, waited = [], [], [], []
    async with websockets.connect(
        address.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], max_size=None, compression=None
    ) as socket:
        state = states(await run(socket, page, None, query))
        for number in range(1, 5):  # not counted
            await run(socket, page, state(number), query)
        for start in range(5, moves + 1, ROUND):
            before, began = sum(process.cpu_times()[:2]), time.perf_counter()
            for number in range(start, min(start + ROUND, moves + 1)):
                sent = await run(socket, page, state(number), query)
            made = number + 1 - start
            took.append(1e3 * (sum(process.cpu_times()[:2]) - before) / made)
            waited.append(1e3 * (time.perf_counter() - began) / made)
            messages.append(len(sent))
            size.append(sum(each.ByteSize() for each in sent) / 1000)
    return tuple(map(statistics.median, (messages, size, took, waited)))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--moves", type=int, default=200)
    args.add_argument("--device", default="auto", help="where the passes are run")
    given = args.parse_args()
    moves, place = given.moves, f"device={given.device}&"
    cases = (
        ("one slider, nothing else", "benchmarks/floor.py", "", on_floor, moves, ""),
        ("One block, a slider", "app.py", "One_block", on_one_block, moves, place + "weights=random"),
        ("a part, random weights", "app.py", "One_block", a_part, 34, place + "weights=random&" + LIKE_TRAINED),
        ("a part, trained weights", "app.py", "One_block", a_part, 34, place),
    )
    for name, app, page, states, moves, query in cases:
        with server(app=app) as (address, process):
            messages, size, took, waited = asyncio.run(
                measured(address, psutil.Process(process.pid), page, states, moves, query)
            )
        print(
            f"{name:26} {messages:3.0f} messages, {size:5.0f} kB, {took:5.1f} ms of processor time, {waited:5.1f} ms a move",
            flush=True,
        )


if __name__ == "__main__":
    main()
