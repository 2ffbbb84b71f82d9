"""The field's words that a page uses, each explained beside the figure or the column that uses it."""

import re

TERMS = {
    "logit difference": "The model's score of the right word minus its score of the wrong one, before the softmax. "
    "0: it cannot decide. Each 1 more makes the right word e ≈ 2.7 times as likely, compared with the wrong one.",
    "KL divergence": "How far two sets of probabilities are apart, in nats: the logarithm of their ratio, averaged over "
    "what the whole model would say. 0: they are the same.",
    "direct logit attribution": "The scores are a sum of what each part wrote into the stream, so each part has a share of its "
    "own. What a part brings about through later parts counts for those. The last norm keeps the scale it had. "
    "(Elhage et al., 2021)",
    "attention rollout": "Attention followed through all layers. In each layer a word keeps half of its own stream and takes "
    "the other half from the words it attends to, averaged over heads. (Abnar and Zuidema, 2020)",
    "logit lens": "The stream after a layer, read as if it were the last: through the final norm and the output words. No "
    "layer but the last was trained to be read so. (nostalgebraist, 2020)",
    "Holm": "Of many differences some look large by chance. Holm's method widens the intervals and raises p. "
    "The chance that even one of all the findings is false is then at most 5 %. (Holm, 1979)",
    "paired t-test": "Each seed, or each text, is compared with itself: with the part and without it. Only these "
    "differences count, not how seeds or texts differ from each other.",
    "entropy": "How spread out attention is, in bits. 0: all of it is on one word. 1: as if on two words evenly. "
    "log₂ n: on n words evenly.",
    "RMS": "Root mean square: the square root of the mean of the squares. How large the numbers of a vector are.",
    "cosine similarity": "Whether two vectors point the same way. 1: the same direction, 0: at right angles, −1: opposite.",
}
_WORDS = {term: re.compile(rf"\b{re.escape(term.removesuffix('-test'))}\b", re.IGNORECASE) for term in TERMS}


def explained(*texts: str) -> str | None:
    """What the words in these texts mean, as Markdown; None where none needs it."""
    terms = [term for term, word in _WORDS.items() if any(map(word.search, texts))]
    return "\n\n".join(f"**{term[0].upper()}{term[1:]}**: {TERMS[term]}" for term in terms) or None
