"""What one visitor can make a server keep, or throw away: no more than its share, and nothing that is all visitors'."""

import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
from streamlit import config

from core.checkpoints import CheckpointError
from core.settings import memory
from core.settings.cache import once
from tests.test_page import fine, opened
from ui.kit import jobs
from ui.kit.jobs import RUNNING
from ui.kit.store import SESSION
from ui.trained import model_list

MB = 1 << 20
ROOT = Path(__file__).parent.parent


def test_what_is_made_once_is_made_once_by_whoever_comes_first():
    made = []
    thing = once(lambda *given: made.append(given) or object())
    assert thing() is thing() and thing(1) is thing(1) and thing() is not thing(1)
    assert made == [(), (1,)]


def test_what_a_container_may_use_counts_as_the_machine_s_memory(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_limit_files", lambda: [limit, tmp_path / "missing"])
    whole = psutil.virtual_memory().total >> 20
    assert memory.machine_mb() == whole
    limit.write_text("max\n")
    assert memory.machine_mb() == whole
    limit.write_text(f"{50 * MB}\n")
    assert memory.machine_mb() == 50


def test_a_proxy_as_the_docs_have_it_takes_as_large_files_as_the_server():
    line = re.search(r"client_max_body_size (\d+)m;", (ROOT / "docs/nginx.conf").read_text())
    assert int(line[1]) == config.get_option("server.maxUploadSize")


def test_trainings_of_all_visitors_together_keep_no_more_than_their_share(monkeypatch):
    """Each of them may be begun by itself; the weights of stopped ones stay with their visitors, and count."""
    monkeypatch.setenv("ABLATION_MAX_MB", "140")
    monkeypatch.setattr(jobs, "machine_mb", lambda: 100)
    large = dict(d_model="256", d_ff="1024", n_heads="1", n_layers="2", task="copy", steps="500", batch="1", seeds="4")
    apps = [fine(opened("pages/3_Training.py", begin="on", **large)) for _ in range(2)]
    try:
        assert RUNNING in apps[0].session_state[SESSION].kept
        apps[0].session_state[SESSION].kept[RUNNING].job.stop()
        last = apps[1]
        assert RUNNING not in last.session_state[SESSION].kept
        assert any("all together may keep 140 MB here" in each.value for each in (*last.error, *last.warning))
    finally:
        for app in apps:
            if RUNNING in app.session_state[SESSION].kept:
                app.session_state[SESSION].kept[RUNNING].job.stop()
                jobs._begun.discard(app.session_state[SESSION].kept[RUNNING].job)


def test_uploads_are_opened_one_at_a_time(monkeypatch):
    """One can take all the memory that one visitor may have: of twenty visitors, not at once."""
    at_work, most = [], []

    def open_files(sent, check):
        at_work.append(sent)
        most.append(len(at_work))
        time.sleep(0.05)
        at_work.pop()
        raise CheckpointError("no model")

    file = SimpleNamespace(name="model.safetensors", size=1, getvalue=lambda: b"")
    monkeypatch.setattr(model_list, "st", SimpleNamespace(session_state={"model_files_0": [file]}))
    monkeypatch.setattr(model_list.files, "from_upload", open_files)
    visitors = [threading.Thread(target=model_list._brought) for _ in range(5)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert most == [1] * 5
