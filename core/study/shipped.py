"""Studies that ship with their results.

To add one, add an entry here and its file in studies/; `make matrix` trains it and writes its results into results/.
"""

from pathlib import Path

from core.settings.menu import Menu

ROOT = Path(__file__).parent.parent.parent

shipped: Menu[str] = Menu("Shipped studies")  # name of the file -> label: question


shipped.add(
    "ablation_matrix",
    label="Taken out",
    help="What is each part of a transformer block for: what does it cost, task by task, to take it out?",
)
shipped.add(
    "attention",
    label="Attention",
    help="Today's attention: what do shared keys, windows, caps, gates and sinks cost, and what do they give?",
)
shipped.add(
    "norm_and_stream",
    label="Norm and stream",
    help="Other norms, other places for them, other ways for the stream: which of them does a model notice?",
)
shipped.add(
    "feed_forward",
    label="Feed-forward",
    help="Which nonlinearity, and is a gate worth its third matrix at equal parameters?",
)
shipped.add("positions", label="Positions", help="How should a model be told where a word stands, and in which layers?")
shipped.add("optimisers", label="Optimiser", help="Muon or AdamW, and what are warm-up, decay and clipping worth?")
shipped.add(
    "own_learning_rates",
    label="At its own rate",
    help="What is left of each part's effect where every model has the learning rate that suits it?",
)


# Trained for claims of papers (core/teaching/claims) or for lessons (core/teaching/lessons) alone.
ALONE = tuple(
    f"{folder}/{path.stem}"
    for folder in ("claims", "lessons")
    for path in sorted((ROOT / "studies" / folder).glob("*.toml"))
)


def study_of(name: str) -> Path:
    """Return the path of a study's file."""
    return ROOT / "studies" / f"{name}.toml"


def table_of(name: str) -> Path:
    """Return the path of a study's summary (core.study.summary.read_summary)."""
    return ROOT / "results" / f"{name}.csv"


def curves_of(name: str) -> Path:
    """Return the path of every row of a study's runs (core.study.curves.read_curves)."""
    return ROOT / "results" / "curves" / f"{name}.npz"
