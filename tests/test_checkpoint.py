"""Model files: exact round trips, equality with Hugging Face's GPT-2, clear refusals."""

import io
import json
import pickle
import zipfile

import pytest
import safetensors.torch
import torch

from core.checkpoints import CheckpointError, Opened, files, native
from core.model.config import Config
from core.model.knockout import Lesion, list_cuts
from core.model.parts import MENUS
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimitError
from core.tasks import task
from core.train import Training, chunk, start

WORDS = ("<pad>", "the", "judge", "was", "late", ".")
PARTS = [(field, name) for field, menu in MENUS.items() for name in menu]


def model(**changes) -> Transformer:
    return Transformer(Config(d_model=16, n_heads=2, n_layers=2, mask="causal", **changes), WORDS)


opened = files.from_upload


@pytest.mark.parametrize(
    ("field", "name"),
    [*PARTS, ("tied", True), ("bias", False), ("ffn", False), ("attention", False)],
)
def test_written_model_reads_back_bit_for_bit(field, name):
    transformer = model(**{field: name} if field != "mask" else {})
    read = opened(native.model_files(transformer, "a model", seed=3))
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    assert torch.equal(read.model(ids), transformer(ids))
    assert read.config == transformer.config and read.model.vocabulary == WORDS
    assert read.about["seed"] == 3 and read.name == "a model"
    assert opened(native.model_files(transformer, "a\nb" + "x" * 500)).name == "a�b" + "x" * 77


def test_unfinished_training_can_be_saved(tmp_path):
    state, _ = chunk(start(task["copy"].config(), Training(task="copy", steps=5), 1), 0.0)
    for name, data in native.trained_model_files(state, "copy", 0.5).items():
        (tmp_path / name).write_bytes(data)
    read = files.from_folder(tmp_path)
    direct = native.open_training(state, "copy")
    ids = torch.arange(1, 9)[None]
    assert torch.equal(read.model(ids), direct.model(ids))
    assert (
        read.task == "copy"
        and read.about["step"] == state.step
        and read.about["training"]["steps"] == 5
    )
    assert read.key == direct.key


