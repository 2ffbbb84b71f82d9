"""Frame of every page: boot, title, menu and sidebar; text, charts and tables in it."""

import base64
import gc
import importlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import streamlit as st
import torch

from core.figures.scale import can_subtract, for_differences, on_one_scale, subtract
from core.settings.cache import make_once
from core.settings.ending import run_later, wait_at_end
from core.settings.memory import reuse_freed_memory
from ui.kit import address, side_by_side, takeaway, turns
from ui.kit.guard import literal, show_errors, show_progress
from ui.kit.pages import PAGES, Page
from ui.kit.panel.control import Control, title
from ui.kit.panel.panel import acknowledge, draw_bar, draw_panel
from ui.kit.server import downloads
from ui.kit.store import allows, read_message, session_in_use

TERMS = {
    "logit difference": (
        "Logit of the correct token minus logit of the wrong one, before the softmax. "
        "0 = no preference. Each unit multiplies the odds of the correct token by e ≈ 2.7."
    ),
    "KL divergence": (
        "Difference between two probability distributions, in nats: the mean log ratio under the "
        "full model. 0 = identical."
    ),
    "direct logit attribution": (
        "Logits are a sum over the outputs of all components in the residual stream, so each"
        " component has a direct contribution. Indirect effects are attributed to later components."
        " The final norm's scale is frozen. (Elhage et al., 2021)"
    ),
    "attention rollout": (
        "Attention multiplied through the layers, averaged over heads. The residual connection"
        " counts as half of each layer. A rough estimate of information flow: it ignores values and"
        " the FFN. (Abnar and Zuidema, 2020)"
    ),
    "logit lens": (
        "The residual stream after a layer, passed through the final norm and the unembedding. Only"
        " the last layer was trained to be read out this way. (nostalgebraist, 2020)"
    ),
    "Holm": (
        "Correction for multiple comparisons: it widens intervals and raises p-values. The"
        " probability of even one false finding among all is then at most 5 %. (Holm, 1979)"
    ),
    "paired t-test": (
        "Each seed, or each text, is compared with itself, with and without the component. "
        "Variation between seeds or texts cancels out."
    ),
    "Boschloo": (
        "Exact test of two shares, here of the runs that learnt a task. It needs no assumption on"
        " how accuracies are spread. (Boschloo, 1970)"
    ),
    "entropy": (
        "How spread out attention is, in bits. 0 = all on one token, 1 = uniform over two tokens, "
        "log₂ n: uniform over n tokens."
    ),
    "RMS": (
        "Root mean square: the square root of the mean of the squares, the typical size of a"
        " vector's entries."
    ),
    "cosine similarity": (
        "Alignment of two vectors. 1 = same direction, 0 = orthogonal, −1 = opposite."
    ),
}
_WORDS = {
    term: re.compile(rf"\b{re.escape(term.removesuffix('-test'))}\b", re.IGNORECASE)
    for term in TERMS
}


def explain_terms(*texts: str) -> str | None:
    """Return Markdown on the glossary terms in these texts (each text anew); None without any."""
    terms = [term for term, word in _WORDS.items() if any(map(word.search, texts))]
    return "\n\n".join(f"**{term[0].upper()}{term[1:]}**: {TERMS[term]}" for term in terms) or None


# Loaded before somebody waits for them, in pieces: where the process ends, no more than one is
# waited for.
STORE = (
    "sqlalchemy",
    "core.study.database.store",
    "core.study.file",
    "core.workers.cluster",
    "core.study.runner",
)
LATER = (*STORE, "ui.studies", "ui.training")
HERE = Path(__file__).parent
# As data: Streamlit would read and encode a file in every run of a page.
ICON = f"data:image/svg+xml;base64,{base64.b64encode((HERE / 'icon.svg').read_bytes()).decode()}"


@make_once
def set_up_process():
    """Set up threads, memory and late imports, once per process; docs/log.md has the gains."""
    torch.set_num_threads(1)  # at these sizes a second thread gains little and can stall
    reuse_freed_memory()
    gc.collect()
    wait_at_end(_page_threads)
    gc.freeze()  # so that no later collection has to walk all of torch again
    run_later(2.0, *(partial(importlib.import_module, name) for name in LATER), _load_driver)


