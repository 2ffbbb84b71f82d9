"""What papers claim, and whether it is so here: each claim with its experiment, its smallest effect that counts, its verdict.

Whoever imports any of it has every claim in the menu.
"""

# isort: off
from core.teaching.claims.claim import DOES_NOT, REPLICATES, UNDECIDED, Claim, Judged, claim, judged, verdict
from core.teaching.claims import trainings, models  # noqa: F401

__all__ = ["DOES_NOT", "REPLICATES", "UNDECIDED", "Claim", "Judged", "claim", "judged", "verdict"]
