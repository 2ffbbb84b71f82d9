"""Link from a study to Training, with the settings of a cell or a run."""

from collections.abc import Collection
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlencode

from core.experiments.training.plan import Trial, otherwise
from core.model.config import Config
from core.model.variants import NOTHING, apply, difference, encode
from core.settings.device import Machine
from core.train import Training
from core.train.settings import Learner

PAGE = "Training"


def link_parameters(
    config: Config,
    training: Training,
    baseline: tuple[Config, Training],
    seeds: Collection[int],
    machine: dict[str, str],
    search: str = "none",
) -> dict[str, str]:
    """Return a link's parameters for Training: a variant, with its baseline where comparable.

    Defaults are left out, and the variant is one of "variants" where it can be compared.

    The page compares models of one training. A variant that is trained differently from its
    baseline is opened with it if the menu of optimiser variants has this difference
    (core.experiments.training.plan). Else it is opened alone, as is a variant that is no change of
    its baseline. The page takes consecutive seeds: all from the least to the greatest are opened.

    Args:
        config: Settings of the variant.
        training: Its training.
        baseline: Settings and training of the baseline.
        seeds: Seeds of the runs.
        machine: Device and dtype.
        search: How learning rates are searched (core.train.match).
    """
    first, how = baseline
    changes = difference(config.replace(seed=0), first.replace(seed=0))
    extra = "nothing"
    if not changes and how != training:
        others = (name for name, values in otherwise.items() if replace(how, **values) == training)
        extra = next(others, "nothing")
    together = (how == training or extra != "nothing") and apply(
        changes, first.replace(seed=0)
    ) == config.replace(seed=0)
    shown_config, training = (first, how) if together else (config, training)
    values = {name: getattr(shown_config, name) for name in Config.settings()} | {
        "seed": min(seeds)
    }
    written = Learner(task=training.task, **values).write() | training.write()
    written |= {name: value for name, value in machine.items() if value != getattr(Machine(), name)}
    n_seeds = max(seeds) - min(seeds) + 1
    limit = Trial.settings()["seeds"].high
    written |= Trial(
        seeds=n_seeds if limit is None else min(n_seeds, int(limit)), search=search, otherwise=extra
    ).write()
    return written | {"variants": (encode(changes) if together else "") or NOTHING}


def format_address(params: dict[str, str]) -> str:
    """Format parameters as an address: "Training?task=reverse&variants=norm-none"."""
    return f"{PAGE}?{urlencode(params, quote_via=quote)}"


def read_query(text: str) -> dict[str, str]:
    """Parse the parameters behind "?" in any address, name -> text (the last of equal names)."""
    return dict(parse_qsl(text.partition("?")[2], keep_blank_values=True))
