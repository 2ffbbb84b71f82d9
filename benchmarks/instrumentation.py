"""Benchmark of recording: a pass with every site recorded and measured, over a bare stack.

    python -m benchmarks.instrumentation [--device cuda] [--rivals] [--gpt2]

The bare stack is written here, as plainly as nanoGPT's: fused qkv, scaled_dot_product_attention, no
taps; its weights are the model's own, and the outputs are compared before anything is timed. Both
run in turn, A B A B, on one thread, so that neither finds the caches as it left them; medians after
warm-up, ratio within one run.

--rivals times TransformerLens (HookedTransformer up to version 3, TransformerBridge from 4 on) and
Hugging Face's GPT-2 where they are installed: the same stack at the same size with random weights,
the same sites as far as they can be hooked, the same statistics; once reduced with torch tensor by
tensor, once with core.measure.tensor_sums.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from core import Config, Transformer, trace
from core.measure.tensor_meters import compute_meters, meter
from core.measure.tensor_sums import Watcher
from core.settings.memory import reuse_freed_memory

SIZES = ((2, 64, 4, 10), (4, 128, 4, 64), (12, 768, 12, 128))  # layers, d_model, heads, tokens
GPT2 = {"mask": "causal", "position": "learned", "activation": "gelu_tanh"}


class BareBlock(nn.Module):
    """Pre-norm block without taps, with fused qkv and scaled_dot_product_attention."""

    def __init__(self, config):
        super().__init__()
        self.causal = config.mask == "causal"
        self.tanh = "tanh" if config.activation == "gelu_tanh" else "none"
        width = config.d_model
        self.heads = config.n_heads
        self.ln1 = nn.LayerNorm(width)
        self.ln2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.w_in = nn.Linear(width, config.d_ff)
        self.w_out = nn.Linear(config.d_ff, width)

    def forward(self, x):
        """Return the block's output for x, (batch, T, d_model)."""
        B, T, D = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(D, dim=2)
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(z.transpose(1, 2).reshape(B, T, D))
        return x + self.w_out(F.gelu(self.w_in(self.ln2(x)), approximate=self.tanh))


class Bare(nn.Module):
    """Stack of bare blocks with the weights of a core.Transformer."""

    def __init__(self, model):
        super().__init__()
        self.embed = nn.Parameter(model.embed.detach().clone())
        self.places = (
            nn.Parameter(model.position.weight.detach().clone())
            if model.config.position == "learned"
            else None
        )
        self.blocks = nn.ModuleList(BareBlock(model.config) for _ in model.blocks)
        for bare_block, block in zip(self.blocks, model.blocks):
            weights = {
                name.replace("attn.", "").replace("mlp.", ""): parameter
                for name, parameter in block.state_dict().items()
            }
            bare_block.load_state_dict(weights)

    def forward(self, tokens):
        """Return the residual stream after the last block, for tokens (batch, T)."""
        x = self.embed[tokens]
        x = x if self.places is None else x + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x


def wait(device):
    """Wait until the device has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(call, device):
    """Return the seconds of one call, until the device has finished."""
    wait(device)
    start = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - start


def compare(calls, device, seconds=4.0):
    """Time calls in turn. Return name -> (median seconds, median ratio to the first call).

    Returns:
        For each name the median in seconds, and the median of its ratios to the first call, round
        by round.
    """
    for call in calls.values():
        for _ in range(5):
            call()
    took = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(took.values()))) < 9:
        for name, call in calls.items():
            took[name].append(timed(call, device))
    first = next(iter(took.values()))
    return {
        name: (statistics.median(item), statistics.median(a / b for a, b in zip(item, first)))
        for name, item in took.items()
    }


def run_with_trace(model, tokens, sites=None):
    """Run a pass that records these sites (None: all) and return its statistics."""
    watcher = Watcher()
    with trace(watcher, sites=sites):
        model.run_blocks(tokens)
    return compute_meters(watcher)


def by_torch(tensors):
    """Return six statistics of each tensor, (tensor, statistic) on the CPU, as by user hooks."""
    rows = []
    for x in tensors:
        std, mean = torch.std_mean(x, correction=0)
        low, high = x.aminmax()
        rows.append(
            torch.stack([mean, std, x.square().mean().sqrt(), low, high, (x == 0).float().mean()])
        )
    return torch.stack(rows).cpu()


def by_our_totals(tensors):
    """Return the statistics of these tensors, computed by core.measure.tensor_sums."""
    watcher = Watcher()
    for index, x in enumerate(tensors):
        watcher("", index, x)
    return compute_meters(watcher)


def transformer_lens(config, length, device):
    """Return a function of tokens that returns TransformerLens's activations."""
    size = dict(
        n_layers=config.n_layers,
        d_model=config.d_model,
        n_ctx=length,
        d_head=config.d_head,
        n_heads=config.n_heads,
        d_mlp=config.d_ff,
        d_vocab=length,
        act_fn="gelu_new" if config.activation == "gelu_tanh" else "gelu",
        attention_dir="causal" if config.mask == "causal" else "bidirectional",
    )
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig

        model = HookedTransformer(HookedTransformerConfig(**size, device=device))
    except ImportError:
        from transformer_lens.config import TransformerBridgeConfig
        from transformer_lens.model_bridge import TransformerBridge

        size["architecture"] = "TransformerLensNative"
        model = TransformerBridge.boot_native(TransformerBridgeConfig(**size), device=device)
    model.eval()
    in_block = (
        "hook_resid_pre ln1.hook_normalized attn.hook_q attn.hook_k attn.hook_v"
        " attn.hook_attn_scores"
    )
    in_block += (
        " attn.hook_pattern attn.hook_z hook_attn_out hook_resid_mid ln2.hook_normalized"
        " mlp.hook_pre"
    )
    in_block += " mlp.hook_post hook_mlp_out hook_resid_post"
    names = ["hook_embed"]
    names += [
        f"blocks.{layer}.{name}" for layer in range(config.n_layers) for name in in_block.split()
    ]
    options = dict(
        names_filter=names,
        stop_at_layer=config.n_layers,
        return_type=None,
        return_cache_object=False,
    )

    def run(tokens):
        cache = model.run_with_cache(tokens, **options)[1]
        return [cache[name] for name in names]  # the bridge adds each site under a second name

    return run


