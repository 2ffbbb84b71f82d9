"""Context of Studies: menu of views, look, and what views receive."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.study.database.store import Store
from core.study.shipped import name_in_links, shipped, study_of

NAMES = {name_in_links(key): key for key in shipped}  # of built-in studies, as they are offered
view: Menu[Any] = Menu("Views of a study")
NOT_STORED = (
    "The runs of this built-in study are not stored here. Click a matrix cell to see its curves in"
    " Training, or run it yourself: press *New study* and choose it as the template."
)


@dataclass(frozen=True)
class StudyLook(Settings):
    """View settings of Studies."""

    study: str = setting("", "Study", "Name of the study; empty: the newest.", group="Look")
    shown: str = setting("matrix", "View", "What to look at.", group="Look", menu=view)
    of_task: str = setting("", "Task", "Task of the curves; empty: the first.", group="Look")
    curves_of: str = setting(
        "",
        "Variants",
        "Variants whose curves are drawn; empty: the four that end lowest.",
        group="Look",
    )
    only_tasks: str = setting(
        "", "Tasks", "Those that tables and the matrix show; empty: all.", group="Look"
    )
    only_variants: str = setting(
        "", "Variants", "Those that tables and the matrix show; empty: all.", group="Look"
    )
    only_states: str = setting("", "State", "States of the listed runs; empty: all.", group="Look")
    against: str = setting(
        "", "Against", "Study to compare with; empty: the newest other one.", group="Look"
    )


@dataclass(frozen=True)
class StudyContext:
    """Context of the views of Studies: a study as it is now, and the look."""

    store: Store | None  # none: it ships, with its summary alone
    number: int
    name: str
    question: str
    source: str
    summary: pd.DataFrame  # core.study.tables.summary_table
    others: tuple[str, ...]  # names of the other studies
    look: StudyLook

    @property
    def version(self) -> tuple[str, int, str]:
        """Key of the study in caches; it changes with the results."""
        if self.store is None:
            return self.name, 0, str(study_of(self.key).stat().st_mtime_ns)
        return str(self.store.url), self.number, self.store.stamp(self.number)

    @property
    def key(self) -> str:
        """Key of a built-in study."""
        return NAMES[self.name]
