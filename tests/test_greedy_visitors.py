"""What one visitor can make a server keep, or throw away: no more than its share, and nothing that is all visitors'."""

import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

from streamlit import config

from core.checkpoints import CheckpointError
from tests.test_page import fine, opened
from ui.kit import jobs
from ui.kit.jobs import REFUSED, RUNNING
from ui.kit.store import SESSION
from ui.trained import model_list

MB = 1 << 20
ROOT = Path(__file__).parent.parent


def test_a_proxy_as_the_docs_have_it_takes_as_large_files_as_the_server():
    line = re.search(r"client_max_body_size (\d+)m;", (ROOT / "docs/nginx.conf").read_text())
    assert int(line[1]) == config.get_option("server.maxUploadSize")


def test_trainings_of_all_users_together_are_limited(monkeypatch):
    """Stopped ones count as long as their users are there; the same training counts once."""
    monkeypatch.setenv("ABLATION_MAX_MB", "140")
    large = dict(d_model="256", d_ff="1024", n_heads="1", n_layers="2", task="copy", steps="500", batch="1", seeds="4")
    users = [
        fine(opened("pages/3_Training.py", begin="on", **large, seed=seed)).session_state[SESSION].kept
        for seed in ("0", "0", "4")
    ]
    started = [kept[RUNNING].job for kept in users if RUNNING in kept]
    try:
        assert len(started) == 2 and users[1][RUNNING].job.rows == users[0][RUNNING].job.rows
        assert "140 MB" in users[2][REFUSED][1] and "with those of other users," in users[2][REFUSED][1]
    finally:
        for job in started:
            job.stop()
            jobs._jobs.discard(job)


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
