"""Downloads from a local stand-in for the Hub: requests sent to it and files taken from it."""

import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from core.checkpoints import CheckpointError, files, native
from core.model.config import Config
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimitError

constants = pytest.importorskip("huggingface_hub.constants")
OLD = "a" * 40
WORDS = ("<pad>", "the", "judge", "was", "late", ".")


def model(name: str) -> dict[str, bytes]:
    return native.model_files(
        Transformer(Config(d_model=16, n_heads=2, mask="causal"), WORDS), name
    )


class Hub:
    """Local stand-in for the Hugging Face Hub.

    models: name -> revision -> file -> content. When a model's newest revision is requested,
    `moves` makes another the newest.
    """

    def __init__(self):
        self.models = {}
        self.newest = {}
        self.moves = {}
        self.private = set()
        self.asked: list[tuple[str, str | None]] = []  # path, token
        self.silent = False

    def put(self, name: str, revision: str, content: dict[str, bytes]):
        self.models.setdefault(name, {})[revision] = content
        self.newest[name] = revision

    def info(self, name: str) -> dict:
        revision = self.newest[name]
        files_listed = [
            {"rfilename": file, "size": len(data)}
            for file, data in self.models[name][revision].items()
        ]
        self.newest[name] = self.moves.get(name, revision)
        return {
            "id": name,
            "sha": revision,
            "siblings": files_listed,
            "private": name in self.private,
        }

    def taken(self) -> list[str]:
        """Return the requested files, each once."""
        return sorted({path.rpartition("/")[2] for path, _ in self.asked if "/resolve/" in path})


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        local_hub = self.server.hub
        path = self.path.partition("?")[0]
        token = self.headers.get("authorization")
        if (
            path == "/api/agent-harnesses"
        ):  # the library asks for it once a day, to know what it runs in
            self.send_error(404)
            return
        local_hub.asked.append((path, token))
        if local_hub.silent:
            time.sleep(3)
            return
        name = path.removeprefix("/api/models/").removeprefix("/").partition("/resolve/")[0]
        if name not in local_hub.models or (name in local_hub.private and not token):
            self.send_response(401)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            return
        self.send_response(200)
        if path.startswith("/api/"):
            data = json.dumps(local_hub.info(name)).encode()
        else:
            revision, file = path.partition("/resolve/")[2].split("/")
            data = local_hub.models[name][revision][file]
            self.send_header("ETag", f'"{revision[:8]}-{name.replace("/", "-")}-{file}"')
            self.send_header("X-Repo-Commit", revision)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *args):
        pass


@contextmanager
def served(local_hub: Hub):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.hub = local_hub
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def local_hub(tmp_path, monkeypatch):
    hub = Hub()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_operator")
    monkeypatch.delenv("ABLATION_HUB_TOKEN", raising=False)
    with served(hub) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            address + "/{repo_id}/resolve/{revision}/{filename}",
        )
        yield hub


def kept() -> list[str]:
    return sorted(
        file.name for file in files.cache_folder().iterdir() if file.name.startswith("models--")
    )


def test_only_the_files_that_are_needed_are_taken(local_hub):
    local_hub.put(
        "somebody/model",
        OLD,
        {**model("theirs"), "pytorch_model.bin": b"\x80\x02", "README.md": b"hello"},
    )
    read = files.from_hub("somebody/model")
    assert read.name == "theirs" and read.config.d_model == 16
    assert local_hub.taken() == ["config.json", "model.safetensors"]
    local_hub.models["somebody/model"][OLD].pop("model.safetensors")
    with pytest.raises(CheckpointError, match="has no model.safetensors"):
        files.from_hub("somebody/model")


def test_sharded_model_downloads_without_other_files(local_hub, tmp_path):
    pytest.importorskip("transformers")
    from tests.test_checkpoint import gpt2

    theirs = gpt2(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="100KB")
    content = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    parts = [name for name in content if name.startswith("model-")]
    local_hub.put(
        "somebody/gpt2",
        OLD,
        {**content, "vocab.json": b"{}", "merges.txt": b"", "adapter.safetensors": b"x"},
    )
    assert files.from_hub("somebody/gpt2").parameters == sum(
        parameter.numel() for parameter in theirs.parameters()
    )
    assert local_hub.taken() == sorted(["config.json", "tokenizer.json", *parts])


def test_vocab_and_merges_download_without_tokenizer():
    names = ("config.json", "model.safetensors", "vocab.json", "merges.txt", "README.md")
    assert files.list_needed_files(names) == [*names[:4]]
    assert files.list_needed_files((*names, "tokenizer.json")) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert files.list_needed_files(("config.json",)) == ["config.json", "model.safetensors"]


def test_oversized_model_is_not_downloaded(local_hub, monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    local_hub.put("somebody/large", OLD, {**model("large"), "model.safetensors": bytes(2 << 20)})
    with pytest.raises(
        MemoryLimitError, match="somebody/large on the Hub is 2 MB; the limit for a model is 1 MB"
    ):
        files.from_hub("somebody/large")
    assert not local_hub.taken()


def test_downloads_are_limited_and_oldest_are_deleted(local_hub, monkeypatch):
    monkeypatch.setenv("ABLATION_HUB_MB", "3")
    for index, name in enumerate("ab"):
        local_hub.put(f"some/{name}", name * 40, {**model(name), "tokenizer.json": bytes(1 << 20)})
        files.from_hub(f"some/{name}")
        for blob in (files.cache_folder() / f"models--some--{name}" / "blobs").iterdir():
            os.utime(blob, (9 - index, 9 - index))
    local_hub.put("some/c", "c" * 40, {**model("c"), "tokenizer.json": bytes(1 << 20)})
    assert files.from_hub("some/c").name == "c" and kept() == ["models--some--a", "models--some--c"]
    local_hub.put("some/large", "d" * 40, {**model("large"), "tokenizer.json": bytes(4 << 20)})
    with pytest.raises(MemoryLimitError, match="the limit for all downloads is 3 MB"):
        files.from_hub("some/large")
    assert len(kept()) == 2


def test_unanswering_hub_times_out(local_hub, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.5)
    local_hub.put("somebody/model", OLD, model("silent"))
    local_hub.silent = True
    begun = time.monotonic()
    with pytest.raises(CheckpointError, match="could not be downloaded from the Hub"):
        files.from_hub("somebody/model")
    assert time.monotonic() - begun < 3
    local_hub.silent = False
    with (
        files._one_download,
        pytest.raises(CheckpointError, match="Another model is being downloaded"),
    ):
        files.from_hub("somebody/model")


@pytest.mark.parametrize(
    "name", ["no such name at all!", "../../etc/passwd", "a/b/c", "", "x" * 300, "é/ü", "a\x00b"]
)
def test_invalid_name_is_refused_without_request(local_hub, name):
    with pytest.raises(CheckpointError, match="is not a model ID"):
        files.from_hub(name)
    assert local_hub.asked == []
