"""The forward pass once more: NumPy, float64, one sentence, head, query and key at a time.

Written from the papers and without a look at core's formulas, so that a mistake in one is not a
mistake in both. It takes from core nothing but a model's weights and the fields of its Config. Slow
and obvious on purpose.
"""

import math
from decimal import Decimal

import numpy as np


def weights_of(model) -> dict[str, np.ndarray]:
    """Return every parameter of a model by name, as float64."""
    return {name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()}


def forward(weights, config, tokens, real=None) -> dict[str, list[np.ndarray]]:
    """Site -> one array per layer, with the sentences of the batch stacked as core stacks them.

    tokens: rows of token numbers; real: rows of booleans, False where a token is padding.
    """
    sentences = []
    for row, sentence in enumerate(tokens):
        keys = [True] * len(sentence) if real is None else [bool(r) for r in real[row]]
        sentences.append(Sentence(weights, config, [int(t) for t in sentence], keys).run())
    return {
        site: [
            np.stack([sentence[site][layer] for sentence in sentences])
            for layer in range(len(layers))
        ]
        for site, layers in sentences[0].items()
    }


# Placement -> whether the last stream is still to be normalised before it is read. (A pre-norm
# stream has never been.)
READ_THROUGH_A_NORM = {"pre": True, "post": False, "output": True, "sandwich": True}


