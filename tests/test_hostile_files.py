"""Files that are no model: wrong kinds and sizes, too large, a tokenizer with other components. And models small as files, large at work."""

import json
from contextlib import nullcontext

import pytest
import torch

from core.checkpoints import CheckpointError, files, own
from core.checkpoints.tokens import read_pieces
from core.experiments.trained import contributions, knockout, lens, prompt
from core.experiments.trained.questions import questions
from core.model.config import Config
from core.model.generate import Sampling, generate
from core.model.knockout import cuts, read_cuts
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimit, max_mb, reuse_freed_memory
from core.tasks import task
from scripts.legal_model import vocabulary
from tests.limited import limited
from tests.test_checkpoint import MERGES, SPELLED, model, opened, spoiled, with_settings, with_tensors


def refused(call, words: str = "", kind: str = "CheckpointError"):
    """Check that a call is refused, with these words, within seconds and with little memory."""
    found = limited(call, seconds=5, megabytes=150)
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


def test_what_a_configuration_asks_for_is_known_before_the_weights_are_read(monkeypatch):
    monkeypatch.setattr("core.checkpoints.own.load", None)  # they would fail
    monkeypatch.setattr("core.checkpoints.gpt2.load", None)
    wide = {"n_layers": 100, "n_heads": 64, "d_model": 64, "d_head": 2}
    for given in (settings(config=wide), spoiled(config_json=b'{"model_type": "gpt2"}')):

        def check(size):
            raise MemoryLimit(f"no room for {size > 1e6}")

        with pytest.raises(MemoryLimit, match="no room for True"):
            files.from_upload(given, check)


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


@pytest.fixture
def read(tmp_path):
    def read(given):
        path = tmp_path / "tokenizer.json"
        path.write_bytes(given if isinstance(given, bytes) else json.dumps(given).encode())
        return read_pieces({path.name: path}, len(SPELLED))[0].tokenizer

    return read


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
def test_gpt2s_own_tokenizer_is_read_however_it_is_written(given, read):
    made = read(given)
    ids = made.encode("The judge was late<|endoftext|>").ids
    assert [SPELLED[token] for token in ids] == ["The", "Ġjudge", "Ġwas", "Ġlate", "<|endoftext|>"]
    assert made.decode(ids, skip_special_tokens=False) == "The judge was late<|endoftext|>"


def test_a_tokenizer_that_hugging_faces_library_saves_is_read(tmp_path, read):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2TokenizerFast(vocab={word: at for at, word in enumerate(SPELLED)}, merges=list(MERGES))
    theirs.save_pretrained(tmp_path)
    ours, text = read((tmp_path / "tokenizer.json").read_bytes()), "The judges were late, the judge was."
    assert ours.encode(text).ids == theirs(text)["input_ids"]


DOUBLING = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 32}
SPLIT = {"type": "Split", "pattern": {"Regex": "(a|a)*$"}, "behavior": "Isolated", "invert": False}
NO_TOKENIZER = "no tokenizer of the tokenizers library"
TOKENIZERS = {
    "a text that doubles": (spelling(normalizer=DOUBLING), "normalizer is “Sequence”; GPT-2's is null"),
    "a pattern": (spelling(pre_tokenizer=SPLIT), "pre_tokenizer is “Split”; GPT-2's is ByteLevel"),
    "no pattern": (spelling(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}), "use_regex"),
    "no pre-tokenizer": (spelling(pre_tokenizer=None), "pre_tokenizer is None"),
    "another decoder": (spelling(decoder={"type": "Fuse"}), "decoder is “Fuse”; GPT-2's is ByteLevel"),
    "another post-processor": (spelling(post_processor={"type": "BertProcessing", "sep": ["a", 1], "cls": ["a", 1]}), "post_processor is “BertProcessing”"),
    "another model": (of_model(type="Unigram"), "model is “Unigram”; GPT-2's is BPE"),
    "chance": (of_model(dropout=0.5), "model has dropout"),
    "no vocabulary": (of_model(vocab=None), NO_TOKENIZER),
    "a number that is none": (of_model(vocab={"a": "0"}), NO_TOKENIZER),
    "a large number": (of_model(vocab={"a": 10**6}, merges=[]), "tokens up to number 1,000,000; the model has"),
    "merges of nothing": (of_model(merges=["q z"]), NO_TOKENIZER),
    "an unknown that is none": (of_model(unk_token="zz"), NO_TOKENIZER),
    "tokens more": (spelling(added_tokens={"a": 1}), NO_TOKENIZER),
    "large": (b" " * (9 << 20), "it may have 8,388,608"),
    "no object": (b"[1]", "holds no JSON object"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "words"), TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_tokenizer_that_is_not_gpt2s_is_refused_by_what_it_has(given, words, read):
    refused(lambda: read(given), words)


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


def test_a_tensor_s_name_is_shown_in_few_letters():
    with pytest.raises(CheckpointError, match="evil") as caught:
        opened(with_tensors(lambda found: found.update({"evil " * 1000: torch.zeros(2)})))
    assert len(str(caught.value)) < 500


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
    size = others[0].results.entries.maxsize
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
