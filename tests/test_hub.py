"""Downloads from the Hub, from a Hub of our own on this machine: what is sent to it, what is taken from it, and when it ends."""

import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.checkpoints import CheckpointError, files, hub, own
from core.model.config import Config
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimit

constants = pytest.importorskip("huggingface_hub.constants")
OLD, NEW = "a" * 40, "b" * 40
WORDS = ("<pad>", "the", "judge", "was", "late", ".")


def model(name: str) -> dict[str, bytes]:
    return own.write(Transformer(Config(d_model=16, n_heads=2, mask="causal"), WORDS), name)


class Hub:
    """models: name -> revision -> file -> content. Whoever asks for a model's newest revision is told, and then there is
    another one (as when somebody uploads meanwhile), if `moves`."""

    def __init__(self):
        self.models, self.newest, self.moves, self.private = {}, {}, {}, set()
        self.asked: list[tuple[str, str | None]] = []  # path, token
        self.sends = lambda out, data: out.write(data)  # how a file comes
        self.silent, self.elsewhere = False, ""  # elsewhere: the address to which files have moved

    def put(self, name: str, revision: str, content: dict[str, bytes]):
        self.models.setdefault(name, {})[revision] = content
        self.newest[name] = revision

    def info(self, name: str) -> dict:
        revision = self.newest[name]
        there = [{"rfilename": file, "size": len(data)} for file, data in self.models[name][revision].items()]
        self.newest[name] = self.moves.get(name, revision)
        return {"id": name, "sha": revision, "siblings": there, "private": name in self.private}


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        there = self.server.hub
        path, token = self.path.partition("?")[0], self.headers.get("authorization")
        if path == "/api/agent-harnesses":  # the library asks for it once a day, to know what it runs in
            self.send_error(404)
            return
        there.asked.append((path, token))
        if there.silent:
            time.sleep(5)
            return
        name = path.removeprefix("/api/models/").removeprefix("/").partition("/resolve/")[0]
        if name not in there.models or (name in there.private and not token):
            self.send_response(401)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            return
        if there.elsewhere and "/resolve/" in path:
            self.send_response(302)
            self.send_header("Location", there.elsewhere + path)
            self.end_headers()
            return
        if path.startswith("/api/"):
            data, send = json.dumps(there.info(name)).encode(), lambda out, data: out.write(data)
        else:
            revision, file = path.partition("/resolve/")[2].split("/")
            data, send = there.models[name][revision][file], there.sends
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            send(self.wfile, data)
        except OSError:  # whoever asked has gone
            pass

    def log_message(self, *given):
        pass


@contextmanager
def served(there: Hub):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.hub, server.daemon_threads = there, True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def there(tmp_path, monkeypatch):
    made = Hub()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_operator")
    monkeypatch.delenv("ABLATION_HUB_TOKEN", raising=False)
    with served(made) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        yield made


def kept() -> list[str]:
    return sorted(each.name for each in hub.cache().iterdir())


def test_only_the_files_that_are_needed_are_taken(there):
    there.put("somebody/model", OLD, {**model("theirs"), "pytorch_model.bin": b"\x80\x02", "README.md": b"hello"})
    read = files.from_hub("somebody/model")
    assert read.name == "theirs" and read.config.d_model == 16
    assert sorted(path.rpartition("/")[2] for path, _ in there.asked[1:]) == ["config.json", "model.safetensors"]
    there.models["somebody/model"][OLD].pop("model.safetensors")
    with pytest.raises(CheckpointError, match="has no model.safetensors"):
        files.from_hub("somebody/model")


def test_a_model_in_several_files_is_taken_whole_and_other_files_are_left(there, tmp_path):
    pytest.importorskip("transformers")
    from tests.test_checkpoint import gpt2

    theirs = gpt2(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="100KB")
    content = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    parts = [name for name in content if name.startswith("model-")]
    there.put("somebody/gpt2", OLD, {**content, "vocab.json": b"{}", "merges.txt": b"", "adapter.safetensors": b"x"})
    assert files.from_hub("somebody/gpt2").parameters == sum(each.numel() for each in theirs.parameters())
    taken = sorted(path.rpartition("/")[2] for path, _ in there.asked[1:])
    assert taken == sorted(["config.json", "model.safetensors.index.json", "tokenizer.json", *parts])
    there.models["somebody/gpt2"][OLD].pop("model.safetensors.index.json")
    with pytest.raises(CheckpointError, match="has no model.safetensors.index.json"):
        files.from_hub("somebody/gpt2")


def test_a_vocabulary_in_two_files_is_taken_where_there_is_no_tokenizer():
    names = ("config.json", "model.safetensors", "vocab.json", "merges.txt", "README.md")
    assert files.needed(names) == [*names[:4]]
    assert files.needed((*names, "tokenizer.json")) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert files.needed(("config.json",)) == ["config.json", "model.safetensors"]


def test_the_operators_token_stays_at_home_unless_it_is_said_otherwise(there, monkeypatch):
    there.put("operator/private", OLD, model("secret"))
    there.private.add("operator/private")
    with pytest.raises(CheckpointError, match="no model 'operator/private' on the Hub that everybody may read"):
        files.from_hub("operator/private")
    assert [token for _, token in there.asked] == [None]
    monkeypatch.setenv("ABLATION_HUB_TOKEN", "1")
    assert files.from_hub("operator/private").name == "secret"
    assert {token for _, token in there.asked[1:]} == {"Bearer hf_of_the_operator"} and len(there.asked) == 4


