"""Lessons without a page: files, independently computed numbers, verdicts, refusals."""

import copy
import math
import re
import tomllib
from itertools import pairwise, permutations
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from core.checkpoints import family
from core.measure.intervals import Interval
from core.model.config import Config
from core.model.transformer import Transformer
from core.teaching.lessons import picture, prediction
from core.teaching.lessons.language import ENGLISH, has_lesson, language, phrases, translate_lesson
from core.teaching.lessons.language import FOLDER as LANGUAGES
from core.teaching.lessons.lesson import FIELD, LessonError
from core.teaching.lessons.prediction import (
    AS_PREDICTED,
    NOT_AS_PREDICTED,
    UNDECIDED,
    VERDICTS,
    judge_interval,
    measure_outcome,
)
from core.teaching.lessons.reader import FOLDER, build_lesson, lesson, load, problems, read_lesson
from core.teaching.lessons.readings import SEEDS, TEXT, reading
from core.teaching.lessons.wording import fill_in, format_interval, format_number
from core.teaching.questions import list_check_items

WITH_PREDICTION = [name for name in lesson if read_lesson(name).prediction]
of_each = pytest.mark.parametrize("name", WITH_PREDICTION)


def answers(predicted) -> list:
    """Return answers to a prediction, for every kind of outcome."""
    prediction = predicted.prediction
    if prediction.options:
        return list(range(len(prediction.options)))
    if prediction.ranked:
        return [list(order) for order in permutations(prediction.ranked)]
    steps = int(round((prediction.scale.high - prediction.scale.low) / prediction.scale.step))
    places = [prediction.scale.low + prediction.scale.step * n for n in range(steps + 1)]
    return [[place, within] for place in places for within in prediction.scale.within]


def test_lesson_files_load_in_order():
    assert not problems and set(lesson) == {path.stem for path in FOLDER.glob("*.toml")}
    assert [read_lesson(name).number for name in lesson] == list(range(len(lesson)))
    assert all(read_lesson(name).minutes <= 5 for name in lesson)
    assert [name for name in lesson if name not in WITH_PREDICTION] == ["free_play"]


@of_each
def test_choices_have_one_right_answer_with_explanations(name):
    lesson_read = read_lesson(name)
    actual = [
        prediction.verdict(lesson_read.prediction, answer, measure_outcome(lesson_read))
        for answer in answers(lesson_read)
    ]
    tied = lesson_read.prediction.kind == "rank" and prediction.undecided_pairs(
        list(lesson_read.prediction.ranked), measure_outcome(lesson_read)
    )
    assert (
        set(actual) <= set(VERDICTS)
        and NOT_AS_PREDICTED in actual
        and (UNDECIDED if tied else AS_PREDICTED) in actual
    )
    if lesson_read.prediction.options:
        assert actual.count(AS_PREDICTED) == 1 and UNDECIDED not in actual
        for option, verdict in zip(lesson_read.prediction.options, actual):
            assert bool(option.instead) == (verdict != AS_PREDICTED)


@pytest.mark.parametrize(
    "name", [name for name in WITH_PREDICTION if read_lesson(name).prediction.kind == "rank"]
)
def test_ranking_is_judged_pair_by_pair(name):
    from scipy.stats import ttest_rel

    lesson_read = read_lesson(name)
    out = measure_outcome(lesson_read)
    order = list(lesson_read.prediction.ranked)
    for index, first in enumerate(order):
        for other in order[index + 1 :]:
            seeds = sorted(out.values[first].values.keys() & out.values[other].values.keys())
            a, b = ([out.values[item].values[seed] for seed in seeds] for item in (first, other))
            actual = prediction.differences([first, other], out)[first, other]
            assert actual.mean == pytest.approx(sum(a) / len(a) - sum(b) / len(b))
            if a != b and len({round(x - y, 12) for x, y in zip(a, b)}) > 1:
                assert actual.p == pytest.approx(float(ttest_rel(a, b).pvalue))
            turned = (
                prediction.verdict(lesson_read.prediction, [other, first], out)
                if len(order) == 2
                else None
            )
            assert turned in (None, *VERDICTS)
    clear = [pair for pair, gap in prediction.differences(order, out).items() if gap.clear]
    right = sorted(order, key=lambda key: -out.values[key].found.mean)
    settled = all(pair in clear or pair[::-1] in clear for pair in pairwise(right))
    assert prediction.verdict(lesson_read.prediction, right, out) == (
        AS_PREDICTED if settled else UNDECIDED
    )
    assert prediction.verdict(lesson_read.prediction, right[::-1], out) == (
        NOT_AS_PREDICTED if clear else UNDECIDED
    )


