"""Files that somebody sends to do harm: refused in words, within a second and some megabytes, and the page goes on."""

import io
import json
import struct
import zipfile
from contextlib import nullcontext

import pytest
import torch

from core.checkpoints import CheckpointError, files, own
from core.checkpoints.spelling import tokenizer
from core.checkpoints.tensors import File, sizes, tensors
from core.checkpoints.tokens import Pieces
from core.experiments.trained import contributions, knockout, lens, prompt
from core.experiments.trained.questions import questions
from core.model.config import Config
from core.model.generate import Sampling, generate
from core.model.knockout import cuts, read_cuts
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimit, max_mb, reuse_freed_memory
from core.settings.panics import panics_as
from core.settings.wording import shorten
from core.tasks import task
from scripts.legal_model import vocabulary
from tests.limited import limited
from tests.test_checkpoint import MERGES, SPELLED, model, opened, spoiled, with_settings, with_tensors

REFUSED = ("CheckpointError", "MemoryLimit")


def refused(call, words: str = "", seconds: float = 5):
    """That a call is refused, with these words, soon and with little memory."""
    found = limited(call, seconds, megabytes=100)
    assert found.kind in REFUSED, found
    assert words in found.words and len(found.words) < 500 and found.words.isprintable(), found.words


# Safetensors


def safetensors(header, data: bytes = bytes(4)) -> File:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return File("model.safetensors", data=len(text).to_bytes(8, "little") + text + data)


def entry(**changes) -> dict:
    return {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}}


SHAPES = {
    "a word that is multiplied": [1_000_000_000, "a"],
    "a list that is": [1_000_000_000, ["a"]],
    "true": [True],
    "a fraction": [1.5],
    "less than nothing": [-1, -4],
    "no list": "11",
    "none": None,
    "thousands of digits": [int("9" * 4200)] * 2000,
    "many sides": [1] * 100_000,
    "sides that are much together": [1 << 30, 1 << 30],
    "infinity": [float("inf")],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_that_is_none_is_refused_before_anything_is_multiplied(shape):
    file = safetensors(entry(shape=shape))
    if len(file.data) > 1 << 20:
        refused(lambda: sizes(file), "has a header of")
        file = safetensors(entry(shape=shape[:100]))
    refused(lambda: sizes(file), "the header does not say of the tensor “x” what it must")


@pytest.mark.parametrize(
    "changes",
    [{"data_offsets": given} for given in ([0], [0, 4, 8], [4, 0], [0, True], [0, 4.0], ["0", "4"], "04", None, {}, [0, 10**30], [-4, 4])]
    + [{"dtype": given} for given in ("F4", "x" * 10_000, None, 4, ["F32"], {})],
    ids=repr,
)  # fmt: skip
def test_an_entry_that_is_none_is_refused(changes):
    refused(lambda: sizes(safetensors(entry(**changes))), "the header does not say of the tensor “x”")


@pytest.mark.parametrize("dtype, bytes_of_one", [("F64", 12), ("I64", 8), ("F32", 4), ("BF16", 4), ("BOOL", 4)])
def test_what_is_read_counts_beside_what_is_kept_of_it(dtype, bytes_of_one):
    """A file of doubles takes its own size, and half of that once more, before the doubles go."""
    numbers = {"dtype": dtype, "shape": [3, 5], "data_offsets": [0, 120]}
    assert sizes(safetensors({"x": numbers}, bytes(120))) == [15 * bytes_of_one]


@pytest.mark.parametrize(
    "header",
    [
        b'{"x":' + b"[" * 500_000,
        b"{" + b'"":0,' * 100_000 + b'"x":0}',
        b'{"x":' + b"9" * 100_000 + b"}",
        b"{" + b" " * 500_000,
        b'{"x":1}' * 2,
        b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"__metadata__":{"a":' + b"[" * 400_000 + b"}}",
        b'{"__metadata__":{"a":[1]},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b"{" + b",".join(b'"%d":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}' % n for n in range(12_000)) + b"}",
        b'{"\xff":{}}',
        b"{}" + b" " * (2 << 20),
        json.dumps({"n" * 900_000: entry()["x"]} | {"m": 1}).encode(),
    ],
    ids=range(13),
)
def test_a_header_that_is_none_is_refused(header):
    refused(lambda: tensors(safetensors(header)))


def test_a_header_as_large_as_that_of_the_largest_model_here_is_read():
    names = [
        f"blocks.{layer}.{part}.weight" for layer in range(100) for part in ("a.query", "b.key", "c.value", "d.out")
    ]
    header = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * n, 4 * n + 4]} for n, name in enumerate(names)}
    assert len(tensors(safetensors(header, bytes(4 * len(names))))) == 400


