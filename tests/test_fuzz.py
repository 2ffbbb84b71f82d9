"""Files and studies changed at random: each is read, or refused in words, soon and with little memory; nothing else comes of it."""

import json
import random
from pathlib import Path

import pytest

from core.checkpoints import CheckpointError, own
from core.checkpoints.tokens import Words
from core.experiments.trained import knockout, prompt, tables
from core.model.config import Config
from core.model.generate import Sampling
from core.model.knockout import cuts
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimit
from core.settings.setting import ConfigError
from core.study.file import parse
from core.study.plan import StudyError, told
from core.tasks import task
from scripts.legal_model import vocabulary
from tests.fuzz import bytes_changed, dumped, json_changed, written
from tests.limited import limited
from tests.test_checkpoint import gpt2, opened
from tests.test_hostile_files import spelling

STUDIES = sorted((Path(__file__).parent.parent / "studies").glob("*.toml"))
DOCUMENT = {
    "name": "x", "question": "why", "tasks": ["copy", "reverse"], "seeds": [1, 5], "device": "cpu", "dtype": "float32",
    "base": {"d_model": 16, "n_heads": 2}, "training": {"steps": 10, "learning_rate": 0.01}, "task": {"reverse": {"n_layers": 2}},
    "variants": {"a": {"norm": "none"}, "b": "n_heads-1"}, "axes": {"ffn": [True, False], "n_heads": [1, 2]},
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    """One of each kind: of a task, of legal sentences, GPT-2."""
    folder = tmp_path_factory.mktemp("gpt2")
    gpt2(folder)
    (folder / "tokenizer.json").write_text(json.dumps(spelling()))
    copy, legal = (
        Transformer(task["copy"].config(n_layers=1, d_model=16, n_heads=2), task["copy"].vocabulary),
        Transformer(Config(d_model=16, n_heads=2, n_layers=2, mask="causal", position="rope"), vocabulary()),
    )
    return {
        "copy": own.write(copy, "copy", "copy", training={"length": 8}, reader=[1, 2]),
        "legal": own.write(legal, "legal", "sentences", reader=[2, 1], deep={"a": [1, 2, {"b": 3}]}),
        "gpt2": {name: (folder / name).read_bytes() for name in ("config.json", "model.safetensors", "tokenizer.json")},
    }


def header_changed(data: bytes, chance: random.Random) -> bytes:
    end = 8 + int.from_bytes(data[:8], "little")
    header = dumped(json_changed(json.loads(data[8:end]), chance))
    return len(header).to_bytes(8, "little") + header + data[end:]


def changed(kind: str, models, chance: random.Random):
    """A call with what was changed in it."""
    if kind == "study":
        text = written(json_changed(DOCUMENT, chance))
        return lambda: planned(text)
    if kind == "text of a study":
        text = bytes_changed(chance.choice(STUDIES).read_bytes(), chance).decode("utf-8", "replace")
        return lambda: planned(text)
    sent = dict(models[chance.choice(["gpt2"] if kind == "tokenizer" else sorted(models))])
    name = {"configuration": "config.json", "tokenizer": "tokenizer.json", "header": "model.safetensors"}.get(kind)
    if kind == "header":
        sent[name] = header_changed(sent[name], chance)
    elif name:
        sent[name] = dumped(json_changed(json.loads(sent[name]), chance))
    else:
        name = chance.choice(sorted(sent))
        sent[name] = bytes_changed(sent[name], chance)
    return lambda: used(opened(sent))


def planned(text: str):
    study = parse(text)
    if study.runs:
        told(study, 2)


def used(model):
    """What a visitor may do with a model that was opened: every step of it may still be refused in words."""
    model.tokens.encode("the judge was late = \ud800 \x00 🦊")
    assert all(isinstance(model.tokens.label(token), str) for token in range(len(model.model.vocabulary)))
    assert model.name.isprintable()
    if isinstance(model.tokens, Words):
        again = opened(own.write(model.model, model.name, model.task, **model.about))
        assert (again.key, again.name) == (model.key, model.name)
    try:
        bench = knockout.bench(model, 8)
        read = prompt.read(model, "the judges were late .")
        prompt.look(bench, read)
        list(prompt.continuation(bench, read, 0, Sampling(words=3)))
        tables.told(bench.effect(cuts(model.config)[:1], "mean"), bench.baseline)
    except (ConfigError, MemoryLimit):
        pass


def batch(kind: str, models, first: int, many: int) -> tuple[int, int]:
    """-> (how many were read, how many refused). Raises what else came, with the number of its seed."""
    read = refused = 0
    for number in range(first, first + many):
        try:
            changed(kind, models, random.Random(number))()
            read += 1
        except (CheckpointError, MemoryLimit, StudyError) as error:
            refused += 1
            assert str(error).replace("\n", "").isprintable(), (number, str(error))
            assert isinstance(error, StudyError) or len(str(error)) < 1500, (number, str(error))
        except BaseException as error:
            raise AssertionError(f"{kind} {number}: {type(error).__name__}: {error}") from error
    return read, refused


KINDS = ("study", "text of a study", "configuration", "tokenizer", "header", "bytes")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_changed_at_random_is_read_or_refused_in_words(kind, models):
    check(kind, models, 150)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_of_them(kind, models):
    check(kind, models, 2000, seconds=900)


def check(kind: str, models, many: int, seconds: float = 60):
    found = limited(lambda: batch(kind, models, 0, many), seconds, megabytes=500)
    assert not found.kind, found
    read, refused = json.loads(f"[{found.words[1:-1]}]")
    assert read + refused == many and refused
