"""Dialog in which a new study is written and started."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.measure.trends import LEAST_SIZES
from core.model.variants import decode, name_of
from core.study.database.connection import StoreError
from core.study.file import (
    AXES,
    CHANGES,
    LEAST_MARGIN,
    LOOKS,
    MOST_MARGIN,
    PARTS,
    SEEDS,
    Ticks,
    read_ticks,
)
from core.study.ladder import read_sizes
from core.study.looks import enrol_needed
from core.study.plan import (
    NOTHING,
    SETTINGS,
    Study,
    StudyError,
    describe_looks,
    describe_plan,
    describe_stored,
)
from core.tasks import task
from core.train.dial import DIAL
from core.train.match import search
from ui.kit.guard import showing_errors
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.store import bind, change, session
from ui.shared.new_study import take_study
from ui.studies import server


def _draw_boxes(
    label: str,
    name: str,
    chosen: Sequence[Any],
    offered: Sequence[Any],
    label_of: Callable[[Any], str],
    replace_entries: Callable,
    apply_change: Callable,
    help: str | None = None,
):
    """Draw pills (over 12: a search); a click calls apply_change(function from ticks to ticks).

    Args:
        label: Label of the widget.
        name: Key of the widget.
        chosen: Entries that are selected.
        offered: Entries to choose from.
        label_of: Returns an entry's label.
        replace_entries: Returns ticks with new entries, from (entries, ticks).
        apply_change: Called with a function from ticks to changed ticks.
        help: Help of the pills.
    """
    bound = bind(name, list(chosen), lambda new: apply_change(partial(replace_entries, tuple(new))))
    if len(offered) > 12:
        st.multiselect(label, offered, format_func=label_of, **bound, placeholder="Search settings")
    else:
        st.pills(label, offered, selection_mode="multi", format_func=label_of, help=help, **bound)


def _split_ablations(changes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split variants' texts (as in links) into those offered as ablations, and the others."""
    return [text for text in changes if text in PARTS], [
        text for text in changes if text not in PARTS
    ]


def _variant_label(text: str) -> str:
    """Return the name of a variant on screen."""
    return name_of(decode(text, "variants"))


def _seeds_label(seeds: int | str) -> str:
    """Return the label of a number of seeds, or of looks: "5, 10, 20, as needed"."""
    return f"{seeds}, as needed" if seeds == LOOKS else str(seeds)


MORE_SEEDS = (
    f"Runs of each model. “{LOOKS}, as needed”: 5 seeds of every model; where a comparison is"
    " undecided then 10, then 20. The chance of a false difference stays at 5 % per task."
)
MARGIN = (
    "In percentage points: models whose accuracies differ by less are equivalent. State it before"
    " you train."
)
SIZES = (
    "Train every task at several sizes, to see whether effects hold in larger models. Size n has n"
    " layers of width 32 n and 2 n heads, and trains for n / 2 times the usual steps. None: at the"
    " usual size of the task."
)
RATES = "Train every model at several learning rates, and compare each at its best one."
SHIPPED = Path(__file__).parent.parent.parent / "studies"
# In Session.kept: how many dialogs were opened, which of them is open (0: none) and was drawn last,
# and what was typed.
OPENED = "new_studies"
NEW = "new_study"
DRAWN = "new_study_drawn"
DRAFT = "study_draft"
FIRST = "Small example"
FROM_TRAINING = "From Training"
FROM_TRAINING_NOTE = (
    "The variants of *Training* at sizes 1 to 4, each at three learning rates: do their effects"
    " hold in larger models? Nothing is trained before you press *Start*."
)
TEMPLATE = """name = "my study"
question = "What does removing the norm cost?"
tasks = ["reverse"]
seeds = 3

[variants]
"− norm" = { norm = "none" }
"""