def test_a_tensor_s_name_is_shown_in_few_printable_letters():
    evil = "evil \u202e\n" * 1000
    for spoil in (torch.zeros(2), torch.full((2,), float("inf"))):
        with pytest.raises(CheckpointError, match="evil") as caught:
            opened(with_tensors(lambda found, spoil=spoil: found.update({evil: spoil})))
        assert len(str(caught.value)) < 500 and str(caught.value).isprintable()


# Zip archives


def archive(entries, method=zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as packed:
        for name, data in entries:
            packed.writestr(name, data)
    return made.getvalue()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "16")


def test_what_an_upload_unpacks_to_in_all_has_one_limit(small):
    part, whole = archive([("model.safetensors", bytes(6 << 20))]), archive([("config.json", bytes(120 << 20))])
    refused(lambda: files.from_upload({f"{n}.zip": part for n in range(4)}), "more than 16 MB in all")
    refused(lambda: files.from_upload({"a.zip": whole}), "times its size")
    refused(lambda: files.from_upload({"a.zip": part, "more.bin": bytes(11 << 20)}), "more than 16 MB in all")
    refused(lambda: files.from_upload({"more.bin": bytes(17 << 20)}), "more than 16 MB in all")


def lying(data: bytes, size: int) -> bytes:
    """An archive whose directory says that each file has so many bytes."""
    made, at = bytearray(data), data.find(b"PK\x01\x02")
    while at >= 0:
        made[at + 24 : at + 28] = struct.pack("<I", size)
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(made)


@pytest.mark.parametrize("said", [0, 1, 0xFFFFFFFE])
def test_what_an_archive_says_of_its_sizes_is_not_believed(small, said):
    data = lying(archive([("config.json", bytes(120 << 20))]), said)
    refused(lambda: files.from_upload({"a.zip": data}))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_packed_in_an_unusual_way_is_refused(small, method):
    data = archive([("config.json", bytes(60 << 20))], method)
    refused(lambda: files.from_upload({"a.zip": data}), "unusual way")


def test_many_files_and_two_of_a_name_are_refused(small):
    written = own.write(model(), "x")
    twice = archive([*((f"{n}/config.json", b"{}") for n in range(3)), *written.items()])
    refused(lambda: files.from_upload({"a.zip": twice}), "a.zip holds config.json more than once")
    refused(lambda: files.from_upload({"a.zip": archive(written.items()), "config.json": b"{}"}), "more than once")
    crowd = archive((f"{n:05}/{'x' * 60}", b"") for n in range(20_000))
    refused(lambda: files.from_upload({"a.zip": crowd}), "its directory is too large")
    assert files.from_upload({"a.zip": archive([(f"{n}.txt", b"") for n in range(190)] + list(written.items()))})


def test_an_upload_of_many_files_is_refused_at_once_and_in_words():
    crowd = {f"{n}.txt": b"" for n in range(20_000)}
    refused(lambda: files.from_upload(crowd), "These are 20,000 files; one upload may have 48", seconds=2)
    written = own.write(model(), "x")
    assert files.from_upload({f"{n}.txt": b"" for n in range(40)} | written)


