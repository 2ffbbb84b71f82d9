"""Axes of the grid: which parts vary, which entries are chosen, and their form in a link."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.model.config import Config
from core.model.parts import MENUS
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import shorten, some_of

MOST = 1024  # variants in one grid
RESIDUALS = {
    "both": (True, True),
    "attention": (True, False),
    "ffn": (False, True),
    "none": (False, False),
}


@dataclass(frozen=True)
class Axis:
    """Part that varies in the grid, with its entries and its default.

    An axis of which nothing is chosen leaves the baseline as it is.
    """

    label: str
    entries: dict[str, dict[str, Any]]
    words: dict[str, str]
    first: tuple[str, ...] = ()


def _menu_axis(field: str, *first: str) -> Axis:
    """Return an axis with all entries of a menu; `first` are chosen by default."""
    menu = MENUS[field]
    definition = Config.settings()[field]
    words = {
        entry: f"no {definition.short}" if entry == "none" else menu.label(entry) for entry in menu
    }
    return Axis(definition.label, {entry: {field: entry} for entry in menu}, words, first)


def _switch_axis(field: str) -> Axis:
    """Return an axis with the entries on and off of a switch, neither chosen by default."""
    definition = Config.settings()[field]
    words = {"on": definition.short, "off": f"no {definition.short}"}
    return Axis(definition.label, {"on": {field: True}, "off": {field: False}}, words)


def _number_axis(
    field: str,
    *values: float,
    first: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
) -> Axis:
    """Return an axis with a number's values; without `words`, 0 is labelled "no …".

    Args:
        field: Name of the setting.
        *values: Its values.
        first: Entries that are chosen by default.
        words: Labels of the values, where those of the setting do not fit.
    """
    definition = Config.settings()[field]
    names = {definition.write(value): value for value in values}
    labels = words or tuple(
        definition.describe_change(value) if value else f"no {definition.short}" for value in values
    )
    entries = {name: {field: value} for name, value in names.items()}
    return Axis(definition.label, entries, dict(zip(names, labels)), first)


AXES = {  # at first (2 × 2 + 1) × 2 × 5 × 2 = 100 variants: without a norm there is no placement
    "norm": _menu_axis("norm", "LayerNorm", "RMSNorm", "none"),
    "placement": _menu_axis("placement", "pre", "post"),
    "residual": Axis(
        "Residual",
        {
            name: {"residual_attention": on_attention, "residual_ffn": other}
            for name, (on_attention, other) in RESIDUALS.items()
        },
        {
            "both": "residual",
            "attention": "residual around attention only",
            "ffn": "residual around FFN only",
            "none": "no residual",
        },
        ("both", "none"),
    ),
    "activation": _menu_axis("activation", "relu", "gelu", "silu", "swiglu", "identity"),
    "n_heads": _number_axis("n_heads", 1, 2, 4, 8, 16, first=("1", "4")),
    "position": _menu_axis("position"),
    "mask": _menu_axis("mask"),
    "scale": _switch_axis("scale"),
    "attention": _switch_axis("attention"),
    "ffn": _switch_axis("ffn"),
    "n_kv_heads": _number_axis("n_kv_heads", 1, 2, 4),
    "qk_norm": _switch_axis("qk_norm"),
    "score_cap": _number_axis("score_cap", 0.0, 2.0),
    "window": _number_axis("window", 0, 4),
    "global_every": _number_axis(
        "global_every", 0, 2, words=("no global layers", "global attention every 2 layers")
    ),
    "rope_share": _number_axis(
        "rope_share",
        0.25,
        0.5,
        1.0,
        words=(
            "RoPE on 25 % of dimensions",
            "RoPE on 50 % of dimensions",
            "RoPE on all dimensions",
        ),
    ),
    "nope_every": _number_axis("nope_every", 0, 2, words=("no NoPE layers", "NoPE every 2 layers")),
    "softmax": _menu_axis("softmax"),
    "gate": _switch_axis("gate"),
    "value_residual": _switch_axis("value_residual"),
    "parallel": _switch_axis("parallel"),
    "residual_scale": _menu_axis("residual_scale"),
    "skips": _switch_axis("skips"),
}


@dataclass(frozen=True)
class Axes(Settings):
    """Entries chosen for each axis of the grid.

    Raises ConfigError for unknown entries and for too many variants.
    """

    grid: str = setting(
        "",
        "Grid axes",
        "Entries of each axis that differs from the default, such as"
        " activation-relu+tanh__n_heads-1+2+4.",
        group="Grid",
    )

    def _check_together(self) -> None:
        """Normalise the grid's text in place; ConfigError for bad entries or too many variants.

        Raises:
            ConfigError: Unknown axes or entries, or too many variants. Its `instead` is the text
                of the valid ones.
        """
        valid = {}
        problems = []
        for part in filter(None, self.grid.split("__")):
            axis, _, entries = part.partition("-")
            try:
                valid[axis] = _read_entries(axis, entries)
            except ConfigError as error:
                problems.append(str(error))
        chosen = {
            axis: valid.get(axis, axis_settings.first) for axis, axis_settings in AXES.items()
        }
        size = count_variants(chosen)
        if size > MOST:
            raise ConfigError(
                "grid",
                f"grid has {size:,} variants; at most {MOST:,} are allowed. Select fewer entries.",
                "",
            )
        if problems:
            raise ConfigError("grid", some_of(problems), write_axes(chosen))
        object.__setattr__(self, "grid", write_axes(chosen))

    @property
    def chosen(self) -> dict[str, tuple[str, ...]]:
        """Keys of the entries chosen for each axis; () for an axis as in the baseline."""
        parts = dict(part.split("-", 1) for part in filter(None, self.grid.split("__")))
        return {
            axis: _read_entries(axis, parts[axis]) if axis in parts else default.first
            for axis, default in AXES.items()
        }


def _read_entries(axis: str, text: str) -> tuple[str, ...]:
    """Parse entries "pre+post" of an axis, in its own order; ConfigError for unknown ones."""
    if axis not in AXES:
        raise ConfigError("grid", f"grid names {shorten(axis)}; its axes are {', '.join(AXES)}.")
    names = text.split("+") if text else []
    unknown = [entry for entry in names if entry not in AXES[axis].entries]
    if unknown:
        allowed = ", ".join(AXES[axis].entries)
        raise ConfigError("grid", f"grid: {axis} has no {shorten(unknown[0])}; it has {allowed}.")
    return tuple(entry for entry in AXES[axis].entries if entry in names)


def count_variants(chosen: dict[str, tuple[str, ...]]) -> int:
    """Count all combinations, invalid ones too; an axis without entries counts as one."""
    return math.prod(max(1, len(entries)) for entries in chosen.values())


def name_entries(axes: Iterable[str], entries: Iterable[str]) -> str:
    """Name a variant by its entries' labels, joined by " · "; "as in the baseline" without axes."""
    return (
        " · ".join(AXES[axis].words[entry] for axis, entry in zip(axes, entries))
        or "as in the baseline"
    )


def write_axes(chosen: dict[str, tuple[str, ...]]) -> str:
    """Return axes not at their default, in AXES's order, as text: "axis-a+b__axis-c"; or ""."""
    return "__".join(
        f"{axis}-{'+'.join(chosen[axis])}"
        for axis in AXES
        if set(chosen[axis]) != set(AXES[axis].first)
    )
