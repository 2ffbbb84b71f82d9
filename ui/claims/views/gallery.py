import pandas as pd

from core.teaching.claims import claim
from core.teaching.claims.wording import tally
from ui.claims.context import view
from ui.kit import takeaway
from ui.kit.page import figure
from ui.kit.store import change
from ui.pictures.claims import claims

RULE = (
    "Bars: mean over seeds and its interval. They hold for all claims together with 95 %. A claim replicates here where its whole "
    "interval lies in the blue zone. The zone was fixed before the run. Click a claim to see how it was measured."
)


@view
def gallery(context):
    """All claims: each with what was measured, and the verdict."""
    figure(tally(context.found.values()), RULE)
    claims("claims", context.found, lambda name: change(shown="evidence", claim=name))
    takeaway.note("Claims and verdicts", lambda: table(context))


def table(context) -> pd.DataFrame:
    """claim, paper, number, smallest, alike, mean, low, high, seeds, verdict."""
    rows = []
    for name, found in context.found.items():
        of, (mean, low, high, seeds) = claim[name], found.interval
        rows.append(
            (claim.label(name), of.paper, of.number, of.smallest, of.alike, mean, low, high, seeds, found.verdict)
        )
    columns = "claim paper number smallest alike mean low high seeds verdict".split()
    return pd.DataFrame(rows, columns=columns)
