"""What the views of the page "Claims" share: their menu, what is looked at, and what they are handed."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.teaching.claims import Judged, claim

view = Menu("Views of claims")


@dataclass(frozen=True)
class ClaimsLook(Settings):
    """What is looked at on the page "Claims"."""

    shown: str = setting("gallery", "View", "What to look at.", group="Look", menu=view)
    claim: str = setting(next(iter(claim)), "Claim", "Which claim is shown by itself.", group="Look", menu=claim)


@dataclass(frozen=True)
class ClaimsContext:
    """What the views are handed: what was measured of every claim."""

    values: Mapping[str, Mapping[int, float]]  # claim -> seed -> number
    found: Mapping[str, Judged]
    look: ClaimsLook
