"""Claims of papers, and whether they hold here: experiment, smallest effect that counts, verdict."""

# isort: off
from core.teaching.claims.rule import DOES_NOT, REPLICATES, UNDECIDED, Claim, Judged, claim, judged, verdict
from core.teaching.claims import claims  # noqa: F401  (enters every claim in the menu)

__all__ = ["DOES_NOT", "REPLICATES", "UNDECIDED", "Claim", "Judged", "claim", "judged", "verdict"]
