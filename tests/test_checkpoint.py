"""Models as files: what is written is read back to the last bit; GPT-2 equals Hugging Face's; whatever else is refused in words."""

import io
import json
import pickle
import random
import zipfile

import pytest
import safetensors.torch
import torch

from core.checkpoints import CheckpointError, files, own
from core.checkpoints.tensors import File
from core.model.config import Config
from core.model.knockout import Lesion, cuts
from core.model.parts import MENUS
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimit
from core.tasks import task
from core.train import Training, chunk, start

WORDS = ("<pad>", "the", "judge", "was", "late", ".")
PARTS = [(field, name) for field, menu in MENUS.items() for name in menu]


def model(**changes) -> Transformer:
    return Transformer(Config(d_model=16, n_heads=2, n_layers=2, mask="causal", **changes), WORDS)


def opened(written: dict[str, bytes]):
    return files.opened([File(name, data=data) for name, data in written.items()], "")


@pytest.mark.parametrize(
    ("field", "name"), [*PARTS, ("tied", True), ("bias", False), ("ffn", False), ("attention", False)]
)
def test_what_is_written_is_read_back_to_the_last_bit(field, name):
    made = model(**{field: name} if field != "mask" else {})
    read = opened(own.write(made, "a model", seed=3))
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    assert torch.equal(read.model(ids), made(ids))
    assert read.config == made.config and read.model.vocabulary == WORDS
    assert read.about["seed"] == 3 and read.name == "a model"


def test_a_training_is_saved_as_far_as_it_came(tmp_path):
    state, _ = chunk(start(task["copy"].config(), Training(task="copy", steps=5), 1), 0.0)
    for name, data in own.write_trained(state, "copy", 0.5).items():
        (tmp_path / name).write_bytes(data)
    read = files.from_folder(tmp_path)
    direct = own.of_training(state, "copy")
    ids = torch.arange(1, 9)[None]
    assert torch.equal(read.model(ids), direct.model(ids))
    assert read.task == "copy" and read.about["step"] == state.step and read.about["training"]["steps"] == 5
    assert read.key == direct.key


def test_a_zip_is_the_files_in_it():
    written, packed = own.write(model(), "zipped"), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in written.items():
            archive.writestr(f"folder/{name}", data)
        archive.writestr("folder/evil.pkl", b"nothing that anybody opens")
    assert files.from_upload({"it.zip": packed.getvalue()}).name == "zipped"


