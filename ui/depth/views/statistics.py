from core.experiments.depth.findings import finding
from core.measure.stream_statistics import statistic
from ui.depth.context import view
from ui.kit import pins
from ui.pictures.curves import Line, Panel, curves

ORDER = ("rms", "cosine", "rank", "entropy", "std", "largest", "mean")


@view
def statistics(context):
    """Statistics: how the stream changes, pass after pass."""
    journeys = context.journeys
    ended = {n: None if j.diverged is None else f"diverged at pass {j.diverged}" for n, j in journeys.items()}
    pins.legend(context.variants, ended, context.pins)
    context.say_rounding(journeys)
    order = [*ORDER, *[name for name in statistic if name not in ORDER]]
    panels = [panel(meter, context.variants, journeys, ended) for meter in order]
    curves("statistics", panels, {v.colour: v.name for v in context.variants})


def panel(meter: str, variants, journeys, ended: dict[str, str | None]) -> Panel:
    """One statistic of all variants, pass by pass. ended: name -> what is said where a line breaks off."""
    known = statistic[meter]
    lines = [Line(v.colour, journeys[v.name].of(meter).tolist(), ended.get(v.name)) for v in variants]
    return Panel(
        title=known.question,
        label=statistic.label(meter),
        help=statistic.help(meter),
        log=known.log,
        sentence=finding(meter, journeys),
        lines=lines,
    )