@given(some.floats(-5, 5), some.floats(0, 3), some.floats(-5, 5), some.floats(0.001, 5))
def test_verdict_rule(mean, half, low, width):
    actual = Interval(mean, mean - half, mean + half, 5)
    high = low + width
    text = judge_interval(actual, low, high)
    if text == AS_PREDICTED:
        assert low <= actual.low and actual.high < high
    elif text == NOT_AS_PREDICTED:
        assert actual.high < low or actual.low >= high
    else:
        assert actual.low < low <= actual.high or actual.low < high <= actual.high
    assert judge_interval(Interval(mean, math.nan, math.nan, 1), low, high) == UNDECIDED


def test_costs_are_counted_on_the_model_and_by_hand():
    """Attention has two products of T × T × D, with two operations each."""
    values = measure_outcome(read_lesson("heads")).values
    model = Transformer(Config(n_heads=8), vocabulary=["a"])
    assert values["eight"].found.mean == sum(
        parameter.numel() for parameter in model.blocks.parameters()
    )
    values = measure_outcome(read_lesson("cost")).values
    assert values["short"].found.mean == 2 * 2 * 100 * 100 * 64
    per_word = 2 * (4 * 64 * 64 + 2 * 64 * 256)
    assert values["block_long"].found.mean == 1000 * per_word + 2 * 2 * 1000 * 1000 * 64


def test_growth_is_from_the_input_to_the_last_pass():
    """The lesson on LayerNorm equals a plain loop over the block."""
    out = measure_outcome(read_lesson("layer_norm"))
    assert len(out.number.values) == len(SEEDS)
    for seed in SEEDS:
        model = Transformer(Config(norm="none", n_layers=1, seed=seed), dict.fromkeys(TEXT))
        with torch.inference_mode():
            x = first = model.embed_tokens(
                torch.tensor([[model.vocabulary.index(word) for word in TEXT]])
            )
            for _ in range(10):
                x = model.blocks[0](x)
        grown = x.double().std(correction=0) / first.double().std(correction=0)
        assert out.number.values[seed] == pytest.approx(grown.item(), rel=1e-4)


def test_temperature_by_hand():
    model = family.open_cached(family.WHOLE, 0)
    words = "the defendant , who had signed the contracts ,".split()
    ids = torch.tensor([[model.model.vocabulary.index(word) for word in words]])
    with torch.inference_mode():
        scores = model.model(ids)[0, -1].double()
    out = measure_outcome(read_lesson("temperature"))
    was = model.model.vocabulary.index("was")
    for name, temperature in (("half", 0.5), ("one", 1), ("two", 2)):
        weights = [math.exp(float(score - scores.max()) / temperature) for score in scores]
        assert out.values[name].found.mean == pytest.approx(weights[was] / sum(weights), abs=1e-6)


@of_each
@pytest.mark.parametrize("verdict", [*VERDICTS, "means"])
def test_texts_hold_the_numbers_that_were_measured(name, verdict):
    lesson_read = read_lesson(name)
    out = measure_outcome(lesson_read)
    text = lesson_read.means if verdict == "means" else lesson_read.explanation[verdict]
    message = fill_in(text, lesson_read, out)
    assert "{" not in message
    for field, between in FIELD.findall(text):
        actual = out.number if field == "outcome" else out.values[field]
        unit = out.unit if field == "outcome" else reading[lesson_read.values[field].reading].unit
        assert (
            format_interval(actual.found, unit)
            if between
            else format_number(actual.found.mean, unit)
        ) in message


