"""Lessons: a question, a prediction, an experiment, an explanation."""

from core.teaching.lessons.language import phrases
from ui.kit.page import draw_head, draw_notice, page
from ui.kit.pages import LESSONS
from ui.lessons import LessonsContext, LessonsLook, language_list, set_language
from ui.lessons.progress import sync_with_browser

with page(LESSONS):
    (look,), notes = LESSONS.settings(LessonsLook)
    words = phrases(look.language)
    if look.shown != "one":  # a lesson has a head of its own, which leads back
        titles = {name: words.get(f"view_{name}", "") for name in LESSONS.views}
        draw_head(
            LESSONS,
            [LESSONS.tabs(titles, without=["one"])],
            beside_title=[language_list(words["language"], look.language)],
        )
    draw_notice(*notes)
    LESSONS.open_view(LessonsContext(look))
    sync_with_browser()  # last, as parts that take no room but that between them
    set_language(look.language)
