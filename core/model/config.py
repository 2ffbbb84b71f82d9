"""Config: everything that defines a model. Equal configs are the same model, to the last bit."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from core.model.basics import Basics, allowed_heads
from core.model.parts import MENUS
from core.model.parts.activation import inputs
from core.model.parts.position import acts_in_attention
from core.settings.setting import ConfigError, setting


@dataclass(frozen=True)
class Config(Basics):
    """The settings of a transformer block and of the stack made from it. Frozen and hashable: usable as a cache key.

    Here stand the parts that models have had since; those of the block as it was published are in core/model/basics.py.
    Raises ConfigError, in words, for a value that cannot be: which field, why, and what is allowed.
    """

    FIRST = ("activation", "matched")  # d_ff follows them

    n_kv_heads: int = setting(
        None,
        "Key-value heads (n_kv_heads)",
        "Heads of keys and values. Where they are fewer, several query heads share one: grouped-query attention (Ainslie et "
        "al., 2023). With a single one it is multi-query attention (Shazeer, 2019). Follows n_heads until you move it.",
        group="Attention in detail",
        short="key-value heads",
        kind=int,
        low=1,
        high=64,
        follows=lambda config: config.n_heads,
        among=lambda config: [n for n in range(1, config.n_heads + 1) if config.n_heads % n == 0],
        acts=lambda config: config.n_heads > 1,
        read_by=("attention",),
    )
    qk_norm: bool = setting(
        False,
        "QK-norm",
        "RMSNorm with a learned gain for each head's queries and keys, before positions act. So scores cannot grow with the "
        "stream (qk_norm; Henry et al., 2020; in Qwen 3 and Gemma 3).",
        group="Attention in detail",
        short="QK-norm",
        read_by=("attention",),
    )
    score_cap: float = setting(
        0.0,
        "Soft-cap of scores",
        "Squeezes scores between − and + this: cap · tanh(score / cap). 0: no cap (score_cap; Gemma 2, section 2, has 50).",
        group="Attention in detail",
        short="score cap",
        low=0.0,
        high=1000.0,
        step=1.0,
        top=50.0,
        offers=(2.0,),
        read_by=("attention",),
    )
    window: int = setting(
        0,
        "Window",
        "How far a token sees, itself counted. 0: as far as the mask lets it (window; sliding-window attention, Beltagy et al., "
        "2020; Mistral 7B).",
        group="Attention in detail",
        short="window",
        low=0,
        high=1024,
        step=1,
        top=32,
        offers=(4,),
        read_by=("attention",),
    )
    global_every: int = setting(
        0,
        "Without window: every … layer",
        "Every so many layers one has no window, the others have it. 0: all have it (global_every; Gemma 2 has 2, Gemma 3 has 6).",
        group="Attention in detail",
        short="global every",
        low=0,
        high=100,
        step=1,
        top=6,
        offers=(2,),
        acts=lambda config: config.window > 0,
        read_by=("attention",),
    )
    rope_share: float = setting(
        1.0,
        "Share that RoPE turns",
        "The part of each head's numbers that RoPE turns; the rest knows no position (rope_share; GPT-NeoX has 0.25).",
        group="Attention in detail",
        short="RoPE share",
        low=0.05,
        high=1.0,
        step=0.05,
        offers=(0.25,),
        acts=lambda config: MENUS["position"][config.position].turns,
        read_by=("attention",),
    )
    rope_base: float = setting(
        10000.0,
        "Base of RoPE",
        "The slowest pair turns about once in 2π times this many tokens (rope_base; Llama 3 has 500,000 for long texts).",
        group="Attention in detail",
        short="RoPE base",
        low=2.0,
        high=1e8,
        among=lambda config: sorted({100.0, 1000.0, 10000.0, 100000.0, 500000.0, 1000000.0, config.rope_base}),
        acts=lambda config: MENUS["position"][config.position].turns,
        read_by=("attention",),
    )
    nope_every: int = setting(
        0,
        "No positions: every … layer",
        "Every so many layers one does not turn or shift anything by position. 0: none (nope_every; NoPE layers, 4 in SmolLM 3 "
        "and Llama 4).",
        group="Attention in detail",
        short="no positions every",
        low=0,
        high=100,
        step=1,
        top=6,
        offers=(2,),
        acts=lambda config: acts_in_attention(MENUS["position"][config.position]),
        read_by=("attention",),
    )
    parallel: bool = setting(
        False,
        "Parallel sub-layers",
        "The feed-forward network reads what attention reads, instead of waiting for it: both at the same time "
        "(parallel; GPT-NeoX, section 2.1).",
        group="More parts",
        short="parallel sub-layers",
        acts=lambda config: config.attention and config.ffn,
        read_by=("norm",),
    )
    matched: bool = setting(
        False,
        "Width of gated activations matched",
        "A gated activation has a third matrix. With two thirds of the width it has no more parameters than one without a gate "
        "(matched; Shazeer, 2020, section 2). It acts where d_ff follows d_model.",
        group="More parts",
        short="matched width",
        acts=lambda config: inputs(MENUS["activation"][config.activation]) > 1,
    )
    logit_cap: float = setting(
        0.0,
        "Soft-cap of logits",
        "Squeezes the scores of the words between − and + this: cap · tanh(logit / cap). 0: no cap (logit_cap; Gemma 2 has 30).",
        group="More parts",
        short="logit cap",
        low=0.0,
        high=1000.0,
        step=1.0,
        top=50.0,
        offers=(5.0,),
    )

    def _check_together(self) -> None:
        fitting = allowed_heads(self.d_model)
        if self.n_heads not in fitting:
            raise ConfigError(
                "n_heads",
                f"n_heads is {self.n_heads}; it must divide d_model, which is {self.d_model}: "
                f"one of {', '.join(map(str, fitting))}.",
                max(n for n in fitting if n < self.n_heads),
            )
        if self.n_heads % self.n_kv_heads:
            shared = [n for n in range(1, self.n_heads + 1) if self.n_heads % n == 0]
            raise ConfigError(
                "n_kv_heads",
                f"n_kv_heads is {self.n_kv_heads}; it must divide n_heads, which is {self.n_heads}: "
                f"one of {', '.join(map(str, shared))}.",
                max(n for n in shared if n < self.n_kv_heads),
            )
        if MENUS["position"][self.position].turns:
            self._check_turned()

    def _check_turned(self) -> None:
        if self.rope_share == 1 and self.d_head % 2:
            raise ConfigError(
                "position",
                f"position is {self.position}, which turns pairs of numbers, so d_head must be even; it is {self.d_head}. "
                "Choose other heads, another d_head, or other positions.",
                "none",
            )
        if not self.turned:
            raise ConfigError(
                "rope_share",
                f"rope_share is {self.rope_share:g}, so not a single pair of a head's {self.d_head} numbers would be turned. "
                "Choose a larger share, another d_head, or other positions.",
                1.0,
            )

    def window_in(self, layer: int) -> int:
        """How far attention sees in a layer, counted from 0; 0: as far as the mask lets it."""
        return 0 if every(self.global_every, layer) else self.window

    def position_in(self, layer: int) -> Any:
        """The position encoding that acts in a layer's attention."""
        return MENUS["position"]["none"] if every(self.nope_every, layer) else self.part("position")

    @property
    def turned(self) -> int:
        """How many of a head's numbers RoPE turns: pairs."""
        return 2 * int(self.d_head * self.rope_share / 2)

    @classmethod
    def read_by(cls, part: str) -> tuple[str, ...]:
        """The settings that a part reads: "attention", "ffn" or "norm", beside those of the whole stack."""
        return tuple(name for name, known in cls.settings().items() if part in known.read_by)

    def part(self, field: str) -> Any:
        """The chosen entry of a menu, e.g. `part("norm")` -> the class LayerNorm."""
        return MENUS[field][getattr(self, field)]

    def replace(self, **changes: Any) -> "Config":
        """A copy with some settings changed. As many key-value heads as heads stay so."""
        if "n_heads" in changes and self.follows("n_kv_heads"):
            changes = {"n_kv_heads": None} | changes
        return dataclasses.replace(self, **changes)

    def others(self) -> list[tuple[str, Any]]:
        """What one click can change: a setting, and a value that it does not have. Every entry of every menu, every switch,
        fewer and more heads, of other numbers a telling one; nothing that would not act. Whether the rest of the settings can be
        so with it is said where it is chosen."""
        found = []
        for name, known in self.settings().items():
            now = getattr(self, name)
            offered: list[Any] = self.choices(name) or list(known.offers)
            if known.kind is bool:
                offered = [not now]
            elif known.among:
                offered = known.among(self)
            if known.acts is None or known.acts(self):
                found += [(name, value) for value in offered if value != now]
        return found


def every(number: int, layer: int) -> bool:
    """Whether a layer, counted from 0, is one of every so many; 0: none is."""
    return number > 0 and (layer + 1) % number == 0
