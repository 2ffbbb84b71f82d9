"""What watching costs: a pass with every site recorded and measured, over the same stack bare.

    python -m benchmarks.instrumentation [--device cuda] [--rivals]

The bare stack is written here, as plainly as nanoGPT's: fused qkv, scaled_dot_product_attention, no taps; its weights
are the model's own, and the outputs are compared before anything is timed. Both run in turn, A B A B, on one thread,
so that neither finds the caches as it left them; medians after warm-up, ratio within one run. --rivals times
TransformerLens and Hugging Face with hooks that do the same work, where they are installed.
"""

import argparse
import statistics
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from core import Config, Transformer, trace
from core.measure import meter, reduce
from core.memory import reuse_freed_memory
from core.totals import Watcher

SIZES = ((2, 64, 4, 10), (4, 128, 4, 64), (12, 768, 12, 128))  # layers, d_model, heads, tokens


class BareBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.d_model
        self.heads = config.n_heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.w_in, self.w_out = nn.Linear(width, config.d_ff), nn.Linear(config.d_ff, width)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(D, dim=2)
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))
        z = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(z.transpose(1, 2).reshape(B, T, D))
        return x + self.w_out(F.gelu(self.w_in(self.ln2(x))))


class Bare(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.embed = nn.Parameter(model.embed.detach().clone())
        self.blocks = nn.ModuleList(BareBlock(model.config) for _ in model.blocks)
        for mine, its in zip(self.blocks, model.blocks):
            its = {name.replace("attn.", "").replace("mlp.", ""): p for name, p in its.state_dict().items()}
            mine.load_state_dict(its)

    def forward(self, tokens):
        x = self.embed[tokens]
        for block in self.blocks:
            x = block(x)
        return x


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def timed(call, device):
    wait(device)
    start = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - start


def compare(calls, device, seconds=4.0):
    """Each call in turn for some seconds -> {name: (median s, median of the ratios to the first, round by round)}."""
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
        name: (statistics.median(each), statistics.median(a / b for a, b in zip(each, first)))
        for name, each in took.items()
    }


def ours(model, tokens, sites=None):
    watcher = Watcher()
    with trace(watcher, sites=sites):
        model.stream(tokens)
    return reduce(watcher)


def measured_by_hooks(tensors):
    """The same six statistics the way a user of hooks would write them, tensor by tensor."""
    rows = []
    for x in tensors:
        std, mean = torch.std_mean(x, correction=0)
        low, high = x.aminmax()
        rows.append(torch.stack([mean, std, x.square().mean().sqrt(), low, high, (x == 0).float().mean()]))
    return torch.stack(rows).cpu()


def transformer_lens(config, tokens, device):
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=config.n_layers,
            d_model=config.d_model,
            n_ctx=tokens.shape[1],
            d_head=config.d_head,
            n_heads=config.n_heads,
            d_vocab=64,
            act_fn="gelu",
            attention_dir="bidirectional",
            device=device,
        )
    )
    return lambda: measured_by_hooks(model.run_with_cache(tokens % 64)[1].values())


def hugging_face(config, tokens, device):
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(
        GPT2Config(
            n_layer=config.n_layers,
            n_embd=config.d_model,
            n_head=config.n_heads,
            vocab_size=64,
            n_positions=tokens.shape[1],
            attn_implementation="eager",
        )
    ).to(device)
    model.eval()
    kept = []

    def keep(module, args, output):
        kept.extend(x for x in (output if isinstance(output, tuple) else (output,)) if torch.is_tensor(x))

    for name, module in model.named_modules():
        if name.startswith("h.") and (name.count(".") > 1 or name[2:].isdigit()):
            module.register_forward_hook(keep)

    def call():
        kept.clear()
        model(tokens % 64, output_attentions=True, use_cache=False)
        return measured_by_hooks(kept)

    return call


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--device", default="cpu")
    args.add_argument("--rivals", action="store_true")
    args = args.parse_args()
    torch.set_num_threads(1)
    reuse_freed_memory()
    name = torch.cuda.get_device_name() if args.device == "cuda" else "CPU, one thread"
    print(f"{name}, torch {torch.__version__}; statistics per site: {', '.join(meter)}")
    with torch.inference_mode():
        for layers, width, heads, length in SIZES:
            config = Config(d_model=width, n_heads=heads, n_layers=layers)
            model = Transformer(config, [str(i) for i in range(length)]).to(args.device)
            tokens = torch.arange(length, device=args.device)[None]
            bare = Bare(model).to(args.device)
            torch.testing.assert_close(bare(tokens), model.stream(tokens), rtol=1e-4, atol=1e-4)
            calls = {
                "bare": lambda: bare(tokens),
                "watched, all kept": lambda: ours(model, tokens),
                "watched, pattern kept": lambda: ours(model, tokens, ["pattern"]),
            }
            if args.rivals:
                for rival in (transformer_lens, hugging_face):
                    try:
                        calls[rival.__name__] = rival(config, tokens, args.device)
                    except ImportError as missing:
                        print(f"not installed, left out: {missing.name}")
            print(f"{layers} layers, d_model {width}, {heads} heads, {length} tokens")
            for name, (seconds, ratio) in compare(calls, args.device).items():
                print(f"  {name:22} {1e3 * seconds:8.3f} ms   {ratio:5.2f} × bare")


if __name__ == "__main__":
    main()
