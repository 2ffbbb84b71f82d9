"""Settings -> Python scripts that print the numbers which the app shows, as CSV: of the pages "One block" and "Depth".

Each script comes in two flavours. "core" imports this repository's package and is short. "torch" needs nothing but
torch: it is core's own source, cut down to what the settings use (bundle/), and below it one of the experiments of
plain.py, which send one variant after the other through the model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from core.experiments.depth.axes import AXES, Axes
from core.experiments.depth.depth import Depth
from core.experiments.depth.grid import combine
from core.export.bundle.bundle import Bundle
from core.export.bundle.literals import literal, quoted
from core.export.forms import call_text, checked, core_script, settings_call, torch_script, values, variants_text
from core.export.plain import print_block, print_compared, print_depth, print_grid, print_heads
from core.export.templates import (
    BLOCK,
    COMPARED,
    CORE_BLOCK,
    CORE_COMPARED,
    CORE_DEPTH,
    CORE_GRID,
    CORE_HEADS,
    DEPTH,
    GRID,
    HEADS,
)
from core.model.config import Config
from core.model.transformer import Transformer
from core.model.variants import Variant
from core.settings.device import Machine

SETTINGS = ("TOKENS", "DEVICE", "DTYPE", "VARIANTS", "AXES", "ORDER", "SHOWN")  # names that a script gives itself


def block_script(
    flavour: str, config: Config, tokens: Iterable[str], machine: Machine, dropout: bool = False, kind: str = "random"
) -> str:
    """A script that prints the numbers of the page "One block": CSV sections stages, tokens, attention.

    tokens: strings, without padding. dropout: whether it acts. flavour: "core" or "torch", as everywhere here. kind: of weights,
    among core.experiments.weights; a script with torch alone has none but random ones.
    """
    if checked(flavour) == "core":
        return core_script(BLOCK, machine, CORE_BLOCK, CONFIG=_config(config), TOKENS=_tokens(tokens), HOW=_how(dropout, kind))  # fmt: skip
    bundle = Bundle([Transformer, print_block], values(config), SETTINGS)
    settings = [f"TOKENS = {_tokens(tokens)}"]
    call = f"print_block(Config(), TOKENS, DEVICE, DTYPE, dropout={dropout})"
    return torch_script(bundle, BLOCK, machine, [config], settings, call)


def compare_script(
    flavour: str,
    variants: Sequence[Variant],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    kind: str = "random",
) -> str:
    """A script that prints the table of the view "Compare": a CSV section compared, with a row for every variant.

    variants: core.model.variants.Variant, the baseline first.
    """
    named = {each.name: each.config for each in variants}
    given = variants[0].config, named, tokens, machine, dropout, kind
    return _of_variants(checked(flavour), COMPARED, CORE_COMPARED, print_compared, *given)


def heads_script(
    flavour: str,
    baseline: Config,
    variants: dict[str, Config],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool = False,
    kind: str = "random",
) -> str:
    """A script that prints the attention of the same model cut into other numbers of heads: CSV sections heads, attention.

    variants: name -> config, each told by what it changes in the baseline.
    """
    given = baseline, variants, tokens, machine, dropout, kind
    return _of_variants(checked(flavour), HEADS, CORE_HEADS, print_heads, *given)


def _of_variants(
    flavour: str,
    about: str,
    form: str,
    printing: Callable[..., None],
    baseline: Config,
    variants: dict[str, Config],
    tokens: Iterable[str],
    machine: Machine,
    dropout: bool,
    kind: str,
) -> str:
    """A script that sends the same tokens through several models. form: of the script with core; printing: the function of
    plain.py that the other one calls; variants: name -> config, each told by what it changes in the baseline."""
    if flavour == "core":
        return core_script(
            about,
            machine,
            form,
            CONFIG=_config(baseline),
            VARIANTS=variants_text(variants, baseline, "BASELINE.replace({})", "BASELINE"),
            TOKENS=_tokens(tokens),
            HOW=_how(dropout, kind),
        )
    bundle = Bundle([Transformer, printing], values(baseline, *variants.values()), SETTINGS)
    settings = [
        f"VARIANTS = {variants_text(variants, baseline, 'Config({})', 'Config()')}",
        f"TOKENS = {_tokens(tokens)}",
    ]
    call = f"{printing.__name__}(VARIANTS, TOKENS, DEVICE, DTYPE, dropout={dropout})"
    return torch_script(bundle, about, machine, [baseline], settings, call)


def depth_script(
    flavour: str, variants: Sequence[Variant], tokens: Iterable[str], machine: Machine, depth: Depth
) -> str:
    """A script that prints the numbers of the page "Depth": CSV sections statistics, gradients, weights, attention.

    variants: core.model.variants.Variant, the baseline first.
    """
    if checked(flavour) == "core":
        named = {each.name: each.config for each in variants}
        return core_script(
            DEPTH,
            machine,
            CORE_DEPTH,
            CONFIG=_config(variants[0].config),
            VARIANTS=variants_text(named, variants[0].config, "BASELINE.replace({})", "BASELINE"),
            TOKENS=_tokens(tokens),
            DEPTH=f"Depth(passes={depth.passes}, blocks={quoted(depth.blocks)})",
        )
    built = {each.name: depth.plan(each.config)[0] for each in variants}
    baseline = built[variants[0].name]
    bundle = Bundle([Transformer, print_depth], values(*built.values()), SETTINGS)
    settings = [
        f"VARIANTS = {variants_text(built, baseline, 'Config({})', 'Config()')}",
        f"TOKENS = {_tokens(tokens)}",
        f"ORDER = {_order(depth.plan(baseline)[1])}  # the blocks that the stream goes through",
        f"SHOWN = {sorted(set(depth.shown.values()))}  # the passes whose attention is printed",
    ]
    return torch_script(
        bundle, DEPTH, machine, [baseline], settings, "print_depth(VARIANTS, TOKENS, ORDER, SHOWN, DEVICE, DTYPE)"
    )


def grid_script(
    flavour: str, baseline: Config, axes: Axes, tokens: Iterable[str], machine: Machine, depth: Depth
) -> str:
    """A script that prints the numbers of a grid of variants: a CSV section grid, with a column for every axis."""
    if checked(flavour) == "core":
        return core_script(
            GRID,
            machine,
            CORE_GRID,
            CONFIG=_config(baseline),
            AXES=call_text("Axes({})", [quoted(axes.grid)] if axes.grid else [], before=len("AXES = ")),
            TOKENS=_tokens(tokens),
            DEPTH=f"Depth(passes={depth.passes}, blocks={quoted(depth.blocks)})",
        )
    built, order = depth.plan(baseline)
    chosen = {
        axis: {name: _followed(AXES[axis].entries[name], built) for name in names}
        for axis, names in axes.chosen.items()
        if names
    }
    changes = [change for entries in chosen.values() for change in entries.values()]
    taken = {field: {v, *(c[field] for c in changes if field in c)} for field, (v,) in values(built).items()}
    tokens = list(tokens)
    repeats = combine(baseline.replace(n_layers=1), axes, tokens, depth).repeats
    settings = [
        f"AXES = {literal(chosen, before=len('AXES = '))}",
        f"# Combinations, counted from 0, that are the same model as an earlier one.\nREPEATS = {literal(repeats, before=len('REPEATS = '))}",
        f"TOKENS = {_tokens(tokens)}",
        f"ORDER = {_order(order)}  # the blocks that the stream goes through",
    ]
    bundle = Bundle([Transformer, print_grid], taken, SETTINGS, checked=True)
    call = "print_grid(Config(), AXES, REPEATS, TOKENS, ORDER, DEVICE, DTYPE)"
    return torch_script(bundle, GRID, machine, [built], settings, call)


def _followed(change: dict[str, Any], baseline: Config) -> dict[str, Any]:
    """A change together with what follows it (d_head follows n_heads), whether or not it can be alone."""
    changed = SimpleNamespace(**(asdict(baseline) | change))
    following = {name: each.follows for name, each in Config.settings().items() if each.follows and name not in change}
    followed = {
        name: follows(changed) for name, follows in following.items() if follows(baseline) == getattr(baseline, name)
    }
    return change | {name: value for name, value in followed.items() if value != getattr(baseline, name)}


def _how(dropout: bool, kind: str) -> str:
    return f"dropout={dropout}" + f', kind="{kind}"' * (kind != "random")


def _tokens(tokens: Iterable[str]) -> str:
    return literal(list(tokens), before=len("TOKENS = "))


def _order(order: list[int]) -> str:
    if len(order) > 1 and order == list(range(len(order))):
        return f"list(range({len(order)}))"
    return f"[{order[0]}] * {len(order)}" if len(set(order)) == 1 else repr(order)


def _config(config: Config) -> str:
    return settings_call(config, before=len("BASELINE = "))
