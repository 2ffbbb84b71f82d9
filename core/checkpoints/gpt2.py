"""GPT-2 (Radford et al., 2019) in the layout in which its weights are published, as a model of core.

The files: config.json, tokenizer.json and model.safetensors, as on the Hugging Face Hub (`openai-community/gpt2`).
Linear maps are stored there as (in, out), queries, keys and values side by side in c_attn.
"""

import json
from collections.abc import Iterator
from typing import Any

import torch

from core.checkpoints.opened import Opened
from core.checkpoints.own import filled
from core.checkpoints.spelling import tokenizer
from core.checkpoints.tensors import Check, CheckpointError, File, fit, room_for_model, tensors
from core.checkpoints.tokens import Pieces
from core.model.config import Config
from core.model.cost import parameters
from core.model.parts.position import CONTEXT
from core.settings.setting import ConfigError
from core.settings.wording import shorten

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu", "tanh": "tanh"}  # fmt: skip
FIXED = {  # what core has no setting for: the only value with which the numbers would be GPT-2's
    "layer_norm_epsilon": 1e-5,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
TOKENIZER = "tokenizer.json"
IGNORED = (".attn.bias", ".attn.masked_bias")  # the causal mask, which some files hold too
PREFIX = "transformer."
MOST = 1_000_000  # of what a configuration counts: widths, heads, layers, positions, words
LARGEST = 4 << 20  # bytes of a configuration: GPT-2's has 665, one of the lab's own with 100,000 words about a million


def is_gpt2(settings: dict[str, Any]) -> bool:
    return settings.get("model_type") == "gpt2"


def read(
    settings: dict[str, Any], weights: File, spelling: File | None, name: str = "GPT-2", check: Check | None = None
) -> Opened:
    """Raises CheckpointError for what is no GPT-2 or not whole, MemoryLimit for one that is too large to be opened."""
    config, positions, words = _config(settings)
    numbers = sum(parameters(config, words).values()) + (positions - CONTEXT) * config.d_model
    room_for_model(numbers, words, weights.name, check)
    if spelling is None:
        raise CheckpointError(f"{TOKENIZER} is missing: it says which words the {words:,} tokens of this GPT-2 are. Bring it along.")  # fmt: skip
    spelled = _pieces(spelling, words)
    loaded = tensors(weights)
    loaded = {key.removeprefix(PREFIX): x for key, x in loaded.items()}
    loaded = {key: x for key, x in loaded.items() if not key.endswith(IGNORED) and key != "lm_head.weight"}
    fit(loaded, dict(_published(config, positions, words)), weights.name)
    model = filled(config, spelled.vocabulary, dict(_renamed(loaded, config)), weights.name)
    end = settings.get("eos_token_id")
    ends = (end,) if type(end) is int and 0 <= end < words else ()
    return Opened(name, model, spelled, about={"positions": positions}, ends=ends)


def _config(given: dict[str, Any]) -> tuple[Config, int, int]:
    """-> (settings, rows of the table of positions, words)"""
    numbers = {}
    names = {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}  # GPT-2 small's
    for name, usual in names.items():
        value = given.get(name, usual)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST:
            raise CheckpointError(
                f"config.json: {name} is {shorten(value)}; it must be a whole number from 1 to {MOST:,}."
            )
        numbers[name] = value
    for name, only in FIXED.items():
        if given.get(name, only) != only:
            raise CheckpointError(
                f"config.json: {name} is {shorten(given[name])}; models can be opened here with {only}."
            )
    activation = given.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"config.json: activation_function is {shorten(activation)}; it must be one of {', '.join(ACTIVATIONS)}.")  # fmt: skip
    scale = given.get("scale_attn_weights", True)
    if not isinstance(scale, bool):
        raise CheckpointError(f"config.json: scale_attn_weights is {shorten(scale)}; it must be true or false.")
    try:
        config = Config(
            d_model=numbers["n_embd"],
            n_heads=numbers["n_head"],
            n_layers=numbers["n_layer"],
            d_ff=given.get("n_inner") or 4 * numbers["n_embd"],
            activation=ACTIVATIONS[activation],
            position="learned",
            mask="causal",
            tied=True,
            scale=scale,
            init="normal_002",
        )
    except ConfigError as error:
        raise CheckpointError(f"config.json describes no model that can be built here: {error}") from None
    return config, numbers["n_positions"], numbers["vocab_size"]


def _pieces(file: File, words: int) -> Pieces:
    library_tokenizer = tokenizer(file, words)
    number = library_tokenizer.get_vocab(with_added_tokens=True)
    if max(number.values(), default=-1) >= words:
        raise CheckpointError(f"{file.name} has tokens up to number {max(number.values()):,}; the model has {words:,} of them.")  # fmt: skip
    at = {token: word for word, token in number.items()}
    return Pieces(library_tokenizer, tuple(at.get(token, f"<unused {token}>") for token in range(words)))


def _published(c: Config, positions: int, words: int) -> Iterator[tuple[str, torch.Size]]:
    """Every tensor of the published layout and its shape."""
    D, F = c.d_model, c.d_ff
    yield "wte.weight", torch.Size((words, D))
    yield "wpe.weight", torch.Size((positions, D))
    for layer in range(c.n_layers):
        shapes = {
            "ln_1.weight": (D,), "ln_1.bias": (D,), "attn.c_attn.weight": (D, 3 * D), "attn.c_attn.bias": (3 * D,),
            "attn.c_proj.weight": (D, D), "attn.c_proj.bias": (D,), "ln_2.weight": (D,), "ln_2.bias": (D,),
            "mlp.c_fc.weight": (D, F), "mlp.c_fc.bias": (F,), "mlp.c_proj.weight": (F, D), "mlp.c_proj.bias": (D,),
        }  # fmt: skip
        for name, shape in shapes.items():
            yield f"h.{layer}.{name}", torch.Size(shape)
    yield "ln_f.weight", torch.Size((D,))
    yield "ln_f.bias", torch.Size((D,))


NAMES = {
    "ln_1": "ln1", "attn.c_attn": "attn.qkv", "attn.c_proj": "attn.out", "ln_2": "ln2", "mlp.c_fc": "mlp.w_in",
    "mlp.c_proj": "mlp.w_out",
}  # fmt: skip


def _renamed(loaded: dict[str, torch.Tensor], config: Config) -> Iterator[tuple[str, torch.Tensor]]:
    """The same tensors under core's names, linear maps turned to (out, in)."""
    yield "embed", loaded["wte.weight"]
    yield "position.weight", loaded["wpe.weight"]
    for layer in range(config.n_layers):
        for theirs, ours in NAMES.items():
            weight = loaded[f"h.{layer}.{theirs}.weight"]
            yield f"blocks.{layer}.{ours}.weight", weight.T.contiguous() if weight.dim() == 2 else weight
            yield f"blocks.{layer}.{ours}.bias", loaded[f"h.{layer}.{theirs}.bias"]
    yield "ln_final.weight", loaded["ln_f.weight"]
    yield "ln_final.bias", loaded["ln_f.bias"]


def settings_of(file: File) -> dict[str, Any]:
    """What stands in a config.json. Raises CheckpointError for anything but an object."""
    if file.size > LARGEST:
        raise CheckpointError(f"{file.name} has {file.size:,} bytes; it may have {LARGEST:,}.")
    try:
        document = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file.name} is no JSON ({str(error)[:80]}).") from None
    if not isinstance(document, dict):
        raise CheckpointError(f"{file.name} holds no JSON object.")
    return document