def test_download_is_one_archive():
    written = native.model_files(model(), "zipped")
    with zipfile.ZipFile(io.BytesIO(native.zip_files(written))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == written
    with pytest.raises(CheckpointError, match="model.zip is a zip archive: unpack it"):
        opened({"model.zip": native.zip_files(written)})


class Bomb:
    """Pickle that fails the test when it is loaded."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def with_header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text + bytes(4)


def spoiled(**changes) -> dict[str, bytes]:
    written = native.model_files(model(), "spoiled")
    return {**written, **{name.replace("_", "."): data for name, data in changes.items()}}


def with_settings(change) -> dict[str, bytes]:
    written = native.model_files(model(), "spoiled")
    settings = json.loads(written[native.SETTINGS])
    change(settings)
    return {**written, native.SETTINGS: json.dumps(settings).encode()}


def with_tensors(change) -> dict[str, bytes]:
    written = native.model_files(model(), "spoiled")
    tensors = safetensors.torch.load(written[native.WEIGHTS])
    change(tensors)
    return {**written, native.WEIGHTS: safetensors.torch.save(tensors)}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            spoiled(model_safetensors=pickle.dumps(Bomb(), protocol=5)),
            "is not a complete safetensors file",
        ),
        (
            spoiled(model_safetensors=native.model_files(model(), "x")[native.WEIGHTS][:-100]),
            "is not a complete safetensors file",
        ),
        (
            spoiled(model_safetensors=with_header(b"{}" + b" " * (2 << 20))),
            "has a header of 2,097,154 bytes",
        ),
        (spoiled(config_json=b"{"), "is not valid JSON"),
        (spoiled(config_json=b"{}"), "has neither"),
        (spoiled(config_json=b'{"model_type": "llama"}'), "type “llama”"),
        (with_tensors(lambda t: t.pop("embed")), "lacks embed"),
        (with_tensors(lambda t: t.update(more=torch.zeros(2))), "contains more"),
        (
            with_tensors(lambda t: t.update({"blocks.1.attn.out.weight": torch.zeros(16, 15)})),
            "blocks.1.attn.out.weight is 16 × 15",
        ),
        (with_tensors(lambda t: t["embed"].fill_(float("nan"))), "embed contains infinite"),
        (with_settings(lambda s: s.update(version=2)), "version is 2"),
        (with_settings(lambda s: s.pop("config")), "no object named config"),
        (with_settings(lambda s: s["config"].update(n_heads=3)), "n_heads is 3"),
        (with_settings(lambda s: s["config"].update(norm="BatchNorm")), "BatchNorm"),
        (with_settings(lambda s: s.update(vocabulary=["a", "a"])), "vocabulary"),
        (
            with_settings(lambda s: s.update(vocabulary=[f"{n}" for n in range(100_001)])),
            "1 to 100,000",
        ),
        (
            with_settings(lambda s: s.update(about={"reader": [10**9, 1]})),
            "from 1 to 2 and from 1 to 2",
        ),
        (with_settings(lambda s: s.update(task="chess")), "task is “chess”"),
        (with_settings(lambda s: s.update(task="copy")), "lacks some of its words"),
        (
            {native.WEIGHTS: native.model_files(model(), "x")[native.WEIGHTS]},
            "config.json is missing",
        ),
        (
            {native.SETTINGS: native.model_files(model(), "x")[native.SETTINGS]},
            "is a safetensors file",
        ),
        ({"pytorch_model.bin": pickle.dumps(Bomb())}, "is a PyTorch pickle"),
        (
            with_tensors(lambda t: t.update(embed=t["embed"].int())),
            "embed has dtype I32; supported: F64, F32",
        ),
        ({}, "is a safetensors file"),
    ],
)
def test_files_that_are_no_model_are_refused_by_name(written, message):
    with pytest.raises(CheckpointError, match=message.replace("(", r"\(")):
        opened(written)


def test_oversized_files_are_refused_before_reading(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    with pytest.raises(MemoryLimitError, match="ABLATION_MAX_MB"):
        opened(
            with_settings(
                lambda s: s["config"].update(d_model=512, n_heads=2, d_ff=2048, d_head=256)
            )
        )
    halves = {"x": torch.zeros(300_000, dtype=torch.float16)}  # twice as much as float32
    with pytest.raises(MemoryLimitError, match="model.safetensors take"):
        opened(spoiled(model_safetensors=safetensors.torch.save(halves)))
    with pytest.raises(MemoryLimitError, match="2 MB; the limit for a model is 1 MB"):
        opened(spoiled(more_safetensors=bytes(2 << 20)))


@pytest.mark.parametrize("stored", ["caf\u00e9", "cafe\u0301"])
@pytest.mark.parametrize("typed", ["caf\u00e9", "cafe\u0301", "Cafe\u0301"])
def test_unicode_forms_of_a_word_are_equal(stored, typed):
    model = Transformer(Config(d_model=16, n_heads=2, mask="causal"), ("the", stored))
    encoded = opened(native.model_files(model, "accents")).tokens.encode(f"the {typed}")
    assert encoded.ids == [0, 1] and not encoded.left_out


# GPT-2 in its published layout

transformers = pytest.importorskip("transformers", reason="the rival is not installed")
tokenizers = pytest.importorskip("tokenizers")
LETTERS = ["<|endoftext|>", "Ġ", ",", ".", *"abcdefghijklmnopqrstuvwxyzT"]
WHOLE = [*(f"Ġ{word}" for word in "was were judges late the".split()), "The"]
MERGES = list(
    dict.fromkeys((word[: n - 1], word[n - 1]) for word in WHOLE for n in range(2, len(word) + 1))
)
SPELLED = [*LETTERS, *map("".join, MERGES)]


def tokenizer(folder):
    """Return a byte-pair encoding like GPT-2's of a few words; Ġjudge is a step to Ġjudges."""
    built = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {word: index for index, word in enumerate(SPELLED)}, MERGES, fuse_unk=False
        )
    )
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.save(str(folder / "tokenizer.json"))


