"""Training a missing model on One block, and its file for every user of the server."""

import math
import time
from dataclasses import replace

import pytest
import torch

from core.checkpoints import family, trained_here
from core.checkpoints.family import BASELINE, SEEDS, TRAINING, WHOLE
from core.experiments.forward import forward
from core.experiments.trained import knockout
from core.experiments.weights import weights
from core.model.parts.init import generator
from core.model.text import DEFAULT_TEXT, split_words
from core.model.transformer import Transformer
from core.model.variants import apply
from core.tasks import task
from core.train import chunk, start
from tests.pages import button, link, move, opened, plain, setting, texts
from ui.kit.model_job import STARTED

PAGE = "pages/1_One_block.py"
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}
CONFIG = apply({**SMALL, "qk_norm": True}, BASELINE)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ABLATION_TRAINED", str(tmp_path))
    family._here.clear()
    yield tmp_path
    family._here.clear()


def trained_state(config=CONFIG, seed=0, steps=3):
    state = start(config, replace(TRAINING, steps=steps), seed)
    while not state.done:
        state, _ = chunk(state, 5.0)
    return state


def test_training_text_is_no_task_of_a_menu():
    assert TRAINING.task in task and TRAINING.task not in list(task)
    words = task[TRAINING.task].vocabulary
    assert words == family.vocabulary() and words[:-1] == task["sentences"].vocabulary


def test_training_equals_a_loop_of_plain_pytorch():
    state = trained_state(steps=60)
    model = Transformer(CONFIG, family.vocabulary())
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    data = generator(0, "legal.training")
    for step in range(1, 61):
        tokens, targets = task["legal"](data, 64)
        logits = model(tokens).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=-100)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        left = 0.5 * (1 + math.cos(math.pi * max(0, step - 50) / 10))
        optimiser.param_groups[0]["lr"] = 3e-3 * min(1, step / 50) * left
        optimiser.step()
    for name, x in model.state_dict().items():
        torch.testing.assert_close(x, state.model[name], rtol=1e-3, atol=1e-4, msg=name)


def test_stored_model_is_found_again_with_its_weights(own_folder):
    state = trained_state()
    member = family.member_of(CONFIG)
    assert weights["trained"].refused(CONFIG) == (
        "There is no model trained with d_model 16 and 2 heads and 1 layer and QK-norm."
    )
    family.save_trained(state)
    assert list(family.list_available())[:1] == [(member, 0)] and not weights["trained"].refused(
        CONFIG
    )
    opened_model = family.open_cached(member, 0)
    assert opened_model.config == CONFIG and opened_model.about["steps"] == 3
    assert all(
        torch.equal(x, state.model[name]) for name, x in opened_model.model.state_dict().items()
    )
    assert forward(CONFIG, split_words(DEFAULT_TEXT), kind="trained").kind == "trained"
    right = knockout.bench(opened_model, 256).baseline.correct
    share = 100 * right.double().mean().item()
    assert f"in {share:.1f} % of 256 held-out" in weights["trained"].measured(CONFIG)
    family._here.clear()  # as after a restart
    trained_here._read_member.cache_clear()
    assert (member, 0) in family.list_available()


def test_oldest_models_are_deleted_beyond_the_limit(own_folder, monkeypatch):
    monkeypatch.setenv("ABLATION_TRAINED_MB", "1")
    for seed in range(5):
        trained_here.save("n_layers-1", seed, bytes(300_000))
        time.sleep(0.02)
    left = [seed for seed in range(5) if trained_here.file_of("n_layers-1", seed).exists()]
    assert left == [2, 3, 4]


def test_damaged_file_is_no_model(own_folder):
    trained_here.file_of("n_layers-1", 0).write_bytes(b"nothing")
    assert trained_here.list_trained() == {}


def test_nearest_model_keeps_the_part_before_the_size():
    near = family.find_nearest(apply({"d_model": 96, "norm": "none"}, BASELINE).replace(seed=2))
    assert (near.norm, near.seed) == ("none", 2)
    assert family.find_nearest(BASELINE.replace(seed=9)) == BASELINE.replace(seed=max(SEEDS))
    assert family.find_nearest(BASELINE.replace(padding=3)) == BASELINE.replace(padding=3)


