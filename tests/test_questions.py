"""Class questions, vote counts and reports against plain counts and slow computations."""

import html.parser
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.figures.small_pictures import Count, tally_svg
from core.teaching.lessons import prediction
from core.teaching.lessons.language import phrases
from core.teaching.lessons.prediction import measure_outcome
from core.teaching.lessons.reader import read_lesson
from core.teaching.questions import (
    AFTER,
    BEFORE,
    CARRY,
    PARTS,
    PREDICTION,
    SHOWN,
    find_question,
    gain,
    list_check_items,
    question_names,
    score,
    write_check,
)
from core.teaching.report import (
    add_words,
    describe_gain,
    read_scores,
    tabulate_changes,
    write_class_report,
)
from tests.test_lessons import WITH_PREDICTION, answers

WORDS = phrases("en")
of_each = pytest.mark.parametrize("name", question_names())


def some_answers(name: str) -> list[str]:
    question = find_question(name, WORDS)
    if question.kind == PREDICTION:
        return [prediction.write_answer(answer) for answer in answers(question.lesson)]
    if question.kind == CARRY:
        return list(map(str, range(len(question.lesson.transfer.options))))
    return [write_check([n % 3] * len(list_check_items())) for n in range(3)]


def test_everything_can_be_asked_and_nothing_else():
    assert len(question_names()) == 2 * len(WITH_PREDICTION) + 2
    for name in (
        "",
        "moon",
        "free_play",
        "heads/moon",
        "check",
        "check/later",
        "heads/carry/carry",
    ):
        assert find_question(name, WORDS) is None


@of_each
@settings(max_examples=40)
@given(data=some.data())
def test_votes_are_counted_once(name, data):
    question = find_question(name, WORDS)
    offered = some_answers(name)
    votes = {
        n: data.draw(
            some.dictionaries(some.sampled_from(offered), some.integers(1, 9), max_size=12)
        )
        for n in (1, 2)
    }
    counts = question.count_answers(votes)
    assert [sum(count.rounds[n] for count in counts) for n in (0, 1)] == [
        sum(votes[n].values()) for n in (1, 2)
    ]
    assert len(counts) <= (PARTS if question.is_number else SHOWN + 1)
    if question.is_number:
        # Answers come in twentieths: a part has two of them, and the last one three.
        for index, tally in enumerate(counts):
            is_counted = [
                round(20 * json.loads(text)[0]) // 2 == index
                or (index, round(20 * json.loads(text)[0])) == (9, 20)
                for text in offered
            ]
            for n in (1, 2):
                assert tally.rounds[n - 1] == sum(
                    votes[n].get(text, 0) for text, counted in zip(offered, is_counted) if counted
                )
        return
    message = {question.format_answer(text): text for text in offered}
    for tally in counts:
        if tally.label in message and len(message) == len(offered):
            assert list(tally.rounds) == [votes[n].get(message[tally.label], 0) for n in (1, 2)]


@pytest.mark.parametrize("name", WITH_PREDICTION)
def test_right_answers_are_marked_only_when_allowed(name):
    question = find_question(name, WORDS)
    out = measure_outcome(read_lesson(name))
    votes = {1: dict.fromkeys(some_answers(name), 1)}
    assert not any(count.right for count in question.count_answers(votes))
    marked = [count.right for count in question.count_answers(votes, out)]
    if question.lesson.prediction.options:
        assert sum(marked) == 1
        index = next(n for n, item in enumerate(marked) if item)
        assert prediction.verdict(question.lesson.prediction, index, out) == prediction.AS_PREDICTED
    elif question.is_number:
        (right,) = [count.label for count in question.count_answers(votes, out) if count.right]
        low, high = map(float, right.removesuffix(" %").split(" to "))
        assert low <= 100 * out.number.found.mean < high
    else:
        verdicts = [
            prediction.verdict(question.lesson.prediction, json.loads(text), out)
            for text in some_answers(name)
        ]
        assert sum(marked) == verdicts.count(prediction.AS_PREDICTED)
        tied = prediction.undecided_pairs(list(question.lesson.prediction.ranked), out)
        assert bool(sum(marked)) != bool(tied)


