"""Lessons without a page: every file, every number in it computed another way, every verdict, every refusal."""

import copy
import math
import re
import tomllib
from itertools import pairwise, permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from core.checkpoints import family
from core.measure.intervals import Interval
from core.model.config import Config
from core.model.transformer import Transformer
from core.teaching.lessons import picture, prediction
from core.teaching.lessons.language import ENGLISH, is_complete, language, phrases, translated
from core.teaching.lessons.language import FOLDER as LANGUAGES
from core.teaching.lessons.lesson import FIELD, LessonError
from core.teaching.lessons.prediction import (
    AS_PREDICTED,
    NOT_AS_PREDICTED,
    UNDECIDED,
    VERDICTS,
    judged,
    outcome,
)
from core.teaching.lessons.reader import FOLDER, lesson, lesson_of, load, problems, read_lesson
from core.teaching.lessons.readings import SEEDS, TEXT, reading
from core.teaching.lessons.wording import fill_in, reach, written
from core.teaching.questions import check_items

WITH_PREDICTION = [name for name in lesson if read_lesson(name).prediction]
of_each = pytest.mark.parametrize("name", WITH_PREDICTION)


def answers(of) -> list:
    """Answers to a prediction, of every kind of outcome."""
    asked = of.prediction
    if asked.options:
        return list(range(len(asked.options)))
    if asked.ranked:
        return [list(order) for order in permutations(asked.ranked)]
    steps = int(round((asked.scale.high - asked.scale.low) / asked.scale.step))
    places = [asked.scale.low + asked.scale.step * n for n in range(steps + 1)]
    return [[place, within] for place in places for within in asked.scale.within]


def test_all_files_are_read_and_stand_in_the_order_of_their_numbers():
    assert not problems and set(lesson) == {path.stem for path in FOLDER.glob("*.toml")}
    assert [read_lesson(name).number for name in lesson] == list(range(len(lesson)))
    assert all(read_lesson(name).minutes <= 5 for name in lesson)
    assert [name for name in lesson if name not in WITH_PREDICTION] == ["free_play"]


@of_each
def test_a_choice_has_one_right_answer_and_the_others_say_why_they_are_not(name):
    of = read_lesson(name)
    found = [prediction.verdict(of.prediction, answer, outcome(of)) for answer in answers(of)]
    tied = of.prediction.kind == "rank" and prediction.undecided_pairs(list(of.prediction.ranked), outcome(of))
    assert set(found) <= set(VERDICTS) and NOT_AS_PREDICTED in found and (UNDECIDED if tied else AS_PREDICTED) in found
    if of.prediction.options:
        assert found.count(AS_PREDICTED) == 1 and UNDECIDED not in found
        for option, verdict in zip(of.prediction.options, found):
            assert bool(option.instead) == (verdict != AS_PREDICTED)


@pytest.mark.parametrize("name", [name for name in WITH_PREDICTION if read_lesson(name).prediction.kind == "rank"])
def test_a_rank_is_judged_pair_by_pair(name):
    from scipy.stats import ttest_rel

    of = read_lesson(name)
    out = outcome(of)
    order = list(of.prediction.ranked)
    for at, one in enumerate(order):
        for other in order[at + 1 :]:
            a, b = (
                [out.values[each].values[seed] for seed in sorted(out.values[each].values)] for each in (one, other)
            )
            found = prediction.differences([one, other], out)[one, other]
            assert found.mean == pytest.approx(sum(a) / len(a) - sum(b) / len(b))
            if a != b and len({round(x - y, 12) for x, y in zip(a, b)}) > 1:
                assert found.p == pytest.approx(float(ttest_rel(a, b).pvalue))
            turned = prediction.verdict(of.prediction, [other, one], out) if len(order) == 2 else None
            assert turned in (None, *VERDICTS)
    clear = [pair for pair, gap in prediction.differences(order, out).items() if gap.clear]
    right = sorted(order, key=lambda each: -out.values[each].found.mean)
    settled = all(pair in clear or pair[::-1] in clear for pair in pairwise(right))
    assert prediction.verdict(of.prediction, right, out) == (AS_PREDICTED if settled else UNDECIDED)
    assert prediction.verdict(of.prediction, right[::-1], out) == (NOT_AS_PREDICTED if clear else UNDECIDED)


@given(some.floats(-5, 5), some.floats(0, 3), some.floats(-5, 5), some.floats(0.001, 5))
def test_the_rule(mean, half, low, width):
    found, high = Interval(mean, mean - half, mean + half, 5), low + width
    said = judged(found, low, high)
    if said == AS_PREDICTED:
        assert low <= found.low and found.high < high
    elif said == NOT_AS_PREDICTED:
        assert found.high < low or found.low >= high
    else:
        assert found.low < low <= found.high or found.low < high <= found.high
    assert judged(Interval(mean, math.nan, math.nan, 1), low, high) == UNDECIDED


