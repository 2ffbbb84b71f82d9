"""Context of Depth: menus, look, and what views receive."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, Journey, travel
from core.experiments.depth.findings import describe_rounding
from core.export.script import Script
from core.export.scripts import make_depth_script, make_grid_script
from core.measure.stream_statistics import statistic
from core.model.config import Config
from core.model.variants import Pins, Variant
from core.settings.cache import LazyProperty
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.progress import report_as
from core.settings.setting import Settings, setting
from core.settings.wording import count
from ui.kit import pins
from ui.kit.page import literal
from ui.kit.store import session


def script(context: "DepthContext") -> Script:
    """Return the Python script that reproduces the open view."""
    how = (context.tokens, context.machine, context.depth)
    if context.look.show == "grid":
        return make_grid_script(context.baseline, context.axes, *how)
    return make_depth_script({variant.name: variant.config for variant in context.variants}, *how)


view: Menu[Any] = Menu("Views of depth")
matrices: Menu[Any] = Menu("Matrix")
orders: Menu[Any] = Menu("Order")


matrices.add("pattern", label="Attention", help="which token attends to which.")
matrices.add("alike", label="Similarity", help="cosine similarity between all token vectors.")
orders.add(
    "parts",
    label="Group by component",
    help="one cell per combination, with some components as rows and the others as columns.",
)
orders.add(
    "largest", label="Sort: high to low", help="all variants pass by pass, diverged ones on top."
)
orders.add(
    "smallest", label="Sort: low to high", help="all variants pass by pass, diverged ones last."
)


@dataclass(frozen=True)
class DepthLook(Settings):
    """View settings of Depth."""

    show: str = setting("statistics", "View", "View.", group="Look", menu=view)
    matrix: str = setting(
        "pattern",
        "Matrix",
        "Matrix shown at the first, middle and last pass.",
        group="Look",
        menu=matrices,
    )
    map_head: int = setting(
        0,
        "Head",
        "Attention of one head. 0 = mean over heads.",
        group="Look",
        low=0,
        high=64,
        step=1,
    )
    grid_statistic: str = setting(
        "rms", "Colour", "Statistic that colours the grid.", group="Look", menu=statistic
    )
    zoom: bool = setting(
        False, "Zoom axes to the data", "Off: axes show the natural range.", group="Look"
    )
    grid_order: str = setting(
        "parts", "Order", "Order of the grid's rows.", group="Look", menu=orders
    )


@dataclass(frozen=True)
class DepthContext:
    """Context of Depth's views; journeys are computed on request, the baseline first."""

    variants: list[Variant]
    tokens: tuple[str, ...]
    machine: Machine
    depth: Depth
    pins: Pins
    axes: Axes
    look: DepthLook

    @LazyProperty
    def journeys(self) -> dict[str, Journey]:
        """Journey of each variant by name (no attention), the baseline first; cached."""
        return self._travel_all(0)

    @LazyProperty
    def played(self) -> dict[str, Journey]:
        """Journey of each variant by name, with attention of all played passes; cached."""
        return self._travel_all(self.cells_per_pass)

    @property
    def cells_per_pass(self) -> int:
        """Number of attention weights of one application of the block, in the largest variant."""
        return max(
            v.config.n_heads * (len(self.tokens) + v.config.padding) ** 2 for v in self.variants
        )

    def _travel_all(self, cells_to_play: int) -> dict[str, Journey]:
        """Compute the journey of each variant by name, in order, and report progress after each.

        `cells_to_play`: attention weights per pass to record; 0 for none.
        """
        journeys = {}
        models = count(len(self.variants), "model")
        for done, variant in enumerate(self.variants):
            with report_as(done / len(self.variants), f"{variant.name}: {done} of {models}"):
                journeys[variant.name] = self.travel(variant.config, cells_to_play)
        return journeys

    def travel(self, config: Config, cells_to_play: int = 0) -> Journey:
        """Compute the journey of the page's tokens through a config's passes, with these settings.

        It is not cached. Rounding is not checked while a slider moves.

        Args:
            config: Settings of the model.
            cells_to_play: Attention weights per pass, if attention of all played passes is wanted;
                else 0.
        """
        return travel(
            config,
            self.tokens,
            self.machine,
            self.depth,
            cells_to_play,
            compare_precision=not session().dragged,
        )

    def draw_rounding_note(self, journeys: dict[str, Journey]):
        """Draw a caption on the pass after which rounding dominates, if there is one."""
        sentence = describe_rounding(journeys)
        if sentence:
            st.caption(f":material/warning: {literal(sentence)}")

    @property
    def baseline(self) -> Config:
        """Config of the baseline."""
        return self.variants[0].config

    @property
    def weights(self) -> str:
        """Sentence on the weights and seeds, for the captions of charts."""
        return pins.describe_weights(self.variants)
