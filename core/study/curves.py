"""Exported curves of a study: every row of every finished run in one file, by hash.

The file is NumPy's .npz. Its arrays: `run`, the hash of each run (core.study.plan.Run.hash);
`rows`, how many rows it has; `diverged`, whether its last row is where it diverged; `step`, `loss`,
`accuracy`, `gradient_norm`, `update_size`, the rows of all runs one after the other; `made`, JSON
in bytes: the versions and the device that trained them. Learning rates follow from the settings.
Numbers are float32, as training computes them: nothing is rounded. A run that is part of several
studies stands in one file only.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.settings.wording import replace_unprintable, shorten
from core.study.plan import Run, StudyError
from core.train import Row

MADE = ("device", "torch", "numpy", "python", "code")  # columns of a run that say what trained it
Made = Mapping[str, Sequence[str]]  # by these names; several where several did
MEASURED = ("loss", "accuracy", "gradient_norm", "update_size")
KINDS = {"run": "S", "rows": "i", "diverged": "b", "step": "i", "made": "u"} | dict.fromkeys(
    MEASURED, "f"
)
MAX_BYTES = 64 << 20  # of all arrays together: some hundred times what a study of 600 runs has
MAX_LETTERS = 100  # of a version


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves of one file. made: versions and devices that trained them."""

    made: Made
    arrays: dict[str, np.ndarray[Any, Any]]

    @cached_property
    def _places(self) -> dict[str, tuple[int, int, bool]]:
        """First row, row after the last, and whether it diverged, of each run by hash."""
        ends = self.arrays["rows"].cumsum().tolist()
        hashes = [name.decode("ascii", "replace") for name in self.arrays["run"].tolist()]
        return dict(zip(hashes, zip([0, *ends], ends, self.arrays["diverged"].tolist())))

    def hashes(self) -> set[str]:
        """Return the hashes of all runs in the file."""
        return set(self._places)

    def rows(self, run: Run) -> list[Row] | None:
        """Return the rows of a run, diverged ones too; None if it is missing or incomplete.

        They are as training yields them: the last row of a diverged run has a note.
        """
        if run.hash not in self._places:
            return None
        first, end, diverged = self._places[run.hash]
        steps = self.arrays["step"][first:end].tolist()
        measured = (self.arrays[name][first:end].tolist() for name in MEASURED)
        rows = [
            Row._make((*values, run.training.rate(values[0]), ""))
            for values in zip(steps, *measured)
        ]
        if not diverged:
            return rows if rows[-1].step == run.training.steps else None
        return [*rows[:-1], rows[-1]._replace(note=f"diverged at step {rows[-1].step}")]


@dataclass(frozen=True, eq=False)
class CurveFiles:
    """Curves of several files; a run of several studies stands in one of them."""

    files: tuple[Curves, ...]

    def rows(self, run: Run) -> list[Row] | None:
        """Return all rows of a run from the first file that has it to its end, or None."""
        entry = self.find(run)
        return entry[1] if entry else None

    def find(self, run: Run) -> tuple[Curves, list[Row]] | None:
        """Return the first file that has a run to its end, and the run's rows; None if none has."""
        for file in self.files:
            rows = file.rows(run)
            if rows is not None:
                return file, rows
        return None


def made_by(files: Sequence[Curves]) -> Made:
    """Return what trained the curves of files: name in MADE -> its distinct values, in order."""
    return {
        name: tuple(dict.fromkeys(value for file in files for value in file.made[name]))
        for name in MADE
    }


def write_curves(
    path: str | Path, rows_by_hash: Mapping[str, Sequence[Row]], provenance: Made
) -> None:
    """Write the curves of runs, and what trained them, to an .npz file; OSError if that fails.

    Args:
        path: The file.
        rows_by_hash: Run hash -> every row, of runs that have their result.
        provenance: Versions and devices that trained them.
    """
    every = [row for rows in rows_by_hash.values() for row in rows]
    arrays: dict[str, Any] = {
        "run": np.array(list(rows_by_hash), "S32"),
        "rows": np.array([len(rows) for rows in rows_by_hash.values()], np.int32),
        "diverged": np.array([bool(rows[-1].note) for rows in rows_by_hash.values()], bool),
        "step": np.array([row.step for row in every], np.int32),
        **{name: _to_floats([getattr(row, name) for row in every]) for name in MEASURED},
        "made": np.frombuffer(
            json.dumps({name: list(provenance[name]) for name in MADE}).encode(), np.uint8
        ),
    }
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)


def _to_floats(values: list[float]) -> np.ndarray[Any, Any]:
    """Return a float32 array; a float64 one if any value is too large for float32."""
    exact = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        short = exact.astype(np.float32)
    return short if (np.isinf(short) == np.isinf(exact)).all() else exact


def read_curves(path: str | Path) -> Curves:
    """Read a study's curves from an .npz file; StudyError if damaged, OSError if unreadable."""
    with Path(path).open("rb") as opened:
        file = io.BytesIO(opened.read(MAX_BYTES))
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise ValueError("it is too large")
        with np.load(file, allow_pickle=False) as packed:
            arrays = {name: packed[name] for name in KINDS}
        _check_arrays(arrays)
        provenance = json.loads(arrays.pop("made").tobytes().decode())
        if not isinstance(provenance, dict) or not all(
            isinstance(provenance.get(name), list) for name in MADE
        ):
            raise ValueError("it lacks version information")
        return Curves(
            {
                name: tuple(
                    replace_unprintable(value)[:MAX_LETTERS] for value in provenance[name][:10]
                )
                for name in MADE
            },
            arrays,
        )
    except Exception as error:  # a damaged archive raises a dozen kinds
        raise StudyError(
            [f"{path} does not contain study curves: {shorten(replace_unprintable(error), 120)}."]
        ) from None


def _check_arrays(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Raise ValueError for arrays of a wrong type, or that do not fit each other."""
    for name, kind in KINDS.items():
        if arrays[name].ndim != 1 or arrays[name].dtype.kind != kind:
            raise ValueError(f"{name} has the wrong type")
    runs, rows, steps = (arrays[name] for name in ("run", "rows", "step"))
    if not len(runs) == len(rows) == len(arrays["diverged"]) or any(
        len(arrays[n]) != len(steps) for n in MEASURED
    ):
        raise ValueError("its lists differ in length")
    if (rows < 1).any() or rows.sum(dtype=np.int64) != len(steps):
        raise ValueError("its row counts do not match")
