"""Where the norm stands: before a sub-layer or after the sum."""

from core.settings.menu import Menu

placement = Menu("Norm placement", where="around")  # where: the norm stands, of the sub-layer, in a word


@placement(where="before")
def pre(x, sublayer, norm, add):
    """Pre-norm: before the sub-layer. Normalises what the sub-layer reads; the stream itself is never squeezed (GPT-2 and later)."""
    return add(x, sublayer(norm(x)))


@placement(where="after")
def post(x, sublayer, norm, add):
    """Post-norm: after the sum. Normalises the stream itself after every sub-layer (Vaswani et al., 2017)."""
    return norm(add(x, sublayer(x)))


# A pre-norm stack leaves its stream unnormalised, so its models read it through one more norm (GPT-2's ln_f).
pre.final_norm = True
post.final_norm = False
