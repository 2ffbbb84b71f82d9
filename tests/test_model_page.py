"""The page "Trained model": every view, range end and invalid link or file; no traceback."""

import gc
import json
import pickle

import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.checkpoints import files, native
from core.checkpoints.opened import Opened
from core.experiments.trained import contributions, knockout, tables
from core.model.config import Config
from core.model.knockout import list_cuts
from core.model.transformer import Transformer
from core.settings.wording import number
from core.tasks import task
from tests import pages
from tests.pages import button, link, move_control, press, setting, texts
from tests.test_page import fine, told
from ui.trained import view as views
from ui.trained.controls import opening_call

PAGE = "pages/5_Trained_model.py"
SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
READER = ".".join(map(str, SHIPPED.about["reader"]))


def opened(page=PAGE, **params):
    return pages.opened(page, **params)


def test_family_member_opens_and_its_script_too():
    app = fine(opened(taken="without"))
    app = fine(move_control(app, "open_member", "family/norm-none.0"))
    assert (
        setting(app, "model") == "family/norm-none.0" and link(app)["model"] == "family/norm-none.0"
    )
    assert link(app).get("taken", "attention") == "attention"
    assert opening_call("family/norm-none.0") == 'family.open_member("norm-none", 0)'


def test_page_opens_on_head_that_reads_subject():
    app = fine(opened())
    text = texts(app)
    assert "L2H3" in text and "held-out sentences" in text
    best = tables.attention_to_subject(knockout.bench(SHIPPED))[0]
    assert [best.layer + 1, best.head + 1] == SHIPPED.about["reader"]
    assert f"**{best.verb.mean:.2f}**" in text and f"**{best.before.mean:.2f}**" in text
    assert best.verb.mean >= 0.6
    assert "who" in setting(app, "prompt") and "Here: was → defendant" in text


def test_the_prediction_is_beside_the_attention_of_the_ablated_model():
    baseline = texts(fine(opened()))
    ablated = texts(fine(opened(out=READER)))
    assert "After “clerks”, the top prediction is “was”" in baseline
    assert "After “clerks”:" in ablated and "“were” instead of “was”" in ablated


def test_removing_that_head_shows_loss_and_takeover():
    app = fine(press(opened(), "remove_head"))
    assert setting(app, "out") == READER and setting(app, "taken") == "knockout"
    text = texts(app)
    bench = knockout.bench(SHIPPED)
    (cut,) = [cut for cut in list_cuts(SHIPPED.config) if cut.write() == READER]
    row = (
        tables.tabulate_effects(bench.effect((cut,), "zero"), bench.baseline)
        .set_index("effect")
        .loc["accuracy"]
    )
    assert f"{-100 * row.change:.1f}" in text and "95 % CI" in text and "256 texts" in text
    assert "Compensation" in text
    back = fine(move_control(fine(opened(out=READER)), "cut_list", []))
    assert setting(back, "out") == ""
    both = fine(move_control(back, "cut_list", [READER, "1.ffn"]))
    assert setting(both, "out") == f"{READER}~1.ffn"
    assert setting(fine(press(both, "restore")), "out") == ""


@pytest.mark.parametrize("out", ["", "1.ffn"])
def test_largest_contribution_is_named_with_share(out):
    """The total effect comes from the answers themselves, not from the sum of the contributions."""
    bench = knockout.bench(SHIPPED)
    some_cuts = tuple(cut for cut in list_cuts(SHIPPED.config) if cut.write() == out)
    adds = contributions.bench_contributions(bench, some_cuts).mean(1).tolist()
    names = [part.name for part in contributions.list_parts(SHIPPED.model)]
    full = bench.effect(some_cuts, "zero").values["difference"].mean().item()
    limit = max(range(len(adds)), key=lambda index: abs(adds[index]))
    text = texts(fine(opened(taken="credit", out=out)))
    assert f"correct − wrong token (was vs. were), is {number(full)} on average" in text
    assert 0 < adds[limit] <= full
    assert (
        f"{names[limit]} with {number(adds[limit])} ({number(100 * adds[limit] / full)} % of the"
        " total)." in text
    )
    assert "It is the sum of all contributions" in text


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
def test_texts_show_literally_or_are_refused(view, text):
    app = fine(opened(taken=view, prompt=text, out=READER))
    assert not app.error or "vocabulary" in told(app)


def upload(app, **sent) -> AppTest:
    """Upload files and press Open."""
    index = app.file_uploader[0]
    index.set_value([(name, data, "application/octet-stream") for name, data in sent.items()])
    return fine(button(app, "model_open").click().run())


def small(**changes) -> dict[str, bytes]:
    model = Transformer(
        Config(**{"d_model": 16, "n_heads": 2, "mask": "causal", **changes}),
        task["reverse"].vocabulary,
    )
    return native.model_files(model, "mine", "reverse")