@dataclass
class Draft:
    """Draft of a study: the template it began with, and the edited text of each template.

    handed_over: text that Training has written, which is then a template, too.
    """

    begin: str = FIRST
    texts: dict[str, str] = field(default_factory=dict)
    handed_over: str = ""

    @property
    def original(self) -> str:
        """Text of the template, unedited."""
        if self.begin == FROM_TRAINING:
            return self.handed_over
        return (
            _template_files()[self.begin].read_text(encoding="utf-8")
            if self.begin in _template_files()
            else TEMPLATE
        )

    @property
    def text(self) -> str:
        """Text as edited."""
        return self.texts.get(self.begin, self.original)

    def write(self, text: str):
        """Set the edited text of the current template (a callback)."""
        self.texts[self.begin] = text

    def switch_template(self, name: str):
        """Switch to another template; what was typed in each is kept (a callback)."""
        self.begin = name


def request_dialog():
    """Let draw_new_study() open the dialog from the next run on (a callback)."""
    remembered = session().kept
    remembered[NEW] = remembered[OPENED] = remembered.get(OPENED, 0) + 1


def draw_new_study(store):
    """Draw the dialog of a new study, if it is open; another page may have written the study."""
    written = take_study()
    if written:
        session().kept[DRAFT] = Draft(FROM_TRAINING, handed_over=written)
        request_dialog()
    if session().kept.get(NEW):
        _draw_dialog(store)


def _dismiss():
    """Close the dialog, unless it was opened again meanwhile (a callback)."""
    remembered = session().kept
    if remembered.get(NEW) == remembered.get(
        DRAWN
    ):  # or it was asked for once more, and both come with one run, that first
        _close()


def _close():
    """Close the dialog."""
    session().kept[NEW] = 0


def _template_files() -> dict[str, Path]:
    """Return the files of studies that serve as templates, by name."""
    return {path.stem.replace("_", " "): path for path in sorted(SHIPPED.glob("*.toml"))}


@st.dialog("New study", width="large", on_dismiss=_dismiss)
@showing_errors
def _draw_dialog(store):
    """Draw the dialog: form, then its problems, or a summary with Start, doubts and details."""
    session().kept[DRAWN] = session().kept.get(NEW)
    text, begun = _draw_form()
    try:
        study = server.parse_study(text)
    except StudyError as error:
        for problem in error.problems[:10]:
            st.error(literal(problem))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        is_started = st.button("Start", type="primary", icon=":material/play_arrow:")
        details = _draw_summary(study, store)
    doubts = []
    cells = _cells(study)
    if len(cells) == len({task for task, _ in cells}):
        doubts.append(
            "Only the baseline would be trained. Select an ablation, a setting or an axis."
        )
    sizes = read_sizes(text)
    if 0 < len(sizes) < LEAST_SIZES:
        doubts.append(f"A verdict on sizes needs {LEAST_SIZES} sizes or more.")
    with suppress(StudyError):
        first = server.parse_study(begun)
        compared = [{variant for _, variant in _cells(plan)} for plan in (study, first)]
        if study.question and study.question == first.question and compared[0] != compared[1]:
            doubts.append(
                "The research question is still the template's. Change it to match what you"
                " compare."
            )
    for doubt in doubts:
        st.warning(doubt, icon=":material/info:")
    if is_started:
        _start(study)
    with st.expander("Details"):
        st.text(details)


