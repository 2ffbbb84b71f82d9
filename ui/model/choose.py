"""Which model: those that ship or lie in a folder, what was trained here a moment ago, what somebody brings along."""

import functools
import logging
import os
import time

import streamlit as st

from core.checkpoint import CheckpointError, Opened, files, own
from core.checkpoint.tokens import Words
from core.device import Machine
from core.dial import ConfigError
from core.environment import read_only
from core.experiments.questions import questions
from core.memory import MemoryLimit, max_mb
from ui import jobs, takeaway
from ui.page import literal

SHIPPED = files.SHIPPED
OWN, REFUSED, OPEN = "_models", "_model_refused", "_open_model"  # keys in the session; OPEN: the model to go to
KEPT = 4  # models of one visitor at most; all together may have as much memory as one run
LARGE = 5_000_000  # parameters
LEGAL = (
    ("A clause in between", "The defendant , who had filed a motion to dismiss , was liable ."),
    ("All words known", "the court held that the defendant , who had signed the contracts , was liable ."),
    ("Two nouns in between", "the judges with the letter sent by the clerk were late ."),
    ("Somebody else's verb", "the tenants whom the bank was suing were bound ."),
    ("Nothing in between", "the lawyer was right ."),
    ("To be continued", "the witness said that the owners of"),
)
ENGLISH = (
    ("A clause in between", "The defendant, who had filed a motion to dismiss, was liable."),
    ("A noun of the other number", "The keys to the cabinet are on the table."),
    ("To be continued", "The court held that the tenants of the building"),
    ("The same again", "Mr. Smith was late. Mrs. Jones was early. Mr."),
)


@st.cache_resource(max_entries=3, show_spinner="Opening the model …")
def _from_folder(path: str, changed: float) -> Opened:
    return _placed(files.from_folder(path))


def _placed(opened: Opened) -> Opened:
    """A large model goes to the GPU, where there is one; for a small one the way there takes longer than the work."""
    if opened.parameters > LARGE:
        opened.model.to(Machine().place)
    return opened


def _folders() -> dict:
    """files.folders(), read from the disk once a second at most: a page asks for it twenty times."""
    return _listed(int(time.monotonic()), os.environ.get("ABLATION_MODELS"))


@functools.lru_cache(maxsize=2)
def _listed(second: int, place: str | None) -> dict:
    return {
        name: (folder, max(each.stat().st_mtime for each in folder.iterdir()))
        for name, folder in files.folders().items()
    }


def names() -> list[str]:
    """Every model that this visitor can look at."""
    return [*_folders(), *st.session_state.get(OWN, {})]


def known(name: str) -> Opened:
    """A model by its name. Raises ConfigError for a name that is none here, or a folder that cannot be opened."""
    mine = st.session_state.get(OWN, {})
    if name in mine:
        return mine[name]
    there = _folders()
    if name not in there:
        raise ConfigError(
            "model", f"model is “{name[:40]}”, which is not here (what was brought along or trained is seen by its own visitor only, until the tab is closed); "
            f"there are {', '.join(names())}.", SHIPPED,
        )  # fmt: skip
    try:
        folder, changed = there[name]
        return _from_folder(str(folder), changed)
    except (CheckpointError, MemoryLimit) as error:
        if name == SHIPPED:
            raise
        raise ConfigError("model", f"model is {name}, which cannot be opened: {error}", SHIPPED) from None


def prompts(name: str) -> list[tuple[str, str]]:
    """(title, text) of what a model can be given to read; the first one it opens on."""
    opened = known(name)
    if opened.task == "sentences":
        return list(LEGAL)
    if not opened.task:
        return list(ENGLISH)
    made = questions(opened, 64)
    texts = dict.fromkeys(" ".join(opened.model.vocabulary[token] for token in row) for row in made.tokens[:6].tolist())
    return [(f"Text {n}", text) for n, text in enumerate(texts, 1)]


