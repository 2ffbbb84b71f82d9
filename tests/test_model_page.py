"""The page "Trained model" without a browser: every view, every control at its ends, every bad link and file; never a traceback."""

import gc
import json
import pickle

import pytest
import torch
from scipy import stats
from streamlit.testing.v1 import AppTest

from core.checkpoints import Opened, family, files, own
from core.experiments.trained import comparison, contributions, knockout, tables
from core.model.config import Config
from core.model.knockout import cuts, mode
from core.model.transformer import Transformer
from core.settings.wording import number
from core.tasks import task
from tests import holm, pages
from tests.pages import button, link, setting, tell, texts, words
from tests.test_page import fine, told
from ui.trained import view as views
from ui.trained.controls import opening_call

PAGE = "pages/5_Trained_model.py"
SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
READER = ".".join(map(str, SHIPPED.about["reader"]))


def opened(page=PAGE, **params):
    return pages.opened(page, **params)


@pytest.mark.parametrize("how", mode)
def test_the_page_says_from_which_token_on_means_are_shared(how):
    app = fine(opened(taken="knockout", out="1.ffn", mode=how, texts="64"))
    lengths = sorted(knockout.bench(SHIPPED, 64).questions.lengths.tolist())
    assert lengths[-8] < lengths[-1]
    said = f"Tokens from number {lengths[-8] + 1} on share one mean: fewer than 8 texts are that long."
    assert (said in texts(app)) == (how == "mean")


@pytest.mark.parametrize("name", [name for name in comparison.compared if not comparison.compared[name].split])
def test_trained_without_says_what_its_table_counts_and_shows_every_row(name):
    app = fine(opened(taken="without", compared=name))
    rows = comparison.summary(comparison.read(), name)
    assert comparison.told(rows, name) in texts(app)
    assert len(rows) >= 2 * len(rows.member.unique()) - 3  # all but those that would need other weights


@pytest.mark.parametrize("part", comparison.removed)
def test_trained_without_compares_a_part_at_every_distance(part):
    app = fine(opened(taken="without", compared="distance", part=part))
    rows = comparison.by_distance(comparison.read(), part)
    said = texts(app)
    assert comparison.told_by_distance(rows) in said and f"each on {rows.n.min()} to {rows.n.max()} sentences." in said
    assert f"{family.label(part)}: does it matter how far" in said
    assert words(app, "part") == [family.label(each) for each in comparison.removed]
    (spec,) = app.get("vega_lite_chart")
    drawn = json.loads(spec.proto.spec)
    ends = {"baseline", comparison.TRAINED} | ({comparison.CUT} if comparison.CUT in set(rows.line) else set())
    dashed = next(
        layer["encoding"]["strokeDash"]["scale"] for layer in drawn["layer"] if "strokeDash" in layer["encoding"]
    )
    assert set(dashed["domain"]) == ends and len(set(map(tuple, dashed["range"]))) == len(ends)


def test_one_of_the_family_is_opened_by_one_choice_and_its_script_opens_it():
    app = fine(opened(taken="without"))
    app = fine(tell(app, "open_member", "family/norm-none.0"))
    assert setting(app, "model") == "family/norm-none.0" and link(app)["model"] == "family/norm-none.0"
    assert link(app).get("taken", "attention") == "attention"
    assert opening_call("family/norm-none.0") == 'family.opened("norm-none", 0)'


def test_it_opens_on_the_head_that_reads_the_subject():
    app = fine(opened())
    said = texts(app)
    assert f"Head {READER}" in said and "held-out sentences" in said
    best = tables.readings(knockout.bench(SHIPPED))[0]
    assert [best.layer + 1, best.head + 1] == SHIPPED.about["reader"]
    assert f"**{best.verb.mean:.2f}**" in said and f"**{best.before.mean:.2f}**" in said
    assert best.verb.mean >= 0.6
    assert "who" in setting(app, "prompt") and "“was” puts" in said and "“defendant”" in said


def test_removing_that_head_says_how_much_worse_it_gets_and_who_took_over():
    app = fine(button(opened(), "remove_head").click().run())
    assert setting(app, "out") == READER and setting(app, "taken") == "knockout"
    said = texts(app)
    bench = knockout.bench(SHIPPED)
    (cut,) = [cut for cut in cuts(SHIPPED.config) if cut.write() == READER]
    row = tables.told(bench.effect((cut,), "zero"), bench.baseline).set_index("effect").loc["accuracy"]
    assert f"{-100 * row.change:.1f}" in said and "95 % interval" in said and "256 texts" in said
    assert "Did another part take over?" in said
    back = fine(button(fine(opened(out=READER)), "remove_head").click().run())
    assert setting(back, "out") == ""