def test_entries_of_archives_are_counted_before_anything_is_unpacked(monkeypatch):
    monkeypatch.setattr("core.checkpoints.zips._read", None)  # it would fail
    crowd = archive((f"{n}.txt", b"") for n in range(15_000))
    refused(lambda: files.from_upload({"a.zip": crowd}), "may hold 200 files in all", seconds=1)
    part = archive([(f"{n}.txt", b"") for n in range(80)] + [("config.json", b"{}")])
    refused(lambda: files.from_upload({f"{n}.zip": part for n in range(3)}), "may hold 200 files in all", seconds=1)
    # zipfile looks at the 20 bytes before the end of an archive first: here they begin as a directory does.
    comment = zipfile.ZipInfo("last.txt")
    comment.comment = b"PK\x01\x02".ljust(20)
    hidden = archive([*((f"{n}.txt", b"") for n in range(15_000)), (comment, b"")])
    refused(lambda: files.from_upload({"a.zip": hidden}), "may hold 200 files in all", seconds=1)


@pytest.mark.parametrize("of", ["lab", "gpt2"])
def test_what_a_configuration_asks_for_is_known_before_the_weights_are_read(of, monkeypatch):
    monkeypatch.setattr("core.checkpoints.own.tensors", None)  # they would fail
    monkeypatch.setattr("core.checkpoints.gpt2.tensors", None)
    wide = {"n_layers": 100, "n_heads": 64, "d_model": 64, "d_head": 2}
    given = settings(config=wide) if of == "lab" else spoiled(config_json=b'{"model_type": "gpt2", "n_layer": 12}')
    asked = []

    def check(parameters):
        asked.append(parameters)
        raise MemoryLimit("no room")

    with pytest.raises(MemoryLimit, match="no room"):
        files.from_upload(given, check)
    assert asked[0] > (1e6 if of == "lab" else 1e8)


def test_a_model_whose_parts_are_many_and_wide_is_not_taken_apart_beyond_the_limit(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "64")
    wide = Config(d_model=512, n_heads=64, n_layers=24, d_ff=1, mask="causal", position="rope", d_head=2)
    made = opened(own.write(Transformer(wide, vocabulary()), "many parts", "sentences"))
    bench = knockout.bench(made, 8)
    monkeypatch.setenv("ABLATION_MAX_MB", "10")
    with pytest.raises(MemoryLimit, match="What every part of this model adds would need about"):
        contributions.table(bench)


@pytest.mark.thorough
def test_who_decides_holds_no_more_of_a_deep_model_than_it_says():
    """44 kB with one block for all of 100 layers held the parts of the stream as they were after each: 4 GB."""
    deep = Config(d_model=512, n_heads=64, n_layers=60, d_ff=8, mask="causal", shared=True)
    bench = knockout.bench(opened(own.write(Transformer(deep, vocabulary()), "deep", "sentences")), 4)

    def shares():
        reuse_freed_memory()
        return contributions.of_bench(bench).sum(0)

    found = limited(shares, seconds=120, megabytes=250)
    assert not found.kind, found  # what the parts add up to is tested in test_knockout.py
    assert found.words == repr(shares())


def test_early_layers_that_late_ones_read_count_in_what_who_decides_needs(monkeypatch):
    skipping = Config(d_model=64, n_heads=4, n_layers=9, mask="causal", skips=True)
    bench = knockout.bench(opened(own.write(Transformer(skipping, vocabulary()), "skips", "sentences")), 4)
    asked = []
    monkeypatch.setattr(contributions, "ROOM", 1)  # one question at a time
    monkeypatch.setattr(contributions, "room_for", lambda needed, what: asked.append(needed) or nullcontext())
    contributions.of_bench(bench)
    parts = 1 + 9 * (4 + 1 + 1) + 1
    assert asked == [4 * parts * 64 * (4 + 4)]  # four tables, and the streams after the first four layers