def add(opened: Opened) -> str:
    """Put a model with this visitor's own -> the name under which it stands there."""
    opened, mine = _placed(opened), st.session_state.setdefault(OWN, {})
    same = next((name for name, each in mine.items() if each.key == opened.key), None)
    if same:
        return same
    name, n = opened.name, 1
    while name in mine or name in _folders():
        n += 1
        name = f"{opened.name} ({n})"
    mine[name] = opened
    while len(mine) > KEPT or (len(mine) > 1 and 4 * sum(each.parameters for each in mine.values()) > max_mb() << 20):
        mine.pop(next(iter(mine)))
    return name


def _brought():
    """Open what was uploaded, or is to be downloaded (a callback)."""
    sent, wanted = st.session_state.get("model_files") or [], (st.session_state.get("model_hub") or "").strip()
    st.session_state.pop(REFUSED, None)
    try:
        if sent:
            opened = files.from_upload({each.name: each.getvalue() for each in sent})
        elif wanted:
            opened = files.from_hub(wanted)
        else:
            return
    except (CheckpointError, MemoryLimit, ConfigError) as error:
        st.session_state[REFUSED] = str(error)
        return
    except Exception as error:  # whatever a file can be wrong in: this runs before the page, which would tell
        logging.exception("a model could not be opened")
        st.session_state[REFUSED] = f"The model could not be opened ({type(error).__name__}: {str(error)[:120]})."
        return
    st.session_state.model = add(opened)
    st.session_state.out = ""


def controls(look):
    """The list of models, and what brings another one."""
    offered = names()
    st.selectbox("Model", offered, key="model", format_func=_label, label_visibility="collapsed", on_change=_forget)
    with st.popover("Open another model", icon=":material/upload_file:", width="stretch"):
        st.file_uploader(
            "Files: **model.safetensors** and **config.json** (for GPT-2 also **tokenizer.json**), or a zip of them",
            accept_multiple_files=True, key="model_files", type=None,
        )  # fmt: skip
        if not read_only():
            st.text_input(
                "Or a GPT-2 by its name on the Hugging Face Hub (it is then downloaded)",
                key="model_hub",
                placeholder="openai-community/gpt2",
            )
        st.button("Open", key="model_open", type="primary", on_click=_brought, icon=":material/folder_open:")
        st.caption(
            "What was trained on the page Training is saved there under *Take away*. Folders in models/ and in ABLATION_MODELS are in the list above."
        )
    if st.session_state.get(REFUSED):
        st.error(literal(st.session_state[REFUSED]), icon=":material/block:")
    for note in known(look.model).notes:
        st.caption(literal(note))


def _label(name: str) -> str:
    there = _folders()
    return "Legal sentences (ships with the lab)" if name == SHIPPED and name in there else name


def _forget():
    """Another model has other parts: nothing is knocked out of it."""
    st.session_state.out = ""
    st.session_state.pop(REFUSED, None)


def trained(arm: str, seed: int):
    """Open what the visitor is training, as far as it came (a callback)."""
    running = jobs.running()
    if running:
        state = running.job.states[arm, seed]
        name = f"{state.training.task}: {arm}, seed {seed}, step {state.step:,}"
        st.session_state[OPEN] = add(own.of_training(state, name))


def folder_of(name: str) -> str:
    """Where a script finds it."""
    found = files.folders().get(name)
    if found is None:
        return "folder_of_the_model"
    return str(found.relative_to(files.ROOT.parent)) if found.is_relative_to(files.ROOT.parent) else str(found)


def taken_away(opened: Opened) -> dict:
    """A model of the lab's own as a file."""
    if not isinstance(opened.tokens, Words):
        return {}
    return {
        "This model: weights and configuration": (
            f"{takeaway.slug(opened.name)}.zip",
            lambda: files.zipped(own.write(opened.model, opened.name, opened.task, **opened.about)),
        )
    }