@pytest.mark.parametrize("out", [READER, "1.attention", "1.ffn", "1.2", "2.1~2.2", "1.ffn~2.4", "2.ffn"])
def test_whether_another_part_took_over_is_told_as_its_numbers_are(out):
    """From what the parts add, with SciPy's t-test and Holm's method by its definition."""
    bench, names = knockout.bench(SHIPPED), [part.name for part in contributions.parts(SHIPPED.model)]
    made = tuple(cut for cut in cuts(SHIPPED.config) if cut.write() in out.split("~"))
    before, after = contributions.of_bench(bench), contributions.of_bench(bench, made)
    later = [names.index(name) for name in contributions.takeover(bench, made, "zero").name] if out != "2.ffn" else []
    change = [(after[at] - before[at]).mean().item() for at in later]
    chances = holm.corrected([stats.ttest_rel(after[at], before[at]).pvalue for at in later]) if later else []
    rise = [bool(each > 0 and p < 0.05) for each, p in zip(change, chances)]
    fall = [bool(each < 0 and p < 0.05) for each, p in zip(change, chances)]
    said = texts(fine(opened(taken="knockout", out=out))).replace("\\", "")
    assert ("No part that comes after the cut is shown to add more" in said) == (bool(later) and not any(rise))
    if not later:
        assert "None could: no part comes after the cut" in said
    elif not any(rise) and any(fall):
        at = later[min(range(len(later)), key=change.__getitem__)]
        now = f"{number(after[at].mean().item())} instead of {number(before[at].mean().item())}."
        many = f"{sum(fall)} of {len(later)} add{'s' * (sum(fall) == 1)} less; the greatest fall is that of {names[at]}: {now}"
        assert (many if len(later) > 1 else f"{names[at]} adds less: {now}") in said
    else:
        assert " less; the greatest fall" not in said and "adds less:" not in said


@pytest.mark.parametrize("out", ["", "1.ffn"])
def test_who_decides_is_told_with_its_share_of_the_whole(out):
    """The part that adds most, and the whole from the answers themselves: not from what the parts add up to."""
    bench = knockout.bench(SHIPPED)
    made = tuple(cut for cut in cuts(SHIPPED.config) if cut.write() == out)
    adds = contributions.of_bench(bench, made).mean(1).tolist()
    names = [part.name for part in contributions.parts(SHIPPED.model)]
    whole = bench.effect(made, "zero").values["difference"].mean().item()
    most = max(range(len(adds)), key=lambda at: abs(adds[at]))
    said = texts(fine(opened(taken="credit", out=out)))
    assert f"Logit difference right − wrong (was or were), {number(whole)} on average" in said
    assert 0 < adds[most] <= whole
    assert f"{names[most]} adds {number(adds[most])} ({number(100 * adds[most] / whole)} % of it)." in said
    assert f"All parts add up to {number(whole)}." in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "xylophone",
        "one two three",
        "was",
        "the " * 400,
        "<script>alert(1)</script> $x$ *b*",
        "👩‍👩‍👧 שלום",
        "\x00",
    ],
)
@pytest.mark.parametrize("view", views)
def test_every_text_shows_literally_or_is_told(view, text):
    app = fine(opened(taken=view, prompt=text, out=READER))
    assert not app.error or "no word" in told(app)


# Other models


def bring(app, **sent) -> AppTest:
    """Upload files and press Open."""
    at = app.file_uploader[0]
    at.set_value([(name, data, "application/octet-stream") for name, data in sent.items()])
    return fine(button(app, "model_open").click().run())


def small(**changes) -> dict[str, bytes]:
    made = Transformer(Config(**{"d_model": 16, "n_heads": 2, "mask": "causal", **changes}), task["reverse"].vocabulary)
    return own.write(made, "mine", "reverse")


def test_where_there_is_nothing_to_open_it_is_said():
    app = bring(fine(opened()))
    assert "There is nothing to open yet" in told(app) and setting(app, "model") == files.SHIPPED
    assert "nothing to open" not in told(bring(app, **small()))


def test_a_model_that_is_brought_along_is_opened_and_seen_by_nobody_else():
    app = bring(fine(opened(out=READER)), **small())
    assert setting(app, "model") == "mine" and setting(app, "out") == ""
    assert f"{files.from_upload(small()).parameters:,} parameters" in texts(app)
    other = fine(opened(model="mine"))
    assert "model is “mine”" in told(other) and setting(other, "model") == files.SHIPPED


