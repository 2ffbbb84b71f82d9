"""Databases that the store is tested on: a SQLite file and a private PostgreSQL server."""

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from core.study.database.connection import address

PASSWORD = "s3cret word"  # that must never be printed
numbers = itertools.count()


def binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, which Debian does not put on the path."""
    pg_ctl = shutil.which("pg_ctl")
    places = (
        [Path(pg_ctl).resolve().parent]
        if pg_ctl
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((place for place in places if (place / "initdb").exists()), None)


@dataclass(frozen=True)
class Server:
    """PostgreSQL server of the tests.

    Attributes:
        address: the name of a database is appended to it.
        kill: ends the server as a power cut would.
        stop: ends the server as an update does.
    """

    address: str
    start: Callable
    kill: Callable
    stop: Callable

    def new(self) -> str:
        """Return the address of an empty database."""
        name = f"lab{next(numbers)}"
        engine = create_engine(address(self.address + "postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self.address + name


@pytest.fixture(scope="session")
def postgresql():
    """Yield a server on 127.0.0.1, run by an unprivileged user in a temporary folder."""
    where = binaries()
    if not where:
        if os.environ.get("CI"):
            pytest.fail("no PostgreSQL found, and in CI that is a failure")
        pytest.skip("no PostgreSQL found; apt-get install postgresql")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    user = (
        {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    )  # the server refuses to be root
    (folder / "password").write_text(PASSWORD)
    if user:
        shutil.chown(folder, **user)
        shutil.chown(folder / "password", **user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(name, *args):
        subprocess.run(
            [where / name, "-D", folder / "data", *args],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            **user,
        )

    call(
        "initdb",
        "--username=lab",
        "--auth=scram-sha-256",
        f"--pwfile={folder / 'password'}",
        "--no-sync",
        "--encoding=UTF8",
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    start = partial(call, "pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
    kill = partial(call, "pg_ctl", "-w", "-m", "immediate", "stop")
    stop = partial(call, "pg_ctl", "-w", "-m", "fast", "stop")
    start()
    yield Server(
        f"postgresql://lab:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{port}/", start, kill, stop
    )
    kill()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """Yield the address of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/studies.sqlite"
    return request.getfixturevalue("postgresql").new()