def hugging_face(config, length, device):
    """Return a function of tokens that returns the activations of Hugging Face's GPT-2."""
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(
        GPT2Config(
            n_layer=config.n_layers,
            n_embd=config.d_model,
            n_head=config.n_heads,
            n_inner=config.d_ff,
            vocab_size=length,
            n_positions=length,
            activation_function="gelu_new" if config.activation == "gelu_tanh" else "gelu",
            attn_implementation="eager",  # the one that hands out its attention weights
        )
    ).to(device)
    model.eval()
    recorded = []

    def record_input(module, args):  # resid_pre, resid_mid, z
        recorded.append(args[0])

    def record_output(
        module, args, output
    ):  # attn_out and pattern; else the one tensor that the module returns
        recorded.extend(output if isinstance(output, tuple) else (output,))

    def projected(module, args, output):  # q, k, v
        recorded.extend(output.split(config.d_model, dim=2))

    model.drop.register_forward_hook(record_output)
    for block in model.h:
        for module in (block, block.ln_2, block.attn.c_proj):
            module.register_forward_pre_hook(record_input)
        for module in (
            block.ln_1,
            block.attn,
            block.ln_2,
            block.mlp.c_fc,
            block.mlp.act,
            block.mlp,
            block,
        ):
            module.register_forward_hook(record_output)
        block.attn.c_attn.register_forward_hook(projected)

    def run(tokens):
        model(tokens, use_cache=False)
        activations = recorded.copy()
        recorded.clear()
        return activations

    return run


def rounds(config, length, device, rivals):
    """Yield the calls to time in turn at one size, by name, the bare stack first."""
    model = Transformer(config, [str(i) for i in range(length)]).to(device)
    tokens = torch.arange(length, device=device)[None]
    bare = Bare(model).to(device)
    torch.testing.assert_close(bare(tokens), model.run_blocks(tokens), rtol=1e-4, atol=1e-4)
    yield {
        "bare": lambda: bare(tokens),
        "watched, all kept": lambda: run_with_trace(model, tokens),
        "watched, pattern kept": lambda: run_with_trace(model, tokens, ["pattern"]),
    }
    for rival in (transformer_lens, hugging_face) if rivals else ():
        try:
            run = rival(config, length, device)
        except ImportError as missing:
            print(f"not installed, left out: {missing.name}")
            continue
        name = f"{rival.__name__}, {len(run(tokens))} tensors"
        for how, reduced in ((name, by_torch), (f"{name}, our totals", by_our_totals)):
            yield {
                "bare": lambda: bare(tokens),
                how: lambda run=run, reduced=reduced: reduced(run(tokens)),
            }


def main():
    """Print the time of each call and its ratio to the bare stack, at each size."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--device", default="cpu")
    args.add_argument("--rivals", action="store_true")
    args.add_argument(
        "--gpt2",
        action="store_true",
        help="one model of GPT-2 small's shape: causal, learned positions, tanh GELU",
    )
    args = args.parse_args()
    torch.set_num_threads(1)
    reuse_freed_memory()
    name = torch.cuda.get_device_name() if args.device == "cuda" else "CPU, one thread"
    print(f"{name}, torch {torch.__version__}; statistics per site: {', '.join(meter)}")
    with torch.inference_mode():
        for layers, width, heads, length in SIZES[-1:] if args.gpt2 else SIZES:
            config = Config(
                d_model=width, n_heads=heads, n_layers=layers, **(GPT2 if args.gpt2 else {})
            )
            print(f"{layers} layers, d_model {width}, {heads} heads, {length} tokens")
            for calls in rounds(config, length, args.device, args.rivals):
                for name, (seconds, ratio) in compare(calls, args.device).items():
                    print(f"  {name:42} {1e3 * seconds:8.3f} ms   {ratio:5.2f} × bare")


if __name__ == "__main__":
    main()