def test_under_a_soft_cap_the_headline_is_the_difference_that_the_parts_add_up_to():
    """The shipped weights under a cap: the same sum of parts, and smaller logits."""
    config = SHIPPED.config.replace(logit_cap=3.0)
    model = Transformer(config, SHIPPED.model.vocabulary)
    model.load_state_dict(SHIPPED.model.state_dict())
    app = bring(fine(opened(taken="credit")), **own.write(model, "capped", "sentences"))
    said = texts(app)
    whole = knockout.bench(SHIPPED).baseline.values["difference"].mean().item()
    capped = (
        knockout.bench(Opened("capped", model, SHIPPED.tokens, "sentences")).baseline.values["difference"].mean().item()
    )
    assert capped < 0.9 * whole
    assert f"(was or were), {number(whole)} on average, before the soft-cap of 3 (after it {number(capped)})" in said
    assert f"All parts add up to {number(whole)}." in said


def test_a_visitor_keeps_no_more_models_than_there_is_room_for(monkeypatch):
    app = fine(opened())
    for seed in range(6):
        app = bring(app, **small(seed=seed))
    assert len(app.session_state["_models"]) == 4 and setting(app, "model") in app.session_state["_models"]
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    gc.collect()  # visitors of other tests, who would count among all
    for seed in (8, 9):  # each takes more than half of it
        app = bring(app, **small(d_model=112, seed=seed))
    assert len(app.session_state["_models"]) == 1 and setting(app, "model") == next(iter(app.session_state["_models"]))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({**small(), "model.safetensors": pickle.dumps({})}, "is no complete safetensors file"),
        ({"model.safetensors": small()["model.safetensors"]}, "config.json is missing"),
        ({**small(), "model.safetensors": small()["model.safetensors"][:-9]}, "is no complete safetensors file"),
        ({"notes.txt": b"hello"}, "no safetensors file"),
        ({"pytorch_model.bin": b"\x80\x02"}, "is a pickle"),
        ({"model.zip": b"nothing"}, "is a zip archive: unpack it"),
    ],
)
def test_a_file_that_is_no_model_is_refused_and_nothing_is_lost(sent, why):
    app = bring(fine(opened(out=READER, prompt="the judges were late .")), **sent)
    assert why in told(app)
    assert setting(app, "model") == files.SHIPPED and setting(app, "out") == READER
    assert setting(app, "prompt") == "the judges were late ."


def test_visitors_of_a_public_server_can_have_nothing_downloaded(monkeypatch):
    assert any(each.key == "model_hub" for each in fine(opened()).text_input)
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    assert not any(each.key == "model_hub" for each in fine(opened()).text_input)


def test_a_folder_of_models_is_offered(tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir()
    for name, data in small().items():
        (tmp_path / "ours" / name).write_bytes(data)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path))
    assert list(files.folders()) == ["legal", "broken", "ours"]
    app = fine(opened(model="ours"))
    assert not told(app) and "reverse" in texts(app)
    assert "broken, which cannot be opened" in told(fine(opened(model="broken")))


@pytest.mark.parametrize("view", views)
def test_the_script_of_every_view(view, monkeypatch):
    taken = []
    monkeypatch.setattr("ui.kit.takeaway.offer", lambda page, script, *more: taken.append(script()))
    fine(opened(taken=view, out=READER, mode="mean"))
    (made,) = taken
    assert compile(made.python(), "script", "exec") and (view == "without" or f'CUTS = "{READER}"' in made.python())
    wanted = {"knockout": "effects", "credit": "contributions", "sweep": "sweep", "words": "words", "without": "family"}
    assert made.tables[0].name == wanted.get(view, "readings")


@pytest.mark.slow
def test_the_shipped_model_is_what_its_readme_says():
    """At every distance at least 0.98 right; one head that puts at least 0.6 of the verb's attention on its subject."""
    size = sum(each.stat().st_size for each in (files.ROOT / files.SHIPPED).iterdir())
    assert size < 5_000_000
    bench = knockout.bench(SHIPPED, 2048)
    table = tables.by_distance(bench.baseline, bench.questions)
    assert table.accuracy.min() >= 0.98 and len(table) > 10
    best = tables.readings(bench)[0]
    assert best.verb.low >= 0.6 and best.before.low >= 0.6
    written = (files.ROOT / files.SHIPPED / "README.md").read_text()
    assert f"{SHIPPED.parameters:,} parameters" in written and f"| {READER} |" in written
    settings_ = json.loads((files.ROOT / files.SHIPPED / "config.json").read_text())
    assert settings_["format"] == "ablation-lab" and torch.isfinite(SHIPPED.model.embed).all()
