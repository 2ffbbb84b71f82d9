"""Which model: those that ship or lie in a folder, what was trained here a moment ago, what somebody brings along."""

import functools
import logging
import os
import time
import weakref
from contextlib import suppress

import streamlit as st

from core.checkpoints import CheckpointError, Opened, files, own
from core.checkpoints.tokens import Words
from core.checkpoints.zips import zipped
from core.experiments.trained import knockout, tables
from core.experiments.trained.questions import questions
from core.export.slug import slug
from core.settings.device import Machine
from core.settings.environment import whole_number
from core.settings.memory import MemoryLimit, max_mb
from core.settings.setting import ConfigError
from ui.kit import jobs
from ui.kit.controls import put
from ui.kit.page import literal
from ui.kit.rights import REASON, may_write
from ui.kit.visitor import one_of

SHIPPED = files.SHIPPED
OWN, REFUSED, OPEN = "_models", "_model_refused", "_open_model"  # keys in the session; OPEN: the model to go to
KEPT = 4  # models of one visitor at most; all together may have as much memory as one run
DOWNLOADS = 10  # of one visitor
FETCHED = "_models_fetched"  # key in the session: how many there were
LARGE = 5_000_000  # parameters
TEXTS, WORK = 256, 8e10  # held-out texts; floating point operations that a pass through all of them may take
ENGLISH = (
    ("A clause in between", "The defendant, who had filed a motion to dismiss, was liable."),
    ("A noun of the other number", "The keys to the cabinet are on the table."),
    ("To be continued", "The court held that the tenants of the building"),
    ("The same again", "Mr. Smith was late. Mrs. Jones was early. Mr."),
)


kept_by_all: "weakref.WeakSet" = weakref.WeakSet()  # models that visitors brought along, or took from a training


@st.cache_resource(max_entries=3, show_spinner="Opening the model …")
def _from_folder(place: bytes, changed: float) -> Opened:
    return _placed(files.from_folder(os.fsdecode(place)))


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
    return {name: (os.fsencode(folder), files.changed(folder)) for name, folder in files.folders().items()}


def names() -> list[str]:
    """Every model that this visitor can look at."""
    return [*_folders(), *st.session_state.get(OWN, {})]


def known(name: str) -> Opened:
    """A model by its name. Raises ConfigError, with another one in its place, for a name that is none here, or a folder that
    cannot be opened; CheckpointError where there is no other."""
    mine = st.session_state.get(OWN, {})
    if name in mine:
        return mine[name]
    there = _folders()
    if name not in there:
        known_to = "what was brought along or trained is seen by its own visitor only, until the tab is closed"
        why = f"its folder, models/{SHIPPED}, is missing" if name == SHIPPED else known_to
        raise _instead(
            name, f"model is “{name[:40]}”, which is not here ({why}); there are {', '.join(names()) or 'none'}."
        )
    try:
        return _from_folder(*there[name])
    except (CheckpointError, MemoryLimit) as error:
        raise _instead(name, f"model is {name}, which cannot be opened: {error}") from None


def _instead(name: str, words: str) -> ConfigError | CheckpointError:
    """The error for a model that cannot be shown: with the first other one that can."""
    for other in names():
        with suppress(CheckpointError, MemoryLimit):
            if other != name and (other in st.session_state.get(OWN, {}) or _from_folder(*_folders()[other])):
                return ConfigError("model", words, other)
    return CheckpointError(words[:1].upper() + words[1:])


def prompts(name: str) -> list[tuple[str, str]]:
    """(title, text) of what a model can be given to read; the first one it opens on."""
    opened = known(name)
    if opened.learnt and opened.learnt.texts:
        return list(opened.learnt.texts)
    if not opened.task:
        return list(ENGLISH)
    made = questions(opened, 64)
    texts = dict.fromkeys(" ".join(opened.model.vocabulary[token] for token in row) for row in made.tokens[:6].tolist())
    return [(f"Text {n}", text) for n, text in enumerate(texts, 1)]


def reader(name: str) -> tuple[int, int]:
    """Layer and head to open a model on, from 1: the one its file names, or that reads the subject most; else the first."""
    opened = known(name)
    if "reader" in opened.about:
        return tuple(opened.about["reader"])
    if opened.learnt and opened.learnt.agreement:
        best = tables.readings(knockout.bench(opened, texts(name)))[:1]
        return next(((each.layer + 1, each.head + 1) for each in best), (1, 1))
    return 1, 1