def gpt2(folder, **changes):
    """Save a small random Hugging Face GPT-2 with their own method."""
    size = {
        "n_layer": 3,
        "n_embd": 48,
        "n_head": 4,
        "vocab_size": len(SPELLED),
        "n_positions": 40,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**{**size, **changes}, attn_implementation="eager")
    ).eval()
    for name, named_parameter in model.named_parameters():
        torch.nn.init.normal_(
            named_parameter, mean=float("ln" in name and "weight" in name), std=0.2
        )
    model.save_pretrained(folder)
    tokenizer(folder)
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"n_inner": 100},
        {"scale_attn_weights": False},
        {"n_layer": 1, "n_head": 1},
        {"layer_norm_epsilon": 0.01},
    ],
)
def test_gpt2_equals_hugging_face(tmp_path, changes):
    theirs = gpt2(tmp_path, **changes)
    ids = torch.randint(0, len(SPELLED), (2, 40), generator=torch.Generator().manual_seed(1))
    ours = files.from_folder(tmp_path)
    with torch.inference_mode():
        expected = theirs(ids, output_attentions=True, output_hidden_states=True)
        with trace() as record:
            logits = ours.model(ids)
    torch.testing.assert_close(logits, expected.logits, rtol=1e-4, atol=1e-4)
    for actual, attention in zip(record["pattern"], expected.attentions):
        torch.testing.assert_close(actual, attention, rtol=1e-4, atol=1e-4)
    for actual, hidden in zip(record["resid_pre"], expected.hidden_states):
        torch.testing.assert_close(actual, hidden, rtol=1e-4, atol=1e-4)
    assert ours.longest == 40


def test_ablations_on_gpt2_match_hugging_face(tmp_path):
    """The reference zeroes a head's rows of W_O, or a sub-layer's output by a hook."""
    theirs = gpt2(tmp_path)
    ids = torch.randint(0, len(SPELLED), (2, 12))
    ours = files.from_folder(tmp_path)
    for cut in list_cuts(ours.config):
        block = theirs.transformer.h[cut.layer]
        hooks = []
        weights = None
        if cut.part == "head":
            weights = block.attn.c_proj.weight.detach().clone()
            with torch.no_grad():
                block.attn.c_proj.weight[12 * cut.head : 12 * (cut.head + 1)] = 0
        if cut.part in ("attention", "layer"):
            hooks.append(
                block.attn.register_forward_hook(lambda m, i, o: (torch.zeros_like(o[0]), *o[1:]))
            )
        if cut.part in ("ffn", "layer"):
            hooks.append(block.mlp.register_forward_hook(lambda m, i, o: torch.zeros_like(o)))
        with torch.inference_mode(), trace(Lesion((cut,)), sites=()):
            actual = ours.model(ids)
        with torch.inference_mode():
            torch.testing.assert_close(
                actual, theirs(ids).logits, rtol=1e-4, atol=1e-4, msg=cut.name
            )
        for hook in hooks:
            hook.remove()
        if weights is not None:
            with torch.no_grad():
                block.attn.c_proj.weight.copy_(weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "mish"}, "activation_function is “mish”"),
        ({"layer_norm_epsilon": 0}, "norm_eps is 0"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"n_embd": 50}, "describes an unsupported model"),
        (
            {"n_layer": 10**9},
            "n_layer is 1000000000; it must be a whole number from 1 to 1,000,000",
        ),
        ({"n_layer": 4}, "lacks h.3.attn.c_attn.weight"),
        ({"n_positions": 41}, "wpe.weight is 40 × 48"),
        ({"vocab_size": 30}, "has token IDs up to 51"),
    ],
)
def test_gpt2_with_wrong_configuration_is_refused(tmp_path, change, message):
    gpt2(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=message):
        files.from_folder(tmp_path)


