"""Files that are no model: wrong kinds and sizes, too large, a tokenizer with other components. And models small as files, large at work."""

import json

import pytest
import torch

from core.checkpoints import own
from core.checkpoints.tokens import read_pieces
from core.experiments.trained import knockout
from core.experiments.trained.questions import questions
from core.model.config import Config
from core.model.knockout import cuts
from core.model.transformer import Transformer
from core.settings.memory import reuse_freed_memory
from core.tasks import task
from scripts.legal_model import vocabulary
from tests.limited import limited
from tests.test_checkpoint import MERGES, SPELLED, opened, spoiled, with_settings


def refused(call, words: str = "", kind: str = "CheckpointError"):
    """Check that a call is refused, with these words, within seconds and with little memory."""
    found = limited(call, seconds=60, megabytes=150)
    assert found.kind == kind and words in found.words, found


# Weights


def weights(header, data: bytes = bytes(4)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(**changes) -> dict:
    return {"embed": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}}


@pytest.mark.parametrize(
    "header",
    [
        entry(shape=[1_000_000_000]),
        entry(shape=[1 << 40, 1 << 40]),
        entry(shape=[-1]),
        entry(shape=["a"]),
        entry(data_offsets=[0, 8], shape=[2]),
        entry(data_offsets=[4, 0]),
        entry(dtype="F3"),
        {"embed": None},
        b"no JSON",
        b'{"embed":' + b"[" * 500_000,
    ],
    ids=["long", "longer than any", "less than nothing", "a word", "beyond the end", "backwards", "no type", "nothing", "no JSON", "deep"],
)  # fmt: skip
def test_a_header_that_does_not_fit_its_file_is_refused(header):
    refused(
        lambda: opened(spoiled(model_safetensors=weights(header))), "model.safetensors is no complete safetensors file"
    )


def test_a_header_of_megabytes_is_refused():
    refused(
        lambda: opened(spoiled(model_safetensors=weights(b"{}" + b" " * (2 << 20)))), "has a header of 2,097,154 bytes"
    )


# Tokenizers


@pytest.fixture
def read(tmp_path):
    def read(given):
        path = tmp_path / "tokenizer.json"
        path.write_bytes(given if isinstance(given, bytes) else json.dumps(given).encode())
        return read_pieces({path.name: path}, len(SPELLED))[0].tokenizer

    return read


def test_a_tokenizer_that_hugging_faces_library_saves_is_read(tmp_path, read):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2TokenizerFast(vocab={word: at for at, word in enumerate(SPELLED)}, merges=list(MERGES))
    theirs.save_pretrained(tmp_path)
    ours, text = read((tmp_path / "tokenizer.json").read_bytes()), "The judges were late, the judge was."
    assert ours.encode(text).ids == theirs(text)["input_ids"]


# Configurations


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 4_000_000,
        b" " * (5 << 20),
        b"\xff\xfe",
        b"NaN",
        b'{"model_type": "gpt2", "n_layer": NaN}',
        b'{"model_type": "gpt2", "n_inner": ' + b"9" * 4000 + b"}",
        b'{"format": "ablation-lab", "version": 1, "config": {"n_layers": NaN}}',
        b'{"format": "ablation-lab", "version": 1, "config": {}, "vocabulary": [[]]}',
    ],
    ids=range(8),
)
def test_a_configuration_that_is_none_is_refused(text):
    refused(lambda: opened(spoiled(config_json=text)))


def settings(**changes) -> dict[str, bytes]:
    return with_settings(lambda s: s.update(changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"about": {"reader": [10**9, 10**9]}}, "about.reader is [1000000000, 1000000000]; it must be a layer and a head"),
        ({"about": {"reader": [1]}}, "from 1 to 2 and from 1 to 2"),
        ({"about": {"reader": "11"}}, "about.reader"),
        ({"about": []}, "about must be an object"),
        ({"vocabulary": ["a", "x" * 201]}, "each of 1 to 200 letters"),
        ({"vocabulary": [f"{n}" for n in range(100_001)]}, "1 to 100,000"),
        ({"vocabulary": {"a": 1}}, "vocabulary must be a list"),
        ({"task": []}, "task is []"),
    ],
)  # fmt: skip
def test_what_a_configuration_says_of_its_model_is_checked(changes, words):
    refused(lambda: opened(settings(**changes)), words)


@pytest.mark.parametrize(
    ("name", "shown"), [("a\nb\x00", "a�b�"), ("", "a model"), ("x" * 500, "x" * 80), ("漢字 🦊", "漢字 🦊")]
)
def test_a_model_s_name_is_shown_harmlessly_and_written_again(name, shown):
    read = opened(settings(name=name, about={"name": 1, "model": 2, "of": 3, "nothing": float("nan"), "versions": {}}))
    assert read.name == shown
    again = opened(own.write(read.model, read.name, read.task, **read.about))
    assert again.name == read.name and again.about["model"] == 2


# Models that are small as files, and large at work


@pytest.fixture(scope="module")
def wordy():
    """A model of 50,000 words that is a small file: their scores, and not its weights, are what takes memory."""
    words = (*task["copy"].vocabulary, *(f"word {n}" for n in range(50_000)))
    settings = Config(d_model=8, n_heads=1, mask="causal", position="rope")
    return opened(own.write(Transformer(settings, words), "many words", "copy"))


@pytest.mark.slow
@pytest.mark.parametrize("many", [8, 64])
def test_many_texts_take_no_more_memory_than_is_said(wordy, many):
    asked = questions(wordy, many)
    cut, said = (cuts(wordy.config)[0],), sum(knockout.sizes(wordy, asked)) >> 20
    assert many == 8 or said > 200

    def measure():
        reuse_freed_memory()  # as the app does
        return [len(each) for each in knockout.Bench(wordy, asked).effect(cut, "zero").values.values()]

    found = limited(measure, megabytes=said + 60)  # what is computed in pieces, and PyTorch's own
    assert (found.kind, found.words) == ("", str([many] * 4))


def test_in_smaller_portions_the_answers_are_the_same(monkeypatch):
    made = opened(own.write(Transformer(Config(d_model=16, n_heads=2, mask="causal"), vocabulary()), "x", "sentences"))
    whole = knockout.Bench(made, questions(made, 64))
    monkeypatch.setenv("ABLATION_MAX_MB", "2")
    parts = knockout.Bench(made, questions(made, 64))
    assert len(whole.slices) == 1 < len(parts.slices)
    torch.testing.assert_close(parts.whole.logits, whole.whole.logits, rtol=1e-5, atol=1e-6)
    cut = (cuts(made.config)[0],)
    for name, values in whole.effect(cut, "mean").values.items():
        torch.testing.assert_close(parts.effect(cut, "mean").values[name], values, rtol=1e-5, atol=1e-6)
