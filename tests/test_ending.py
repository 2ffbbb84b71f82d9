"""The app ends soon after it is asked to, also when workers are busy, and leaves no process."""

import asyncio
import signal
import threading
import time

import psutil
import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.serving import server
from core.settings import ending
from tests.test_jobs import still_running

pytestmark = pytest.mark.slow

# seconds, on a busy machine; it was 10 to 25, as workers that load torch were waited for. `docker
# stop` gives 10.
SOON = 6.0


async def visit(address: str, process, seconds: float, sent: signal.Signals) -> tuple[float, list]:
    """Start a training, wait for its workers and this many seconds, then end the app.

    Returns:
        The seconds that the app took to end, and its processes.
    """
    async with websockets.connect(
        address.replace("http", "ws") + "/_stcore/stream", max_size=None
    ) as socket:
        message = BackMsg()
        message.rerun_script.query_string = "begin=on"
        message.rerun_script.page_name = "Training"
        await socket.send(message.SerializeToString())
        full = psutil.Process(process.pid)
        end = time.monotonic() + 60
        while not any("--multiprocessing-fork" in child.cmdline() for child in full.children()):
            assert time.monotonic() < end, "no worker was started"
            await asyncio.sleep(0.05)
        await asyncio.sleep(seconds)
        actual = full.children(recursive=True)
        begun = time.monotonic()
        process.send_signal(sent)
        while process.poll() is None and time.monotonic() < begun + 60:
            await asyncio.sleep(0.05)
        return time.monotonic() - begun, actual


@pytest.mark.parametrize("seconds, sent", [(0.5, signal.SIGTERM), (4.0, signal.SIGINT)])
def test_app_ends_soon_while_workers_start(seconds, sent):
    with server() as (address, process):
        took, actual = asyncio.run(visit(address, process, seconds, sent))
        assert took < SOON and len(actual) >= 2, (took, actual)
        assert not still_running(actual, 1)  # they were ended before it was, not left to notice


def test_scheduled_calls_are_dropped_when_process_ends(monkeypatch):
    over = threading.Event()
    done = []
    monkeypatch.setattr(ending, "_is_over", over)
    monkeypatch.setattr(ending, "_threads", [])
    ending.run_later(0.0, lambda: done.append(1), over.set, lambda: done.append(2))
    ending.run_later(60.0, lambda: done.append(3))
    for item in ending._threads:
        item.join(10)
        assert not item.is_alive()
    assert done == [1]