class Bomb:
    """A pickle that would tell on whoever opens it."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def torch_archive() -> bytes:
    packed = io.BytesIO()
    torch.save(model().state_dict(), packed)
    return packed.getvalue()


def spoiled(**changes) -> dict[str, bytes]:
    written = own.write(model(), "spoiled")
    return {**written, **{name.replace("_", "."): data for name, data in changes.items()}}


def with_settings(change) -> dict[str, bytes]:
    written = own.write(model(), "spoiled")
    settings = json.loads(written[own.SETTINGS])
    change(settings)
    return {**written, own.SETTINGS: json.dumps(settings).encode()}


def with_tensors(change) -> dict[str, bytes]:
    written = own.write(model(), "spoiled")
    tensors = safetensors.torch.load(written[own.WEIGHTS])
    change(tensors)
    return {**written, own.WEIGHTS: safetensors.torch.save(tensors)}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (spoiled(model_safetensors=pickle.dumps(Bomb(), protocol=2)), "is a pickle"),
        (spoiled(model_safetensors=pickle.dumps(Bomb(), protocol=5)), "is a pickle"),
        (spoiled(model_safetensors=torch_archive()), "zip archive"),
        (spoiled(model_safetensors=b"GGUF" + bytes(100)), "GGUF"),
        (spoiled(model_safetensors=b""), "is no safetensors file"),
        (spoiled(model_safetensors=b"hello, I am text and long enough to be looked at"), "is no safetensors file"),
        (spoiled(model_safetensors=own.write(model(), "x")[own.WEIGHTS][:-100]), "is cut short"),
        (spoiled(model_safetensors=own.write(model(), "x")[own.WEIGHTS][:60]), "is cut short"),
        (spoiled(config_json=b"{"), "is no JSON"),
        (spoiled(config_json=b"[1]"), "holds no JSON object"),
        (spoiled(config_json=b"{}"), "says neither"),
        (spoiled(config_json=b'{"model_type": "llama"}'), "'llama'"),
        (with_tensors(lambda t: t.pop("embed")), "lacks embed"),
        (with_tensors(lambda t: t.update(more=torch.zeros(2))), "holds more"),
        (with_tensors(lambda t: t.update({"blocks.1.attn.out.weight": torch.zeros(16, 15)})), "blocks.1.attn.out.weight is 16 × 15"),
        (with_tensors(lambda t: t["embed"].fill_(float("nan"))), "embed holds numbers that are infinite"),
        (with_settings(lambda s: s.update(version=2)), "version is 2"),
        (with_settings(lambda s: s.pop("config")), "no object named config"),
        (with_settings(lambda s: s["config"].update(n_heads=3)), "n_heads is 3"),
        (with_settings(lambda s: s["config"].update(colour="red")), "“colour”"),
        (with_settings(lambda s: s["config"].update(norm="BatchNorm")), "BatchNorm"),
        (with_settings(lambda s: s.update(vocabulary=["a", "a"])), "vocabulary"),
        (with_settings(lambda s: s.update(vocabulary="words")), "vocabulary"),
        (with_settings(lambda s: s.update(task="chess")), "task is “chess”"),
        (with_settings(lambda s: s.update(task="copy")), "not all in the vocabulary"),
        ({own.WEIGHTS: own.write(model(), "x")[own.WEIGHTS]}, "config.json is missing"),
        ({own.SETTINGS: own.write(model(), "x")[own.SETTINGS]}, "no safetensors file"),
        ({"pytorch_model.bin": pickle.dumps(Bomb())}, "is a pickle"),
        ({"x.zip": b"PK\x03\x04 no archive"}, "no safetensors file"),
        ({}, "no safetensors file"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused_by_name_and_not_executed(written, told):
    with pytest.raises(CheckpointError, match=told.replace("(", r"\(")):
        opened(written)


@pytest.mark.parametrize("data", [b"PK\x03\x04 no archive", b"", b"x" * 50])
def test_a_broken_zip_is_refused(data):
    with pytest.raises(CheckpointError, match="no zip archive"):
        files.from_upload({"model.zip": data})


def test_bytes_that_are_changed_at_random_are_read_or_refused_in_words():
    written, chance = own.write(model(), "x"), random.Random(0)
    for _ in range(300):
        name = chance.choice(list(written))
        data = bytearray(written[name])
        for _ in range(chance.choice([1, 1, 4, 40])):
            data[chance.randrange(min(len(data), chance.choice([64, 2000, len(data)])))] = chance.randrange(256)
        try:
            opened({**written, name: bytes(data)})
        except (CheckpointError, MemoryLimit):
            pass


def test_what_is_too_large_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    with pytest.raises(MemoryLimit, match="ABLATION_MAX_MB"):
        opened(with_settings(lambda s: s["config"].update(d_model=512, n_heads=2, d_ff=2048, d_head=256)))
    header = json.dumps({"x": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 4]}}).encode()
    with pytest.raises(MemoryLimit, match="model.safetensors"):
        opened(spoiled(model_safetensors=len(header).to_bytes(8, "little") + header + bytes(4)))


# GPT-2 in its published layout

transformers = pytest.importorskip("transformers", reason="the rival is not installed")
tokenizers = pytest.importorskip("tokenizers")
LETTERS = ["<|endoftext|>", "Ġ", ",", ".", *"abcdefghijklmnopqrstuvwxyzT"]
WHOLE = [*(f"Ġ{word}" for word in "was were judges late the".split()), "The"]
MERGES = list(dict.fromkeys((word[: n - 1], word[n - 1]) for word in WHOLE for n in range(2, len(word) + 1)))
SPELLED = [*LETTERS, *map("".join, MERGES)]


def tokenizer(folder):
    """Byte-pair encoding, as GPT-2's, of a few words; Ġjudge is on the way to Ġjudges."""
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE({word: at for at, word in enumerate(SPELLED)}, MERGES, fuse_unk=False)
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(folder / "tokenizer.json"))


def gpt2(folder, **changes):
    """A small random GPT-2 of Hugging Face's, saved as they save it."""
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
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**{**size, **changes}, attn_implementation="eager")
    ).eval()
    for name, each in made.named_parameters():
        torch.nn.init.normal_(each, mean=float("ln" in name and "weight" in name), std=0.2)
    made.save_pretrained(folder)
    tokenizer(folder)
    return made


