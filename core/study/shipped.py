"""Studies that ship with their results.

To add one, add an entry here and its file in studies/; `make matrix` trains it and writes its
results into results/.
"""

from pathlib import Path

from core.settings.menu import Menu

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
shipped.add("positions", label="Positions", help="Position encodings, partial RoPE and NoPE layers")
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
    """Return the path of a shipped study's file."""
    return ROOT / "studies" / f"{name}.toml"


def table_of(name: str) -> Path:
    """Return the path of a shipped study's summary (core.study.summary.read_summary)."""
    return ROOT / "results" / f"{name}.csv"


def curves_of(name: str) -> Path:
    """Return the path of a shipped study's curves (core.study.curves.read_curves)."""
    return ROOT / "results" / "curves" / f"{name}.npz"