def _draw_form() -> tuple[str, str]:
    """Draw the form of a study; return its text as edited, and that of its template."""
    draft = session().kept.setdefault(DRAFT, Draft())
    if draft.begin == FROM_TRAINING:
        st.caption(FROM_TRAINING_NOTE)
    template, left, middle, right = st.columns([2, 2, 1.5, 1.2], gap="medium")
    with template:
        st.selectbox(
            "Template",
            [*([FROM_TRAINING] if draft.handed_over else []), FIRST, *_template_files()],
            **bind("new_from", draft.begin, draft.switch_template),
        )
    ticked = read_ticks(draft.text)
    if ticked:
        write = partial(_apply_change, draft)
        with left:
            st.text_input(
                "Name",
                **bind("tick_name", ticked.name, lambda name: write(partial(replace, name=name))),
            )
        with middle:
            seeds = bind(
                "tick_seeds", ticked.seeds, lambda seeds: write(partial(replace, seeds=seeds))
            )
            st.selectbox("Seeds", SEEDS, format_func=_seeds_label, help=MORE_SEEDS, **seeds)
        with right:
            margin = bind(
                "tick_margin",
                float(ticked.margin),
                lambda margin: write(partial(replace, margin=margin)),
            )
            st.number_input(
                "Margin", LEAST_MARGIN, MOST_MARGIN, step=0.5, format="%.1f", help=MARGIN, **margin
            )
        bound = bind(
            "tick_question",
            ticked.question,
            lambda question: write(partial(replace, question=question)),
        )
        hint = "Research question, shown below the study's name."
        st.text_input("Question", **bound, placeholder=hint)
        boxes = partial(_draw_boxes, apply_change=write)

        def choose_tasks(new, old):
            return replace(old, tasks=new)

        def choose_sizes(new, old):
            return replace(old, sizes=tuple(sorted(new)))

        def choose_parts(new, old):
            return replace(old, changes=(*new, *_split_ablations(old.changes)[1]))

        def choose_others(new, old):
            return replace(old, changes=(*_split_ablations(old.changes)[0], *new))

        boxes("Tasks", "tick_tasks", ticked.tasks, list(task), task.label, choose_tasks)
        sizes, rates = st.columns(2, gap="medium")
        with sizes:
            boxes("Sizes", "tick_sizes", ticked.sizes, DIAL, str, choose_sizes, help=SIZES)
        with rates:
            rate = bind(
                "tick_search",
                ticked.search,
                lambda rates: write(partial(replace, search=rates)),
            )
            st.selectbox(
                "Learning rates", list(search), format_func=search.label, help=RATES, **rate
            )
        parts, others = _split_ablations(ticked.changes)
        boxes("Ablations", "tick_parts", parts, PARTS, _variant_label, choose_parts)
        boxes(
            "Other settings",
            "tick_others",
            others,
            _split_ablations(CHANGES)[1],
            _variant_label,
            choose_others,
        )
        with st.expander("Grid search", expanded=bool(ticked.axes)):
            for name, offered in AXES.items():
                label = SETTINGS[name].label
                chosen = ticked.axes.get(name, ())
                menu = SETTINGS[name].menu
                choose = lambda new, old, name=name: replace(old, axes={**old.axes, name: new})  # noqa: E731
                boxes(
                    label,
                    f"tick_{name}",
                    chosen,
                    list(offered),
                    menu.label if menu else str,
                    choose,
                )
    else:
        st.caption("This file cannot be edited in the form. Edit the TOML below.")
    with st.expander("Edit as TOML", expanded=not ticked):
        st.text_area("Study file (TOML)", height=300, **bind("new_text", draft.text, draft.write))
    return draft.text, draft.original


def _cells(study: Study) -> set[tuple[str, str]]:
    """Return every (task, variant) of a study."""
    return {(run.task, run.variant) for run in study.runs}


def _apply_change(draft: Draft, change: Callable[[Ticks], Ticks]):
    """Apply a form's change to the draft; new variants drop a template's question (a callback)."""
    before = read_ticks(draft.text)
    if before is None:
        return
    after = change(before)
    begun = read_ticks(draft.original)
    if (
        begun
        and after.question == begun.question
        and (after.changes, after.axes) != (begun.changes, begun.axes)
    ):
        after = replace(after, question="")
    draft.write(after.write())


def _draw_summary(study: Study, store) -> str:
    """Draw a summary of the runs to train and those that exist; return the details as a text."""
    stored = store.stored(study) if store else NOTHING
    n_workers = max(1, server.workers().count)
    first, *lines = describe_plan(study, n_workers, stored).split("\n")
    st.markdown(
        f"**{literal(first)}**"
        f" {literal(next(line for line in lines if line.startswith(('About', 'Nothing'))))}"
        f" {literal(describe_looks(study, n_workers, stored.pace))}"
    )
    if store and store.find(study.name):
        words = "A study with this name exists: only its missing runs will start."
        st.info(literal(" ".join([words, *describe_stored(len(stored.ended), stored.unwanted)])))
    return "\n".join(lines)


def _start(study: Study):
    """Store and start the study, select it, close the dialog; draw an error if refused."""
    if not may_write():
        st.error(REASON)
        return
    try:
        service = server.service()
        number = enrol_needed(service.store, study).study
        service.store.requeue(number)
        service.start(number)
    except StoreError as error:
        st.error(literal(error.public_message))
        return
    change(study=study.name)
    del session().kept[DRAFT]
    _close()
    st.rerun()
