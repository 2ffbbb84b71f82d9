"""The curves of a study, as they were exported: every row of every run that has its result, in one file to be looked up by run.

The file is NumPy's .npz, whose arrays are, by name: `run`, the hash of each run (core.study.plan.Run.hash); `rows`, how many
rows it has; `diverged`, whether its last row is where it did; `step`, `loss`, `accuracy`, `gradient_norm`, `update_size`, the
rows of all runs one after the other; `made`, JSON in bytes: what made them. Learning rates follow from the settings. Numbers
are float32, as training computes them: nothing is rounded. A run that is part of several studies stands in one file only.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.settings.cache import lazily
from core.settings.wording import printable, shorten
from core.study.plan import Run, StudyError
from core.train import Row

MADE = ("device", "torch", "numpy", "python", "code")  # columns of a run that say what trained it
Made = Mapping[str, Sequence[str]]  # by these names; several where several did
MEASURED = ("loss", "accuracy", "gradient_norm", "update_size")
KINDS = {"run": "S", "rows": "i", "diverged": "b", "step": "i", "made": "u"} | dict.fromkeys(MEASURED, "f")
MOST = 64 << 20  # bytes of all arrays together: some hundred times what a study of 600 runs has
LONGEST = 100  # letters of a version
BROKEN = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, KeyError, ValueError, TypeError,
    OverflowError, MemoryError, SyntaxError,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Curves:
    """Read again. made: what made them."""

    made: Made
    arrays: dict[str, np.ndarray[Any, Any]]

    @lazily
    def _places(self) -> dict[str, tuple[int, int, bool]]:
        """Hash of a run -> its first row, the one after its last, and whether it diverged there."""
        ends = self.arrays["rows"].cumsum().tolist()
        hashes = [each.decode("ascii", "replace") for each in self.arrays["run"].tolist()]
        return dict(zip(hashes, zip([0, *ends], ends, self.arrays["diverged"].tolist())))

    def hashes(self) -> set[str]:
        """The hashes of all runs in the file."""
        return set(self._places)

    def rows(self, run: Run) -> list[Row] | None:
        """Every row of a run, as training it gives them; None where they are not here, or not to the end."""
        if run.hash not in self._places:
            return None
        first, end, diverged = self._places[run.hash]
        steps = self.arrays["step"][first:end].tolist()
        measured = (self.arrays[name][first:end].tolist() for name in MEASURED)
        rows = [Row._make((*values, run.training.rate(values[0]), "")) for values in zip(steps, *measured)]
        if not diverged:
            return rows if rows[-1].step == run.training.steps else None
        return [*rows[:-1], rows[-1]._replace(note=f"diverged at step {rows[-1].step}")]


@dataclass(frozen=True, eq=False)
class CurveFiles:
    """Curves of several files. A run of several studies stands in one of them."""

    files: tuple[Curves, ...]

    def rows(self, run: Run) -> list[Row] | None:
        """Return every row of a run; None where no file has it to its end."""
        found = self.find(run)
        return found[1] if found else None

    def find(self, run: Run) -> tuple[Curves, list[Row]] | None:
        """Return the first file that has a run to its end, and the run's rows."""
        for file in self.files:
            rows = file.rows(run)
            if rows is not None:
                return file, rows
        return None


def made_by(files: Sequence[Curves]) -> Made:
    """Return what made the curves of several files."""
    return {name: tuple(dict.fromkeys(value for file in files for value in file.made[name])) for name in MADE}


def write_curves(path: str | Path, runs: Mapping[str, Sequence[Row]], made: Made) -> None:
    """runs: hash -> every row, of runs that have their result. Raises OSError."""
    every = [row for rows in runs.values() for row in rows]
    arrays: dict[str, Any] = {
        "run": np.array(list(runs), "S32"),
        "rows": np.array([len(rows) for rows in runs.values()], np.int32),
        "diverged": np.array([bool(rows[-1].note) for rows in runs.values()], bool),
        "step": np.array([row.step for row in every], np.int32),
        **{name: _numbers([getattr(row, name) for row in every]) for name in MEASURED},
        "made": np.frombuffer(json.dumps({name: list(made[name]) for name in MADE}).encode(), np.uint8),
    }
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)


def _numbers(values: list[float]) -> np.ndarray[Any, Any]:
    """Numbers as float32, or as float64 where one of them is too large for that (a gradient's norm may be)."""
    exact = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        short = exact.astype(np.float32)
    return short if (np.isinf(short) == np.isinf(exact)).all() else exact


def read_curves(path: str | Path) -> Curves:
    """Raises StudyError for a file that holds no curves, or not whole ones; OSError for one that is not there."""
    with Path(path).open("rb") as opened:
        file = io.BytesIO(opened.read(MOST))
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST:
                raise ValueError("it is too large")
        with np.load(file, allow_pickle=False) as packed:
            arrays = {name: packed[name] for name in KINDS}
        _check(arrays)
        return Curves(_made(arrays.pop("made")), arrays)
    except BROKEN as error:
        raise StudyError([f"{path} holds no curves of a study: {shorten(printable(error), 120)}."]) from None


def _check(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Raises ValueError for lists that are not those of whole runs."""
    for name, kind in KINDS.items():
        if arrays[name].ndim != 1 or arrays[name].dtype.kind != kind:
            raise ValueError(f"{name} is no list of such values")
    runs, rows, steps = (arrays[name] for name in ("run", "rows", "step"))
    if not len(runs) == len(rows) == len(arrays["diverged"]) or any(len(arrays[n]) != len(steps) for n in MEASURED):
        raise ValueError("its lists are not of one length")
    if (rows < 1).any() or rows.sum(dtype=np.int64) != len(steps):
        raise ValueError("its runs have other rows than it holds")
    ends = rows.cumsum(dtype=np.int64) - 1
    grows, lost = np.ones(len(steps), bool), np.zeros(len(steps), bool)
    grows[1:] = np.diff(steps) > 0
    grows[np.append(0, ends[:-1] + 1)[: len(rows)]] = True  # where a run begins
    lost[ends[arrays["diverged"]]] = True  # what a run that diverged did not reach
    right = arrays["accuracy"]
    if not (grows.all() and (steps >= 1).all() and np.where(lost, np.isnan(right), (right >= 0) & (right <= 1)).all()):
        raise ValueError("its rows are no curves")
    if not all(np.isfinite(arrays[name][~lost]).all() for name in MEASURED):
        raise ValueError("its rows are no curves")


def _made(data: np.ndarray[Any, Any]) -> Made:
    """Raises ValueError for what does not say what made them."""
    made = json.loads(data.tobytes().decode())
    if not isinstance(made, dict) or not all(isinstance(made.get(name), list) for name in MADE):
        raise ValueError("it does not say what made it")
    return {name: tuple(printable(each)[:LONGEST] for each in made[name][:10]) for name in MADE}
