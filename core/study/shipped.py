"""Studies that ship with their results.

To add one, add an entry here and its file in studies/; `make matrix` trains it and writes its
results into results/.
"""

from functools import lru_cache
from pathlib import Path

from core.settings.menu import Menu
from core.study.curves import CurveFiles, Curves, read_curves
from core.study.file import read
from core.study.plan import Study

ROOT = Path(__file__).parent.parent.parent

shipped: Menu[str] = Menu("Shipped studies")  # name of the file -> label: question


shipped.add(
    "ablation_matrix",
    label="Core components",
    help="Change in accuracy when a component is removed or replaced, by task",
)
shipped.add(
    "attention",
    label="Attention",
    help="Modern attention: GQA/MQA, sliding window, soft-capping, gating, sinks",
)
shipped.add(
    "norm_and_stream",
    label="Norms and residuals",
    help="Norm type, norm placement and residual variants",
)
shipped.add(
    "feed_forward",
    label="Feed-forward",
    help="Activation functions, and gated variants at equal parameter count",
)
shipped.add(
    "positions",
    label="Positions",
    help="Which position encodings match the task's own (learned or RoPE)?",
)
shipped.add(
    "optimisers",
    label="Optimiser",
    help="Muon against AdamW; effects of warm-up, decay and clipping",
)
shipped.add(
    "own_learning_rates",
    label="Tuned learning rate",
    help="Effect sizes after tuning the learning rate per model",
)


def name_in_links(name: str) -> str:
    """Return a shipped study's name in links and lists: "norm and stream (ships with the lab)"."""
    return f"{name.replace('_', ' ')} (ships with the lab)"


# Trained for claims of papers (core/teaching/claims) or for lessons (core/teaching/lessons) alone.
ALONE = tuple(
    f"{folder}/{path.stem}"
    for folder in ("claims", "lessons")
    for path in sorted((ROOT / "studies" / folder).glob("*.toml"))
)


def study_of(name: str) -> Path:
    """Return the path of a shipped study's file, given its key; it may not exist."""
    return ROOT / "studies" / f"{name}.toml"


def table_of(name: str) -> Path:
    """Return the path of a shipped study's summary (core.study.summary.read_summary)."""
    return ROOT / "results" / f"{name}.csv"


def curves_of(name: str) -> Path:
    """Return the path of a shipped study's curves (core.study.curves.read_curves)."""
    return ROOT / "results" / "curves" / f"{name}.npz"


def find_study(name: str) -> str:
    """Return a shipped study's key, "claims/warm_up" for "warm_up"; unknown names unchanged."""
    keys = (key for key in (*shipped, *ALONE) if key.rpartition("/")[2] == name)
    return next(keys, name)


@lru_cache
def read_shipped_study(name: str) -> Study:
    """Read the definition of a shipped study by its name, cached; StudyError or OSError."""
    return read(study_of(find_study(name)))


@lru_cache
def shipped_curves(name: str) -> CurveFiles:
    """Read the curves of a shipped study: its own file, then the others, which may have its runs.

    Raises StudyError, OSError, also for one of the other files.
    """
    study = find_study(name)
    others = [key for key in (*shipped, *ALONE) if key != study]
    return CurveFiles(tuple(_read_curves(key) for key in (study, *others)))


@lru_cache
def _read_curves(key: str) -> Curves:
    """Read the curves of a shipped study by its key, such as "claims/warm_up"."""
    return read_curves(curves_of(key))
