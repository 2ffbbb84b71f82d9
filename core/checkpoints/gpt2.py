"""GPT-2 (Radford et al., 2019) in its published layout, opened as a model of core.

The files: config.json, tokenizer.json (or vocab.json and merges.txt) and model.safetensors (or its
parts, with their index), as on the Hugging Face Hub (`openai-community/gpt2`). Linear maps are
stored there as (in, out), queries, keys and values side by side in c_attn.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from core.checkpoints.native import build_blank_model, weights_name
from core.checkpoints.opened import CheckpointError, Opened
from core.checkpoints.tensors import SizeCheck, check_fit, check_room, load, read_shapes
from core.checkpoints.tokens import read_pieces
from core.model.config import Config
from core.model.cost import parameters
from core.model.parts.position import CONTEXT
from core.settings.setting import ConfigError
from core.settings.wording import shorten

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
SIZES = {
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}  # GPT-2 small's
FIXED = {  # what core has no setting for: the only value with which the numbers would be GPT-2's
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
IGNORED = (".attn.bias", ".attn.masked_bias")  # the causal mask, which some files hold too
PREFIX = "transformer."
EMBEDDING = "wte.weight"
HEAD = "lm_head.weight"
MOST = 1_000_000  # of what a configuration counts: widths, heads, layers, positions, words
NAMES = {  # core's name of a part -> the published one
    "embed": EMBEDDING,
    "unembed.weight": HEAD,
    "position": "wpe",
    "blocks": "h",
    "ln1": "ln_1",
    "ln2": "ln_2",
    "attn.qkv": "attn.c_attn",
    "attn.out": "attn.c_proj",
    "mlp.w_in": "mlp.c_fc",
    "mlp.w_out": "mlp.c_proj",
    "ln_final": "ln_f",
}


def read(
    settings: dict[str, Any],
    weights: Sequence[Path],
    files: Mapping[str, Path],
    name: str = "GPT-2",
    check: SizeCheck | None = None,
) -> Opened:
    """Open a GPT-2 from config.json's content and files; CheckpointError, MemoryLimitError.

    Args:
        settings: Content of config.json.
        weights: The safetensors file, or all its parts.
        files: Name to path of all files, among them the tokenizer's.
        name: Name on screen.
        check: Gets the model's bytes before its weights are read, and may raise.

    Raises:
        CheckpointError: It is no GPT-2, or not complete.
        MemoryLimitError: It is too large.
    """
    config, positions, words = _read_config(settings)
    prefix = weights_name(weights)
    stored_tensors = read_shapes(weights, IGNORED)
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in stored_tensors.items()}
    if len(tensors) < len(stored_tensors):
        raise CheckpointError(
            f"{prefix} contains tensors twice, with and without the prefix {PREFIX}: keep one set."
        )
    if not config.tied and HEAD not in tensors:
        raise CheckpointError(
            f"{prefix} has no {HEAD}, but config.json has tie_word_embeddings false. "
            "Save the model with that tensor, or set it to true."
        )
    largest = config.replace(tied=HEAD not in tensors)
    numbers = sum(parameters(largest, words).values()) + (positions - CONTEXT) * config.d_model
    check_room(numbers, words, prefix, check)
    pieces, notes = read_pieces(files, words)
    if config.tied and HEAD in tensors:
        # Hugging Face goes by the tensors that are stored, whatever config.json says.
        head = load({HEAD: tensors[HEAD]})[HEAD]
        embedding = load({EMBEDDING: tensors.get(EMBEDDING, tensors[HEAD])})[EMBEDDING]
        config = config.replace(tied=torch.equal(head, embedding))
        if config.tied:
            tensors[EMBEDDING] = tensors.pop(HEAD)
    model = build_blank_model(config, pieces.vocabulary, positions)
    published = {ours: _published_name(ours, x) for ours, x in model.state_dict().items()}
    check_fit(tensors, dict(published.values()), prefix)
    loaded = load(tensors)
    turned = {
        ours: loaded[theirs].T if _is_linear(ours) else loaded[theirs]
        for ours, (theirs, _) in published.items()
    }
    model.load_state_dict({ours: x.contiguous() for ours, x in turned.items()}, assign=True)
    ends = settings.get("eos_token_id")
    several = ends if isinstance(ends, list) else [ends]
    end_tokens = tuple(token for token in several if type(token) is int and 0 <= token < words)
    return Opened(name, model, pieces, about={"positions": positions}, ends=end_tokens, notes=notes)


def _read_config(document: dict[str, Any]) -> tuple[Config, int, int]:
    """Read config.json as (Config, positions, vocabulary size); CheckpointError if unsupported."""
    sizes = {name: document.get(name, usual) for name, usual in SIZES.items()}
    for name, value in sizes.items():
        if type(value) is not int or not 0 < value <= MOST:
            raise CheckpointError(
                f"config.json: {name} is {shorten(value)}; it must be a whole number from 1 to"
                f" {MOST:,}."
            )
    for name, only in FIXED.items():
        if document.get(name, only) != only:
            raise CheckpointError(
                f"config.json: {name} is {shorten(document[name])}; only {only} is supported."
            )
    activation = document.get("activation_function", "gelu_new")
    if activation not in list(ACTIVATIONS):
        raise CheckpointError(
            f"config.json: activation_function is {shorten(activation)}; it must be one of"
            f" {', '.join(ACTIVATIONS)}."
        )
    try:
        config = Config(
            d_model=sizes["n_embd"],
            n_heads=sizes["n_head"],
            n_layers=sizes["n_layer"],
            d_ff=document.get("n_inner") or 4 * sizes["n_embd"],
            activation=ACTIVATIONS[activation],
            position="learned",
            mask="causal",
            tied=document.get("tie_word_embeddings", True),
            scale=document.get("scale_attn_weights", True),
            init="normal_002",
            norm_eps=document.get("layer_norm_epsilon", 1e-5),
        )
    except ConfigError as error:
        raise CheckpointError(f"config.json describes an unsupported model: {error}") from None
    return config, sizes["n_positions"], sizes["vocab_size"]


def _published_name(ours: str, x: torch.Tensor) -> tuple[str, tuple[int, ...]]:
    """Return a tensor's name in the published layout, and its shape there."""
    for part, theirs in NAMES.items():
        ours = re.sub(rf"\b{part}\b", theirs, ours)
    return ours, tuple(x.shape[::-1] if _is_linear(ours) else x.shape)


def _is_linear(name: str) -> bool:
    """Return whether a tensor, by its name, is that of a linear map, stored as (in, out)."""
    return bool(re.search(r"\b(attn|mlp)\..*\.weight$", name))
