"""Additions to Streamlit's server, which change nothing of Streamlit's own."""

import ast
import asyncio
import re
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

from ui.kit.server import app as served

ROOT = Path(__file__).parent.parent
FILES = [
    *(path for folder in ("core", "ui", "pages") for path in (ROOT / folder).rglob("*.py")),
    ROOT / "app.py",
]
OWN = ("core", "ui")


def imported_names(tree: ast.Module) -> set[str]:
    """Return the names that a file has imported from elsewhere."""
    actual = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith(OWN):
            actual |= {name.asname or name.name for name in node.names}
        elif isinstance(node, ast.Import):
            actual |= {
                (name.asname or name.name).partition(".")[0]
                for name in node.names
                if not name.name.startswith(OWN)
            }
    return actual


def patched(tree: ast.Module) -> list[str]:
    """Return assignments onto imported names: `Class.method = …`, `setattr(module, …)`."""
    foreign = imported_names(tree)
    actual = []
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            targets = [ast.Attribute(node.args[0], "")]
        for target in targets:
            owner = target.value if isinstance(target, ast.Attribute) else None
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id in foreign:
                actual.append(ast.unparse(target))
    return actual


def test_nginx_takes_as_large_files_as_the_server():
    line = re.search(r"client_max_body_size (\d+)m;", (ROOT / "docs/nginx.conf").read_text())
    assert int(line[1]) == config.get_option("server.maxUploadSize")


def test_detector_finds_patches():
    code = (
        "import uvicorn.server as s\nfrom a import B\ns.C.d = 1\nB.e = 2\nsetattr(B, 'f', 3)\nb ="
        " B()\nb.g = 4"
    )
    assert patched(ast.parse(code)) == ["s.C.d", "B.e", "B."]


def test_libraries_are_not_patched():
    actual = {str(path): patched(ast.parse(path.read_text(encoding="utf-8"))) for path in FILES}
    assert {path: names for path, names in actual.items() if names} == {}


@pytest.mark.parametrize(
    "typed, page",
    [
        ("/class", "./Class"),
        ("/one-block?a=%20b", "./One_block?a=%20b"),
        ("/one_block", "./One_block"),
    ],
)
def test_lower_case_address_leads_to_its_page(typed, page):
    client = TestClient(Starlette(routes=served.routes()), follow_redirects=False)
    answer = client.get(typed)
    assert answer.status_code == 307 and answer.headers["Location"] == page


def test_base_path_gets_its_slash_behind_any_proxy(monkeypatch):
    monkeypatch.setattr(served.config, "get_option", lambda name: "/lab/blocks")
    client = TestClient(Starlette(routes=served.routes()), follow_redirects=False)
    for path, target in (("/lab/blocks", "./blocks/"), ("/lab/blocks?a=1", "./blocks/?a=1")):
        assert client.get(path).headers["Location"] == target  # neither scheme nor host


def test_nginx_log_has_no_keys():
    settings = (ROOT / "docs" / "nginx.conf").read_text()
    (name,) = re.findall(r"access_log \S+ (\w+);", settings)
    (logged,) = re.findall(rf"log_format {name} '(.*)';", settings)
    assert "$uri" in logged and not re.search(
        r"\$(request\b|request_uri|args|query_string|http_referer)", logged
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    "limits, expected",
    [
        ((256, 4096), (4096, 4096)),
        ((1024, -1), (10_240, -1)),
        ((20_000, 20_000), None),
        ((-1, -1), None),
    ],
)
def test_server_raises_file_handle_limit(monkeypatch, limits, expected):
    import resource

    requests = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: requests.append(pair))
    served.raise_file_limit()
    assert requests == ([expected] if expected else [])


def test_failing_task_is_retried(caplog):
    calls = []

    def fail():
        calls.append(1)
        raise OSError("the database is away")

    async def run():
        task = asyncio.create_task(served._repeat(0.01, fail))
        while len(calls) < 3:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    assert "the database is away" in caplog.text
