"""What is printed of a study in the store."""

from core.settings.wording import count
from core.study.database.schema import FAILED
from core.study.database.standing import standing
from core.study.database.store import Store

SHOWN = 10  # failed runs of which the reason is printed


def state_of(store: Store, number: int) -> bool:
    """Print how far a study is -> whether every run has its result."""
    name = next((each.name for each in store.studies() if each.id == number), None)
    if name is None:
        print("The study has been deleted meanwhile.")
        return False
    standings, failed = standing(store, number), store.runs(number, FAILED, spec=False)  # before anything is printed
    print(f"{name}: {standings.words()}.")
    if standings.lost:
        print(
            f"  {count(standings.lost, 'running one')} without a process that trains it: it was ended, and resume runs them again."
        )
    for each in failed[:SHOWN]:
        print(f"  {each.task}, {each.variant}, seed {each.seed} failed: {each.message}")
    if len(failed) > SHOWN:
        print(f"  … and {len(failed) - SHOWN} more.")
    if standings.open and not standings.running:
        print(f"  To go on: python -m core.study resume {name!r}")
    return standings.complete
