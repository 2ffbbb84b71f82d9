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
    panels = [
        Panel(
            title=statistic[meter].question,
            label=statistic.label(meter),
            help=statistic.help(meter),
            log=statistic[meter].log,
            sentence=finding(meter, journeys),
            lines=[Line(v.colour, journeys[v.name].of(meter).tolist(), ended[v.name]) for v in context.variants],
        )
        for meter in [*ORDER, *[name for name in statistic if name not in ORDER]]
    ]
    curves("statistics", panels, {v.colour: v.name for v in context.variants})