def test_costs_are_counted_on_the_model_and_by_hand():
    """Attention: two products of T × T × D, two operations each."""
    values = outcome(read_lesson("heads")).values
    model = Transformer(Config(n_heads=8), vocabulary=["a"])
    assert values["eight"].found.mean == sum(each.numel() for each in model.blocks.parameters())
    values = outcome(read_lesson("cost")).values
    assert values["short"].found.mean == 2 * 2 * 100 * 100 * 64
    per_word = 2 * (4 * 64 * 64 + 2 * 64 * 256)
    assert values["block_long"].found.mean == 1000 * per_word + 2 * 2 * 1000 * 1000 * 64


def test_growth_is_from_the_input_to_the_last_pass():
    """Of the lesson on LayerNorm, with a plain loop over the block."""
    out = outcome(read_lesson("layer_norm"))
    assert len(out.number.values) == len(SEEDS)
    for seed in SEEDS:
        model = Transformer(Config(norm="none", n_layers=1, seed=seed), dict.fromkeys(TEXT))
        with torch.inference_mode():
            x = first = model.start(torch.tensor([[model.vocabulary.index(word) for word in TEXT]]))
            for _ in range(10):
                x = model.blocks[0](x)
        grown = x.double().std(correction=0) / first.double().std(correction=0)
        assert out.number.values[seed] == pytest.approx(grown.item(), rel=1e-4)


def test_temperature_by_hand():
    model = family.kept(family.WHOLE, 0)
    words = "the defendant , who had signed the contracts ,".split()
    ids = torch.tensor([[model.model.vocabulary.index(word) for word in words]])
    with torch.inference_mode():
        scores = model.model(ids)[0, -1].double()
    out, was = outcome(read_lesson("temperature")), model.model.vocabulary.index("was")
    for name, temperature in (("half", 0.5), ("one", 1), ("two", 2)):
        weights = [math.exp(float(score - scores.max()) / temperature) for score in scores]
        assert out.values[name].found.mean == pytest.approx(weights[was] / sum(weights), abs=1e-6)


@of_each
@pytest.mark.parametrize("verdict", [*VERDICTS, "means"])
def test_texts_hold_the_numbers_that_were_measured(name, verdict):
    of = read_lesson(name)
    out = outcome(of)
    text = of.means if verdict == "means" else of.explanation[verdict]
    said = fill_in(text, of, out)
    assert "{" not in said
    for field, between in FIELD.findall(text):
        found = out.number if field == "outcome" else out.values[field]
        unit = out.unit if field == "outcome" else reading[of.values[field].reading].unit
        assert (reach(found.found, unit) if between else written(found.found.mean, unit)) in said


@of_each
@given(data=some.data())
def test_an_answer_is_read_back_as_it_was_written(name, data):
    asked = read_lesson(name).prediction
    answer = data.draw(some.sampled_from(answers(read_lesson(name))))
    assert prediction.read(asked, prediction.write(answer)) == prediction.check(asked, answer)