def test_uploaded_model_opens_for_its_session_only():
    app = upload(fine(opened(out=READER)), **small())
    assert setting(app, "model") == "mine" and setting(app, "out") == ""
    assert f"{files.from_upload(small()).parameters:,} parameters" in texts(app)
    other = fine(opened(model="mine"))
    assert "There is no model “mine”" in told(other) and setting(other, "model") == files.SHIPPED


def test_session_models_are_limited_by_memory(monkeypatch):
    app = fine(opened())
    for seed in range(6):
        app = upload(app, **small(seed=seed))
    assert (
        len(app.session_state["_models"]) == 4
        and setting(app, "model") in app.session_state["_models"]
    )
    monkeypatch.setenv("ABLATION_MAX_MB", "1")
    gc.collect()  # visitors of other tests, who would count among all
    for seed in (8, 9):  # each takes more than half of it
        app = upload(app, **small(d_model=112, seed=seed))
    assert len(app.session_state["_models"]) == 1 and setting(app, "model") == next(
        iter(app.session_state["_models"])
    )


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({**small(), "model.safetensors": pickle.dumps({})}, "is not a complete safetensors file"),
        ({"model.safetensors": small()["model.safetensors"]}, "config.json is missing"),
    ],
)
def test_file_without_model_is_refused_without_loss(sent, why):
    app = upload(fine(opened(out=READER, prompt="the judges were late .")), **sent)
    assert why in told(app)
    assert setting(app, "model") == files.SHIPPED and setting(app, "out") == READER
    assert setting(app, "prompt") == "the judges were late ."


def test_visitors_of_a_public_server_can_have_nothing_downloaded(monkeypatch):
    assert any(item.key == "model_hub" for item in fine(opened()).text_input)
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    assert not any(item.key == "model_hub" for item in fine(opened()).text_input)


def test_model_folder_is_offered(tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir()
    for name, data in small().items():
        (tmp_path / "ours" / name).write_bytes(data)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    monkeypatch.setenv("ABLATION_MODELS", str(tmp_path))
    assert list(files.model_folders()) == ["legal", "broken", "ours"]
    app = fine(opened(model="ours"))
    assert not told(app) and "Reverse" in texts(app)
    assert "broken, which cannot be opened" in told(fine(opened(model="broken")))
    assert str(tmp_path) not in opening_call("ours") and 'from_folder("FOLDER")' in opening_call(
        "ours"
    )


@pytest.mark.parametrize("view", views)
def test_views_have_scripts(view, monkeypatch):
    scripts = []
    monkeypatch.setattr(
        "ui.kit.takeaway.draw_export",
        lambda page, script, *rest_of_arguments: scripts.append(script()),
    )
    fine(opened(taken=view, out=READER, mode="mean"))
    (exported,) = scripts
    assert compile(exported.python(), "script", "exec") and (
        view == "without" or f'CUTS = "{READER}"' in exported.python()
    )
    expected = {
        "knockout": "effects",
        "credit": "contributions",
        "sweep": "sweep",
        "words": "words",
        "without": "family",
    }
    assert exported.tables[0].name == expected.get(view, "readings")


@pytest.mark.slow
def test_shipped_model_matches_its_readme():
    """Accuracy is at least 0.98 at every distance, and one head attends to the subject by 0.6.

    That head puts at least 0.6 of the verb's attention on its subject.
    """
    size = sum(file.stat().st_size for file in (files.ROOT / files.SHIPPED).iterdir())
    assert size < 5_000_000
    bench = knockout.bench(SHIPPED, 2048)
    table = tables.accuracy_by_distance(bench.baseline, bench.questions)
    assert table.accuracy.min() >= 0.98 and len(table) > 10
    best = tables.attention_to_subject(bench)[0]
    assert best.verb.low >= 0.6 and best.before.low >= 0.6
    written = (files.ROOT / files.SHIPPED / "README.md").read_text()
    assert f"{SHIPPED.parameters:,} parameters" in written and f"| {READER} |" in written
    settings_ = json.loads((files.ROOT / files.SHIPPED / "config.json").read_text())
    assert settings_["format"] == "ablation-lab" and torch.isfinite(SHIPPED.model.embed).all()


def test_headline_under_soft_cap_is_sum_of_contributions():
    """Shipped weights under a soft-cap have the same contributions and smaller logits."""
    model = Transformer(SHIPPED.config.replace(logit_cap=3.0), SHIPPED.model.vocabulary)
    model.load_state_dict(SHIPPED.model.state_dict())
    difference = knockout.bench(SHIPPED).baseline.values["difference"].mean().item()
    bench = knockout.bench(Opened("capped", model, SHIPPED.tokens, "sentences"))
    capped = bench.baseline.values["difference"].mean().item()
    text = texts(
        upload(fine(opened(taken="credit")), **native.model_files(model, "capped", "sentences"))
    )
    assert (
        f"(was vs. were), is {number(difference)} on average, before the soft-cap of 3 (after it"
        f" {number(capped)})" in text
    )
    assert capped < 0.9 * difference
