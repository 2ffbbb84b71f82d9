"""List of claims as a component: interval, predicted region, verdict."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.figures.palette import BASELINE, VARIANTS
from core.figures.small_pictures import SPREAD_WIDTH, spread_svg
from core.teaching.claims import (
    DOES_NOT,
    REPLICATES,
    Claim,
    Judged,
    claim,
    describe,
    format_measure,
    format_result,
)
from ui.kit.panel.control import register_handler
from ui.kit.server.scripts import component

KINDS = {REPLICATES: "yes", DOES_NOT: "no"}
CSS = f"""
.root {{ font-family: var(--st-font); color: var(--st-text-color); container-type: inline-size; }}
.row {{ display: grid; grid-template-columns: minmax(0, 1fr) {SPREAD_WIDTH}px 190px; gap: 4px 20px;
  align-items: center; width: 100%; box-sizing: border-box; padding: 7px 8px; border: 0;
  border-bottom: 1px solid var(--st-border-color); background: none; font: inherit; color: inherit;
  text-align: left; }}
button.row {{ cursor: pointer; outline-offset: -2px; }}
button.row:hover {{ background: var(--st-secondary-background-color);
  box-shadow: inset 3px 0 var(--st-primary-color); }}
b {{ display: block; font-size: 14px; }}
i {{ font-style: normal; font-weight: 400; opacity: 0.8; font-size: 12px; }}
small {{ font-size: 12px; opacity: 0.8; }}
.yes b {{ color: color-mix(in srgb, {BASELINE} 62%, var(--st-text-color)); }}
.no b {{ color: color-mix(in srgb, {VARIANTS[0]} 72%, var(--st-text-color)); }}
svg {{ width: 100%; max-width: {SPREAD_WIDTH}px; height: auto; display: block; }}
text {{ fill: var(--st-text-color); font-size: 12px; opacity: 0.75; }}
.middle {{ text-anchor: middle; }}
.zone {{ fill: {BASELINE}; opacity: 0.16; }} .edge {{ stroke: {BASELINE}; stroke-dasharray: 3 3; }}
.axis {{ stroke: var(--st-text-color); opacity: 0.25; }}
.reach {{ stroke: var(--st-text-color); stroke-width: 3; }}
.mean {{ fill: var(--st-text-color); }}
.seed {{ fill: var(--st-text-color); opacity: 0.35; }}
@container (max-width: 760px) {{ .row {{ grid-template-columns: minmax(0, 1fr); }} }}
"""
_claims = component("claims", Path(__file__).with_suffix(".js"), CSS)


def draw_claims(
    key: str,
    judgements: Mapping[str, Judged],
    on_pick: Callable[[str], None] | None = None,
    by_seed: Sequence[float] = (),
):
    """Draw claims in rows: title, interval with predicted region, verdict; one with its seeds.

    Args:
        key: Key of the component.
        judgements: Result by claim.
        on_pick: Called with a clicked claim.
        by_seed: One value per seed, drawn as dots where there is a single claim; () for none.
    """
    names = list(judgements)

    def pick(index: int):
        if on_pick and 0 <= index < len(names):
            on_pick(names[index])

    rows = [_row(claim[name], claim.label(name), judgements[name], by_seed) for name in names]
    _claims(
        key=key,
        data=json.dumps(
            {"rows": rows, "pick": on_pick is not None, "set": register_handler(key, pick)}
        ),
    )


def _row(
    claim_row: Claim, label: str, judgement: Judged, by_seed: Sequence[float]
) -> dict[str, str]:
    """Return one claim's row for claims.js: texts and an SVG, in which `by_seed` are the dots."""
    write = lambda value: format_measure(value, claim_row) if value else "0"  # noqa: E731
    row = {"title": label, "paper": claim_row.paper.partition(":")[0], "what": claim_row.number}
    row |= {
        "kind": KINDS.get(judgement.verdict, "open"),
        "verdict": judgement.verdict,
        "number": format_result(judgement, claim_row),
    }
    row["picture"] = spread_svg(
        judgement.interval[:3], claim_row.smallest, claim_row.alike, write, by_seed
    )
    return row | {"said": f"{label}: {describe(judgement, claim_row)}"}
