"""Table of pages, with their names, files and views, for the menu, titles and links.

A page is drawn inside `with page(DEPTH): …`, with its entry in this table.
"""

import importlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from core.settings.menu import Menu
from ui.kit import address, jobs, limits, model_job
from ui.kit.panel.control import FOLDS, Control, among, tabs
from ui.kit.rights import take_key
from ui.kit.server.scripts import with_store
from ui.kit.store import allows, kinds_of, session, value

PANEL = Path(__file__).parent / "panel"
# One component, where links of Streamlit's are sent and laid out one by one with every move.
_menu = st.components.v2.component(
    "ablation_menu",
    html=(PANEL / "menu.html").read_text(),
    css=(PANEL / "layout.css").read_text(),
    js=with_store((PANEL / "menu.js").read_text(), css=(PANEL / "menu.css").read_text()),
    isolate_styles=False,
)


@dataclass(frozen=True)
class Page:
    """Page of the app.

    Args:
        key: Key of its settings in a session. Its code is ui/<key>; a dot leads into the folder of
            another page.
        path: Script of the page, relative to the repository.
        name: Name in the menu and as title.
        icon: Material icon in the menu.
        about: Description in one line.
        parameter: Parameter of its links that names the open view.
    """

    key: str
    path: str
    name: str
    icon: str
    about: str
    parameter: str = ""

    @property
    def views(self) -> Menu:
        """Menu of its views: name -> function that draws the view, imported on demand."""
        return importlib.import_module(f"ui.{self.key}").view

    @property
    def groups(self) -> dict[str, list[str]]:
        """Its tabs, label -> keys of views; empty if each view has its own tab."""
        listed = getattr(importlib.import_module(f"ui.{self.key}"), "TABS", {})
        return {label: keys.split() for label, keys in listed.items()}

    @property
    def name_in_address(self) -> str:
        """Last part of the page's URL; "" for the start page."""
        return re.sub(r"^\d+_", "", Path(self.path).stem) if self is not START else ""

    def settings(self, *kinds) -> tuple[list, list[str]]:
        """Open the page by its link, draw the menu; return settings, one per class, and notes.

        The link counts when the page is opened, and later changes come from the browser
        (ui/kit/store.py).
        """
        kinds_of[self.key] = kinds
        current = session()
        current.open(self.key, address.read_link(), address.is_back())
        chosen, notes = current.settings(kinds)
        model_job.store_finished()
        with st.sidebar:
            self._draw_menu()
            if self is not TRAINING:
                jobs.show_progress_elsewhere()
            if self is not ONE_BLOCK:
                model_job.show_model_elsewhere()
        return chosen, [*take_key(), *notes]

    def open_with(self, kinds: tuple, link: dict[str, str]):
        """Open a page with this link, not the address's; do nothing if the page is open already."""
        kinds_of[self.key] = kinds
        session().open(self.key, link, is_back=False)

    def _draw_menu(self):
        """Draw the links to all pages, each with the page's current settings."""
        links = [
            {
                "key": page.key,
                "name": page.name,
                "icon": page.icon.split("/")[1].strip(":"),
                "to": _address_of(page),
                "here": page is self,
            }
            for page in PAGES
            if allows(page.key)
        ]
        teacher_limits = session().limits
        if links and teacher_limits and teacher_limits.large:
            links[0]["large"] = True
        _menu(key="menu", data=links)

    def tabs(
        self, titles: Mapping[str, str] | None = None, without: Collection[str] = ()
    ) -> Control:
        """Return the tabs: one per group of views (a click opens its first), or per view.

        Args:
            titles: Labels that replace those of the menu, by view.
            without: Views that get no tab unless a link opens them.
        """
        underlined = {"look": "underlined"}
        open_view = value(self.parameter)
        if not self.groups:
            left = [view for view in self._views_left if view not in without or view == open_view]
            return (
                tabs("View", self.views, self.parameter, entries=left, titles=titles or {})
                | underlined
            )
        options = []
        for label, keys in self.groups.items():
            views = [view for view in keys if view in self._views_left]
            if views:
                view = open_view if open_view in views else views[0]
                options.append(
                    (view, label if len(views) > 1 or len(keys) == 1 else self.views.label(view))
                )
        return among("View", self.parameter, open_view, *zip(*options)) | underlined

    def views_of_tab(self) -> list[Control]:
        """Return [the control that selects a view in the open tab], or [] for one allowed view."""
        open_view = value(self.parameter)
        keys = next((keys for keys in self.groups.values() if open_view in keys), ())
        views = [view for view in keys if view in self._views_left]
        if len(views) < 2:
            return []
        labels = list(map(self.views.label, views))
        control = among("View", f"{self.parameter}_of_tab", open_view, views, labels)
        return [control | FOLDS | {"set": self.parameter}]

    @property
    def _views_left(self) -> list[str]:
        """Views that can be opened: all, or those that a teacher's link allows."""
        teacher_limits = session().limits
        left = teacher_limits.views_of(self.key) if teacher_limits else ()
        return [view for view in self.views if view in left] or list(self.views)

    def open_view(self, context):
        """Draw the view that `context.look` selects."""
        self.views[getattr(context.look, self.parameter)](context)