BROKEN = {
    "number": (lambda given: given.update(number="one"), "number is “one”; it must be a whole number"),
    "difficulty": (lambda given: given.update(difficulty="hard"), "it must be one of first steps, goes deeper"),
    "title": (lambda given: given.update(title=""), "title is empty"),
    "unknown": (lambda given: given.update(color="red"), "color: there is no such entry"),
    "reading": (lambda given: given["values"]["one"].update(reading="mood"), "it must be one of parameters"),
    "parameter": (lambda given: given["values"]["one"].update(of={"mood": "1"}), "does not take “mood”"),
    "text": (lambda given: given["values"]["one"].update(of={"n_heads": 1}), "must be text"),
    "kind": (lambda given: given["prediction"].update(kind="guess"), "it must be one of choice"),
    "options": (lambda given: given["prediction"].update(options=[]), "two to five"),
    "overlap": (lambda given: given["prediction"]["options"][0].update({"from": 0.0}), "two of them overlap"),
    "order": (lambda given: given["prediction"]["options"][0].update({"to": 1.0}), "must be less than"),
    "value": (lambda given: given["prediction"]["number"].update(of=["nine"]), "must name at least 1 of the values"),
    "two": (lambda given: given["prediction"]["number"].update(of=["one"]), "must name 2 of the values"),
    "difference": (lambda given: given["prediction"]["number"].update(kind="difference"), "a difference is for shares only"),
    "field": (lambda given: given["explanation"].update(undecided="{nine}"), "names {nine}; there are eight, one, outcome"),
    "told": (lambda given: given.update(question="It is {one}."), "must not use {values}"),
    "page": (lambda given: given["experiment"].update(page="moon"), "it must be one of block"),
    "right": (lambda given: given["transfer"].update(right=9), "the number of one of them"),
    "table": (lambda given: given.update(values=3), "must be a table"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_in_a_file_is_named(fault):
    given = copy.deepcopy(load(FOLDER / "heads.toml"))
    mend, words = BROKEN[fault]
    mend(given)
    with pytest.raises(LessonError) as refused:
        lesson_of("heads", given)
    assert words in str(refused.value) and str(refused.value).startswith("Lesson “heads”: ")


@pytest.mark.parametrize("name", language)
def test_a_language_names_nothing_that_is_not_there(name):
    assert phrases(name).keys() == phrases(ENGLISH).keys()
    for key, text in phrases(name).items():
        assert set(FIELD.findall(text)) == set(FIELD.findall(phrases(ENGLISH)[key])), key
    for item, english in zip(check_items(name), check_items(), strict=True):
        assert item.right == english.right and len(set(item.options)) == len(english.options)
    for each in lesson:
        assert is_complete(name, each)
        of, english = read_lesson(each, name), read_lesson(each)
        assert of.values.keys() == english.values.keys() and of.number == english.number
        if name != ENGLISH and is_complete(name, each):
            assert of.language == name and fields_of(name, each) == fields_of(ENGLISH, each)
    assert not unknown(tomllib.loads((LANGUAGES / f"{name}.toml").read_text(encoding="utf-8")).get("lessons", {}))


def fields_of(name: str, each: str) -> list[set]:
    """The numbers that its texts tell, text by text."""
    return [set(FIELD.findall(text)) for text in texts_of(translated(name, each, load(FOLDER / f"{each}.toml")))]


def unknown(said) -> list[str]:
    """What a language says of lessons that they do not have."""

    def beyond(texts, given, place: str) -> list[str]:
        if isinstance(texts, list) and isinstance(given, list):
            texts, given = dict(enumerate(texts)), dict(enumerate(given))
        if not (isinstance(texts, dict) and isinstance(given, dict)):
            return [] if isinstance(texts, str) and isinstance(given, str) else [place]
        here = [f"{place}.{key}" for key in texts if key not in given]
        return here + [
            each for key in texts if key in given for each in beyond(texts[key], given[key], f"{place}.{key}")
        ]

    return beyond(said, {each: load(FOLDER / f"{each}.toml") for each in lesson}, "lessons")


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (0.826, "percent", "83 %"), (0.9936, "percent", "99,4 %"), (-0.395, "points", "−39,5 Punkte"), (49984, "count", "49\u202f984"),
        (7.98, "times", "7,98-mal"), (0.00495, "times", "0,00495-mal"), (2.86, "number", "2,86"), (math.nan, "percent", "nicht definiert"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_in_the_language(value, unit, text):
    assert written(value, unit, phrases("de")) == text


def test_a_lesson_that_is_not_translated_is_english_with_its_numbers(monkeypatch):
    monkeypatch.setattr("core.teaching.lessons.reader.is_complete", lambda language, name: language == ENGLISH)
    of = read_lesson.__wrapped__("placement", "de")
    assert of.language == ENGLISH and of == read_lesson("placement")
    assert "5.9 %" in fill_in(of.explanation[AS_PREDICTED], of, outcome(of))
    german = read_lesson("scaling", "de")
    assert "99,6 %" in fill_in(german.means, german, outcome(german))


def texts_of(given) -> list[str]:
    """Texts that somebody reads."""
    if isinstance(given, dict):
        kept = [value for key, value in given.items() if key not in NOT_READ]
        return [text for value in kept for text in texts_of(value)]
    if isinstance(given, list):
        return [text for value in given for text in texts_of(value)]
    return [given] if isinstance(given, str) else []


NOT_READ = ("of", "link", "page", "reading", "kind", "ranked", "shown", "difficulty", "right")


def test_the_axis_of_exactly_as_many_parameters_ends_at_their_number():
    of = read_lesson("heads")
    exactly = next(n for n, each in enumerate(of.prediction.options) if each.low < 1 < each.high)
    drawn = re.findall(r"<text[^>]*>([^<]*)", picture.svg(of, phrases(ENGLISH), exactly, outcome(of)))
    assert "49,984" in drawn and not any(each.startswith("49,98") for each in drawn if each != "49,984")