def _page_threads() -> list[threading.Thread]:
    """Return the threads in which Streamlit draws pages now."""
    return [
        page_shown
        for page_shown in threading.enumerate()
        if page_shown.name.startswith("ScriptRunner")
    ]


def _load_driver():
    """Import the database driver of the configured store; ignore any error."""
    from core.study.database.connection import address

    with suppress(Exception):  # what is wrong is said where somebody asks for the store
        address().get_dialect().import_dbapi()


@contextmanager
def page(current: Page):
    """Set up this page and draw all inside, errors as messages; st.stop() if a link forbids it."""
    st.set_page_config(
        page_title=f"{current.name} · Ablation Lab",
        page_icon=ICON,
        layout="wide",
        initial_sidebar_state=200,
    )
    set_up_process()
    with session_in_use() as session, turns.one_turn():
        address.take_address()
        if not allows(current.key):
            st.info("The link you opened does not include this page.", icon=":material/lock:")
            for left in PAGES:
                if allows(left.key):
                    st.page_link(left.path, label=left.name, icon=left.icon)
            st.stop()
        takeaway.clear_tables()
        downloads.begin_run()
        with show_errors():
            session.take(read_message())
        with show_errors(), show_progress():
            yield
        downloads.end_run()
        acknowledge(current.name_in_address)


def draw_head(current: Page, *rows: list[Control], beside_title: Sequence[Control] = ()):
    """Draw a page's title, controls beside it, and below it each of `rows` as a row."""
    draw_bar("head", [title(current.name), *beside_title], *rows)


def draw_sidebar(
    groups: Sequence[str],
    *settings,
    on_reset: Callable,
    folded: Sequence[str] = (),
    without: Sequence[str] = (),
    fixed: Sequence[str] = (),
    carried: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    controls_above: Mapping[str, Sequence[Control]] | None = None,
    draw_by_group: Mapping[str, Callable] | None = None,
    label: str = "Reset to defaults",
):
    """Draw groups (labels) of controls in the sidebar, and the button that resets them.

    Args:
        groups: Labels of the groups, in order.
        *settings: Settings whose controls are drawn.
        on_reset: Callback of the reset button.
        folded: Groups that are closed at first.
        without: Settings that have no control here.
        fixed: Settings whose control shows the value and cannot be moved.
        carried: Settings that differ from their defaults though the user did not change them.
        notes: HTML below a group's controls, by group.
        controls_above: Further controls above a group's settings, by group.
        draw_by_group: Functions that draw a group in place of its settings' controls, by group.
        label: Label of the reset button.
    """
    draw_by_group = draw_by_group or {}
    with st.sidebar:
        for group in groups:
            if group in draw_by_group:
                with st.expander(group, expanded=group not in folded):
                    draw_by_group[group]()
        groups = [group for group in groups if group not in draw_by_group]
        draw_panel(
            groups,
            *settings,
            on_reset=on_reset,
            folded=folded,
            without=without,
            fixed=fixed,
            carried=carried,
            notes=notes,
            controls_above=controls_above,
            label=label,
        )


def draw_notice(*notes: str, left_out: Sequence[str] = ()):
    """Draw a warning for each note, and a caption for each reason why a variant is left out.

    It has a fixed container: otherwise elements below would be rebuilt, and a press on them lost.
    """
    with st.container():
        warn(*notes)
        for reason in left_out:
            st.caption(literal(reason))


def warn(*notes: str):
    """Draw a warning for each note."""
    for note in notes:
        st.warning(literal(note), icon=":material/info:")


def figure(title: str, sentence: str, weights_note: str = "", other_texts: Sequence[str] = ()):
    """Draw title, finding and source of weights above a picture; its alt text gets the finding.

    Args:
        title: Bold first line.
        sentence: Finding below the title.
        weights_note: Source of weights; "" if a legend already states it.
        other_texts: Texts in the picture; the help explains glossary terms in them, too.
    """
    takeaway.set_announcement(sentence)
    if sentence and side_by_side.shows_difference():
        sentence = f"Variant: {sentence}"
    whose = f" :small[:gray[{literal(weights_note)}.]]" if weights_note else ""
    st.markdown(
        f"**{literal(title)}**  \n{literal(sentence)}{whose}",
        help=explain_terms(title, sentence, *other_texts),
    )


