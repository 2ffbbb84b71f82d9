"""Class: students predict on their own devices, the teacher asks, the projector shows."""

from ui.kit.page import draw_head, draw_notice, page
from ui.kit.pages import CLASS
from ui.lessons import language_list, set_language
from ui.lessons.classroom import ClassContext, ClassLook

with page(CLASS):
    (look,), notes = CLASS.settings(ClassLook)
    context = ClassContext(look)
    if look.shown != "projector":  # a slide has a head of its own
        draw_head(CLASS, beside_title=[language_list(context.words["language"], look.language)])
    draw_notice(*notes)
    CLASS.open_view(context)
    set_language(look.language)  # last, as a part that takes no room but that between them
