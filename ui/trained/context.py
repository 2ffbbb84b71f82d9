"""Context of Trained model: menu of views, look, and what views receive."""

from dataclasses import dataclass
from typing import Any

from core.checkpoints import Opened
from core.experiments.forward import Pass
from core.experiments.trained import comparison, knockout, prompt, tables
from core.experiments.trained.knockout import Bench, Effect
from core.experiments.trained.tables import Reading
from core.model import knockout as lesion
from core.model.generate import Sampling
from core.model.knockout import Cut
from core.model.text import check_text, shorten_token
from core.settings.cache import LazyProperty
from core.settings.menu import Menu
from core.settings.setting import ANY, ConfigError, setting
from ui.kit.store import change, value
from ui.shared.base import Picked, maps
from ui.shared.models import SHIPPED, best_reader, example_prompts, n_texts, open_model

view: Menu[Any] = Menu("Views of a trained model")
WHOLE = "full model"  # its name in charts
LONGEST = 40  # letters of a word in a sentence


def token_before_verb(look: "TrainedLook") -> int:
    """Return the number, from 1, of the token before the prompt's last verb; else of the last.

    1 for a prompt that cannot be read.
    """
    try:
        tokens = prompt.read(open_model(look.model), look.prompt)
    except ConfigError:
        return 1
    return prompt.verb_of(tokens) or len(tokens.ids)


@dataclass(frozen=True)
class TrainedLook(Picked):
    """Settings of Trained model: model, prompt, ablation, evaluation and view."""

    taken: str = setting("attention", "View", "What to look at.", group="Look", menu=view)
    model: str = setting(SHIPPED, "Model", "Trained model.", group="Model")
    prompt: str = setting(
        None,
        "Prompt",
        "Input of the model.",
        group="Text",
        kind=str,
        high=ANY,
        follows=lambda look: example_prompts(look.model)[0][1],
    )
    out: str = setting(
        "",
        "Removed",
        "Components that are removed: 2.3 is L2H3, head 3 of layer 2; or 1.ffn.",
        group="Ablation",
    )
    mode: str = setting(
        "zero",
        "Method",
        "What replaces the output of a removed component.",
        group="Ablation",
        menu=lesion.mode,
    )
    texts: int = setting(
        None,
        "Evaluation sentences",
        "Held-out sentences on which effects are measured. Default 256, fewer for large models.",
        group="Evaluation",
        kind=int,
        low=8,
        high=4096,
        step=8,
        top=512,
        follows=lambda look: n_texts(look.model),
    )
    rank_by: str = setting(
        "difference",
        "Ranked by",
        "Metric that ranks the components.",
        group="Look",
        menu=knockout.effect,
    )
    compared: str = setting(
        "accuracy",
        "Compared",
        "Metric of the models trained without a component.",
        group="Look",
        menu=comparison.compared,
    )
    part: str = setting(
        "attention-off",
        "Component",
        "Component that is compared at every distance.",
        group="Look",
        menu=comparison.removed,
    )
    knocked: bool = setting(
        True, "Show ablated model", "Show the attention of the ablated model.", group="Ablation"
    )
    maps: str = setting("one", "Picture", "How attention is drawn.", group="Look", menu=maps)
    layer: int = setting(
        None,
        "Layer",
        "Layer, numbered from 1.",
        group="Look",
        kind=int,
        low=1,
        high=100,
        step=1,
        top=100,
        follows=lambda look: best_reader(look.model)[0],
    )
    head: int = setting(
        None,
        "Head",
        "Attention head, numbered from 1.",
        group="Look",
        kind=int,
        low=1,
        high=64,
        step=1,
        top=64,
        follows=lambda look: best_reader(look.model)[1],
    )
    token: int = setting(
        None,
        "Token",
        "Token after which the prediction is read.",
        group="Look",
        kind=int,
        low=1,
        high=272,
        step=1,
        top=272,
        follows=token_before_verb,
    )

    FIRST = ("model", "prompt")

    def _check_together(self):
        """Raise ConfigError or CheckpointError for an unknown model or a bad prompt."""
        open_model(self.model)
        super()._check_together()
        check_text("prompt", self.prompt)


@dataclass(frozen=True)
class TrainedContext:
    """Context of the views of Trained model: model, text, ablations, look."""

    opened: Opened
    cuts: tuple[Cut, ...]
    sampling: Sampling
    look: TrainedLook

    @LazyProperty
    def bench(self) -> Bench:
        """Held-out texts with their baseline measurements; slow at first, then cached."""
        return knockout.bench(self.opened, self.look.texts)

    @LazyProperty
    def prompt(self) -> prompt.Prompt:
        """Prompt as encoded: cut to the model's length, unknown words left out; or ConfigError."""
        return prompt.read(self.opened, self.look.prompt)

    @LazyProperty
    def full_pass(self) -> Pass:
        """Pass of the prompt through the full model."""
        return prompt.run_prompt(self.bench, self.prompt)

    @LazyProperty
    def ablated_pass(self) -> Pass:
        """Pass of the prompt with the ablation."""
        return prompt.run_prompt(self.bench, self.prompt, self.cuts, self.look.mode)

    @property
    def shown_pass(self) -> Pass:
        """Pass to show: with the ablation if there is one and the view setting `knocked` is on."""
        return self.ablated_pass if self.cuts and self.look.knocked else self.full_pass

    @property
    def after(self) -> int:
        """Index of the token after which the prediction is read, from 0."""
        return min(self.look.token, len(self.prompt.ids)) - 1

    @property
    def effect(self) -> Effect:
        """Effect of the ablation on the held-out texts."""
        return knockout.cached_effect(self.bench, self.cuts, self.look.mode)

    @LazyProperty
    def readings(self) -> list[Reading]:
        """Attention of each head to the subject on held-out sentences, strongest first.

        [] for a model of another task.
        """
        return self.opened.results.get(
            (self.bench.key, "readings"), lambda: (tables.attention_to_subject(self.bench), 10_000)
        )

    @property
    def ablation_name(self) -> str:
        """Name of the ablation in charts: "− L2H3 (zero)"."""
        mode = lesion.mode.label(self.look.mode).lower()
        return f"{lesion.name_of(self.cuts)} ({mode})" if self.cuts else WHOLE

    @property
    def model_name(self) -> str:
        """Name of the model inside a sentence: "without L2H3 (zero)"."""
        return f"without {self.ablation_name.replace('− ', '')}" if self.cuts else WHOLE

    @property
    def predicts_next_token(self) -> bool:
        """Whether the model predicts next tokens, and not the answers of a task."""
        return self.opened.task in ("", "sentences")

    def word(self, token_id: int) -> str:
        """Return a token's text, shortened to 40 characters."""
        return shorten_token(self.opened.tokens.label(token_id), LONGEST)


def ablate_part(text: str, **extra):
    """Ablate one more component, as text ("2.3": head 3 of layer 2), and set `extra` settings.

    A callback; one that is ablated already stays so.
    """
    change(out="~".join(dict.fromkeys([*_ablated_parts(), text])), **extra)


def restore_part(text: str):
    """Stop ablating a component, given as text ("2.3") (a callback)."""
    change(out="~".join(name for name in _ablated_parts() if name != text))


def toggle_part(text: str):
    """Ablate a component, given as text ("2.3"), or stop ablating it (a callback)."""
    (restore_part if text in _ablated_parts() else ablate_part)(text)


def _ablated_parts() -> list[str]:
    """Return the texts of all ablated components."""
    return list(filter(None, value("out").split("~")))
