"""Colours of canvas, Altair and drawings: safe for colour-blind readers, light and dark."""

from collections.abc import Sequence

# viridis: perceptually uniform (van der Walt and Smith, 2015); every tenth of the range.
SEQUENTIAL = (
    "#440154",
    "#482475",
    "#414487",
    "#355f8d",
    "#2a788e",
    "#21918c",
    "#22a884",
    "#44bf70",
    "#7ad151",
    "#bddf26",
    "#fde725",
)

# Brewer's RdBu, blue for less and red for more, pale at zero.
DIVERGING = (
    "#053061",
    "#2166ac",
    "#4393c3",
    "#92c5de",
    "#d1e5f0",
    "#f7f7f7",
    "#fddbc7",
    "#f4a582",
    "#d6604d",
    "#b2182b",
    "#67001f",
)

# Okabe and Ito (2008), in the order in which they are used: the baseline first. Pink, orange and
# sky blue are darkened to
# 3 : 1 on white.
BASELINE = "#0072B2"
VARIANTS = ("#D55E00", "#009E73", "#B8578F", "#B87A00")
NOW = "#3E95C9"  # the settings of the sidebar, beside a pinned baseline
NEUTRAL = "#77808c"
# Of lines in these colours, in their order, for whoever cannot tell them apart: as SVG has them.
DASHES = ("", "9 4", "2 4", "11 3 2 3", "6 2", "2 2")


def colour(stops: Sequence[str], share: float) -> tuple[int, int, int]:
    """Return the colour at a share (0 to 1) of a scale, linear between its stops: RGB, 0 to 255."""
    position = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(position), len(stops) - 2)
    ends = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops[low : low + 2]]
    return tuple(round(a + (b - a) * (position - low)) for a, b in zip(*ends))
