"""Record of what links, files and stored results depend on.

`python -m tests.promises.record FOLDER` writes it. The record that ships was written by commit
f3ec0d1;
tests/test_promises.py compares the present code with it.
"""

import dataclasses
import hashlib
import json
import sys
from pathlib import Path

import torch

from core.checkpoints import native
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.experiments.training.plan import Trial
from core.model.config import Config
from core.model.generate import Sampling
from core.model.text import Input
from core.model.trace import SITES
from core.model.transformer import Transformer
from core.model.variants import Pins
from core.settings.device import Machine
from core.study.database.store import Store
from core.study.file import parse, read
from core.study.tables import row_table, run_table, summary_table
from core.train import Row, Training
from core.train.settings import Learner, Removed

ROOT = Path(__file__).parent.parent.parent
STUDY = 'name = "promised"\ntasks = ["copy"]\nseeds = 2\n[variants]\nno_ffn = {ffn = false}\n'
TINY = Config(d_model=8, n_heads=2, d_ff=16, n_layers=1)
WORDS = ["the", "dog", "bites", "man"]

LINKS = {
    "block": (
        "weights=random&d_model=96&n_heads=8&view=steps&step=7"
        "&variants=scale-off~norm-none&text=The dog bites"
    ),
    "block_trained": (
        "view=change&variants=residual_attention-off&layer=1&beside=residual_attention-off"
    ),
    "depth": "passes=64&blocks=separate&variants=placement-post&show=gradients&norm=RMSNorm",
    "training": "task=recall&steps=300&n_heads=2&seeds=3&variants=ffn-off&search=three&seed=4",
    "studies": "shown=curves&study=attention",
    "trained": "taken=knockout&out=2.3~1.1&mode=mean&prompt=The tenant",
    "claims": "shown=evidence&claim=sinks",
    "lessons": "shown=one&lesson=heads&language=de",
    "class": "code=XKCDE&shown=student",
    "start": "removed=on&parts=attention",
}


def kinds_of_pages() -> dict[str, tuple]:
    """Return the settings classes of each page."""
    from ui.block.context import BlockConfig, BlockLook
    from ui.claims import ClaimsLook
    from ui.depth.context import DepthLook
    from ui.lessons import LessonsLook
    from ui.lessons.classroom import ClassLook
    from ui.start import StartLook
    from ui.studies.context import StudyLook
    from ui.trained.context import TrainedLook
    from ui.training.context import TrainingLook

    return {
        "block": (Input, BlockConfig, Machine, BlockLook, Pins, Sampling),
        "depth": (Input, Config, Machine, Depth, Pins, DepthLook, Axes),
        "training": (Training, Learner, Machine, Removed, Trial, TrainingLook),
        "studies": (StudyLook,),
        "trained": (TrainedLook, Sampling),
        "claims": (ClaimsLook,),
        "lessons": (LessonsLook,),
        "class": (ClassLook,),
        "start": (StartLook,),
    }


def record_runs(counts: dict[str, int] | None = None) -> dict:
    """Return the number of runs and a digest of their hashes, for each study that ships.

    Args:
        counts: Study -> number of its first runs to record: a study may get more seeds later.
    """
    record = {}
    for path in sorted((ROOT / "studies").rglob("*.toml")):
        name = str(path.relative_to(ROOT))
        runs = read(path).runs[: (counts or {}).get(name)]
        hashes = sorted(run.hash for run in runs)
        digest = hashlib.sha256("\n".join(hashes).encode()).hexdigest()
        record[name] = [len(hashes), digest]
    return record


def record_parameters() -> dict:
    """Return the parameters that each page's links have, with their defaults and menu entries."""
    record = {}
    for page, kinds in kinds_of_pages().items():
        for kind in kinds:
            for name, definition in kind.settings().items():
                default = repr(kind.__dataclass_fields__[name].default)
                record[f"{page}.{kind.__name__}.{name}"] = [default, list(definition.menu or ())]
    return record


def record_links() -> dict:
    """Return the state that each page's example link opens, and the link that this state writes."""
    kinds_by_page = kinds_of_pages()
    record = {}
    for name, link in LINKS.items():
        params = dict(pair.split("=", 1) for pair in link.split("&"))
        values = {}
        written = {}
        for kind in kinds_by_page[name.split("_")[0]]:
            settings, problems = kind.read(params)
            assert not problems, [str(problem) for problem in problems]
            values[kind.__name__] = json.loads(
                json.dumps(dataclasses.asdict(settings), default=str)
            )
            written |= settings.write()
        record[name] = {"values": values, "link": written}
    return record


def record_columns() -> dict:
    """Return the columns of the tables of a study, and of the tables that ship."""
    store = Store("sqlite://")
    study = store.enrol(parse(STUDY)).study
    tables = {
        "runs": run_table(store, study),
        "rows": row_table(store, study),
        "summary": summary_table(store, study),
    }
    record = {name: list(table.columns) for name, table in tables.items()}
    store.close()
    for path in sorted((ROOT / "results").glob("*.csv")):
        record[path.name] = path.read_text(encoding="utf-8-sig").splitlines()[0].split(",")
    return record


def record_tables_of_pages() -> dict:
    """Return name and columns of the tables that pages offer as CSV."""
    from streamlit.testing.v1 import AppTest

    from tests.pages import tables

    record = {}
    for page in ("1_One_block", "2_Depth", "5_Trained_model", "6_Claims"):
        app = (
            AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
            .switch_page(f"pages/{page}.py")
            .run()
        )
        record[page] = {name: list(map(str, make().columns)) for name, make in tables(app).items()}
    return record


def record() -> dict:
    """Return everything that must survive a change of the code."""
    return {
        "hooks": list(SITES),
        "rows": list(Row._fields),
        "runs": record_runs(),
        "parameters": record_parameters(),
        "links": record_links(),
        "columns": record_columns(),
        "tables": record_tables_of_pages(),
        "logits": predict_with(tiny_model()),
    }


def tiny_model() -> Transformer:
    """Return the model with files in this record's folder."""
    return Transformer(TINY, WORDS)


def predict_with(model: Transformer) -> list[float]:
    """Return the logits of a short text."""
    with torch.no_grad():
        return model(torch.tensor([[0, 1, 2]])).double().flatten().tolist()


def write_files(folder: Path):
    """Write the record, a saved model, and a store with one finished run."""
    from core.study.database.schema import DONE
    from core.study.database.store import Report

    for name, content in native.model_files(tiny_model(), "promised", "", note="kept").items():
        (folder / name).write_bytes(content)
    (folder / "store.sqlite").unlink(missing_ok=True)
    store = Store(f"sqlite:///{folder / 'store.sqlite'}")
    study = store.enrol(parse(STUDY)).study
    (run, *_), *_ = store.claim(study, "recorder|1|a", 1)
    rows = [Row(step, 2.75 / step, 2.5 / step, 0.1, 0.2 * step, 0.003) for step in (1, 2)]
    store.store_reports("recorder|1|a", [Report(run, DONE, rows, 2)])
    store.close()
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record().items()]
    (folder / "record.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