class TagParser(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.told = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.told.append(data)


@given(some.lists(some.text(max_size=60), min_size=1, max_size=5), some.integers(0, 10**6))
def test_vote_picture_describes_itself(labels, count):
    svg = tally_svg([Count(label, [count, n]) for n, label in enumerate(labels)], "votes")
    parser = TagParser()
    parser.feed(svg)
    assert {tag for tag, _ in parser.tags} <= {"svg", "style", "text", "rect"}
    assert parser.told.count(str(count)) >= len(labels)
    text = dict(parser.tags)["svg"]["aria-label"]
    assert text == "Votes" + "".join(f". {label}: {count} → {n}" for n, label in enumerate(labels))


def rows(*lines) -> pd.DataFrame:
    columns = "class question round seat nickname answer sure because seconds".split()
    return pd.DataFrame([("BCDFG", *line) for line in lines], columns=columns)


def test_handout_has_typed_text_and_no_names():
    evil = '<img src=x onerror=alert(1)> "quoted" </html><script>'
    table = rows(
        ("heads", 1, 1, "Ann", "0", 1, evil, 3.0),
        ("heads", 2, 1, "Ann", "2", 1, "", 9.0),
        (BEFORE, 1, 2, "Bob", write_check([0] * 8), 0, "", 1.0),
    )
    page = write_class_report(table, "BCDFG", WORDS)
    parser = TagParser()
    parser.feed(page)
    assert {tag for tag, _ in parser.tags} <= set(
        "html head meta title style body main h1 section h2 h3 p strong figure figcaption svg text"
        " rect blockquote".split()
    )
    assert (
        evil in parser.told
        and "Ann" not in page
        and "Bob" not in page
        and "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    )
    assert find_question("heads", WORDS).title in parser.told and "default-src 'none'" in page


def test_changes_of_mind_are_in_words():
    question = find_question("heads", WORDS)
    votes = [(1, "0"), (2, "0"), (1, "2"), (2, "1"), (1, "0"), (2, "2")]
    table = tabulate_changes(
        question,
        rows(
            *[
                ("heads", n, seat // 2, "", answer, 1, "", 1.0)
                for seat, (n, answer) in enumerate(votes)
            ]
        ),
    )
    assert (
        list(table.index) == list(table.columns) == [question.format_answer(text) for text in "012"]
    )
    assert table.to_numpy().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert (
        tabulate_changes(question, rows(("heads", 1, 1, "", "0", 1, "", 1.0))).empty
        and tabulate_changes(question, rows()).empty
    )


def right() -> list[int]:
    return [item.right for item in list_check_items()]


def test_there_are_eight_questions_with_one_right_answer_each():
    assert len(list_check_items()) == 8
    assert all(
        0 <= item.right < len(item.options) == 4 and len(set(item.options)) == 4
        for item in list_check_items()
    )
    assert score(write_check(right())) == 1 and score(write_check([None] * 8)) == 0
    assert score(write_check([*right()[:2], *[(n + 1) % 4 for n in right()[2:]]])) == 0.25


@given(
    some.dictionaries(
        some.integers(0, 30),
        some.tuples(some.integers(0, 8), some.integers(0, 8)),
        min_size=1,
        max_size=20,
    )
)
def test_gain_is_hakes_with_jackknife_interval(seats):
    before, after = ({seat: pair[n] / 8 for seat, pair in seats.items()} for n in (0, 1))
    actual = gain(before, after)
    a = np.array(list(before.values()))
    b = np.array(list(after.values()))
    if a.mean() == 1:
        assert math.isnan(actual.mean)
        return
    assert actual.mean == pytest.approx((b.mean() - a.mean()) / (1 - a.mean())) and actual.n == len(
        a
    )
    left_out = (
        [
            (np.delete(b, n).mean() - np.delete(a, n).mean(), 1 - np.delete(a, n).mean())
            for n in range(len(a))
        ]
        if len(a) > 1
        else []
    )
    if left_out and all(remaining > 0 for _, remaining in left_out):
        from scipy.stats import t

        parts = np.array([gain / remaining for gain, remaining in left_out])
        n = len(parts)
        error = math.sqrt((n - 1) * ((parts - parts.mean()) ** 2).mean())
        assert actual.low == pytest.approx(actual.mean - t.ppf(0.975, n - 1) * error, abs=1e-9)
        assert actual.high == pytest.approx(
            min(1, actual.mean + t.ppf(0.975, n - 1) * error), abs=1e-9
        )


@pytest.mark.parametrize("after", [0.9, 0.5, 0.1])
def test_gain_sentence_follows_from_interval(after):
    lines = []
    for seat in range(12):
        wrong = [(n + 1) % 4 for n in right()]
        count = 4 + seat % 2
        lines.append(
            (BEFORE, 1, seat, "", write_check(right()[:count] + wrong[count:]), 0, "", 1.0)
        )
        count = round(8 * after) + (seat % 3 - 1)
        lines.append((AFTER, 1, seat, "", write_check(right()[:count] + wrong[count:]), 0, "", 1.0))
    table = rows(*lines)
    actual = gain(read_scores(table, BEFORE), read_scores(table, AFTER))
    text = describe_gain(table, WORDS)
    assert f"{actual.mean:.2f}".replace("-", "−") in text and "12 answered both" in text
    assert (WORDS["class_gain_undecided"] in text) == (actual.low <= 0 <= actual.high)


def test_class_table_has_answers_and_confidence_in_words():
    name = next(
        name for name in WITH_PREDICTION if find_question(name, WORDS).lesson.prediction.options
    )
    eight = write_check(right())
    table = rows(
        (name, 1, 1, "Ann", "1", 2, "so", 1.234),
        (name, 1, 2, "", "0", 0, "", 2.0),
        (BEFORE, 1, 1, "", eight, 0, "", 3.0),
    )
    for language in ("en", "de"):
        words = phrases(language)
        actual = add_words(table, words, language)
        assert [column for column in actual.columns if column in table.columns] == list(
            table.columns
        )
        assert (actual.answer == table.answer).all() and (actual.sure == table.sure).all()
        assert actual.sure_text.tolist() == [words["was_sure_2"], words["was_sure_0"], ""]
        question = find_question(name, words, language).lesson.prediction
        assert actual.says.tolist() == [question.options[1].text, question.options[0].text, "8 / 8"]
