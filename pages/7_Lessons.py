"""Lessons: a question, a prediction, an experiment, an explanation."""

from core.teaching.lessons.language import language, phrases
from ui.kit.page import head, notice, page
from ui.kit.pages import LESSONS
from ui.kit.panel.control import among, choice
from ui.lessons.context import LessonsContext, LessonsLook
from ui.lessons.progress import keep
from ui.lessons.spoken import spoken

with page(LESSONS):
    (look,), notes = LESSONS.settings(LessonsLook)
    words, names = phrases(look.language), list(language)
    languages = choice(words["language"], "language", look.language, names, [language.label(each) for each in names])
    titles = [words.get(f"view_{name}", LESSONS.views.label(name)) for name in LESSONS.views]
    views = among("View", "shown", look.shown, list(LESSONS.views), titles)
    head(LESSONS, [views, languages] if len(names) > 1 else [views])
    notice(*notes)
    LESSONS.open_view(LessonsContext(look))
    keep()  # behind what is seen, as parts that take no room but that between them
    spoken(look.language)