def test_where_a_file_lies_in_an_archive_makes_no_difference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("../../", "/etc/", "a/" * 5000, "C:\\models\\", "./"):
        assert files.from_upload(
            {"a.zip": archive((folder + name, data) for name, data in own.write(model(), "x").items())}
        )
    assert not list(tmp_path.iterdir())


def test_an_encrypted_archive_is_refused_in_words(small):
    data = bytearray(archive(own.write(model(), "x").items()))
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    refused(lambda: files.from_upload({"a.zip": bytes(data)}), "a.zip is encrypted")


def test_a_damaged_archive_is_refused_in_words(small):
    """Also one whose packed bytes are no deflate stream, or not the one that was packed."""
    data = archive(own.write(model(), "x").items())
    middle = data.find(b"PK\x01\x02") // 2
    for change in (data[:-30], data[:middle] + b"\xff" * 40 + data[middle + 40 :], data[: len(data) // 2]):
        refused(lambda change=change: files.from_upload({"a.zip": change}), "no zip archive that can be unpacked")


# Tokenizers


def spelling(**changes) -> dict:
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": bytes_,
        "post_processor": {**bytes_, "trim_offsets": False}, "decoder": bytes_,
        "added_tokens": [{"id": 0, "content": SPELLED[0], "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": True}],
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {word: at for at, word in enumerate(SPELLED)}, "merges": [" ".join(pair) for pair in MERGES],
        },
        **changes,
    }  # fmt: skip


def of_model(**changes) -> dict:
    made = spelling()
    return {**made, "model": {**made["model"], **changes}}


def read(given, words: int = len(SPELLED)):
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return tokenizer(File("tokenizer.json", data=data), words)[0]


NOTHING_ADDED = {
    "type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        spelling(),
        of_model(merges=[list(pair) for pair in MERGES]),  # as newer versions write them
        {**spelling(), "model": {k: v for k, v in spelling()["model"].items() if k not in ("type", "byte_fallback", "ignore_merges")}},
        spelling(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}),
        spelling(truncation={"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}),
        spelling(post_processor=None),
        spelling(post_processor=NOTHING_ADDED),
    ],
    ids=["as published", "pairs", "the oldest", "without use_regex", "truncated", "no post-processor", "as saved again"],
)  # fmt: skip
def test_gpt2s_own_tokenizer_is_read_however_it_is_written(given):
    made = read(given)
    ids = made.encode("The judge was late<|endoftext|>").ids
    assert [SPELLED[token] for token in ids] == ["The", "Ġjudge", "Ġwas", "Ġlate", "<|endoftext|>"]
    assert made.decode(ids, skip_special_tokens=False) == "The judge was late<|endoftext|>"


