"""What is said of trainings, on Training and of the runs of a study: who has which colour, and who diverged."""

from core.experiments.training import results
from core.experiments.training.judged import at_an_end, rates
from core.experiments.training.plan import SEARCHED, guards
from ui.kit import pins
from ui.kit.jobs import StartedTrainings


def arms_shown(trainings: StartedTrainings) -> list:
    """The models that have a colour: the baseline and its variants, without their combinations."""
    return [arm for arm in trainings.plan.arms if arm.colour is not None]


TIMED = guards("time", False)[0]


def said_alike(held: list[str]) -> str:
    """What is held alike for all models, as a caption; nothing where nothing is."""
    chosen = " For each seed the rate counts that ends with the lowest training loss; the test has no say in it." * (
        SEARCHED in held
    )
    timed = " Each curve stands at the baseline's steps: at what a model had learnt by that time." * (TIMED in held)
    return f"Held alike for all models: {', '.join(held)}.{chosen}{timed}" if held else ""


def rates_chosen(trainings: StartedTrainings) -> dict[str, str]:
    """Model -> which learning rates were chosen, and on how many seeds; nothing where they are not searched."""
    plan = trainings.plan
    if plan.trial.search == "none":
        return {}
    known = rates(plan, trainings.judge.now.names)
    return {arm.name: known[arm.name] if _ended(trainings, arm) else "–" for arm in plan.arms}


def _ended(trainings: StartedTrainings, arm) -> bool:
    """Whether a model has been trained to the end at all its rates, with all seeds."""
    runs = [
        (trainings.every_run[name, seed], way)
        for name, way in trainings.plan.ways(arm).items()
        for seed in trainings.plan.seeds
    ]
    return all(rows and (rows[-1].note or rows[-1].step == way.steps) for rows, way in runs)


def said_of_ends(trainings: StartedTrainings) -> str:
    """Of which models the best rate that was tried stands at an end of those that were; nothing where it does of none."""
    ended = {name for name, said in rates_chosen(trainings).items() if said != "–"}
    found = [name for name in at_an_end(trainings.plan, trainings.judge.now.names) if name in ended] if ended else []
    return (
        f"The highest or the lowest rate tried was best for {', '.join(found)}: one beyond may be better."
        if found
        else ""
    )


def label(arm) -> str:
    return f"{arm.name} ({arm.note})" if arm.note else arm.name


def legend(trainings: StartedTrainings, said=None):
    """Who has which colour, and what all have in common."""
    plan = trainings.plan
    ended = {arm.name: gone(trainings, arm.name) for arm in arms_shown(trainings)} if said is None else said
    first, last = plan.seeds[0], plan.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    if last - first >= len(plan.seeds):  # a study may have any seeds
        seeds = f"{len(plan.seeds)} seeds from {first} to {last}"
    common = [
        f"{trainings.origin}, {seeds}. Paired: same seed, same data, and the same initial weights where shapes agree."
    ]
    if any("diverged" in (text or "") for text in ended.values()):
        common.append(pins.DIVERGED)
    marks = [(arm.colour, label(arm), ended.get(arm.name)) for arm in arms_shown(trainings)]
    pins.marks(marks, common)


def gone(trainings: StartedTrainings, name: str) -> str | None:
    """ "diverged at step k, seed s", for all seeds that did."""
    steps = [(seed, trainings.runs[name, seed]) for seed in trainings.plan.seeds]
    lost = sorted((rows[-1].step, seed, results.diverged(rows)) for seed, rows in steps if results.diverged(rows))
    phrases = [f"{said}, seed {seed}" for _, seed, said in lost]  # the first to go comes first
    if len(phrases) > 2:
        return f"{phrases[0]}; {len(phrases)} of {len(steps)} seeds diverged"
    return "; ".join(phrases) or None
