"""The menu of published blocks on One block and Training."""

import pytest

from core.model.config import Config
from core.model.published import list_choices, published
from core.model.variants import encode
from tests.pages import control, controls, link, move, move_control, offered, opened, setting
from ui.kit.limits import Limits

PAGES = ["pages/1_One_block.py", "pages/3_Training.py"]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", published)
def test_chosen_block_is_opened_and_its_choices_offered_first(page, name):
    app = move_control(opened(page), "published", name)
    assert not app.exception and not app.error
    on_training = page == PAGES[1]
    sizes = {size: setting(app, size) for size in ("d_model", "n_heads", "n_layers")}
    block = Config(**sizes | published[name].settings_at(Config(**sizes)))
    for field in published[name].settings:
        if field != "mask" or not on_training:
            assert setting(app, field) == getattr(block, field), field
    assert setting(app, "d_ff") == block.d_ff
    choices = [encode(change) for change in list_choices(name, block)]
    assert offered(app, "compared_with")[: len(choices)] == choices
    assert control(app, "published")["value"] == name
    notes = [caption.value for caption in app.caption]
    assert any(note.startswith(f"{published.label(name)}: ") for note in notes)


def test_block_opens_with_random_weights():
    app = move_control(opened(PAGES[0]), "published", "nanochat")
    assert link(app)["weights"] == "random"


@pytest.mark.parametrize("page", PAGES)
def test_other_settings_are_no_published_block(page):
    app = move_control(opened(page), "published", "qwen3")
    move(app, qk_norm=False).run()
    assert control(app, "published")["value"] == "default"
    assert not any("Qwen 3" in caption.value for caption in app.caption)
    move_control(app, "published", "gpt2")
    move_control(app, "published", "default")
    assert setting(app, "norm") == Config().norm


def test_link_that_frees_one_setting_has_no_menu():
    only = Limits(pages=("block",), moved=("text", "norm")).write()
    assert "published" not in controls(opened(PAGES[0], only=only))


def test_teacher_link_with_a_fixed_block_has_no_menu():
    only = Limits(pages=("block",), moved=("text",)).write()
    assert "published" not in controls(opened(PAGES[0], only=only))


def test_training_keeps_task_and_steps():
    app = opened(PAGES[1], task="sentences", steps="300")
    move_control(app, "published", "olmo2")
    assert setting(app, "task") == "sentences" and setting(app, "steps") == 300
