"""A PostgreSQL server that restarts, or loses a process, while a study runs.

Two commands and an app work at the study.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from core.study.database.connection import patiently
from core.study.database.schema import RUNNING
from core.study.database.store import Store, progress_of
from core.study.file import parse
from core.study.runner import Service
from core.workers.pool import ProcessPool
from tests.databases import postgresql  # noqa: F401  (a fixture)
from tests.test_study_runner import TEXT, check_complete
from tests.waiting import wait

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_chunks")]

ROOT = Path(__file__).parent.parent
STUDY = parse(TEXT.replace("steps = 30", "steps = 250").replace("seeds = 2", "seeds = 4"))
OTHERS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
    " pg_backend_pid() AND backend_type = 'client backend' ORDER BY backend_start"
)


def command(folder, where) -> subprocess.Popen:
    call = [
        sys.executable,
        "-m",
        "core.study",
        "run",
        "study.toml",
        "--database",
        where,
        "--workers",
        "1",
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        call,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        stdout=pipe,
        stderr=pipe,
    )


def kill_a_backend(store: Store):
    """Kill the backend of another connection; the server ends all connections and recovers."""

    def list_others():
        with store.reading() as connection:
            return list(connection.scalars(text(OTHERS)))

    wait(lambda: patiently(list_others))
    os.kill(patiently(list_others)[0], signal.SIGKILL)


def test_commands_and_app_survive_restarts_and_killed_backends(postgresql, tmp_path):  # noqa: F811
    where = postgresql.new()
    (tmp_path / "study.toml").write_text(STUDY.source)
    store = Store(where)
    workers = ProcessPool(1)
    number = store.enrol(STUDY).study
    service = Service(store, workers)
    commands = [command(tmp_path, where) for _ in range(2)]

    def trained():
        return patiently(lambda: sum(run.step for run in store.runs(number, spec=False)))

    try:
        service.start(number)
        wait(lambda: len({run.owner for run in store.runs(number, RUNNING)}) == 3)
        for end in (
            postgresql.stop,
            lambda: kill_a_backend(store),
            postgresql.kill,
            lambda: kill_a_backend(store),
        ):
            before = trained()
            end()
            if end in (postgresql.stop, postgresql.kill):
                wait(lambda: service.seen.trouble)
                postgresql.start()
            wait(lambda before=before: trained() > before)
        wait(lambda: patiently(lambda: progress_of(store, number)).complete)
        for process in commands:
            out, errors = process.communicate(timeout=60)
            assert process.returncode == 0 and "16 done" in out and "Traceback" not in errors, (
                errors
            )
            assert "s3cret" not in out + errors
        wait(lambda: not service.has(number))
        assert service.trouble == ""
    finally:
        for process in commands:
            process.kill()
        workers.close()
    check_complete(store, STUDY)
    store.close()