def test_gpt2_without_tokenizer_is_refused(tmp_path):
    gpt2(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(CheckpointError, match="tokenizer.json: model is None; GPT-2's is BPE"):
        files.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match="tokenizer.json is missing"):
        files.from_folder(tmp_path)


# GPT-2 as other programs save it

IDS = torch.randint(0, len(SPELLED), (2, 40), generator=torch.Generator().manual_seed(1))


def equals(folder, theirs) -> Opened:
    """Open a folder and compare its logits with a Hugging Face model's."""
    ours = files.from_folder(folder)
    with torch.inference_mode():
        torch.testing.assert_close(ours.model(IDS), theirs(IDS).logits, rtol=1e-4, atol=1e-4)
    return ours


def with_own_head(folder):
    """Save a GPT-2 with separate input and output embeddings."""
    theirs = gpt2(folder, tie_word_embeddings=False)
    assert "lm_head.weight" in safetensors.torch.load_file(folder / "model.safetensors")
    assert not torch.equal(theirs.lm_head.weight, theirs.transformer.wte.weight)
    return theirs


@pytest.mark.parametrize("tie_word_embeddings", [True, False])
def test_gpt2_with_an_own_output_embedding_equals_hugging_face(tmp_path, tie_word_embeddings):
    """Hugging Face follows the stored tensors, even if config.json says that they are tied."""
    theirs = with_own_head(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"tie_word_embeddings": tie_word_embeddings})
    )
    ours = equals(tmp_path, theirs)
    equals(tmp_path, transformers.GPT2LMHeadModel.from_pretrained(tmp_path))
    assert not ours.config.tied and ours.parameters == sum(
        parameter.numel() for parameter in theirs.parameters()
    )


@pytest.mark.parametrize(
    "prefix",
    [
        "_orig_mod.transformer.",
        "_orig_mod.",
        "module.transformer.",
        "module.",
        "transformer._orig_mod.",
        "_fsdp_wrapped_module.transformer.",
    ],
)
def test_gpt2_saved_in_a_wrapper_equals_hugging_face(tmp_path, prefix):
    theirs = gpt2(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors = {prefix + name.removeprefix("transformer."): x for name, x in tensors.items()}
    path.write_bytes(safetensors.torch.save(tensors))
    equals(tmp_path, theirs)


TEXT = "The judges were late, the judge was late.<|endoftext|>The Judge"


def test_tokenizer_with_unknown_token_matches_hugging_face(tmp_path):
    theirs = gpt2(tmp_path)
    path = tmp_path / "tokenizer.json"
    document = json.loads(path.read_text())
    document["model"]["unk_token"] = "<|endoftext|>"
    path.write_text(json.dumps(document))
    ours = equals(tmp_path, theirs)
    text = TEXT + " é 7 ZZ"
    ids = ours.tokens.encode(text).ids
    assert ids == transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))(text)["input_ids"]
    assert ids.count(0) > 3