@of_each
@given(data=some.data())
def test_answers_read_back(name, data):
    read_prediction = read_lesson(name).prediction
    answer = data.draw(some.sampled_from(answers(read_lesson(name))))
    assert prediction.read_answer(
        read_prediction, prediction.write_answer(answer)
    ) == prediction.check_answer(read_prediction, answer)


BROKEN = {
    "number": (
        lambda document: document.update(number="one"),
        "number is “one”; it must be a whole number",
    ),
    "difficulty": (
        lambda document: document.update(difficulty="hard"),
        "it must be one of first steps, goes deeper",
    ),
    "title": (lambda document: document.update(title=""), "title is empty"),
    "unknown": (lambda document: document.update(color="red"), "color: there is no such entry"),
    "reading": (
        lambda document: document["values"]["one"].update(reading="mood"),
        "it must be one of parameters",
    ),
    "parameter": (
        lambda document: document["values"]["one"].update(of={"mood": "1"}),
        "does not take “mood”",
    ),
    "text": (lambda document: document["values"]["one"].update(of={"n_heads": 1}), "must be text"),
    "kind": (
        lambda document: document["prediction"].update(kind="guess"),
        "it must be one of choice",
    ),
    "options": (lambda document: document["prediction"].update(options=[]), "two to five"),
    "overlap": (
        lambda document: document["prediction"]["options"][0].update({"from": 0.0}),
        "two of them overlap",
    ),
    "order": (
        lambda document: document["prediction"]["options"][0].update({"to": 1.0}),
        "must be less than",
    ),
    "value": (
        lambda document: document["prediction"]["number"].update(of=["nine"]),
        "must name at least 1 of the values",
    ),
    "two": (
        lambda document: document["prediction"]["number"].update(of=["one"]),
        "must name 2 of the values",
    ),
    "difference": (
        lambda document: document["prediction"]["number"].update(kind="difference"),
        "a difference is for shares only",
    ),
    "field": (
        lambda document: document["explanation"].update(undecided="{nine}"),
        "names {nine}; there are eight, one, outcome",
    ),
    "told": (lambda document: document.update(question="It is {one}."), "must not use {values}"),
    "page": (
        lambda document: document["experiment"].update(page="moon"),
        "it must be one of block",
    ),
    "right": (lambda document: document["transfer"].update(right=9), "the number of one of them"),
    "table": (lambda document: document.update(values=3), "must be a table"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_file_faults_are_named(fault):
    document = copy.deepcopy(load(FOLDER / "heads.toml"))
    mend, words = BROKEN[fault]
    mend(document)
    with pytest.raises(LessonError) as refused:
        build_lesson("heads", document)
    assert words in str(refused.value) and str(refused.value).startswith("Lesson “heads”: ")


@pytest.mark.parametrize("name", language)
def test_translation_names_only_existing_entries(name):
    assert phrases(name).keys() == phrases(ENGLISH).keys()
    for key, text in phrases(name).items():
        assert set(FIELD.findall(text)) == set(FIELD.findall(phrases(ENGLISH)[key])), key
    for item, english in zip(list_check_items(name), list_check_items(), strict=True):
        assert item.right == english.right and len(set(item.options)) == len(english.options)
    for entry in lesson:
        assert has_lesson(name, entry)
        lesson_read = read_lesson(entry, name)
        english = read_lesson(entry)
        assert (
            lesson_read.values.keys() == english.values.keys()
            and lesson_read.number == english.number
        )
        if name != ENGLISH and has_lesson(name, entry):
            assert lesson_read.language == name and fields_of(name, entry) == fields_of(
                ENGLISH, entry
            )
    assert not unknown(
        tomllib.loads((LANGUAGES / f"{name}.toml").read_text(encoding="utf-8")).get("lessons", {})
    )


def fields_of(name: str, key: str) -> list[set]:
    """Return the numbers that a lesson's texts use, text by text."""
    return [
        set(FIELD.findall(text))
        for text in texts_of(translate_lesson(name, key, load(FOLDER / f"{key}.toml")))
    ]


def unknown(text) -> list[str]:
    """Return the entries of a translation that the original lessons do not have."""

    def beyond(texts, originals, place: str) -> list[str]:
        if isinstance(texts, list) and isinstance(originals, list):
            texts = dict(enumerate(texts))
            originals = dict(enumerate(originals))
        if not (isinstance(texts, dict) and isinstance(originals, dict)):
            return [] if isinstance(texts, str) and isinstance(originals, str) else [place]
        added = [f"{place}.{key}" for key in texts if key not in originals]
        return added + [
            item
            for key in texts
            if key in originals
            for item in beyond(texts[key], originals[key], f"{place}.{key}")
        ]

    return beyond(text, {item: load(FOLDER / f"{item}.toml") for item in lesson}, "lessons")


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (0.826, "percent", "83 %"),
        (0.9936, "percent", "99,4 %"),
        (-0.395, "points", "−39,5 Punkte"),
        (49984, "count", "49\u202f984"),
        (7.98, "times", "7,98-mal"),
        (0.00495, "times", "0,00495-mal"),
        (2.86, "number", "2,86"),
        (math.nan, "percent", "nicht definiert"),
    ],
)
def test_numbers_are_written_as_in_the_language(value, unit, text):
    assert format_number(value, unit, phrases("de")) == text