@pytest.mark.parametrize(
    "changes",
    [{}, {"activation_function": "relu"}, {"n_inner": 100}, {"scale_attn_weights": False}, {"n_layer": 1, "n_head": 1}],
)
def test_gpt2_equals_hugging_face(tmp_path, changes):
    theirs, ids = (
        gpt2(tmp_path, **changes),
        torch.randint(0, len(SPELLED), (2, 40), generator=torch.Generator().manual_seed(1)),
    )
    ours = files.from_folder(tmp_path)
    with torch.inference_mode():
        wanted = theirs(ids, output_attentions=True, output_hidden_states=True)
        with trace() as seen:
            logits = ours.model(ids)
    torch.testing.assert_close(logits, wanted.logits, rtol=1e-4, atol=1e-4)
    for found, attention in zip(seen["pattern"], wanted.attentions):
        torch.testing.assert_close(found, attention, rtol=1e-4, atol=1e-4)
    for found, hidden in zip(seen["resid_pre"], wanted.hidden_states):
        torch.testing.assert_close(found, hidden, rtol=1e-4, atol=1e-4)
    assert ours.longest == 40


def test_every_knock_out_works_on_gpt2_as_on_hugging_face(tmp_path):
    """A head's rows of W_O set to zero over there; a sub-layer's output set to zero by a hook."""
    theirs, ids = gpt2(tmp_path), torch.randint(0, len(SPELLED), (2, 12))
    ours = files.from_folder(tmp_path)
    for cut in cuts(ours.config):
        block, hooks, kept = theirs.transformer.h[cut.layer], [], None
        if cut.part == "head":
            kept = block.attn.c_proj.weight.detach().clone()
            with torch.no_grad():
                block.attn.c_proj.weight[12 * cut.head : 12 * (cut.head + 1)] = 0
        if cut.part in ("attention", "layer"):
            hooks.append(block.attn.register_forward_hook(lambda m, i, o: (torch.zeros_like(o[0]), *o[1:])))
        if cut.part in ("ffn", "layer"):
            hooks.append(block.mlp.register_forward_hook(lambda m, i, o: torch.zeros_like(o)))
        with torch.inference_mode(), trace(Lesion((cut,)), sites=()):
            found = ours.model(ids)
        with torch.inference_mode():
            torch.testing.assert_close(found, theirs(ids).logits, rtol=1e-4, atol=1e-4, msg=cut.name)
        for hook in hooks:
            hook.remove()
        if kept is not None:
            with torch.no_grad():
                block.attn.c_proj.weight.copy_(kept)


def test_other_names_of_the_same_tensors_are_known(tmp_path):
    """With the prefix "transformer.", the mask's buffers and the tied head, as some published files have them; in float16."""
    theirs = gpt2(tmp_path)
    tensors = {f"transformer.{name}": x.half() for name, x in theirs.transformer.state_dict().items()}
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 40, 40)
    tensors["lm_head.weight"] = theirs.lm_head.weight.detach().half().clone()
    (tmp_path / "model.safetensors").write_bytes(safetensors.torch.save(tensors))
    ours, ids = files.from_folder(tmp_path), torch.arange(20)[None]
    with torch.inference_mode():
        torch.testing.assert_close(ours.model(ids), theirs(ids).logits, rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"activation_function": "mish"}, "activation_function is “mish”"),
        ({"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"n_embd": 50}, "describes no model"),
        ({"n_embd": -1}, "n_embd is -1; it must be a whole number from 1 to 1,000,000"),
        ({"n_layer": 10**9}, "n_layer is 1000000000; it must be a whole number from 1 to 1,000,000"),
        ({"n_layer": 4}, "lacks h.3.ln_1.weight"),
        ({"n_positions": 41}, "wpe.weight is 40 × 48"),
        ({"vocab_size": 30}, "has tokens up to number"),
    ],
)  # fmt: skip
def test_a_gpt2_that_is_not_what_its_configuration_says_is_refused(tmp_path, change, told):
    gpt2(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=told):
        files.from_folder(tmp_path)


def test_a_gpt2_without_its_tokenizer_is_refused(tmp_path):
    gpt2(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(CheckpointError, match="tokenizer.json is no tokenizer"):
        files.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match="tokenizer.json is missing"):
        files.from_folder(tmp_path)


def test_gpt2_is_asked_for_legal_sentences_in_its_own_tokens(tmp_path):
    gpt2(tmp_path)
    read = files.from_folder(tmp_path).tokens.encode("The judge was late.")
    assert [SPELLED[token] for token in read.ids] == ["The", "Ġjudge", "Ġwas", "Ġlate", "."]
    assert read.labels == ["The", "␣judge", "␣was", "␣late", "."]