def texts(name: str) -> int:
    """How many held-out texts: 256, or fewer for a model that would take too long."""
    opened = known(name)
    return max(16, min(TEXTS, int(WORK / (2 * opened.parameters * 20)) // 16 * 16))


def check_room(parameters: int):
    """Raises MemoryLimit where the models of all visitors would need more memory than they may have."""
    most = whole_number("ABLATION_MODELS_MB", 4 * max_mb())
    if 4 * (parameters + sum(each.parameters for each in kept_by_all)) > most << 20:
        raise MemoryLimit(
            f"The models that all visitors have opened may have {most:,} MB together (set by ABLATION_MODELS_MB), and this one "
            "would be more. Try again later: they are forgotten when their visitors are gone."
        )


def add(opened: Opened) -> str:
    """Put a model with this visitor's own -> the name under which it stands there. Raises MemoryLimit."""
    opened, mine = _placed(opened), st.session_state.setdefault(OWN, {})
    same = next((name for name, each in mine.items() if each.key == opened.key), None)
    if same:
        return same
    check_room(opened.parameters)
    kept_by_all.add(opened)
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
            _check_size(sum(each.size for each in sent))
            opened = files.from_upload({each.name: each.getvalue() for each in sent})
        elif wanted:
            _check_download()
            opened = files.from_hub(wanted)
        else:
            return
        name = add(opened)
    except (CheckpointError, MemoryLimit, ConfigError) as error:
        st.session_state[REFUSED] = str(error)
        return
    except Exception as error:  # whatever a file can be wrong in: this runs before the page, which would tell
        logging.exception("a model could not be opened")
        st.session_state[REFUSED] = f"The model could not be opened ({type(error).__name__})."
        return
    put(model=name, out="")


def _check_size(size: int):
    """Raises MemoryLimit for files that one visitor may not send."""
    if size > max_mb() << 20:
        raise MemoryLimit(
            f"These files have {size / 2**20:,.0f} MB; one visitor may upload {max_mb():,} MB at a time (set by ABLATION_MAX_MB)."
        )


def _check_download():
    """Raises CheckpointError for a visitor who may have nothing downloaded, or has had enough."""
    if not may_write():
        raise CheckpointError(REASON)
    fetched = st.session_state.get(FETCHED, 0)
    if fetched >= DOWNLOADS:
        raise CheckpointError(
            f"One visitor may have {DOWNLOADS} models downloaded; these were all. Upload its files instead."
        )
    st.session_state[FETCHED] = fetched + 1


def controls(look):
    """The list of models, and what brings another one."""
    offered = names()
    st.selectbox(
        "Model", offered, **one_of("model", look.model, offered), format_func=_label,
        label_visibility="collapsed", on_change=_forget,
    )  # fmt: skip
    bring()
    for note in known(look.model).notes:
        st.caption(literal(note))


def bring():
    """What opens another model: an upload, or a name on the Hub."""
    with st.popover("Open another model", icon=":material/upload_file:", width="stretch"):
        st.file_uploader(
            "Files: **model.safetensors** and **config.json** (for GPT-2 also **tokenizer.json**), or a zip of them",
            accept_multiple_files=True, key="model_files", type=None, max_upload_size=max_mb(),
        )  # fmt: skip
        if may_write():
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


def _label(name: str) -> str:
    there = _folders()
    return "Legal sentences (ships with the lab)" if name == SHIPPED and name in there else name


def _forget():
    """Another model has other parts: nothing is knocked out of it."""
    put(out="")
    st.session_state.pop(REFUSED, None)


def trained(arm: str, seed: int):
    """Open what the visitor is training, as far as it came (a callback)."""
    running = jobs.running()
    if running:
        state = running.job.states[arm, seed]
        name = f"{state.training.task}: {arm}, seed {seed}, step {state.step:,}"
        try:
            st.session_state[OPEN] = add(own.of_training(state, name))
        except MemoryLimit as error:
            st.toast(literal(error), icon=":material/block:", duration="long")


def folder_of(name: str) -> str:
    """Where a script finds it, as seen from the repository; "" for one that lies elsewhere: where, is for nobody to see."""
    found = files.folders().get(name)
    return found.relative_to(files.ROOT.parent).as_posix() if found and found.is_relative_to(files.ROOT) else ""


def taken_away(opened: Opened) -> dict:
    """A model of the lab's own as a file."""
    if not isinstance(opened.tokens, Words):
        return {}
    return {
        "This model: weights and configuration": (
            f"{slug(opened.name)}.zip",
            lambda: zipped(own.write(opened.model, opened.name, opened.task, **opened.about)),
        )
    }
