"""Lessons: a question, a prediction, an experiment, an explanation."""

from core.teaching.lessons.language import language
from ui.kit.page import head, notice, page
from ui.kit.pages import LESSONS
from ui.kit.panel.control import choice
from ui.lessons.context import LessonsContext, LessonsLook
from ui.lessons.progress import keep

with page(LESSONS):
    (look,), notes = LESSONS.settings(LessonsLook)
    names = list(language)
    languages = choice("Language", "language", look.language, names, [language.label(each) for each in names])
    head(LESSONS, [LESSONS.tabs(), languages] if len(names) > 1 else [LESSONS.tabs()])
    notice(*notes)
    keep()
    LESSONS.open_view(LessonsContext(look))
