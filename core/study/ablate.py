"""Ablation by one call from Python: train a baseline and variants here, and return the verdicts."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import torch

from core.measure.verdicts import MARGIN
from core.model.variants import NEXT, ablation, decode, name_of
from core.settings.process import device_name, new_owner
from core.study.database.schema import DIVERGED, DONE
from core.study.database.store import Report, Store
from core.study.file import parse
from core.study.looks import add_next_look, enrol_needed
from core.study.plan import StudyError, read_run
from core.study.verdict import study_document
from core.train import train

Variants = Mapping[str, Mapping[str, Any] | str] | Sequence[str] | str
MEMORY = ":memory:"  # a store of this process, which ends with it


def ablate(
    task: str | Sequence[str],
    variants: Variants,
    *,
    seeds: int | Sequence[int] | str = 5,
    margin: float = 100 * MARGIN,
    base: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    equal: str = "nothing",
    search: str | Sequence[float] = "none",
    device: str = "auto",
    dtype: str = "float32",
    name: str = "ablation",
    question: str = "",
) -> dict[str, Any]:
    """Train baseline and variants in this process; return the document of verdicts as a dict.

    The document is that of `python -m core.study verdict NAME --json`; its fields are described in
    `core/study/verdict.schema.json`. Nothing is stored. Trainings use one thread, as those of
    studies do, so numbers are the same.

        from core import ablate

        document = ablate(
            "reverse",
            {"− norm": {"norm": "none"}, "1 head": "n_heads-1"},
            seeds=3,
            base={"d_model": 16, "n_heads": 2},
            training={"steps": 30, "batch": 8},
        )
        for comparison in document["comparisons"]:
            print(comparison["variant"], comparison["effect"], comparison["verdict"])

    Args:
        task: Key of a task, or several.
        variants: What each variant changes: name -> settings, or name -> text as in a link. Or
            only texts as in a link ("norm-none"), or keys of ablations ("no_norm").
        seeds: How many seeds, a list of seeds, or text such as "5, 10, 20": more seeds where a
            comparison is undecided.
        margin: Percentage points: models that differ by less are equivalent.
        base: Settings of every model.
        training: Settings of every training.
        equal: What is equal for all models: "nothing", "parameters", "flops" or "time".
        search: Learning rates that each model is tried at: "none", "three", "five" or a list.
        device: Device that trains: "auto", "cuda", "mps" or "cpu".
        dtype: "float32" or "bfloat16".
        name: Name in the document.
        question: Question in the document.

    Raises:
        StudyError: A task, a variant or a setting is not possible; all mistakes are listed. So is
            a variant that equals the baseline or cannot be trained.
        ConfigError: This machine does not have the device, or a text of `variants` is not known.
    """
    document = {
        "name": name,
        "question": question,
        "tasks": [task] if isinstance(task, str) else task,
        "seeds": seeds,
        "margin": margin,
        "device": device,
        "dtype": dtype,
        "equal": equal,
        "search": search,
        "base": base or {},
        "training": training or {},
        "variants": _name_variants(variants),
    }
    study = parse("".join(f"{key} = {_write_toml(value)}\n" for key, value in document.items()))
    if study.notes:
        raise StudyError(list(study.notes))
    study.runs[0].machine.check_here()
    n_threads = torch.get_num_threads()
    # As workers do: more threads change the order of sums, and tiny models train slower with them.
    torch.set_num_threads(1)
    try:
        with closing(Store(MEMORY)) as store:
            number = enrol_needed(store, study).study
            has_more = True
            while has_more:
                _train_queued_runs(store, number)
                has_more = add_next_look(store, number)
            return study_document(store, number)
    finally:
        torch.set_num_threads(n_threads)


def _name_variants(variants: Variants) -> dict[str, Any]:
    """Return name -> changes (settings, or text of a link); raises ConfigError, StudyError."""
    if isinstance(variants, Mapping):
        named = dict(variants)
    else:
        texts = variants.split(NEXT) if isinstance(variants, str) else variants
        changes = [
            ablation[text] if text in ablation else decode(text, "variants") for text in texts
        ]
        named = {name_of(changed): changed for changed in changes}
    if not named:
        raise StudyError(
            ["variants is empty; name at least one, such as {'− norm': {'norm': 'none'}}."]
        )
    return named


def _write_toml(value: Any) -> str:
    """Return a value as TOML; NaN, infinities and other types as strings, judged by readers."""
    if isinstance(value, Mapping):
        pairs = [f"{_write_toml(str(key))} = {_write_toml(entry)}" for key, entry in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple | range):
        return f"[{', '.join(map(_write_toml, value))}]"
    is_finite = isinstance(value, int | float) and math.isfinite(value)
    plain = value if is_finite else str(value)
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")


def _train_queued_runs(store: Store, study: int) -> None:
    """Train all queued runs here, without output, and store the results; errors are raised."""
    owner = new_owner()
    while claimed := store.claim(study, owner, 1):
        number, *described = claimed[0]
        run = read_run(*described)
        begun = time.monotonic()
        rows = list(train(run.config, run.training, run.seed, run.machine))
        last = rows[-1]
        report = Report(
            number,
            DIVERGED if last.note else DONE,
            rows,
            last.step,
            time.monotonic() - begun,
            last.note,
            device=device_name(run.machine),
        )
        store.store_reports(owner, [report])
