"""Checks of verdict documents: they fit the schema, and equal the summary."""

import json
import math
from pathlib import Path

from jsonschema import Draft202012Validator

from core.experiments.training.plan import BASELINE

PATH = Path(__file__).parent.parent / "core" / "study" / "verdict.schema.json"
SCHEMA = json.loads(PATH.read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
COLUMNS = {
    "effect": "difference",
    "low": "difference_low",
    "high": "difference_high",
    "p": "p_uncorrected",
    "p_corrected": "p",
    "p_exact": "p_exact",
    "p_exact_least": "p_exact_least",
    "margin": "margin",
    "n": "pairs",
    "verdict": "verdict",
}
NOISE = {
    "spread": "spread",
    "correlation": "correlation",
    "smallest_effect": "smallest_effect",
    "seeds_for_1_point": "seeds_for_1",
    "seeds_for_5_points": "seeds_for_5",
}


def find_problems(document: dict) -> list[str]:
    """Return where a document does not fit the schema, also after it was written as JSON."""
    read = json.loads(json.dumps(document, allow_nan=False))
    assert read == document
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(read)]


def check_document(document: dict, table) -> None:
    """Check that a document fits the schema and has the numbers of a summary, in its order."""
    assert find_problems(document) == []
    cells = {(line.task, line.variant): line for line in table.itertuples()}
    names = [(line["task"], line["variant"]) for line in document["comparisons"]]
    assert names == [cell for cell in cells if cell[1] != BASELINE]
    for comparison in document["comparisons"]:
        line = cells[comparison["task"], comparison["variant"]]
        base = cells[comparison["task"], BASELINE]
        for field, column in COLUMNS.items():
            assert comparison[field] == plain(getattr(line, column)), field
        for field, column in NOISE.items():
            assert comparison["noise"][field] == plain(getattr(line, column)), field
        for side, cell in (("model", line), ("baseline", base)):
            accuracy = comparison["accuracy"][side]
            assert list(accuracy.values()) == [
                plain(cell.accuracy),
                plain(cell.low),
                plain(cell.high),
                cell.seeds,
            ]
            learnt = comparison["learnt"][side]
            assert (learnt["count"], learnt["n"]) == (cell.learnt, cell.seeds)
            assert comparison["diverged"][side] == cell.diverged
            assert comparison["missing"][side] == cell.missing
        assert "; ".join(comparison["mixed"]) == line.mixed


def plain(value):
    """Return a value as JSON has it: None for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