class Sentence:
    """Forward pass of one sentence. A stream is a list with one vector per token."""

    def __init__(self, weights, config, tokens, real):
        self.weights = weights
        self.config = config
        self.tokens = tokens
        self.real = real
        self.seen = {}
        self.first_values = None

    def record(self, site, value):
        self.seen.setdefault(site, []).append(np.array(value))
        return value

    def embedded(self):
        """Embeddings plus positions, normed where there is a norm on embeddings."""
        x = [
            self.weights["embed"][token] + self.position_vector(index)
            for index, token in enumerate(self.tokens)
        ]
        if self.config.embedding_norm:
            x = self.norm("ln_embed", "ln_embed", self.record("embed_raw", x))
        return self.record("embed", x)

    def run(self):
        x = self.embedded()
        outputs = []
        layers = self.config.n_layers
        for layer in range(layers):
            partner = layers - 1 - layer  # the last layer's is the first
            if self.config.skips and partner < layer:
                x = [a + self.weights["skip"][partner] * b for a, b in zip(x, outputs[partner])]
            x = self.block(0 if self.config.shared else layer, x)
            outputs.append(x)
        if self.config.placement not in READ_THROUGH_A_NORM:
            raise unknown("placement", self.config.placement)
        if READ_THROUGH_A_NORM[self.config.placement]:
            x = self.norm("ln_final", "ln_final", x)
        self.record("logits", [self.scores_of_words(vector) for vector in x])
        return self.seen

    def scores_of_words(self, vector):
        if self.config.tied:
            scores = [sum(a * b for a, b in zip(word, vector)) for word in self.weights["embed"]]
        else:
            scores = self.linear("unembed", vector)
        cap = self.config.logit_cap
        return [cap * math.tanh(score / cap) for score in scores] if cap else scores

    def block(self, layer, x):
        config = self.config
        block_input = self.record("resid_pre", x)
        if config.attention:
            x = self.sublayer(
                layer, x, x, self.attention, "ln1", "attn", config.residual_attention, "resid_mid"
            )
        if config.ffn:
            read = block_input if config.parallel else x
            return self.sublayer(
                layer, x, read, self.feed_forward, "ln2", "mlp", config.residual_ffn, "resid_post"
            )
        self.record("resid_post", x)
        return x

    def sublayer(self, layer, x, read, compute, norm_site, name, residual, sum_site):
        """x: the stream that it joins; read: the stream that it reads."""
        where = f"blocks.{layer}.{norm_site}"
        placement = self.config.placement
        if placement not in ("pre", "post", "output", "sandwich"):
            raise unknown("placement", placement)
        y = compute(
            layer, self.norm(norm_site, where, read) if placement in ("pre", "sandwich") else read
        )
        if placement in ("output", "sandwich"):
            self.record(f"{name}_raw", y)
            second = "_post" if placement == "sandwich" else ""
            y = self.norm(norm_site + second, where + second, y)
        elif self.config.residual_scale != "none":
            self.record(f"{name}_raw", y)
        y = self.scaled(
            f"blocks.{layer}.add_{'attention' if name == 'attn' else 'ffn'}.scale.gain", y
        )
        self.record(f"{name}_out", y)
        total = [a + b for a, b in zip(x, y)] if residual else y
        self.record(sum_site, total)
        return self.norm(norm_site, where, total) if placement == "post" else total

    def scaled(self, where, y):
        scale = self.config.residual_scale
        if scale not in ("none", "rezero", "layerscale"):
            raise unknown("residual_scale", scale)
        return y if scale == "none" else [self.weights[where] * vector for vector in y]

    # Attention

    def attention(self, layer, x):
        config = self.config
        where = f"blocks.{layer}.attn"
        length = len(x)
        size = config.d_head
        groups = config.n_kv_heads
        stacked = [
            self.linear(f"{where}.qkv", vector) for vector in x
        ]  # queries, keys, values, one below the other
        q, k, v, scores, pattern, z = ([] for _ in range(6))
        for group in range(groups):
            k.append(
                [
                    self.turned(layer, "k", row, config.n_heads, group, index)
                    for index, row in enumerate(stacked)
                ]
            )
            v.append([row[self.rows(config.n_heads + groups + group)] for row in stacked])
        if config.value_residual:
            if self.first_values is None:
                self.first_values = v
            else:
                v = [[(a + b) / 2 for a, b in zip(*values)] for values in zip(v, self.first_values)]
        gates = [self.linear(f"{where}.gate", vector) for vector in x] if config.gate else None
        gate = (
            [
                [1 / (1 + np.exp(-row[self.rows(head)])) for row in gates]
                for head in range(config.n_heads)
            ]
            if gates
            else None
        )
        for head in range(config.n_heads):
            group = head // (config.n_heads // groups)  # heads in a row have one group: 0, 0, 1, 1
            q.append(
                [self.turned(layer, "q", row, 0, head, index) for index, row in enumerate(stacked)]
            )
            scores.append(np.zeros((length, length)))
            pattern.append(np.zeros((length, length)))
            z.append(np.zeros((length, size)))
            for query in range(length):
                for key in range(length):
                    score = sum(a * b for a, b in zip(q[head][query], k[group][key]))
                    if config.scale:
                        score /= math.sqrt(size)
                    if config.score_cap:
                        score = config.score_cap * math.tanh(score / config.score_cap)
                    scores[head][query][key] = score + self.score_bias(layer, head, query, key)
                visible = [key for key in range(length) if self.may_see(layer, query, key)]
                if not visible:
                    continue  # sees nothing: weights of zero, and a z of zero
                nobody = self.score_of_nobody(where, head)
                largest = max([scores[head][query][key] for key in visible] + nobody)
                share = {key: math.exp(scores[head][query][key] - largest) for key in visible}
                full = sum(share.values()) + sum(math.exp(score - largest) for score in nobody)
                for key in visible:
                    pattern[head][query][key] = share[key] / full
                    z[head][query] += pattern[head][query][key] * v[group][key]
        for site, value in zip(("q", "k", "v", "scores", "pattern"), (q, k, v, scores, pattern)):
            self.record(site, value)
        if gate:
            self.record("gate", gate)
            z = [[a * b for a, b in zip(*of_head)] for of_head in zip(z, gate)]
        self.record("z", z)
        joined = [
            np.concatenate([z[head][index] for head in range(config.n_heads)])
            for index in range(length)
        ]
        return [self.linear(f"{where}.out", vector) for vector in joined]

    def score_of_nobody(self, where, head):
        """Return the attention-sink logits that a head adds to the softmax's denominator."""
        if self.config.softmax == "usual":
            return []
        if self.config.softmax == "off_by_one":
            return [0.0]
        if self.config.softmax == "sink":
            return [self.weights[f"{where}.softmax.score"][head]]
        raise unknown("softmax", self.config.softmax)

    def rows(self, number):
        """Return one head's rows of the stacked weights: queries first, then keys, then values."""
        return slice(number * self.config.d_head, (number + 1) * self.config.d_head)

    def turned(self, layer, kind, row, first, number, index):
        """A query or a key: normed (Qwen 3: before the positions act), then turned.

        first: the place of its kind's first head in the stacked row; number: the head's among them.
        """
        config = self.config
        vector = row[self.rows(first + number)]
        if config.qk_norm:
            normed = vector
            if config.qk_norm_joint:  # OLMo 2: one size for all queries, one for all keys
                heads = config.n_heads if kind == "q" else config.n_kv_heads
                normed = np.concatenate([row[self.rows(first + head)] for head in range(heads)])
            mean_square = sum(item**2 for item in normed) / len(normed)
            vector = vector / math.sqrt(mean_square + config.norm_eps)
            if config.norm_gain:
                gain = self.weights[f"blocks.{layer}.attn.{kind}_norm"]
                vector = vector * (gain[self.rows(number)] if config.qk_norm_joint else gain)
        return self.turn(layer, vector, index)

    def may_see(self, layer, query, key):
        if self.config.mask not in ("none", "causal"):
            raise unknown("mask", self.config.mask)
        near = abs(query - key) < self.config.window or not self.is_local(layer)
        return self.real[key] and near and not (self.config.mask == "causal" and key > query)

    def is_local(self, layer):
        """Whether a layer's attention has a window; GPT-Neo counts global layers from the first."""
        config = self.config
        if not config.window:
            return False
        if not config.global_every:
            return True
        return layer % config.global_every != (
            0 if config.global_first else config.global_every - 1
        )

    @staticmethod
    def is_one_of(every, layer):
        """Whether a layer is every second, third … one; the first is number 1."""
        return every != 0 and (layer + 1) % every == 0

    # Positions

    def position_vector(self, index):
        position = self.config.position
        width = self.config.d_model
        if position == "sinusoidal":
            angles = [index / 10000 ** (2 * (i // 2) / width) for i in range(width)]
            return np.array([math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)])
        if position == "learned":
            return self.weights["position.weight"][index]
        if position in ("none", "rope", "alibi"):
            return np.zeros(width)
        raise unknown("position", position)

    def turn(self, layer, vector, index):
        """Apply RoPE: rotate each pair (i, i + half) by an angle that grows with the token index.

        A share below 1 rotates only the first dimensions, and frequencies count among these
        (GPT-NeoX).
        """
        if self.config.position != "rope" or self.is_one_of(self.config.nope_every, layer):
            return vector
        base = self.config.rope_base
        if self.config.local_rope_base and self.is_local(layer):
            base = self.config.local_rope_base
        turned = vector.copy()
        half = int(len(vector) * Decimal(str(self.config.rope_share)) / 2)
        for i in range(half):
            angle = index * base ** (-2 * i / (2 * half))
            turned[i] = vector[i] * math.cos(angle) - vector[i + half] * math.sin(angle)
            turned[i + half] = vector[i] * math.sin(angle) + vector[i + half] * math.cos(angle)
        return turned

    def score_bias(self, layer, head, query, key):
        if self.config.position != "alibi" or self.is_one_of(self.config.nope_every, layer):
            return 0.0
        return -alibi_slopes(self.config.n_heads)[head] * abs(query - key)

    # Each token by itself

    def feed_forward(self, layer, x):
        where = f"blocks.{layer}.mlp"
        name = self.config.activation
        before = [self.linear(f"{where}.w_in", vector) for vector in x]
        self.record("mlp_pre", before)
        if name in GATES:
            width = self.config.d_ff
            gate = GATES[name]
            after = [
                np.array(
                    [row[i] * gate(row[width + i]) for i in range(width)]
                )  # values first, then their gates
                for row in before
            ]
        elif name in ACTIVATIONS:
            after = [np.array([ACTIVATIONS[name](number) for number in row]) for row in before]
        else:
            raise unknown("activation", name)
        self.record("mlp_post", after)
        return [self.linear(f"{where}.w_out", vector) for vector in after]

    def norm(self, site, where, x):
        name = self.config.norm
        if name == "none":
            return x
        gain = self.weights[f"{where}.weight"] if self.config.norm_gain else 1.0
        normal = []
        for vector in x:
            if name == "LayerNorm":
                mean = sum(vector) / len(vector)
                variance = sum((number - mean) ** 2 for number in vector) / len(vector)
                shift = self.weights.get(f"{where}.bias", 0.0)
                normal.append(
                    (vector - mean) / math.sqrt(variance + self.config.norm_eps) * gain + shift
                )
            elif name == "DyT":
                squeezed = np.array(
                    [math.tanh(self.weights[f"{where}.alpha"][0] * number) for number in vector]
                )
                normal.append(squeezed * gain + self.weights.get(f"{where}.bias", 0.0))
            elif name == "RMSNorm":
                mean_square = sum(number**2 for number in vector) / len(vector)
                normal.append(vector / math.sqrt(mean_square + self.config.norm_eps) * gain)
            else:
                raise unknown("norm", name)
        return self.record(site, normal)

    def linear(self, where, vector):
        outputs = np.array(
            [
                sum(w * number for w, number in zip(row, vector))
                for row in self.weights[f"{where}.weight"]
            ]
        )
        return outputs + self.weights.get(f"{where}.bias", 0.0)


def silu(x):
    return x * (1 + math.tanh(x / 2)) / 2  # x·sigmoid(x), without an exp that could overflow


def gelu(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def gelu_by_tanh(x):
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


GATES = {"swiglu": silu, "geglu": gelu, "geglu_tanh": gelu_by_tanh}
ACTIVATIONS = {
    "relu": lambda x: max(0.0, x),
    "relu2": lambda x: max(0.0, x) ** 2,
    "leaky_relu2": lambda x: x**2 if x > 0 else x**2 / 4,
    "gelu": gelu,
    "gelu_tanh": gelu_by_tanh,
    "silu": silu,
    "tanh": math.tanh,
    "identity": lambda x: x,
}


def alibi_slopes(heads):
    """Return ALiBi's slopes, by Press et al. (2021), section 3 and appendix.

    They are a geometric series if the number of heads is a power of two. Otherwise the series of
    the next lower power is extended by every other slope of the next series.
    """
    if heads & (heads - 1) == 0:
        return [2 ** (-8 * (head + 1) / heads) for head in range(heads)]
    below = 1
    while 2 * below < heads:
        below *= 2
    return alibi_slopes(below) + alibi_slopes(2 * below)[0::2][: heads - below]


def unknown(field, name):
    return NotImplementedError(
        f"tests/reference.py has no formula for {field} = {name}: write it there"
    )
