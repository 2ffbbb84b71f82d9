"""GPT-2 (Radford et al., 2019) in the layout in which its weights are published, as a model of core.

The files: config.json, tokenizer.json (or vocab.json and merges.txt) and model.safetensors (or its parts, with their index), as
on the Hugging Face Hub (`openai-community/gpt2`).
Linear maps are stored there as (in, out), queries, keys and values side by side in c_attn.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from core.checkpoints.opened import Opened
from core.checkpoints.own import filled, name_of
from core.checkpoints.spelling import TOKENIZER, VOCABULARY, tokenizer
from core.checkpoints.tensors import Check, CheckpointError, File, fit, room_for_model, tensors
from core.checkpoints.tokens import Pieces
from core.model.config import Config
from core.model.cost import parameters
from core.model.parts.position import CONTEXT
from core.settings.setting import ConfigError
from core.settings.wording import shorten

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu", "tanh": "tanh"}  # fmt: skip
FIXED = {  # what core has no setting for: the only value with which the numbers would be GPT-2's
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
IGNORED = (".attn.bias", ".attn.masked_bias")  # the causal mask, which some files hold too
PREFIX = "transformer."
EMBEDDING, HEAD = "wte.weight", "lm_head.weight"
MOST = 1_000_000  # of what a configuration counts: widths, heads, layers, positions, words
LARGEST = 4 << 20  # bytes of a configuration: GPT-2's has 665, one of the lab's own with 100,000 words about a million


def is_gpt2(settings: dict[str, Any]) -> bool:
    return settings.get("model_type") == "gpt2"


def read(
    settings: dict[str, Any],
    weights: Sequence[File],
    spelling: File | None,
    name: str = "GPT-2",
    check: Check | None = None,
) -> Opened:
    """Raises CheckpointError for what is no GPT-2 or not whole, MemoryLimit for one that is too large to be opened."""
    config, positions, words = _config(settings)
    of = name_of(weights)
    room_for_model(_parameters(config, positions, words), words, of, check)
    if spelling is None:
        raise CheckpointError(f"{TOKENIZER} is missing: it says which words the {words:,} tokens of this GPT-2 are. Bring it along, or {' and '.join(VOCABULARY)}.")  # fmt: skip
    spelled, notes = _pieces(spelling, words)
    given = tensors(*weights, ignored=IGNORED)
    loaded = {key.removeprefix(PREFIX): x for key, x in given.items()}
    if len(loaded) < len(given):
        raise CheckpointError(
            f"{of} holds tensors twice, with {PREFIX} before their names and without: keep one of each."
        )
    _complete_embeddings(loaded, config, of)
    fit(loaded, dict(_published(config, positions, words, HEAD in loaded)), of)
    if config.tied and HEAD in loaded and not torch.equal(loaded[HEAD], loaded[EMBEDDING]):
        config = config.replace(tied=False)  # as Hugging Face reads it, whatever config.json says
        room_for_model(_parameters(config, positions, words), words, of, check)
    model = filled(config, spelled.vocabulary, dict(_renamed(loaded, config)), of)
    ends = _ends(settings.get("eos_token_id"), words)
    return Opened(name, model, spelled, about={"positions": positions}, ends=ends, notes=notes)


def _parameters(config: Config, positions: int, words: int) -> int:
    return sum(parameters(config, words).values()) + (positions - CONTEXT) * config.d_model


def _complete_embeddings(loaded: dict[str, torch.Tensor], config: Config, of: str) -> None:
    """Take a tied embedding from the head where only that is stored. Raise CheckpointError for a missing head."""
    if config.tied and EMBEDDING not in loaded and HEAD in loaded:
        loaded[EMBEDDING] = loaded[HEAD]
    if not config.tied and HEAD not in loaded:
        raise CheckpointError(
            f"{of} has no {HEAD}, but config.json has tie_word_embeddings false. "
            "Save the model with that tensor, or set this to true."
        )


def _ends(given: object, words: int) -> tuple[int, ...]:
    """Return the tokens that end a text: config.json names one, or a list of them."""
    several = given if isinstance(given, list) else [given]
    return tuple(each for each in several if type(each) is int and 0 <= each < words)


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
    switches = {name: given.get(name, True) for name in ("scale_attn_weights", "tie_word_embeddings")}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise CheckpointError(f"config.json: {name} is {shorten(value)}; it must be true or false.")
    try:
        config = Config(
            d_model=numbers["n_embd"],
            n_heads=numbers["n_head"],
            n_layers=numbers["n_layer"],
            d_ff=given.get("n_inner") or 4 * numbers["n_embd"],
            activation=ACTIVATIONS[activation],
            position="learned",
            mask="causal",
            tied=switches["tie_word_embeddings"],
            scale=switches["scale_attn_weights"],
            init="normal_002",
            norm_eps=given.get("layer_norm_epsilon", 1e-5),
        )
    except ConfigError as error:
        raise CheckpointError(f"config.json describes no model that can be built here: {error}") from None
    return config, numbers["n_positions"], numbers["vocab_size"]


def _pieces(file: File, words: int) -> tuple[Pieces, tuple[str, ...]]:
    """-> (the tokenizer, sentences that say what of its file was left out)"""
    library_tokenizer, left_out = tokenizer(file, words)
    number = library_tokenizer.get_vocab(with_added_tokens=True)
    if max(number.values(), default=-1) >= words:
        raise CheckpointError(f"{file.name} has tokens up to number {max(number.values()):,}; the model has {words:,} of them.")  # fmt: skip
    at = {token: word for word, token in number.items()}
    pieces = Pieces(library_tokenizer, tuple(at.get(token, f"<unused {token}>") for token in range(words)))
    if not left_out:
        return pieces, ()
    named = ", ".join(shorten(token) for token in left_out[:3])
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return pieces, (f"{file.name} adds {named}{more}, for which the model has no weights: read as ordinary text.",)


def _published(c: Config, positions: int, words: int, has_head: bool) -> Iterator[tuple[str, torch.Size]]:
    """Every tensor of the published layout and its shape."""
    D, F = c.d_model, c.d_ff
    yield EMBEDDING, torch.Size((words, D))
    if has_head:
        yield HEAD, torch.Size((words, D))
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
    yield "embed", loaded[EMBEDDING]
    if not config.tied:
        yield "unembed.weight", loaded[HEAD]
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
