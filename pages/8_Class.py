"""A class: students predict on their own devices, the teacher asks, the projector shows."""

from core.teaching.lessons.language import language
from ui.kit.page import head, notice, page
from ui.kit.pages import CLASS
from ui.kit.panel.control import choice
from ui.lessons.classroom.context import ClassContext, ClassLook

with page(CLASS):
    (look,), notes = CLASS.settings(ClassLook)
    names = list(language)
    languages = choice("Language", "language", look.language, names, [language.label(each) for each in names])
    head(CLASS, beside_title=[languages] if look.shown != "projector" else [])
    notice(*notes)
    CLASS.open_view(ClassContext(look))
