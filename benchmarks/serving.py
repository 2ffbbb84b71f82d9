"""App server and headless Chromium on 127.0.0.1, for benchmarks and browser tests."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATHS = (  # of the pages
    "",
    "One_block",
    "Depth",
    "Training",
    "Studies",
    "Trained_model",
    "Claims",
    "Lessons?shown=one&lesson=heads",
    "Class",
)
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"


def chromium_path() -> str | None:
    """Return this machine's Chromium: $CHROMIUM, or the first found on the path; else None."""
    candidates = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return os.environ.get("CHROMIUM") or next(filter(None, candidates), None)


@contextlib.contextmanager
def server(below: str = "", app: str = "app.py", port: int = 0, preexec_fn=None, **environment):
    """Run an app with Streamlit. Yield its address and process; end it when the block ends.

    Args:
        below: Base path of the app.
        app: Script of the app.
        port: Port; 0 for a free one.
        preexec_fn: Called in the new process before it starts.
        **environment: Environment variables.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", app, "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", "--server.baseUrlPath", below]
    command += ["--server.headless", "true", "--server.fileWatcherType", "none"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=log,
            # A slow machine must not refuse what a test or a benchmark starts.
            env={
                **os.environ,
                "ABLATION_READ_ONLY": "0",
                "ABLATION_MAX_SECONDS": "3600",
                **environment,
            },
            preexec_fn=preexec_fn,
        )
        try:
            address = f"http://127.0.0.1:{port}{below}"
            for _ in range(600):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
                    break
                time.sleep(0.05)
            else:
                log.seek(0)
                raise RuntimeError(
                    "the server did not start within 30 s; it"
                    f" said:\n{log.read().decode(errors='replace')}"
                )
            yield address, process
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def balanced(addresses: list[str]):
    """Run nginx before two servers, as docs/deploy.md recommends. Yield its address."""
    port = free_port()
    settings = (ROOT / "docs" / "nginx.conf").read_text()
    for listening, address in zip((8501, 8502), addresses, strict=True):
        settings = settings.replace(f"127.0.0.1:{listening}", address.removeprefix("http://"))
    settings = settings.replace("listen 8500", f"listen 127.0.0.1:{port}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "nginx.conf"
        places = "".join(
            f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy")
        )
        settings = settings.replace("/var/log/nginx", folder)
        file.write_text(
            f"pid {folder}/pid;\nevents {{ worker_connections 4096; }}\nhttp {{\naccess_log"
            f" off;\n{places}{settings}}}\n"
        )
        process = subprocess.Popen(
            ["nginx", "-p", folder, "-c", file, "-e", f"{folder}/log", "-g", "daemon off;"]
        )
        try:
            time.sleep(1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def visitor() -> dict:
    """Return websocket options that give a user an IP address and a cookie of their own.

    docs/nginx.conf distinguishes users by a cookie, and allows 120 from one address.
    """
    return {
        "local_addr": (f"127.0.0.{random.randrange(2, 250)}", 0),
        "additional_headers": {"Cookie": f"ablation=visitor{random.random()}"},
    }


def free_port() -> int:
    """Return a free TCP port on 127.0.0.1."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def browser():
    """Yield a headless Chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()


def settle(page, quiet_ms: int = 300):
    """Wait until the page is complete and has not changed for `quiet_ms`.

    It is complete when no script runs and no grey bar stands in for a part.
    """
    page.locator("h1").first.wait_for(timeout=60_000)
    page.wait_for_selector(IDLE, timeout=60_000)
    page.evaluate(
        """quiet => new Promise(done => {
          let timer = setTimeout(finish, quiet)
          const again = () => { clearTimeout(timer); timer = setTimeout(finish, quiet) }
          const watch = new MutationObserver(again)
          function finish() {
            if (document.querySelector("[data-testid=stSkeleton]")) return again()
            watch.disconnect(); done()
          }
          watch.observe(document.body, {
            subtree: true, childList: true, attributes: true, characterData: true
          })
        })""",
        quiet_ms,
    )
    page.wait_for_selector(IDLE, timeout=60_000)