def test_page_trains_and_shows_missing_model(monkeypatch):
    monkeypatch.setattr(family, "TRAINING", replace(TRAINING, steps=40))
    app = opened(PAGE, **{name: str(value) for name, value in SMALL.items()}, qk_norm="on")
    assert not app.exception and not app.error
    assert setting(app, "qk_norm") and setting(app, "d_model") == 16
    shown = family.find_nearest(CONFIG)
    assert f"Shown: trained {'with' if family.member_of(shown) != WHOLE else ''}" in texts(app)
    app = button(app, "train_model").click().run()
    assert not app.exception
    finish(app)
    assert "There is no model" not in texts(app.run())
    assert (family.member_of(CONFIG), 0) in family.list_available()
    other = opened(PAGE, **link(app))
    assert "There is no model" not in texts(other)


def finish(app):
    """Wait until the model that this user trains is done."""
    job = app.session_state["session"].kept[STARTED].job
    end = time.monotonic() + 90
    while not job.done and time.monotonic() < end:
        time.sleep(0.2)
        job.poll()
    assert job.done and job.error is None


def test_training_goes_on_on_other_pages(monkeypatch):
    monkeypatch.setattr(family, "TRAINING", replace(TRAINING, steps=600))
    app = opened(PAGE, **{name: str(value) for name, value in SMALL.items()}, qk_norm="on")
    button(app, "train_model").click().run()
    job = app.session_state["session"].kept[STARTED].job
    app.switch_page("pages/2_Depth.py").run()
    job._polled = 0.0
    app.run()
    assert job.alive  # the page asks for it
    assert "Training d_model 16, 2 heads, 1 layer, + QK-norm: " in texts(app)
    finish(app)
    app.run()
    assert (family.member_of(CONFIG), 0) in family.list_available()
    (toast,) = app.toast
    assert plain(toast.value) == (
        "Trained with d_model 16 and 2 heads and 1 layer and QK-norm, seed 0: done. *Trained model*"
        " lists it."
    )
    assert "Training d_model 16" not in texts(app.run()) and not app.toast
    app.switch_page(PAGE).run()
    assert "There is no model" not in texts(app)


def test_training_goes_on_while_other_settings_are_shown(monkeypatch):
    monkeypatch.setattr(family, "TRAINING", replace(TRAINING, steps=601))  # not known yet
    app = opened(PAGE, **{name: str(value) for name, value in SMALL.items()}, qk_norm="on")
    button(app, "train_model").click().run()
    assert "Training: " in texts(app) and "Training d_model" not in texts(app)
    for changes in ({"weights": "random"}, {"weights": "trained"}, {"qk_norm": False}):
        move(app, **changes).run()
        assert "Training: " in texts(app) or "Training d_model 16, 2" in texts(app), changes
    assert "Training d_model 16, 2 heads, 1 layer, + QK-norm: " in texts(app)
    finish(app)
    app.run()
    assert (family.member_of(CONFIG), 0) in family.list_available()


def test_model_trained_here_is_listed_among_the_models():
    family.save_trained(trained_state(apply({"d_model": 16, "n_layers": 1}, BASELINE)))
    app = opened("pages/5_Trained_model.py")
    names = next(box for box in app.selectbox if box.label == "Model").options
    assert "Trained with d_model 16 and 1 layer, seed 0" in names


def test_model_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "1")
    app = opened(PAGE, qk_norm="on")
    app = button(app, "train_model").click().run()
    assert "at most 1 s are allowed" in app.warning[0].value
    assert setting(app, "qk_norm")


def test_whole_model_is_the_baseline_of_comparisons():
    app = opened(PAGE, seed="4", qk_norm="on", variants="norm-none")
    assert not app.exception and not app.error
    move(app, seed="1").run()
    assert not app.exception and not app.error
