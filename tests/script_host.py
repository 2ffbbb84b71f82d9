"""Runs exported scripts, each in a process of its own that has torch loaded already: loading it takes longer than they do.

As a program: reads the path of a script per line, forks, and answers with the exit status; what the script writes lies
beside it (.out, .err).
"""

import atexit
import functools
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLAGS = {"torch": ["-I"]}  # isolated: it finds nothing of the project


def run(flavour: str, path: Path) -> tuple[int, str, str]:
    """-> (exit status, what it printed, what it complained of)"""
    host = _host(flavour)
    host.stdin.write(f"{path}\n")
    host.stdin.flush()
    status = int(host.stdout.readline())
    return status, *(path.with_suffix(end).read_text(encoding="utf-8") for end in (".out", ".err"))


@functools.cache
def _host(flavour: str) -> subprocess.Popen:
    host = subprocess.Popen(
        [sys.executable, *FLAGS.get(flavour, []), __file__], cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(host.kill)
    return host


def _child(path: Path):
    sys.stdout, sys.stderr = (open(path.with_suffix(end), "w", encoding="utf-8") for end in (".out", ".err"))
    sys.argv, status = [str(path)], 0
    if sys.flags.isolated:
        os.chdir(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    import torch  # noqa: F401

    for line in sys.stdin:
        child = os.fork() or _child(Path(line.rstrip("\n")))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
