"""A class: students predict on their own devices, the teacher asks, the projector shows."""

from ui.kit.page import head, notice, page
from ui.kit.pages import CLASS
from ui.lessons.classroom.context import ClassContext, ClassLook

with page(CLASS):
    (look,), notes = CLASS.settings(ClassLook)
    head(CLASS)
    notice(*notes)
    CLASS.open_view(ClassContext(look))
