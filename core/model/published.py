"""Blocks of published models as settings, and their choices to take back one by one.

Width and heads are free. The width of the feed-forward network and the number of key-value heads
keep the published proportion, and a window is four tokens wide.
"""

from dataclasses import dataclass
from functools import lru_cache

from core.model.config import Config
from core.model.parts.activation import count_inputs
from core.model.variants import Changes
from core.settings.menu import Menu
from core.settings.setting import ConfigError


@dataclass(frozen=True)
class PublishedBlock:
    """Settings of a published block, its proportions, their source, and what differs, in words."""

    settings: Changes
    source: str
    differs: str = ""
    ffn: float = 4  # d_ff / d_model
    queries: int = 1  # query heads that share a key-value head

    def settings_at(self, config: Config) -> Changes:
        """Return the block's settings at the width and heads of a config, without usual sizes.

        A block that mixes layers with and without a window gets two layers at least.
        """
        sizes: Changes = {}
        if self.ffn != 4:
            sizes["d_ff"] = self.width_at(config)
        if self.queries > 1:
            kv_heads = max(1, config.n_heads // self.queries)
            while config.n_heads % kv_heads:
                kv_heads -= 1
            sizes["n_kv_heads"] = kv_heads
        if "global_every" in self.settings:
            sizes["n_layers"] = max(2, config.n_layers)
        return self.settings | sizes

    def width_at(self, config: Config) -> int:
        """Return the width of the feed-forward network, in proportion, at the width of a config."""
        return round(self.ffn * config.d_model)


published: Menu[PublishedBlock] = Menu("Published blocks")

# What GPT-2 is compared with (Vaswani et al., 2017); other blocks are compared with GPT-2.
ORIGINAL: Changes = {"placement": "post", "activation": "relu", "position": "sinusoidal"}
GPT2: Changes = {"activation": "gelu_tanh", "position": "learned"}
CAUSAL: Changes = {"mask": "causal"}
MODERN: Changes = CAUSAL | {
    "norm": "RMSNorm",
    "position": "rope",
    "activation": "swiglu",
    "bias": False,
}

published.add(
    "gpt2",
    PublishedBlock(
        CAUSAL | GPT2 | {"tied": True},
        "GPT-2 small (d_ff 3,072 at width 768)",
        "Embeddings start at N(0, 1), not N(0, 0.02), so the first logits are far larger. There is"
        " no dropout, and output projections do not start smaller in deeper stacks.",
    ),
    label="GPT-2",
    help="pre-norm, GELU, learned positions (Radford et al., 2019).",
)
published.add(
    "llama3",
    PublishedBlock(
        MODERN | {"rope_base": 500_000.0},
        "Llama 3 8B (32 heads, 8 key-value heads, d_ff 14,336 at width 4,096)",
        ffn=3.5,
        queries=4,
    ),
    label="Llama 3",
    help="RMSNorm, RoPE, SwiGLU, a quarter of the key-value heads (Grattafiori et al., 2024).",
)
published.add(
    "qwen3",
    PublishedBlock(
        MODERN | {"rope_base": 1e6, "qk_norm": True, "norm_eps": 1e-6},
        "Qwen 3 8B (32 heads, 8 key-value heads, d_ff 12,288 at width 4,096)",
        ffn=3,
        queries=4,
    ),
    label="Qwen 3",
    help="Llama 3's block with QK-norm, a narrower FFN and a larger RoPE base (Yang et al., 2025).",
)
published.add(
    "gemma3",
    PublishedBlock(
        MODERN
        | {
            "placement": "sandwich",
            "activation": "geglu_tanh",
            "tied": True,
            "rope_base": 1e6,
            "local_rope_base": 10_000.0,
            "qk_norm": True,
            "window": 4,
            "global_every": 2,
            "norm_eps": 1e-6,
        },
        "Gemma 3 1B (4 heads, 1 key-value head, d_ff 6,912 at width 1,152)",
        "Every second layer has no window, not every sixth. Heads together are as wide as the"
        " block, not 8/9 of it. Embeddings are not multiplied by √width before the first block.",
        ffn=6,
        queries=4,
    ),
    label="Gemma 3",
    help="sandwich norm, GeGLU, QK-norm, a window in five of six layers (Gemma Team, 2025).",
)
published.add(
    "olmo2",
    PublishedBlock(
        MODERN
        | {
            "placement": "output",
            "rope_base": 500_000.0,
            "qk_norm": True,
            "qk_norm_joint": True,
            "norm_eps": 1e-6,
        },
        "OLMo 2 7B (32 heads, d_ff 11,008 at width 4,096)",
        ffn=11_008 / 4_096,
    ),
    label="OLMo 2",
    help="norms on the outputs, QK-norm over all heads, SwiGLU (Team OLMo, 2024).",
)
published.add(
    "gpt_oss",
    PublishedBlock(
        MODERN
        | {
            "bias": True,
            "rope_base": 150_000.0,
            "softmax": "sink",
            "window": 4,
            "global_every": 2,
        },
        "gpt-oss 20B (64 heads, 8 key-value heads, four active experts of d_ff 2,880 at width"
        " 2,880)",
        "One network as wide as four experts replaces the mixture of 32. Heads together are as"
        " wide as the block, not 1.4 times it. SwiGLU has no limits, no factor in its gate and no"
        " 1 added to its values; RoPE is not stretched for long texts (YaRN).",
        queries=8,
    ),
    label="gpt-oss",
    help="attention sinks, a window in every second layer, a mixture of experts (OpenAI, 2025).",
)
published.add(
    "nanochat",
    PublishedBlock(
        MODERN
        | {
            "activation": "relu2",
            "norm_gain": False,
            "embedding_norm": True,
            "qk_norm": True,
            "logit_cap": 15.0,
            "norm_eps": 1e-6,
        },
        "the first release (October 2025) at depth 20 (10 heads, d_ff 5,120 at width 1,280)",
        "Output projections and the unembedding do not start at zero.",
    ),
    label="nanochat",
    help="norms without gains, ReLU², QK-norm, a cap on logits (Karpathy, 2025).",
)

# A choice each; what only acts with another setting, such as the base of RoPE, goes with that one.
# Tied embeddings are not among them: embeddings start at N(0, 1) here, so tying would be compared
# together with logits that start far too large.
CHOICES = (
    "norm",
    "placement",
    "norm_gain",
    "embedding_norm",
    "position",
    "n_kv_heads",
    "qk_norm",
    "softmax",
    "window",
    "activation",
    "bias",
    "logit_cap",
)
SIZES = ("d_model", "n_heads", "d_head", "d_ff", "n_layers", "seed", "padding", "dropout")


def list_choices(name: str, block: Config) -> list[Changes]:
    """Return changes that each take one choice of a published block back, to GPT-2's.

    For GPT-2 itself: to those of the original transformer. Another activation gets the width that
    keeps the number of parameters.

    Args:
        name: Key of the published block.
        block: Its settings, at any size.
    """
    earlier = Config(n_heads=block.n_heads, d_model=block.d_model, d_head=block.d_head).replace(
        **(ORIGINAL if name == "gpt2" else GPT2)
    )
    changes = []
    for field in CHOICES:
        value = getattr(earlier, field)
        if getattr(block, field) == value:
            continue
        change = {field: value}
        if field == "activation" and _count_matrices(block) != _count_matrices(earlier):
            change["d_ff"] = round(block.d_ff * _count_matrices(block) / _count_matrices(earlier))
        changes.append(change)
    return changes


def _count_matrices(config: Config) -> int:
    """Return the number of weight matrices of a config's feed-forward network: 2, gated 3."""
    return 1 + count_inputs(config.part("activation"))


@lru_cache(maxsize=1000)
def find_published(config: Config) -> str | None:
    """Return the published block that a config is, at any width, heads and depth; None if none."""
    for name, entry in published.items():
        sizes = {size: getattr(config, size) for size in SIZES}
        try:
            block = Config(**entry.settings_at(config) | sizes)
        except ConfigError:  # RoPE with an odd d_head
            continue
        if block == config:
            return name
    return None