def test_some_seeds_of_post_norm_learn():
    accuracies = measure_outcome(read_lesson("placement")).values["post"].values.values()
    learnt = [accuracy for accuracy in accuracies if accuracy > 0.9]
    near_chance = [accuracy for accuracy in accuracies if accuracy < 0.12]
    assert learnt and near_chance and len(learnt) + len(near_chance) == len(accuracies)
    assert f"on {len(learnt)} of {len(accuracies)} seeds" in Path("README.md").read_text()


def test_untranslated_lesson_is_english_with_its_numbers(monkeypatch):
    monkeypatch.setattr(
        "core.teaching.lessons.reader.has_lesson", lambda language, name: language == ENGLISH
    )
    lesson_read = read_lesson.__wrapped__("placement", "de")
    assert lesson_read.language == ENGLISH and lesson_read == read_lesson("placement")
    assert "28 %" in fill_in(
        lesson_read.explanation[AS_PREDICTED], lesson_read, measure_outcome(lesson_read)
    )
    monkeypatch.undo()
    german = read_lesson("scaling", "de")
    assert "99,6 %" in fill_in(german.means, german, measure_outcome(german))


def texts_of(node) -> list[str]:
    """Return the texts that a reader sees."""
    if isinstance(node, dict):
        texts = [value for key, value in node.items() if key not in NOT_READ]
        return [text for value in texts for text in texts_of(value)]
    if isinstance(node, list):
        return [text for value in node for text in texts_of(value)]
    return [node] if isinstance(node, str) else []


NOT_READ = ("of", "link", "page", "reading", "kind", "ranked", "shown", "difficulty", "right")


def test_parameter_axis_ends_at_exact_number():
    lesson = read_lesson("heads")
    exactly = next(
        n for n, item in enumerate(lesson.prediction.options) if item.low < 1 < item.high
    )
    drawn = re.findall(
        r"<text[^>]*>([^<]*)",
        picture.lesson_svg(lesson, phrases(ENGLISH), exactly, measure_outcome(lesson)),
    )
    assert "49,984" in drawn and not any(
        item.startswith("49,98") for item in drawn if item != "49,984"
    )
