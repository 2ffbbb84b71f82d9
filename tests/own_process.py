"""Support for tests that change their whole process: they run in a separate one.

Such a module sets `pytestmark = pytest.mark.own_process`. Whatever it does at import must wait
until `ALONE`. Its tests are collected like all others and pass or fail under their own names: the
first of them runs all selected ones in one further pytest, and each takes its outcome from there.
Their fixtures are set up twice, so they must cost nothing.
"""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

VARIABLE = "TESTS_OWN_PROCESS"
ALONE = bool(os.environ.get(VARIABLE))  # whether this is that process
TIME = 600  # seconds


def take_outcome(item: pytest.Function) -> None:
    """Pass, fail or skip as the test did in the separate process."""
    selected = tuple(entry.nodeid for entry in item.session.items if entry.path == item.path)
    outcomes, text = run(selected, item.config.rootpath)
    if item.name not in outcomes:
        pytest.fail(f"its process ended before it did:\n{text}", pytrace=False)
    kind, message = outcomes[item.name]
    if kind == "skipped":
        pytest.skip(message)
    if kind:
        pytest.fail(message, pytrace=False)


@functools.cache
def run(selected: tuple[str, ...], root: Path) -> tuple[dict[str, tuple[str, str]], str]:
    """Run the selected tests in another pytest.

    Returns:
        The outcome of each test that was run: name -> (kind, message), where the kind is "",
        "failure", "error" or "skipped"; and the end of the output.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        call = [
            sys.executable,
            "-m",
            "pytest",
            "-o",
            "addopts=",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-v",
        ]
        done = subprocess.run(
            [*call, f"--junitxml={report}", *selected],
            cwd=root,
            env=os.environ | {VARIABLE: "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIME,
        )
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        return {case.get("name"): _outcome(case) for case in cases}, done.stdout[-3000:]


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    for element in case:
        if element.tag in ("failure", "error", "skipped"):
            return element.tag, element.text if element.tag != "skipped" else element.get(
                "message", ""
            )
    return "", ""
