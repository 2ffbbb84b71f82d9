"""The pages: what each is called, where it is, and its views. The menu, the titles and every link between pages read it here.

A page says which one it is by its name in this table: `with page(DEPTH): …`.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.settings.menu import Menu
from ui.kit import address, jobs
from ui.kit.panel.control import Control, tabs
from ui.kit.panel.menu import draw_menu, name_in_address
from ui.kit.rights import take_key
from ui.kit.store import kinds_of, session


@dataclass(frozen=True)
class Page:
    key: str  # of its settings in a session; its folder is ui/<key>, with a dot within that of another page
    path: str  # of its file, as Streamlit is told it
    name: str
    icon: str
    about: str  # what it does, in a line
    parameter: str = ""  # of its links: which view is open

    @property
    def views(self) -> Menu:
        """Its menu of views. Loaded when it is asked for, so that no page waits for the views of another."""
        return importlib.import_module(f"ui.{self.key}").view

    @property
    def name_in_address(self) -> str:
        """What the address of this page ends with; nothing for the start page."""
        return name_in_address(self.path)

    def settings(self, *kinds) -> tuple[list, list[str]]:
        """Return one instance of each class of settings, and what had to be changed; then draw the menu.

        The link counts when the page is opened, and later changes come from the browser (ui/kit/store.py).
        """
        kinds_of[self.key] = kinds
        here = session()
        here.open(self.key, address.read_link(), address.is_back())
        chosen, notes = here.settings(kinds)
        self._menu()
        return chosen, [*take_key(), *notes]

    def open_with(self, kinds: tuple, link: dict[str, str]):
        """Open this page with these settings, whatever its address says."""
        kinds_of[self.key] = kinds
        session().open(self.key, link, is_back=False)

    def _menu(self):
        """The links to all pages, and what goes on elsewhere."""
        with st.sidebar:
            draw_menu(PAGES, self)
            if self is not TRAINING:
                jobs.elsewhere()

    def tabs(self, titles: Mapping[str, str] | None = None) -> Control:
        """The row of buttons that says which view is open. titles: of views, where they are not called as everywhere."""
        limits = session().limits
        left = limits.views_of(self.key) if limits else ()
        return tabs("View", self.views, self.parameter, left=left, titles=titles or {})

    def open_view(self, context):
        """Draw the view that is open. context: what the views of this page are handed, with what is looked at as its `look`."""
        self.views[getattr(context.look, self.parameter)](context)


START = Page(
    "start", "app.py", "Start", ":material/home:", "What can be done, and what each part was measured to be for."
)
ONE_BLOCK = Page(
    "block", "pages/1_One_block.py", "One block", ":material/view_agenda:",
    "One pass through a block, trained or random, step by step.", "view",
)  # fmt: skip
DEPTH = Page(
    "depth", "pages/2_Depth.py", "Depth", ":material/layers:", "The same block again and again, or a stack.", "show"
)
TRAINING = Page(
    "training", "pages/3_Training.py", "Training", ":material/model_training:",
    "With and without a part, live, several seeds.", "trained",
)  # fmt: skip
STUDIES = Page(
    "studies", "pages/4_Studies.py", "Studies", ":material/lab_research:",
    "Hundreds of trainings that run by themselves.", "shown",
)  # fmt: skip
TRAINED_MODEL = Page(
    "trained", "pages/5_Trained_model.py", "Trained model", ":material/neurology:",
    "A small language model, taken apart.", "taken",
)  # fmt: skip
CLAIMS = Page(
    "claims", "pages/6_Claims.py", "Claims", ":material/fact_check:",
    "What papers say, and whether it is so here.", "shown",
)  # fmt: skip
LESSONS = Page(
    "lessons",
    "pages/7_Lessons.py",
    "Lessons",
    ":material/school:",
    "Predict, see, explain: thirteen questions.",
    "shown",
)
CLASS = Page(
    "lessons.classroom",
    "pages/8_Class.py",
    "Class",
    ":material/groups:",
    "Predict together, on your own devices.",
    "shown",
)
PAGES = (START, ONE_BLOCK, DEPTH, TRAINING, STUDIES, TRAINED_MODEL, CLAIMS, LESSONS, CLASS)  # in the order of the menu
