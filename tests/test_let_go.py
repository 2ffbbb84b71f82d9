"""Results of a session are freed once its page is drawn, and block nobody meanwhile."""

import gc

import pytest

from core.experiments.forward import Pass, _run
from tests.test_page import fine, opened
from ui.block.context import BlockContext
from ui.depth.context import DepthContext
from ui.kit.pages import DEPTH, ONE_BLOCK, TRAINED_MODEL
from ui.trained.context import TrainedContext

SHOWN = [
    *(
        (ONE_BLOCK, {"view": view, "weights": "random", "variants": "norm-none"})
        for view in ONE_BLOCK.views
    ),
    (ONE_BLOCK, {"weights": "random", "variants": "norm-none", "beside": "norm-none"}),
    *(
        (DEPTH, {"show": show, "passes": "3", "variants": "norm-none"})
        for show in ("statistics", "attention", "play")
    ),
    *((TRAINED_MODEL, {"taken": view}) for view in ("attention", "words", "layers", "knockout")),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page, params",
    SHOWN,
    ids=lambda value: value.key if hasattr(value, "key") else "-".join(value.values()),
)
def test_drawn_page_holds_no_inputs(page, params):
    app = fine(opened(page.path, **params))
    gc.collect()
    objects = [
        get_object
        for get_object in gc.get_objects()
        if isinstance(get_object, BlockContext | DepthContext | TrainedContext)
    ]
    assert not objects and app.session_state  # the visitor is still there


def test_session_keeps_no_pass():
    app = fine(
        opened(
            ONE_BLOCK.path,
            weights="random",
            d_model="48",
            text="the dog bites",
            variants="norm-none",
        )
    )
    gc.collect()
    cached_ids = {id(value) for value, _ in _run.cache.entries.values()}
    assert not [
        get_object
        for get_object in gc.get_objects()
        if isinstance(get_object, Pass)
        and get_object.config.d_model == 48
        and id(get_object) not in cached_ids
    ]
    assert app.session_state