def test_a_tokenizer_that_hugging_faces_library_saves_is_read(tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2TokenizerFast(vocab={word: at for at, word in enumerate(SPELLED)}, merges=list(MERGES))
    theirs.save_pretrained(tmp_path)
    ours, text = read((tmp_path / "tokenizer.json").read_bytes()), "The judges were late, the judge was."
    assert ours.encode(text).ids == theirs(text)["input_ids"]


DOUBLING = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 32}
SPLIT = {"type": "Split", "pattern": {"Regex": "(a|a)*$"}, "behavior": "Isolated", "invert": False}
TOKENIZERS = {
    "a text that doubles": (spelling(normalizer=DOUBLING), "normalizer is not as GPT-2's"),
    "a charsmap that is none": (spelling(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "normalizer"),
    "a pattern": (spelling(pre_tokenizer=SPLIT), "pre_tokenizer is not as GPT-2's"),
    "no pattern": (spelling(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}), "pre_tokenizer"),
    "no pre-tokenizer": (spelling(pre_tokenizer=None), "pre_tokenizer"),
    "another decoder": (spelling(decoder={"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}), "decoder"),
    "a text put before": (spelling(post_processor={**NOTHING_ADDED, "special_tokens": {"a": {}}}), "post_processor"),
    "another post-processor": (spelling(post_processor={"type": "BertProcessing", "sep": ["a", 1], "cls": ["a", 1]}), "post_processor"),
    "another model": (of_model(type="Unigram"), "type of the model is “Unigram”"),
    "chance": (of_model(dropout=0.5), "dropout of the model is 0.5"),
    "nearly false": (of_model(fuse_unk=0), "fuse_unk of the model is 0"),
    "a key": (spelling(extra=1), "holds “extra”"),
    "a key of the model": (of_model(extra=1), "model holds “extra”"),
    "no model": (spelling(model=None), "no tokenizer of the tokenizers library"),
    "no vocabulary": (of_model(vocab=None), "vocab of the model"),
    "words without letters": (of_model(vocab={"": 0}), "vocab of the model"),
    "a word of a million letters": (of_model(vocab={"x" * 10**6: 0}), "vocab of the model"),
    "two words of a number": (of_model(vocab={"a": 0, "b": 0}), "different numbers"),
    "a number that is none": (of_model(vocab={"a": "0"}), "the number of a token is “0”"),
    "true": (of_model(vocab={"a": True}), "the number of a token is True"),
    "a huge number": (of_model(vocab={"a": 10**4000}), "tokens up to number a number of more than 40 digits"),
    "a large number": (of_model(vocab={"a": 2**32}), "tokens up to number 4294967296"),
    "merges": (of_model(merges="a b"), "merges of the model"),
    "merges of three": (of_model(merges=["a b c"]), "merges of the model"),
    "merges of numbers": (of_model(merges=[[1, 2]]), "merges of the model"),
    "merges that are no words": (of_model(merges=["q z"]), "no tokenizer of the tokenizers library"),
    "half a character": (of_model(vocab={"\ud800": 0}, merges=[]), "no tokenizer of the tokenizers library"),
    "many tokens more": (spelling(added_tokens=[{"id": 0, "content": "a"}] * 2000), "added_tokens"),
    "a token before all": (spelling(added_tokens=[{"id": -1, "content": "zz"}]), "added_tokens is not as GPT-2's"),
    "a word for the unknown that is none": (of_model(unk_token="zz"), "unk_token of the model is not as GPT-2's"),
    "a token without letters": (spelling(added_tokens=[{"id": 0, "content": ""}]), "added_tokens"),
    "tokens more": (spelling(added_tokens={"a": 1}), "added_tokens"),
    "deep": (b'{"model":' + b"[" * 100_000, "no JSON"),
    "large": (b" " * (9 << 20), "it may have 8,388,608"),
    "no object": (b"[1]", "no tokenizer of the tokenizers library"),
    "digits": (b'{"model": {"vocab": {"a": ' + b"9" * 5000 + b"}}}", "no JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "words"), TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_tokenizer_that_is_not_gpt2s_is_refused_by_what_it_has(given, words):
    refused(lambda: read(given), words)


class PanicException(BaseException):
    """As the library raises it, from a module of that name."""

    __module__ = "pyo3_runtime"


class Failing:
    def encode(self, text):
        raise self.error

    def decode(self, ids, **more):
        raise self.error


@pytest.mark.parametrize("call", [lambda made: made.encode("a"), lambda made: made.label(0)])
def test_a_panic_while_a_text_is_read_is_an_error_like_others(call):
    library = Failing()
    library.error = PanicException("index out of range")
    with pytest.raises(CheckpointError, match="has failed at this text"):
        call(Pieces(library, ("a",)))


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, GeneratorExit, type("RerunException", (BaseException,), {})]
)
def test_a_request_to_end_passes_as_it_is(kind):
    library = Failing()
    library.error = kind()
    with pytest.raises(kind):
        Pieces(library, ("a",)).encode("a")
    with pytest.raises(ZeroDivisionError), panics_as(CheckpointError, "no"):
        raise ZeroDivisionError


def test_what_the_library_itself_panics_at_is_caught():
    """If this fails, the library no longer panics at this: find another file at which it does."""
    tokenizers = pytest.importorskip("tokenizers")
    broken = json.dumps(spelling(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}))
    with pytest.raises(CheckpointError, match="no"), panics_as(CheckpointError, "no"):
        tokenizers.Tokenizer.from_str(broken)


# Configurations


@pytest.mark.parametrize(
    "text",
    [
        b'{"format":' * 100_000,
        b"[" * 4_000_000,
        b" " * (5 << 20),
        b'{"version": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"NaN",
        b'{"model_type": ' + b"[" * 800 + b"]" * 800 + b"}",
        b'{"model_type": "\\ud800"}',
        b'{"model_type": "gpt2", "n_layer": NaN}',
        b'{"model_type": "gpt2", "n_layer": 1e999}',
        b'{"model_type": "gpt2", "n_inner": ' + b"9" * 4000 + b"}",
        b'{"model_type": "gpt2", "n_layer": ' + b"[" * 800 + b"]" * 800 + b"}",
        b'{"model_type": "gpt2", "vocab_size": 1000000, "n_embd": 1600, "n_head": 25}',
        b'{"format": "ablation-lab", "version": 1, "config": {"n_layers": NaN}}',
        b'{"format": "ablation-lab", "version": 1, "config": {"norm": ' + b"[" * 800 + b"]" * 800 + b"}}",
        b'{"format": "ablation-lab", "version": 1, "config": {}, "vocabulary": [[]]}',
    ],
    ids=range(16),
)
def test_a_configuration_that_is_none_is_refused(text):
    refused(lambda: opened(spoiled(config_json=text)))


def settings(**changes) -> dict[str, bytes]:
    return with_settings(lambda s: s.update(changes))


ABOUT = {
    "a reader far away": ({"reader": [1_000_000_000, 1_000_000_000]}, "about.reader is [1000000000, 1000000000]; it must be a layer and a head"),
    "a reader that is true": ({"reader": [True, True]}, "about.reader is [True, True]"),
    "a reader of one": ({"reader": [1]}, "from 1 to 2 and from 1 to 2"),
    "a reader from 0": ({"reader": [0, 1]}, "about.reader"),
    "a reader in words": ({"reader": "11"}, "about.reader"),
    "a reader that is nothing": ({"reader": None}, "about.reader"),
    "half a character": ({"from": "\ud800"}, "about must be an object"),
    "half a character's name": ({"\udfff": 1}, "about must be an object"),
    "deep": ({"a": [[[[[[[[[]]]]]]]]]}, "at most 8 levels deep"),
    "long": ({"a": "x" * 60_000}, "50,000 bytes in all"),
    "a list": ([], "about must be an object"),
}  # fmt: skip


@pytest.mark.parametrize(("about", "words"), ABOUT.values(), ids=ABOUT)
def test_what_a_file_says_about_its_model_can_be_shown_and_written_again(about, words):
    refused(lambda: opened(settings(about=about)), words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocabulary": ["a", "\ud800"]}, "vocabulary must be a list"),
        ({"vocabulary": ["a", "x" * 201]}, "each of 1 to 200 letters"),
        ({"vocabulary": [f"{n}" for n in range(100_001)]}, "1 to 100,000"),
        ({"vocabulary": {"a": 1}}, "vocabulary must be a list"),
        ({"name": 5}, "name is 5; it must be text"),
        ({"task": "\ud800"}, "task is “�”"),
        ({"task": []}, "task is []"),
    ],
)
def test_names_and_words_that_cannot_be_shown_are_refused(changes, words):
    refused(lambda: opened(settings(**changes)), words)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("\ud800", "�"), ("a\nb\x00", "a�b�"), ("", "a model"), ("  ", "a model"), ("x" * 500, "x" * 80), ("\u202egpj", "�gpj"), ("漢字 🦊", "漢字 🦊")],
)  # fmt: skip
def test_a_model_s_name_is_shown_harmlessly_and_written_again(name, shown):
    read = opened(settings(name=name, about={"name": 1, "model": 2, "of": 3, "nothing": float("nan"), "versions": {}}))
    assert read.name == shown
    again = opened(own.write(read.model, read.name, read.task, **read.about))
    assert again.name == read.name and again.about["model"] == 2


