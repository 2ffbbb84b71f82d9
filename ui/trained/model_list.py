"""List of models in the sidebar, with the upload and download of others."""

import logging
from functools import partial
from threading import Lock

import streamlit as st

from core.checkpoints import CheckpointError, family, files
from core.experiments.weights import list_values, weights
from core.model.config import Config
from core.model.variants import apply
from core.settings.memory import MemoryLimitError, max_mb
from core.settings.progress import hold_lock
from core.settings.setting import ConfigError
from core.settings.wording import distinct
from ui.kit.page import literal
from ui.kit.pages import TRAINING
from ui.kit.rights import REASON, may_write
from ui.kit.store import bind, change
from ui.shared import models
from ui.trained.context import TrainedLook

NOTHING = "Choose the files of a model first."
REFUSED = "_model_refused"  # key in the session: why the last one could not be opened
_one_at_a_time = Lock()  # one model can take all the memory that one visitor may have
OPENED = "_models_opened"  # key in the session: how many there were


def _uploader_key() -> str:
    """Return the uploader's key, which changes with every model."""
    return f"model_files_{st.session_state.get(OPENED, 0)}"


def _open_requested_model():
    """Open and select the uploaded or downloaded model, or store why not (a callback)."""
    sent = st.session_state.get(_uploader_key()) or []
    model_name = (st.session_state.get("model_hub") or "").strip()
    st.session_state.pop(REFUSED, None)
    if not all(
        hasattr(file, "size") for file in sent
    ):  # Streamlit's mark for one that did not arrive
        st.session_state[REFUSED] = (
            "An upload failed: the server refused it, or it was cancelled. Try again."
        )
        return
    try:
        if sent:
            size = sum(file.size for file in sent)
            if size > max_mb() << 20:
                raise MemoryLimitError(
                    f"These files are {size / 2**20:,.0f} MB; the limit for a model is {max_mb():,}"
                    " MB (ABLATION_MAX_MB)."
                )
            with hold_lock(_one_at_a_time, "waiting for another user's model to open"):
                opened = files.from_upload(
                    {file.name: file.getvalue() for file in sent}, models.check_room
                )
        elif model_name:
            if not may_write():
                raise CheckpointError(REASON)
            opened = files.from_hub(model_name, models.check_room)
        else:
            st.session_state[REFUSED] = NOTHING
            return
        name = models.add_model(opened)
        st.session_state[OPENED] = st.session_state.get(OPENED, 0) + 1
    except (CheckpointError, MemoryLimitError, ConfigError) as error:
        st.session_state[REFUSED] = str(error)
        return
    except (
        Exception
    ) as error:  # whatever a file can be wrong in: this runs before the page, which would tell
        logging.exception("a model could not be opened")
        st.session_state[REFUSED] = f"The model could not be opened ({type(error).__name__})."
        return
    change(model=name, out="")


def draw_model_list(look: TrainedLook):
    """Draw the list of models, the popover to open another, and notes on the selected one."""
    of_family = models.family_models()
    other_sizes = {  # which the sliders open
        name
        for name, (member, seed) in of_family.items()
        if member in family.sizes()
        and (member, seed) in family.list_shipped()
        and name != look.model
    }
    offered = [name for name in models.model_names() if name not in other_sizes]
    labels = dict(zip(offered, distinct(map(_label, offered))))
    st.selectbox(
        "Model",
        offered,
        **bind("model", look.model, _select_model),
        format_func=labels.get,
        label_visibility="collapsed",
    )
    _draw_sizes(look)
    draw_model_opener()
    for note in models.open_model(look.model).notes:
        st.caption(literal(note))


def _draw_sizes(look: TrainedLook):
    """Draw a slider for each size that a model of the family ships in; a move opens that model."""
    of_family = models.family_models() | {models.SHIPPED: (family.WHOLE, family.SEEDS[0])}
    if look.model not in of_family:
        return
    config = family.config_of(*of_family[look.model])
    for name in family.SIZES:
        definition = Config.settings()[name]
        values = list_values("trained", config, name)
        if len(values) > 1:
            st.select_slider(
                definition.label,
                values,
                **bind(f"size_{name}", getattr(config, name), partial(_open_size, config, name)),
                help=definition.help,
            )


def _open_size(config: Config, name: str, value: int):
    """Open the model of the family that differs from a config in one size (a callback)."""
    member = family.member_of(apply({name: value}, config))
    is_shipped = (member, config.seed) == (family.WHOLE, family.SEEDS[0])
    _select_model(models.SHIPPED if is_shipped else f"{models.FAMILY}{member}.{config.seed}")


def draw_model_opener():
    """Draw the popover that opens another model: an upload, or a name on the Hub."""
    with st.popover("Open a model", icon=":material/upload_file:", width="stretch"):
        st.file_uploader(
            "Choose all files of the model together: **model.safetensors** and **config.json**, for"
            " GPT-2 also **tokenizer.json** (or **vocab.json** and **merges.txt**)",
            accept_multiple_files=True,
            key=_uploader_key(),
            type=None,
            max_upload_size=min(max_mb(), st.get_option("server.maxUploadSize")),
        )
        if may_write():
            words = "Or a GPT-2 model ID from Hugging Face"
            st.text_input(words, key="model_hub", placeholder="openai-community/gpt2")
        st.button(
            "Open",
            key="model_open",
            type="primary",
            on_click=_open_requested_model,
            icon=":material/folder_open:",
        )
        st.caption(
            f"To use your own model, export it from {TRAINING.name}, unpack the archive and choose"
            " both files. Folders in models/ and ABLATION_MODELS are in the list above."
        )
    if st.session_state.get(REFUSED):
        st.error(literal(st.session_state[REFUSED]), icon=":material/block:")


def _label(name: str) -> str:
    """Return a model's label in the list."""
    if name in models.family_models():
        member, seed = models.family_models()[name]
        return weights["trained"].describe(family.config_of(member, seed))
    is_shipped = name == models.SHIPPED and name in models.model_folders()
    return "Legal sentences" if is_shipped else name


def _select_model(model: str):
    """Open another model by name, without ablations; all else stays (a callback)."""
    change(model=model, out="")
    st.session_state.pop(REFUSED, None)