def link_params_of(page_key: str) -> dict[str, str]:
    """Return any page's link parameters (name -> text), from the session, without one-time ones."""
    once = {
        name
        for kind in kinds_of.get(page_key, ())
        for name, definition in kind.settings().items()
        if definition.once
    }
    return {name: text for name, text in session().link(page_key).items() if name not in once}


def _address_of(page: Page) -> str:
    """Return the relative address of a page with its current settings and limits."""
    name = page.name_in_address or "."
    params = link_params_of(page.key)
    teacher_limits = session().limits
    if teacher_limits:
        params[limits.PARAMETER] = teacher_limits.write()
    return f"{name}?{urlencode(params)}" if params else name


START = Page(
    "start",
    "app.py",
    "Start",
    ":material/home:",
    "Overview, and the measured effect of each component.",
)
ONE_BLOCK = Page(
    "block",
    "pages/1_One_block.py",
    "One block",
    ":material/view_agenda:",
    "One forward pass through a block, trained or random.",
    "view",
)
DEPTH = Page(
    "depth",
    "pages/2_Depth.py",
    "Depth",
    ":material/layers:",
    "One block applied repeatedly, or many stacked.",
    "show",
)
TRAINING = Page(
    "training",
    "pages/3_Training.py",
    "Training",
    ":material/model_training:",
    "Train with and without a component, over several seeds.",
    "trained",
)
STUDIES = Page(
    "studies",
    "pages/4_Studies.py",
    "Studies",
    ":material/lab_research:",
    "Many runs in the background: variants × tasks × seeds.",
    "shown",
)
TRAINED_MODEL = Page(
    "trained",
    "pages/5_Trained_model.py",
    "Trained model",
    ":material/neurology:",
    "Ablate a small language model and read its predictions.",
    "taken",
)
CLAIMS = Page(
    "claims",
    "pages/6_Claims.py",
    "Claims",
    ":material/fact_check:",
    "Published claims, tested at this scale.",
    "shown",
)
LESSONS = Page(
    "lessons",
    "pages/7_Lessons.py",
    "Lessons",
    ":material/school:",
    "Predict, then see the result: thirteen lessons.",
    "shown",
)
CLASS = Page(
    "lessons.classroom",
    "pages/8_Class.py",
    "Class",
    ":material/groups:",
    "Live voting with a whole class.",
    "shown",
)
PAGES = (
    START,
    ONE_BLOCK,
    DEPTH,
    TRAINING,
    STUDIES,
    TRAINED_MODEL,
    CLAIMS,
    LESSONS,
    CLASS,
)  # in the order of the menu
