"""Fair comparison: a model without a part, adjusted until it costs as much as the baseline."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from core.model import cost
from core.model.config import Config
from core.model.variants import apply
from core.settings.menu import Menu
from core.settings.setting import ConfigError, Setting
from core.settings.wording import count, lower_first
from core.tasks import task
from core.train.budget import step_seconds
from core.train.settings import Training

# Learning rate that a model would have anyway -> those that are tried beside it.
search: Menu[Callable[[float], list[float]]] = Menu("Search")


def _scale_rate(rate: float, factors: tuple[float, ...]) -> list[float]:
    """Return rate × each factor, to three digits, without the rate itself and invalid rates."""
    definition: Setting = Training.settings()["learning_rate"]
    rates = [float(f"{rate * factor:.3g}") for factor in factors]
    return [
        factor
        for factor in rates
        if (definition.low or 0) <= factor <= (definition.high or math.inf) and factor != rate
    ]


search.add(
    "none",
    lambda rate: [],
    label="Off",
    help="each model uses the learning rate set under Training.",
)
search.add(
    "three",
    lambda rate: _scale_rate(rate, (1 / 3, 3)),
    label="3 values",
    help="the learning rate ÷3, ×1 and ×3.",
)
search.add(
    "five",
    lambda rate: _scale_rate(rate, (1 / 9, 1 / 3, 3, 9)),
    label="5 values",
    help="the learning rate ÷9, ÷3, ×1, ×3 and ×9.",
)


def name_at_rate(name: str, rate: float) -> str:
    """Name a model at a learning rate: "QK-norm, learning rate 0.01"; the name must not be ""."""
    return f"{name}, {Training.settings()['learning_rate'].describe_change(rate)}"


def count_rates(rates: Sequence[float]) -> str:
    """List rates, of one seed each, with how many seeds have them: "0.003 on 2, 0.01 on 1"."""
    return ", ".join(f"{rate:g} on {rates.count(rate)}" for rate in sorted(set(rates)))


def late_loss(losses: Iterable[tuple[int, float]], end: int) -> float:
    """Return the mean of losses (step, loss) in the last tenth up to step `end`; inf for none.

    A loss is that of new sequences, before anything is learnt from them (Dawid, 1984, calls that
    prequential). So it is a validation: not on the test set, and of this seed alone, which keeps
    the seeds independent of each other.
    """
    late = [loss for step, loss in losses if 10 * step > 9 * end and step <= end]
    return math.fsum(late) / len(late) if late else math.inf


def choose_rate(losses: Mapping[float, float]) -> float:
    """Return the rate with the least late loss, {rate: loss}; the lowest rate among equals."""
    return min(losses, key=lambda rate: (losses[rate], rate))


CLOSE = 0.02  # how far off, relatively, still counts as the same cost
WIDER = 16  # steps of d_model that are tried where the sub-layers alone cannot be made to fit

Measured = Callable[[Config], float]  # what a config costs

# (config, how it is trained) -> what it costs. by_steps: whether the number of steps is changed,
# and no width.
match: Menu[Callable[[Config, Training], float]] = Menu("Match cost", by_steps=False)


match.add(
    "nothing",
    lambda config, training: 0,
    label="None",
    help="removing a component also removes its parameters.",
)
match.add(
    "parameters",
    lambda config, training: sum(
        cost.parameters(config, len(task[training.task].vocabulary)).values()
    ),
    label="Parameters",
    help="widths are adjusted to match the parameter count.",
)
match.add(
    "flops",
    lambda config, training: cost.forward_flops(
        config, training.length, len(task[training.task].vocabulary)
    ),
    label="FLOPs",
    help="widths are adjusted to match the FLOPs of a forward pass.",
)
match.add(
    "time",
    step_seconds,
    label="Estimated training time",
    help="models with faster steps get more steps, for equal estimated time.",
    by_steps=True,
)

Model = tuple[Config, Training]


def match_cost(kind: str, model: Model, baseline: Model) -> tuple[Config, Training, str]:
    """Adjust widths or steps to the baseline's cost; return config, training, note (or "").

    Where nothing fits better, the text says how far off it is. "nothing" changes nothing.
    """
    config, training = model
    target = match[kind](*baseline)
    if kind == "nothing":
        return config, training, ""
    if match[kind].by_steps:  # type: ignore[attr-defined]  # a fact of the menu
        # As many steps as come nearest, with about as many rows and as large a share of them for
        # the warm-up.
        settings = Training.settings()
        how = training
        nearest = round(target * baseline[1].steps / match[kind](config, training))
        steps = max(1, min(nearest, int(settings["steps"].high or nearest)))
        if steps != training.steps:
            every, warmup = (
                round(steps_of * steps / training.steps)
                for steps_of in (training.every, training.warmup)
            )
            warmup = min(warmup, int(settings["warmup"].high or warmup))
            how = replace(training, steps=steps, every=max(1, every), warmup=warmup)
        phrases = [count(how.steps, "step")] if how != training else []
        share = how.steps * match[kind](config, how) / (target * baseline[1].steps)
        return config, how, ", ".join([*phrases, *_describe_mismatch(share, kind)])
    fitted = fit_widths(config, target, lambda tried: match[kind](tried, training))
    is_adjustable = {"d_model": True, "d_ff": config.ffn, "d_head": config.attention}
    changes = [
        f"{n} {getattr(fitted, n)}"
        for n in is_adjustable
        if is_adjustable[n] and getattr(fitted, n) != getattr(config, n)
    ]
    return (
        fitted,
        training,
        ", ".join([*changes, *_describe_mismatch(match[kind](fitted, training) / target, kind)]),
    )


def _describe_mismatch(ratio: float, kind: str) -> list[str]:
    """Return [] if ratio (cost / target) is within CLOSE of 1, else [how far off it is]."""
    off = 100 * (ratio - 1)
    if abs(off) <= 100 * CLOSE:
        return []
    return [f"closest match: {off:+.0f} % {lower_first(match.label(kind))}".replace("-", "−")]


def fit_widths(config: Config, target: float, measured: Measured) -> Config:
    """Return config with d_ff (without FFN: d_head), if need be d_model, to cost about `target`.

    d_ff is changed where there is a feed-forward network, else the width of the heads (d_head);
    where that alone stays more than CLOSE away, d_model too. Without either sub-layer nothing can
    be done, and the config comes back as it is.
    """
    if not (config.ffn or config.attention) or abs(measured(config) - target) <= 0.001 * target:
        return config
    field = "d_ff" if config.ffn else "d_head"
    definition = Config.settings()[field]

    def relative_error(tried: Config) -> float:
        return abs(measured(tried) - target) / target

    def fit(tried: Config) -> Config:
        """Return the config with the width whose cost, linear in it, is nearest to the target."""
        step = 2 if field == "d_head" and tried.part("position").turns else 1
        a, two = (measured(tried.replace(**{field: width})) for width in (step, 2 * step))
        width = step * max(1, 1 + round((target - a) / (two - a)))
        return tried.replace(**{field: min(width, int(definition.high or width) // step * step)})

    best = fit(config)
    for extra in range(1, WIDER + 1):
        if relative_error(best) <= CLOSE:
            break
        for wider in (
            config.d_model + extra * config.n_heads,
            config.d_model - extra * config.n_heads,
        ):
            with suppress(ConfigError):  # out of bounds, or the positions do not fit
                best = min(best, fit(apply({"d_model": wider}, config)), key=relative_error)
    return best
