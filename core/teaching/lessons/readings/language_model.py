"""Readings of the language model that ships, trained on legal sentences."""

import math

from core.checkpoints import family
from core.experiments.trained.knockout import Bench, bench
from core.experiments.trained.knockout import measured as knocked_out
from core.experiments.trained.prompt import logits, look, read
from core.experiments.trained.tables import compared
from core.experiments.trained.tables import readings as subject_readings
from core.measure.intervals import Interval
from core.model.generate import Sampling, probabilities
from core.model.knockout import Cut, cuts
from core.settings.setting import ConfigError
from core.teaching.lessons.readings.reading import SENTENCE, Measured, Params, exact, reading

SEED = 0
ACCURACY = "accuracy"


def _bench() -> Bench:
    return bench(family.kept(family.WHOLE, SEED))


def _head(params: Params) -> Cut:
    """The head that is named as on screen: "2.3" is the third of the second layer."""
    heads = {f"{cut.layer + 1}.{(cut.head or 0) + 1}": cut for cut in cuts(_bench().model.config) if cut.part == "head"}
    if params.get("head") not in heads:
        raise ConfigError("head", f"head is {params.get('head', '')[:20]!r}; it must be one of {', '.join(heads)}.")
    return heads[params["head"]]


@reading(unit="percent", within=(0.0, 1.0), takes=["head"])
def reads_subject(params: Params) -> Measured:
    """Attention to the subject: the share of the head's attention that the verb gives to its subject, across a clause."""
    cut = _head(params)
    (of,) = [each for each in subject_readings(_bench()) if (each.layer, each.head) == (cut.layer, cut.head)]
    return Measured({}, Interval(of.verb.mean, float(of.verb.low), float(of.verb.high), of.verb.n), SENTENCE)


@reading(unit="points", within=(-1.0, 1.0), takes=["head"])
def without_head(params: Params) -> Measured:
    """Without the head: the change of accuracy when it is taken out, over the same sentences."""
    asked, cut = _bench(), _head(params)
    effect = knocked_out(asked, (cut,), "zero")
    found = compared(effect, asked.baseline, ACCURACY)
    values = effect.values[ACCURACY] - asked.baseline.values[ACCURACY]
    return Measured(dict(enumerate(values.tolist())), Interval(found.mean, found.low, found.high, found.n), SENTENCE)


@reading(unit="percent", within=(0.0, 1.0), takes=["text", "word", "temperature"])
def next_word(params: Params) -> Measured:
    """Next word: the chance of a word to be the one that is drawn, at a temperature."""
    asked = _bench()
    vocabulary, word = asked.model.vocabulary, params.get("word", "")
    if word not in vocabulary:
        raise ConfigError("word", f"word is {word[:20]!r}; it must be one that the model knows.")
    try:
        sampling = Sampling(temperature=float(params.get("temperature", "1")))
    except ValueError as error:
        raise ConfigError("temperature", f"temperature cannot be read: {error}") from None
    prompt = read(asked.opened, params.get("text", ""))
    scores = logits(asked, look(asked, prompt), len(prompt.ids) - 1)
    chance = probabilities(scores, sampling)[vocabulary.index(word)].item()
    return exact(chance if math.isfinite(chance) else 0.0)
