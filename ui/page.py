"""The frame of every page: boot, title, menu, and the one place where errors become words."""

import gc
import importlib
import logging
import threading
from contextlib import contextmanager

import streamlit as st
import torch

from core.dial import ConfigError
from core.memory import MemoryLimit, reuse_freed_memory
from ui import jobs, takeaway

MENU = (
    ("app.py", "Start", ":material/home:"),
    ("pages/1_One_block.py", "One block", ":material/view_agenda:"),
    ("pages/2_Depth.py", "Depth", ":material/layers:"),
    ("pages/3_Training.py", "Training", ":material/model_training:"),
    ("pages/4_Studies.py", "Studies", ":material/lab_research:"),
    ("pages/5_Trained_model.py", "Trained model", ":material/neurology:"),
)
CSS = """<style>
[data-testid="stMainBlockContainer"] { padding-left: 2rem; padding-right: 2rem; max-width: 1800px; }
[data-testid="stHeader"] { background: transparent; height: 2.2rem; min-height: 2.2rem; }
[data-testid="stSidebarHeader"] { height: 2.2rem; margin-bottom: 0; padding-top: 0.3rem; }
[data-testid="stSidebar"] [data-testid="stVerticalBlock"] { gap: 0.5rem; }
[data-testid="stSidebar"] [data-testid="stExpanderDetails"] { padding-top: 0.4rem; padding-bottom: 0.6rem; }
[data-testid="stMain"] [data-testid="stVerticalBlock"] { gap: 0.6rem; }
@media (max-width: 640px) { [data-testid="stMainBlockContainer"] { padding-left: 0.9rem; padding-right: 0.9rem; } }
</style>"""


@st.cache_resource
def boot():
    """Once per process; docs/log.md says what each line is worth."""
    torch.set_num_threads(1)  # at these sizes a second thread gains little and can stall
    reuse_freed_memory()
    gc.collect()
    gc.freeze()  # so that no later collection has to walk all of torch again
    later = threading.Timer(
        2.0, importlib.import_module, ("ui.studies",)
    )  # a database's driver, before somebody waits for it
    later.daemon = True
    later.start()


@contextmanager
def page(title: str, icon: str):
    """Everything a page shows goes inside. Nothing raised in it reaches the user as a traceback."""
    st.set_page_config(page_title=f"{title} · Ablation Lab", page_icon=icon, layout="wide", initial_sidebar_state=330)
    boot()
    jobs.warm()
    takeaway.begin()
    st.html(CSS)
    with st.sidebar:
        for path, label, symbol in MENU:
            st.page_link(path, label=label, icon=symbol)
        if title != "Training":
            jobs.elsewhere()
    try:
        yield
    except (ConfigError, MemoryLimit) as error:
        st.error(literal(error))
    except Exception as error:
        logging.exception("a page failed")
        st.error(
            f"Something went wrong here ({type(error).__name__}). Your settings are kept; change one and it goes on."
        )


def heading(title: str):
    """The page's title, and beside it a place for what can be taken away (ui/takeaway.py), filled at the end."""
    left, right = st.columns([7, 2], vertical_alignment="center")
    with left:
        st.title(title, anchor=False)
    return right


def literal(text) -> str:
    """Text that may hold anything a user typed, for places that render Markdown: every mark shows as itself."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$<>:@&^=" else c for c in str(text))


def capital(text: str) -> str:
    """Text with a capital first letter, for what stands behind a colon in a docstring and alone on screen."""
    return text[:1].upper() + text[1:]


def figure(title: str, sentence: str, weights: str = ""):
    """The words above a picture: a question or a finding, what the numbers say, and whose weights they are.

    weights: empty where a legend has said so already.
    """
    whose = f" :gray[{literal(weights)}.]" if weights else ""
    st.markdown(f"**{literal(title)}**  \n:small[{literal(sentence)}{whose}]")


def chart(spec: dict, table, alt: str, height: int | None = None):
    """An Altair specification with this table as its data."""
    takeaway.note(alt.rstrip("."), lambda: table)
    st.vega_lite_chart(table, spec, alt=alt, width="stretch", height=height or "content")


def table(data, alt: str, taken=None, **words):
    """A table of numbers; taken: the numbers to take away, where what is shown is text, or a call that makes them where
    they are many (what is shown would be kept until the next run); words: what st.dataframe takes.

    -> what st.dataframe gives
    """
    taken = data if taken is None else taken
    takeaway.note(alt.rstrip("."), taken if callable(taken) else lambda: taken)
    return st.dataframe(data, hide_index=True, placeholder="–", alt=alt, **words)


def small_table(data, alt: str, taken=None):
    """A table of few rows, as plain HTML: on the screen at once, where st.dataframe takes a tenth of a second to draw itself."""
    taken = data if taken is None else taken
    takeaway.note(alt.rstrip("."), lambda: taken)
    st.table(data.rename(columns=literal).map(literal), border="horizontal", hide_index=True, alt=alt)