def test_a_value_that_cannot_be_written_out_is_told_all_the_same():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert shorten([10**5000]) == shorten(deep) == "something too large to be shown"
    while deep:  # Python would take it apart by recursion
        deep = deep.pop()


def test_a_panic_of_the_tensors_library_is_refused_too(monkeypatch):
    def broken(data):
        raise PanicException

    monkeypatch.setattr("safetensors.torch.load", broken)
    with pytest.raises(CheckpointError, match="no complete safetensors file"):
        opened(spoiled())


def test_the_limits_are_those_that_are_said(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    with pytest.raises(MemoryLimit, match=r"a model here may have 1 MB"):
        tensors(safetensors(entry(shape=[1 << 19], data_offsets=[0, 2 << 20]), bytes(2 << 20)))


# Models that are small as files, and large at work


def test_a_model_of_many_words_is_asked_fewer_texts(monkeypatch):
    words = (*task["copy"].vocabulary, *(f"word {n}" for n in range(20_000)))
    made = opened(own.write(Transformer(Config(d_model=8, n_heads=1), words), "many words", "copy"))
    monkeypatch.setenv("ABLATION_MAX_MB", "64")
    found = limited(lambda: knockout.bench(made, 256), megabytes=150)
    assert found.kind == "MemoryLimit" and "256 texts through this model would need about" in found.words
    assert "Choose fewer texts" in found.words and knockout.bench(made, 8)


@pytest.fixture(scope="module")
def wordy():
    """A model of 50,000 words that is a small file: their scores, and not its weights, are what takes memory."""
    words = (*task["copy"].vocabulary, *(f"word {n}" for n in range(50_000)))
    settings = Config(d_model=8, n_heads=1, mask="causal", position="rope")
    return opened(own.write(Transformer(settings, words), "many words", "copy"))


def test_the_words_that_each_layer_would_say_are_scored_a_few_places_at_a_time(wordy):
    bench = knockout.bench(wordy, 8)
    seen = prompt.look(bench, prompt.read(wordy, "a b " * 128))
    assert len(seen.tokens) == 256  # 51 MB of scores, and as many of chances, for each layer
    found = limited(lambda: len(lens.logit_lens(wordy.model, seen, wordy.tokens.label)), megabytes=80)
    assert (found.kind, found.words) == ("", "512")


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


def test_of_a_text_that_goes_on_what_is_shown_is_kept(wordy):
    bench = knockout.bench(wordy, 8)
    read = prompt.read(wordy, "a b " * 128)
    words, places = len(wordy.model.vocabulary), 200
    for cache in (True, False):
        first = next(iter(generate(wordy.model, read.ids[:places], Sampling(words=1), cache=cache)))
        kept = [each.untyped_storage().nbytes() for each in (first.logits, *first.patterns)]
        assert kept == [4 * words, 4 * places]
    steps = list(prompt.continuation(bench, read, places, Sampling(words=20)))
    assert len(steps) == 20 and not any(each.logits is not None for each in steps)
    assert wordy.results.bytes < sum(knockout.sizes(wordy, bench.questions)) + (1 << 20)


def test_a_link_of_wrong_parts_is_told_of_the_first_and_of_some_parts():
    """Of each of ten thousand a sentence that named all 6,700 parts took hundreds of megabytes."""
    many = Config(d_model=64, n_heads=64, n_layers=100)
    text = "~".join(["2.3", *("b" * (1 + n % 9) for n in range(9_990)), "1.ffn", "2.3"])
    found = limited(lambda: read_cuts(text, many), megabytes=60)
    assert "(Cut(layer=0, part='ffn', head=0), Cut(layer=1, part='head', head=2))" in found.words
    chosen, notes = read_cuts(text, many)
    assert [each.split(",")[0] for each in notes] == [f"out holds “{'b' * n}”" for n in (1, 2, 3)]
    assert all("1.40 and 6,660 more. It was left out." in each and len(each) < 500 for each in notes)
    assert read_cuts("x", Config(n_heads=2))[1] == ["out holds “x”, which this model has not; it has 1.1, 1.2, 1.attention, 1.ffn, 1.layer. It was left out."]  # fmt: skip
    assert read_cuts("1.1", Config(attention=False, ffn=False))[1] == ["out holds “1.1”, which this model has not; it has no part that can be taken out. It was left out."]  # fmt: skip


@pytest.mark.thorough
def test_a_sweep_holds_what_it_measured_of_each_part_and_not_what_the_parts_wrote():
    """700 parts of 100 layers held 2.8 GB."""
    deep = Config(d_model=128, n_heads=1, n_layers=32, d_ff=1, mask="causal", position="rope")
    bench = knockout.bench(opened(own.write(Transformer(deep, vocabulary()), "deep", "sentences")), 64)
    written = sum(x.nbytes for x in bench.baseline.written.values()) >> 20
    every = len(cuts(deep))
    assert every * written > 2 * 80  # half of it, as a part changes what is above it
    found = limited(lambda: len(list(bench.sweep("zero"))), seconds=120, megabytes=80)
    assert (found.kind, found.words) == ("", str(every))
    assert not next(bench.sweep("zero")).written and bench.effect((cuts(deep)[0],), "zero").written


def test_the_words_of_a_model_count_as_well_as_its_weights(wordy):
    sizes = []
    with pytest.raises(RuntimeError, match="looked at"):

        def look(size):
            sizes.append(size)
            raise RuntimeError("looked at")

        files.from_upload(own.write(wordy.model, "many words", "copy"), look)
    assert sizes == [wordy.size] == [4 * wordy.parameters + 100 * len(wordy.model.vocabulary)]
    again = limited(lambda: len(tuple(f"<unused {n}>" for n in range(1_000_000))), megabytes=100)  # as of a GPT-2's
    assert again.words == "1000000"


def test_what_is_kept_of_all_models_has_one_limit(wordy):
    """Each could have as much as it may by itself: 12 of them took 4 GB."""
    others = [opened(own.write(model(), "small", "")) for _ in range(5)]
    size = others[0].results.max_bytes
    for each in others:
        each.results.put("x", each.name, size)
    assert [each.results.peek("x") is not None for each in others] == [False] * 3 + [True] * 2
    assert sum(each.results.bytes for each in (*others, wordy)) <= 2 * size == max_mb() << 19


def test_a_model_of_many_heads_reads_shorter_texts(monkeypatch):
    wide = Config(d_model=64, n_heads=64, n_layers=30, d_ff=1, mask="causal", position="rope", d_head=2)
    made = opened(own.write(Transformer(wide, vocabulary()), "many heads", "sentences"))
    monkeypatch.setenv("ABLATION_MAX_MB", "128")
    bench = knockout.bench(made, 8)
    long, short = (prompt.read(made, "the judge was late . " * many) for many in (50, 1))
    found = limited(lambda: prompt.look(bench, long), megabytes=200)
    assert found.kind == "MemoryLimit" and "This model and text would need about" in found.words
    assert prompt.look(bench, short).finite
    found = limited(lambda: list(prompt.continuation(bench, long, 200, Sampling(words=200))), megabytes=200)
    assert found.kind == "MemoryLimit" and "so many words" in found.words


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
