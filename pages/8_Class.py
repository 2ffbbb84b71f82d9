"""A class: students predict on their own devices, the teacher asks, the projector shows."""

from ui.kit.page import head, notice, page
from ui.kit.pages import CLASS
from ui.lessons.classroom.context import ClassContext, ClassLook
from ui.lessons.spoken import languages, spoken

with page(CLASS):
    (look,), notes = CLASS.settings(ClassLook)
    context = ClassContext(look)
    head(CLASS, beside_title=[languages(context.words["language"], look.language)] if look.shown != "projector" else [])
    notice(*notes)
    CLASS.open_view(context)
    spoken(look.language)  # behind what is seen, as a part that takes no room but that between them