def test_gpt2_with_vocab_and_merges_matches_hugging_face(tmp_path):
    theirs = gpt2(tmp_path)
    tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).model.save(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    assert {"vocab.json", "merges.txt"} <= {file.name for file in tmp_path.iterdir()}
    ours = equals(tmp_path, theirs)
    spelled = transformers.GPT2TokenizerFast.from_pretrained(tmp_path)(TEXT)["input_ids"]
    assert ours.tokens.encode(TEXT).ids == spelled and 0 in spelled
    assert [ours.tokens.label(token) for token in spelled[:3]] == ["The", "␣judges", "␣were"]
    merges = (tmp_path / "merges.txt").read_text()
    (tmp_path / "merges.txt").write_bytes(
        b"\xef\xbb\xbf" + merges.replace("\n", "\r\n").encode()
    )  # as Windows saves it
    assert files.from_folder(tmp_path).tokens.encode(TEXT).ids == spelled
    sent = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert files.from_upload(sent).tokens.encode(TEXT).ids == spelled
    (tmp_path / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(CheckpointError, match="merges.txt is not UTF-8"):
        files.from_folder(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(
        CheckpointError, match="tokenizer.json is missing.*Add it, or vocab.json and merges.txt"
    ):
        files.from_folder(tmp_path)


def test_gpt2_in_several_files_equals_hugging_face(tmp_path):
    theirs = gpt2(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    equals(tmp_path, theirs)
    sent = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert files.from_upload(sent).key == files.from_folder(tmp_path).key


def change_settings(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder, change):
    path = folder / "model.safetensors"
    path.write_bytes(safetensors.torch.save(change(safetensors.torch.load_file(path))))


def test_gpt2_with_the_output_embedding_alone_equals_hugging_face(tmp_path):
    theirs = gpt2(tmp_path)
    change_weights(
        tmp_path,
        lambda tensors: {
            name.replace("transformer.wte", "lm_head"): x for name, x in tensors.items()
        },
    )
    assert equals(tmp_path, theirs).config.tied


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (
            "lm_head.weight",
            (
                "has no lm_head.weight, but config.json has tie_word_embeddings false. Save the"
                " model with"
            ),
        ),
        ("transformer.wte.weight", "lacks wte.weight"),
    ],
)
def test_gpt2_without_one_of_two_embeddings_is_refused(tmp_path, missing, message):
    with_own_head(tmp_path)
    change_weights(
        tmp_path, lambda tensors: {name: x for name, x in tensors.items() if name != missing}
    )
    with pytest.raises(CheckpointError, match=message):
        files.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "ends"),
    [([50, 3], (50, 3)), ([0, 99, "x", True], (0,)), (7, (7,)), ([], ()), (None, ())],
)
def test_end_tokens_are_known(tmp_path, settings, ends):
    theirs = gpt2(tmp_path)
    change_settings(tmp_path, eos_token_id=settings)
    assert equals(tmp_path, theirs).ends == ends


def test_gpt2_with_infinite_mask_buffers_equals_hugging_face(tmp_path):
    theirs = gpt2(tmp_path)
    masks = {
        f"transformer.h.{layer}.attn.masked_bias": torch.tensor(-torch.inf) for layer in range(3)
    }
    masks |= {
        f"transformer.h.{layer}.attn.bias": torch.ones(1, 1, 40, 40, dtype=torch.bool)
        for layer in range(3)
    }
    change_weights(tmp_path, lambda tensors: {**tensors, **masks})
    equals(tmp_path, theirs)


def test_added_tokens_beyond_vocabulary_are_skipped_and_noted(tmp_path):
    theirs = gpt2(tmp_path)
    path = tmp_path / "tokenizer.json"
    added = [
        {"id": 0, "content": "<|endoftext|>", "special": True},
        {"id": len(SPELLED), "content": "[PAD]", "special": True},
    ]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    path.write_text(
        json.dumps(
            json.loads(path.read_text()) | {"added_tokens": [{**flags, **entry} for entry in added]}
        )
    )
    ours = equals(tmp_path, theirs)
    assert (
        ours.tokens.encode(TEXT).ids
        == transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))(TEXT)["input_ids"]
    )
    assert all(token < len(SPELLED) for token in ours.tokens.encode("the [PAD] judge").ids)
    (note,) = ours.notes
    assert note.startswith("tokenizer.json adds “[PAD]”, for which the model has no weights")


def test_gpt2_of_whose_files_one_is_missing_is_refused(tmp_path):
    theirs = gpt2(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="100KB")
    second = sorted(tmp_path.glob("model-*"))[1]
    second.unlink()
    with pytest.raises(
        CheckpointError, match=rf"{second.name} is missing: the weights are in \d files; choose all"
    ):
        files.from_folder(tmp_path)