def test_a_token_goes_to_the_hub_alone_and_not_to_where_it_keeps_its_files(there, monkeypatch):
    monkeypatch.setenv("ABLATION_HUB_TOKEN", "1")
    there.put("operator/private", OLD, model("moved"))
    other = Hub()
    other.models = there.models
    with served(other) as there.elsewhere:
        assert files.from_hub("operator/private").name == "moved"
    assert [token for _, token in other.asked] == [None, None] and None not in [token for _, token in there.asked]


def test_what_is_downloaded_is_the_revision_that_was_looked_at(there):
    there.put("somebody/model", NEW, {name: b"x" * 10_000_000 for name in model("")})
    there.put("somebody/model", OLD, model("as it was"))
    there.moves["somebody/model"] = NEW
    assert files.from_hub("somebody/model").name == "as it was"
    assert all(f"/resolve/{OLD}/" in path for path, _ in there.asked[1:])


def test_what_was_downloaded_before_is_not_asked_for_again(there):
    there.put("somebody/model", OLD, model("first"))
    files.from_hub("somebody/model")
    there.asked.clear()
    assert files.from_hub("somebody/model").name == "first" and len(there.asked) == 1
    there.put("somebody/model", NEW, model("second"))
    assert files.from_hub("somebody/model").name == "second" and len(kept()) == 2


def test_a_model_that_is_too_large_is_not_downloaded(there, monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    there.put("somebody/large", OLD, {**model("large"), "model.safetensors": bytes(2 << 20)})
    with pytest.raises(MemoryLimit, match="somebody/large on the Hub has 2 MB; a model here may have 1 MB"):
        files.from_hub("somebody/large")
    assert len(there.asked) == 1


def test_all_downloads_together_have_a_limit_and_what_was_used_longest_ago_goes(there, monkeypatch):
    monkeypatch.setenv("ABLATION_HUB_MB", "3")
    for name in "abc":
        there.put(f"some/{name}", OLD, {**model(name), "tokenizer.json": bytes(1 << 20)})
    for at, name in enumerate("aab"):
        files.from_hub(f"some/{name}")
        os.utime(hub.cache() / f"some--{name}@{OLD}", (at, at))
    assert kept() == [f"some--{name}@{OLD}" for name in "ab"]
    os.utime(hub.cache() / f"some--a@{OLD}", (9, 9))
    assert files.from_hub("some/c").name == "c" and kept() == [f"some--{name}@{OLD}" for name in "ac"]
    there.put("some/large", OLD, {**model("large"), "tokenizer.json": bytes(4 << 20)})
    with pytest.raises(MemoryLimit, match="all downloads together may have 3 MB"):
        files.from_hub("some/large")
    assert len(kept()) == 2


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(hub, "PATIENCE", 0.5)


def drip(out, data):
    """A byte now and then, for longer than anybody waits."""
    for at in range(100):
        out.write(data[at : at + 1])
        out.flush()
        time.sleep(0.1)


def stall(out, data):
    out.write(data[:100])
    out.flush()
    time.sleep(5)


def test_ten_seconds_is_what_the_hub_may_be_silent():
    assert hub.PATIENCE == 10


@pytest.mark.parametrize(
    ("sends", "words"),
    [
        (stall, "it was silent"),
        (drip, "too slowly"),
        (lambda out, data: out.write(data[:100]), "could not be downloaded|whole"),
    ],
)
def test_a_transfer_that_stalls_ends(there, impatient, sends, words):
    there.put("somebody/model", OLD, model("slow"))
    there.sends, begun = sends, time.monotonic()
    with pytest.raises(CheckpointError, match=words):
        files.from_hub("somebody/model")
    assert time.monotonic() - begun < 4 and kept() == []  # nothing half is left behind
    there.sends = lambda out, data: out.write(data)
    assert files.from_hub("somebody/model").name == "slow"


def test_a_hub_that_does_not_answer_is_given_up(there, impatient):
    there.put("somebody/model", OLD, model("silent"))
    there.silent, begun = True, time.monotonic()
    with pytest.raises(CheckpointError, match="it was silent"):
        files.from_hub("somebody/model")
    assert time.monotonic() - begun < 4 and len(there.asked) == 1  # it is not asked again and again


def test_one_model_at_a_time_is_downloaded(there, impatient):
    there.put("somebody/model", OLD, model("one"))
    with hub._one_at_a_time, pytest.raises(CheckpointError, match="Another model is being downloaded"):
        files.from_hub("somebody/model")
    assert there.asked == []


@pytest.mark.parametrize("name", ["no such name at all!", "../../etc/passwd", "a/b/c", "", "x" * 300, "é/ü", "a\x00b"])
def test_a_name_that_is_none_is_told_and_nothing_is_asked(there, name):
    with pytest.raises(CheckpointError, match="is no name of a model on the Hub"):
        files.from_hub(name)
    assert there.asked == []


def test_what_fails_on_this_server_is_told_without_its_paths(there, monkeypatch, tmp_path):
    there.put("somebody/model", OLD, model("x"))
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(CheckpointError, match="could not be downloaded from the Hub") as caught:
        files.from_hub("somebody/model")
    assert str(tmp_path) not in str(caught.value) and str(Path.home()) not in str(caught.value)
    with pytest.raises(CheckpointError, match="no model 'somebody/else'"):
        files.from_hub("somebody/else")