def draw_finding(sentence: str, weights_note: str = ""):
    """Draw a sentence below a picture, and the source of weights; it is not announced."""
    if sentence and side_by_side.shows_difference():
        sentence = f"Variant: {sentence}"
    line = "  \n" if side_by_side.has_full_width() else " "
    note = f"{line}:small[:gray[{literal(weights_note)}.]]" if weights_note else ""
    st.markdown(f"{literal(sentence)}{note}", help=explain_terms(sentence))


FIT = {"type": "fit", "contains": "padding"}  # axes and titles are part of a chart's size


def chart(spec: dict, table, alt: str, height: int | None = None):
    """Draw a Vega-Lite chart of a table; offer the table for export, named by its `alt` text.

    Args:
        spec: Specification without data.
        table: Data of the chart; also offered for export.
        alt: Alternative text.
        height: Height in pixels; None for the content's.
    """
    alt = side_by_side.with_side_name(alt)
    takeaway.offer_table(alt.rstrip("."), lambda: table)

    sentence = takeaway.take_announcement()

    def draw(twin):
        values = table
        shown_spec = spec
        if side_by_side.shows_difference() and can_subtract(spec, table, twin):
            values = subtract(table, twin)
            shown_spec = for_differences(spec, values)
        elif twin is not None:
            shown_spec = on_one_scale(spec, table, twin)
            side_by_side.caption_no_difference()
        shown_spec = side_by_side.in_side_colour(shown_spec)
        if height:
            # As a height of the element, Streamlit would measure it with the zoom of presentation
            # mode, and the zoom would then be applied once more.
            shown_spec = shown_spec | {"height": height, "autosize": FIT}
        st.vega_lite_chart(
            values,
            shown_spec,
            alt=f"{alt.rstrip('.')}. {sentence}".strip(),
            width="stretch",
            height="content",
        )

    side_by_side.draw_picture("chart", table, draw)


def table(data, alt: str, exported=None, **options):
    """Draw a table, offer it (or `exported`) under the name `alt`; return st.dataframe's result.

    Args:
        data: Table or Styler to draw.
        alt: Alternative text, and name of the export.
        exported: Numbers to export where the table shows text, or a function that returns them.
        **options: Passed on to st.dataframe.
    """
    exported = data if exported is None else exported
    alt = side_by_side.with_side_name(alt)
    takeaway.offer_table(alt.rstrip("."), exported if callable(exported) else lambda: exported)
    columns = _column_settings(data, options.pop("column_config", {}))
    return st.dataframe(
        data, hide_index=True, placeholder="–", alt=alt, column_config=columns, **options
    )


def style_numbers(frame, formats: dict[str, str]):
    """Return a Styler that formats columns (name -> format spec) with a true minus sign."""

    def write(value: float, how: str) -> str:
        return format(value, how).replace("-", "−").replace("%", "\N{NO-BREAK SPACE}%")

    return frame.style.format({name: partial(write, how=how) for name, how in formats.items()})


def _column_settings(data, given: dict) -> dict:
    """Return column settings for st.dataframe: `given` (label, config, None), glossary help."""
    columns = {
        name: {"help": explain_terms(str(name))}
        for name in data.columns
        if explain_terms(str(name))
    }
    for name, column in given.items():
        if column is None:  # st.dataframe leaves the column out
            columns[name] = None
            continue
        column = {"label": column} if isinstance(column, str) else column
        columns[name] = columns.get(name, {}) | {
            key: value for key, value in column.items() if value is not None
        }
    return columns


def caption(text: str):
    """Draw a caption, with glossary terms explained in its help."""
    st.caption(literal(text), help=explain_terms(text))


def small_table(data, alt: str, exported=None):
    """Draw a table of few rows, and offer it (or `exported`) for export under the name `alt`."""
    # As HTML: st.dataframe would need a tenth of a second.
    exported = data if exported is None else exported
    alt = side_by_side.with_side_name(alt)
    takeaway.offer_table(alt.rstrip("."), lambda: exported)
    st.table(
        data.rename(columns=literal).map(literal), border="horizontal", hide_index=True, alt=alt
    )
