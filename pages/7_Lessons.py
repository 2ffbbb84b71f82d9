"""Lessons: a question, a prediction, an experiment, an explanation."""

from core.teaching.lessons.language import phrases
from ui.kit.page import head, notice, page
from ui.kit.pages import LESSONS
from ui.lessons.context import LessonsContext, LessonsLook
from ui.lessons.progress import keep
from ui.lessons.spoken import languages, spoken

with page(LESSONS):
    (look,), notes = LESSONS.settings(LessonsLook)
    words = phrases(look.language)
    titles = {name: words.get(f"view_{name}", "") for name in LESSONS.views}
    head(LESSONS, [LESSONS.tabs(titles), languages(words["language"], look.language)])
    notice(*notes)
    LESSONS.open_view(LessonsContext(look))
    keep()  # behind what is seen, as parts that take no room but that between them
    spoken(look.language)
