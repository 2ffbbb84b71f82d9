"""Benchmark of many users on one server: time from a slider's move to the end of its script.

    python -m benchmarks.crowd [--users 100] [--seconds 30] [--processes 2]

Every user is a websocket that speaks Streamlit's own protocol: it opens "One block" and then moves
d_ff every 2 to 6 seconds, while all others do. Prints median, 95th percentile and worst, moves a
second, the server's processor time and memory, and how many users were dropped (a dropped user is a
failure: the exit status is then 1). Several server processes stand behind nginx, with the settings
of docs/nginx.conf.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from dataclasses import dataclass

import psutil
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.serving import balanced, server, visitor

VALUES = range(64, 512, 8)


@dataclass
class Channel:
    """Component through which the browser changes settings (ui/kit/panel/store.js)."""

    id: str
    session: str
    page: str

    def say(self, number: int, **texts: str) -> WidgetState:
        """Return the widget state that sends change `number`: settings with their texts."""
        deltas = [[number, self.page, texts]]
        text = {"session": self.session, "held": False, "deltas": deltas}
        return WidgetState(id=self.id, json_value=json.dumps({"said": text}))


def channel_of(answer: ForwardMsg) -> Channel | None:
    """Return the channel in a server's message; None if it has none."""
    component = answer.delta.new_element.bidi_component
    if component.component_name != "ablation_channel":
        return None
    data = json.loads(component.json)
    return Channel(component.id, data["session"], data["page"])


async def run(socket, channel: Channel | None = None, value: int = 0, number: int = 0):
    """Run the script once, with d_ff=value given a channel. Return channel and bytes received."""
    message = BackMsg()
    message.rerun_script.query_string = "weights=random"
    message.rerun_script.page_name = "One_block"
    if channel:
        message.rerun_script.widget_states.widgets.append(channel.say(number, d_ff=str(value)))
    await socket.send(message.SerializeToString())
    size = 0
    while True:
        data = await asyncio.wait_for(socket.recv(), 120)
        size += len(data)
        answer = ForwardMsg()
        answer.ParseFromString(data)
        kind = answer.WhichOneof("type")
        channel = channel_of(answer) or channel
        if kind == "script_finished":
            return channel, size


async def run_user(address, until, took, lost, ready, go):
    """Open One block and move a slider every 2 to 6 s until the end.

    Args:
        address: URL of the server.
        until: List that holds the end as time.monotonic().
        took: List for (milliseconds, bytes) of each move.
        lost: List for the error of a dropped user.
        ready: List that grows when the page is open.
        go: Event that starts the moves.
    """
    try:
        async with websockets.connect(
            address.replace("http", "ws") + "/_stcore/stream",
            subprotocols=["streamlit"],
            max_size=None,
            compression=None,
            **visitor(),
        ) as socket:
            channel, _ = await run(socket)
            number = 0
            ready.append(1)
            await go.wait()
            await asyncio.sleep(random.uniform(0, 4))
            while time.monotonic() < until[0]:
                start = time.perf_counter()
                number += 1
                channel, size = await run(socket, channel, random.choice(VALUES), number)
                took.append((1e3 * (time.perf_counter() - start), size))
                await asyncio.sleep(random.uniform(2, 6))
    except Exception as error:  # a dropped user is a result, and is counted
        lost.append(repr(error)[:200])
        ready.append(1)


async def run_crowd(address: str, processes, users: int, seconds: float) -> int:
    """Run so many users for some seconds, print the figures and return how many were dropped."""
    spent = lambda: sum(sum(process.cpu_times()[:2]) for process in processes)  # noqa: E731
    took = []
    lost = []
    ready = []
    go = asyncio.Event()
    until = [0.0]
    tasks = [
        asyncio.create_task(run_user(address, until, took, lost, ready, go)) for _ in range(users)
    ]
    while len(ready) < users:
        await asyncio.sleep(0.1)
    busy = spent()
    start = time.monotonic()
    until[0] = start + seconds
    go.set()
    await asyncio.gather(*tasks)
    lasted = time.monotonic() - start
    ms = sorted(wait for wait, _ in took)
    index = lambda share: ms[min(len(ms) - 1, int(share * len(ms)))]  # noqa: E731
    print(
        f"{users} users: p50 {index(0.5):.0f} ms, p95 {index(0.95):.0f} ms, worst {ms[-1]:.0f} ms"
        f" over {len(ms)} moves ({len(ms) / lasted:.1f} a second,"
        f" {sum(size for _, size in took) / len(took) / 1000:.0f} kB each); server:"
        f" {(spent() - busy) / lasted:.2f} cores,"
        f" {sum(process.memory_info().rss for process in processes) / 2**20:.0f} MB; dropped:"
        f" {len(lost)} {lost[:1] or ''}",
        flush=True,
    )
    return len(lost)


def main():
    """Start the servers and run the crowds; the exit status is 1 if users were dropped."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument(
        "--users", type=lambda text: [int(n) for n in text.split(",")], default=[1, 30, 100]
    )
    args.add_argument("--seconds", type=float, default=30)
    args.add_argument("--processes", type=int, default=1)
    args = args.parse_args()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server()) for _ in range(args.processes)]
        addresses = [address for address, _ in servers]
        address = stack.enter_context(balanced(addresses)) if len(servers) > 1 else addresses[0]
        watched = [psutil.Process(process.pid) for _, process in servers]
        lost = sum(
            asyncio.run(run_crowd(address, watched, users, args.seconds)) for users in args.users
        )
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
