"""What the views of the page "Trained model" share: its settings, and what is being looked at."""

from dataclasses import dataclass
from functools import cached_property

import streamlit as st

from core import lesion
from core.dial import ConfigError, dial
from core.experiments import knockout, prompt
from core.experiments.forward import Pass
from core.experiments.knockout import Bench, Effect, Reading
from core.lesion import Cut
from core.menu import Menu
from core.text import shown
from ui.controls import control
from ui.model import choose
from ui.views.base import Picked

views = Menu("Views of a trained model")
TEXTS, WORK = 256, 8e10  # held-out texts; floating point operations that a pass through all of them may take


def reader(name: str) -> tuple[int, int]:
    """Layer and head to open a model on, from 1: the one its file names, or that reads the subject most; else the first."""
    opened = choose.known(name)
    found = opened.about.get("reader")
    if isinstance(found, list | tuple) and len(found) == 2 and all(isinstance(n, int) and n > 0 for n in found):
        return tuple(found)
    if opened.task == "sentences":
        best = knockout.readings(knockout.bench(opened, texts(name)))[:1]
        return next(((each.layer + 1, each.head + 1) for each in best), (1, 1))
    return 1, 1


def before_verb(look) -> int:
    """The word before the sentence's last verb, where that is chosen; the last one where there is none. From 1."""
    try:
        made = prompt.read(choose.known(look.model), look.prompt)
    except ConfigError:
        return 1
    return prompt.verb_of(made) or len(made.ids)


def texts(name: str) -> int:
    """How many held-out texts: 256, or fewer for a model that would take too long."""
    opened = choose.known(name)
    return max(16, min(TEXTS, int(WORK / (2 * opened.parameters * 20)) // 16 * 16))


@dataclass(frozen=True)
class ModelLook(Picked):
    """Which model, what it reads, what is taken out of it, and what is looked at."""

    taken: str = dial("attention", "View", "What to look at.", group="Look", menu=views)
    model: str = dial(choose.SHIPPED, "Model", "Which trained model.", group="Model")
    prompt: str = dial(
        None,
        "Prompt",
        "What the model reads.",
        group="Text",
        kind=str,
        follows=lambda look: choose.prompts(look.model)[0][1],
    )
    out: str = dial("", "Taken out", "What is knocked out: 2.3 is head 3 of layer 2; or 1.ffn.", group="Knock-out")
    mode: str = dial(
        "zero", "What takes its place", "What the model finds there instead.", group="Knock-out", menu=lesion.mode
    )
    texts: int = dial(
        None, "Texts", "On how many the effect is measured. Follows the size of the model: 256 where that takes a second.",
        group="Knock-out", kind=int, low=8, high=4096, step=8, top=512, follows=lambda look: texts(look.model),
    )  # fmt: skip
    rank_by: str = dial(
        "difference", "Ranked by", "By which effect the parts are ranked.", group="Look", menu=knockout.effect
    )
    knocked: bool = dial(True, "With the knock-out", "Show attention as it is with the knock-out.", group="Look")
    maps: str = dial(
        "one",
        "Picture",
        "How attention is drawn.",
        group="Look",
        menu=Picked.__dataclass_fields__["maps"].metadata["dial"].menu,
    )
    layer: int = dial(None, "Layer", "Which block of the stack.", group="Look", kind=int, low=1, high=100, step=1, top=100, follows=lambda look: reader(look.model)[0])  # fmt: skip
    head: int = dial(None, "Head", "Which attention head.", group="Look", kind=int, low=1, high=64, step=1, top=64, follows=lambda look: reader(look.model)[1])  # fmt: skip
    token: int = dial(None, "Token", "After which token of the text.", group="Look", kind=int, low=1, high=272, step=1, top=272, follows=before_verb)  # fmt: skip

    def __post_init__(self):
        choose.known(self.model)
        order = sorted(
            self.__dataclass_fields__, key=lambda name: name not in ("model", "prompt")
        )  # others follow these
        for name in order:
            made, value = self.__dataclass_fields__[name].metadata["dial"], getattr(self, name)
            if value is None and made.follows:
                value = made.follows(self)
            object.__setattr__(self, name, made.check(name, value))


@dataclass(frozen=True)
class Looked:
    """What the views are handed."""

    bench: Bench
    prompt: prompt.Prompt
    cuts: tuple[Cut, ...]
    mode: str
    look: ModelLook

    @property
    def opened(self):
        return self.bench.opened

    @cached_property
    def whole(self) -> Pass:
        """The pass of the prompt through the whole model."""
        return prompt.look(self.bench, self.prompt)

    @cached_property
    def without(self) -> Pass:
        """The same with the knock-out."""
        return prompt.look(self.bench, self.prompt, self.cuts, self.mode)

    @property
    def shown(self) -> Pass:
        """Whichever of the two is to be seen."""
        return self.without if self.cuts and self.look.knocked else self.whole

    @property
    def after(self) -> int:
        """The token after which the next one is looked at, from 0."""
        return min(self.look.token, len(self.prompt.ids)) - 1

    @property
    def effect(self) -> Effect:
        return knockout.measured(self.bench, self.cuts, self.mode)

    @cached_property
    def readings(self) -> list[Reading]:
        return self.opened.results.get((self.bench, "readings"), lambda: (knockout.readings(self.bench), 10_000))

    @property
    def named(self) -> str:
        """The knock-out in words: "− head 2.3 (zero)"."""
        return (
            f"{lesion.name_of(self.cuts)} ({lesion.mode.label(self.mode).lower()})" if self.cuts else "the whole model"
        )

    @property
    def told(self) -> str:
        """The same inside a sentence: "the model without head 2.3 (zero)"."""
        return f"the model without {self.named.replace('− ', '')}" if self.cuts else "the whole model"

    @property
    def language(self) -> bool:
        """Whether what it says at a place is the next word; models of other tasks give an answer there."""
        return self.opened.task in ("", "sentences")

    def word(self, token: int) -> str:
        return shown(self.opened.tokens.label(token))


def with_knockout(looked) -> Pass:
    """The switch between the two passes, where there are two -> the one to be shown."""
    if looked.cuts:
        control(looked.look, "knocked")
    return looked.shown


def take_out(*cuts: Cut, **more):
    """Knock these out as well, or put back what is out already (a callback)."""
    name = st.session_state.out
    there = list(filter(None, name.split("~")))
    for cut in cuts:
        text = cut.write()
        there = [each for each in there if each != text] if text in there else [*there, text]
    st.session_state.out = "~".join(there)
    for key, value in more.items():
        st.session_state[key] = value
