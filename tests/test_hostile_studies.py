"""Studies that somebody pastes to do harm: refused in words, within seconds; and large ones that are none are read."""

import re
import tomllib
from pathlib import Path

import pytest

from core.study.file import mistakes, parse, read
from core.study.file.lines import counted, places
from core.study.plan import StudyError, told
from tests.limited import limited

ROOT = Path(__file__).parent.parent
HEAD = 'name = "x"\ntasks = ["copy"]\nseeds = 1\n'
AXIS = [round(0.001 * n, 3) for n in range(1, 100)]
DIGITS = "f" * 400_000

REFUSED = {
    "axes": (HEAD + "[axes]\n" + "".join(f"{name} = {AXIS}\n" for name in ("learning_rate", "dropout", "weight_decay")), "Line 3: these are 970,300 runs (1 task, 970,300 variants, 1 seed); a study may have 100,000."),
    "an empty axis": (HEAD + "[axes]\nnorm = []\n" + "".join(f"{name} = [1, 2, 3, 4, 5, 6, 7, 8]\n" for name in ("n_layers", "batch", "steps", "warmup", "n_heads", "n_kv_heads", "window", "d_ff")), "these are 16,777,217 runs"),
    "axes of two values": (HEAD + "[axes]\n" + "".join(f"x{n} = [1, 2]\n" for n in range(64)), "these are endlessly many runs (1 task, endlessly many variants, 1 seed)"),
    "variants": (HEAD + "[axes]\n" + "".join(f"{name} = {AXIS}\n" for name in ("learning_rate", "dropout")) + "n_heads = [1, 2, 4]", "Line 4: these are 29,404 trainings that differ in more than the seed (1 task, 29,404 variants); a study may have 20,000."),
    "variants that are fitted": (HEAD + 'equal = "parameters"\n[axes]\n' + "".join(f"{name} = {AXIS[:40]}\n" for name in ("learning_rate", "dropout")), "these are 1,601 trainings that differ in more than the seed and hold something equal (1 task, 1,601 variants); a study may have 1,000."),
    "seeds": (HEAD.replace("seeds = 1", "seeds = 10_000_000_000"), "10,000,000,000 runs (1 task, 1 variant, 10,000,000,000 seeds)"),
    "seeds of nothing": ('name = "x"\nseeds = 10_000_000_000', "Line 2: these are 10,000,000,000 runs"),
    "a number of digits": (HEAD.replace("seeds = 1", f"seeds = 0x{DIGITS}"), "endlessly many seeds"),
    "numbers of digits": (HEAD.replace("seeds = 1", f"seeds = [0x{DIGITS}]"), "Line 3: seeds is something too large to be shown"),
    "digits": (HEAD.replace("seeds = 1", f"seeds = {'9' * 5000}"), "a number of thousands of digits"),
    "keys of parts": (HEAD + "\n".join("a." * 5000 + f"b{n} = 1" for n in range(4)), "Line 4: a key has 5,001 parts joined by dots; in a study it may have 8."),
    "quoted parts": (HEAD + '"a.b" . ' * 5000 + "b = 1", "a key has 5,001 parts"),
    "a table of parts": (HEAD + "\n[" + "a." * 50_000 + "b]", "Line 5: a key has 50,001 parts"),
    "parts in a table": (HEAD + "base = {x = 1, " + "a." * 50_000 + "b = 1}", "a key has 50,001 parts"),
    "a key of signs": (HEAD + '"' + "=" * 200_000 + '" = 1', "is no key of a study"),
    "a string without end": (HEAD + '"' + '\\"' * 200_000, "This is not TOML: Unterminated string"),
    "curly quotes without end": (HEAD + "“a" * 100_000, "This is not TOML"),
    "curly quotes": ("‘a’" * 100_000, "This is not TOML"),
    "texts without end": (HEAD + '"""\\' * 100_000, "This is not TOML"),
    "lists in lists": (HEAD + "a = " + "[" * 100_000, "hundreds deep"),
    "lists": (HEAD.replace("1", "[" + "[]," * 90_000 + "]"), "Line 3: seeds is [[], [], "),
    "many tasks": (HEAD.replace('"copy"', '"a",' * 100_000), "100,000 trainings that differ in more than the seed (100,000 tasks, 1 variant)"),
    "tasks that are none": (HEAD.replace('"copy"', "\n" + ",\n".join(f'"{n}"' for n in range(19_000))), "tasks names “0”; it must be one of copy"),
    "a task many times": (HEAD.replace('"copy"', '"copy",' * 19_000), "tasks names “copy” twice"),
    "tasks that are one": ("name = 'x'\ntasks = [" + ", ".join(f'"t{n}"' for n in range(3000)) + "]\n" + "".join(f'[task.t{n}]\ntask = "copy"\n' for n in range(3000)), "baseline of “t1” is the same training as baseline of “t0”"),
    "settings that are none": (HEAD + "[base]\n" + "".join(f"learning_rat{n} = 1\n" for n in range(19_000)), "base.learning_rat0 is no setting"),
    "many keys": (HEAD + "a=1\n" * 60_000, "it has 60,003 keys; a study may have 50,000"),
    "many tables": (HEAD + "[[a]]\n" * 70_000, "“a” is no key of a study"),
    "values that are none": (HEAD + "[axes]\nnorm = " + str([str(n) for n in range(19_000)]), "Line 5: axes.norm is “0”; it must be one of"),
    "values of no setting": (HEAD + f"[axes]\ncolour = {list(range(19_000))}", "axes.colour is no setting"),
    "too large models": (HEAD + "[base]\nd_model = 1600\nn_layers = 100\n[variants]\n" + "".join(f'"v{n}" = {{learning_rate = {0.00001 * (n + 1)}}}\n' for n in range(3000)), "would need about"),
    "a name": (f'name = "{"x" * 400_000}"\ntasks = ["copy"]', "name has 400000 characters"),
    "a long key": (HEAD + f'"{"k" * 400_000}" = 1', "is no key of a study"),
    "a long task": (HEAD.replace("copy", "k" * 400_000), "tasks names “kkkk"),
    "a long variant": (HEAD + f'[variants]\n"{"k" * 400_000}" = {{norm = "none"}}', "a variant cannot be called “kkkk"),
    "a long value": (HEAD + f'[base]\nnorm = "{"k" * 400_000}"', "base.norm is “kkkk"),
    "a long link": (HEAD + '[variants]\nv = "' + "norm-x__" * 50_000 + '"', "norm is “x”"),
    "a long text": ("x" * 600_000, "a study may have 500,000 characters"),
    "a day that there is not": (HEAD + "question = 2024-02-31", "This is not TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_a_text_that_would_take_too_long_is_refused(text, words):
    found = limited(lambda: parse(text), seconds=20, megabytes=150)
    assert found.kind == "StudyError" and words in found.words, found
    assert found.words.replace("\n", "").isprintable() and found.words.count("\n") <= 100
    assert max(map(len, found.words.split("\n"))) < 1000


ALLOWED = {
    "variants": (HEAD + "[variants]\n" + "".join(f'"v{n}" = {{learning_rate = {0.5 + 0.00001 * n}}}\n' for n in range(9_999)), 10_000),
    "axes": (HEAD.replace("seeds = 1", "seeds = 5") + f"[axes]\nlearning_rate = {AXIS}\nn_heads = [1, 2, 4, 8]\nnorm = ['none', 'RMSNorm', 'LayerNorm']\n", 5 * 1188),
    "seeds": (HEAD.replace("1", "20_000"), 20_000),
    "named seeds": (HEAD.replace("1", str(list(range(20_000)))), 20_000),
    "a question with dots": (HEAD + 'question = "' + "a." * 20_000 + '"  # ' + "b." * 20_000, 1),
    "a question with lines": (HEAD + 'question = """\n"' + "=" * 100_000 + "\n[" + "a." * 50_000 + 'b]\n"""', 1),
}  # fmt: skip


def test_what_a_hundred_thousand_seeds_cost_is_said_in_seconds():
    found = limited(lambda: told(parse(HEAD.replace("seeds = 1", "seeds = 99_999")), 2), seconds=30, megabytes=300)
    assert found.kind == "" and "99,999 runs" in found.words, found


@pytest.mark.thorough
@pytest.mark.parametrize(("text", "many"), ALLOWED.values(), ids=ALLOWED)
def test_a_large_study_is_read_in_seconds(text, many):
    found = limited(lambda: len(parse(text).runs), seconds=20, megabytes=300)
    assert (found.kind, found.words) == ("", str(many)), found


def test_at_most_a_hundred_mistakes_are_told():
    with pytest.raises(StudyError) as caught:
        parse(HEAD + "[base]\n" + "".join(f"x{n} = 1\n" for n in range(300)))
    assert len(caught.value.problems) == mistakes.MOST_TOLD + 1


@pytest.mark.parametrize(
    ("text", "keys", "deepest", "line"),
    [
        ("", 0, 0, 1),
        ("a = 1", 1, 1, 1),
        ("a = 1\n b . c.'d.e' = 2 # f.g.h.i.j = 3", 2, 3, 2),
        ('a = "x.y.z = 1"\n[b.c."d.e"]\nf = {g.h = 1, i = 0.5}', 4, 3, 2),
        ('a = """\nb.c.d.e = 1\n"""\nf.g = 1', 2, 2, 4),
        ("a = '''\nb.c.d.e = 1\n'''", 1, 1, 1),
        ('a = "b\\"c.d.e.f = 1"', 1, 1, 1),
        ("a = [0.1, 0.2]", 1, 2, 1),
    ],
)
def test_keys_are_counted_and_what_stands_in_texts_is_not(text, keys, deepest, line):
    tomllib.loads(text)
    assert counted(text) == (keys, deepest, line)


def test_the_lines_of_the_studies_that_ship_are_those_of_their_keys():
    for path in sorted((ROOT / "studies").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        for key, line in places(text).items():
            assert re.search(rf"(?m)[\"'.\[ ]?{re.escape(key[-1])}[\"'\] ]", text.splitlines()[line - 1] + " "), (
                path,
                key,
            )


def test_a_file_is_not_read_further_than_a_study_can_be(tmp_path):
    path = tmp_path / "endless.toml"
    with path.open("wb") as opened:
        opened.truncate(8 << 30)
    found = limited(lambda: read(path), seconds=10, megabytes=100)
    assert found.kind == "StudyError" and "500,000 characters" in found.words
