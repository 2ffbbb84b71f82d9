"""The settings of what attention has had since: whose keys it reads, how scores become weights, how far it sees, what positions do."""

from dataclasses import dataclass

from core.model.config.basics import Basics
from core.model.parts import MENUS
from core.model.parts.position import acts_in_attention
from core.settings.setting import setting


@dataclass(frozen=True)
class Attention(Basics):
    """Attention in detail."""

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
    attention_bias: bool = setting(
        None,
        "Biases in attention",
        "Constants added to queries, keys, values, gate and output (attention_bias). Follows the switch Biases until you move it: "
        "Llama has it off, Qwen 2 has biases in attention alone.",
        group="Attention in detail",
        short="attention biases",
        kind=bool,
        follows=lambda config: config.bias,
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
    softmax: str = setting(
        "usual",
        "Softmax",
        "How scores become weights.",
        group="Attention in detail",
        short="softmax",
        menu=MENUS["softmax"],
        read_by=("attention",),
    )
    gate: bool = setting(
        False,
        "Gated output",
        "What a head has read passes a gate, which the reading token opens or closes for each number (gate; Qiu et al., 2025).",
        group="Attention in detail",
        short="attention gate",
        read_by=("attention",),
    )
    value_residual: bool = setting(
        False,
        "Value residual",
        "Values are half those of the first layer: what a word is, is never lost on the way (value_residual; Zhou et al., 2024).",
        group="Attention in detail",
        short="value residual",
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
        "Every so many layers one has no window, the others have it. 0: all have it (global_every; Gemma 2 has 2, Gemma 3 has 6). One block for all layers counts as the first.",
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
        "and Llama 4). One block for all layers counts as the first.",
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
