"""Tasks match their descriptions, and a slow solution in plain Python gives their answers."""

import inspect
import random
from collections import Counter

import numpy as np
import pytest
import torch

from core.model.parts.init import generator
from core.settings.setting import ConfigError
from core.tasks import IGNORE, task
from core.tasks.knowledge import OBJECTS, RELATIONS, SUBJECTS, fact_table
from core.tasks.sentences import BE, FORMS
from core.tasks.task import is_held_out
from core.train import Training, held_out, train

EVERY = pytest.mark.parametrize("name", task)
SPLIT = pytest.mark.parametrize(
    "name", [name for name, task_used in task.items() if task_used.held_out]
)


def draw_batch(name, batch=64, seed=0, **named):
    return task[name](generator(seed, "test"), batch, **named)


def in_words(name, rows):
    words = task[name].vocabulary
    return [
        [None if number == IGNORE else words[number] for number in row] for row in rows.tolist()
    ]


def sentences(batch=3000, seed=0):
    return [
        [word for word in row if word != "<pad>"]
        for row in in_words("sentences", draw_batch("sentences", batch, seed)[0])
    ]


# What a task is


@EVERY
def test_shapes_types_and_ranges(name):
    task_used = task[name]
    for length in {task_used.length, task_used.lengths[0], task_used.lengths[-1]}:
        tokens, targets = draw_batch(name, 50, length=length)
        assert tokens.shape == targets.shape == (50, length)
        assert tokens.dtype == targets.dtype == torch.int64
        scored = targets[targets != IGNORE]
        assert 0 <= tokens.min() and tokens.max() < len(task_used.vocabulary)
        assert 0 <= scored.min() and scored.max() < len(task_used.vocabulary)
        assert (targets != IGNORE).any(1).all()  # every sequence asks something


@EVERY
def test_impossible_length_is_refused_in_words(name):
    with pytest.raises(ConfigError, match=f"length is 1000; for {name} it must be") as caught:
        draw_batch(name, length=1000)
    assert caught.value.field == "length" and caught.value.instead == task[name].length


@EVERY
def test_docstring_example_matches_generator(name):
    last_paragraph = inspect.cleandoc(task[name].__doc__).split("\n\n")[-1]
    assert last_paragraph.split() == task[name].example().split()
    assert task.label(name) and task[name].needs and task[name].why


# Randomness


@EVERY
def test_stream_determines_data(name):
    torch.manual_seed(1)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    once = draw_batch(name)
    repeated = draw_batch(name)
    other = draw_batch(name, seed=1)
    assert all(map(torch.equal, once, repeated))
    assert not torch.equal(once[0], other[0])
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all() and random.getstate() == before[2]


@EVERY
def test_held_out_data_are_not_the_training_data(name):
    training = task[name](generator(0, f"{name}.training"), task[name].test)[0]
    assert not torch.equal(held_out(name, 0)[0], training)
    assert torch.equal(held_out(name, 0)[0], held_out(name, 0)[0])
    assert not torch.equal(held_out(name, 0)[0], held_out(name, 1)[0])


@pytest.mark.slow
@SPLIT
def test_training_never_draws_what_is_held_out(name):
    drawn_inputs = set(map(tuple, draw_batch(name, 20000)[0].tolist()))
    apart = set(map(tuple, draw_batch(name, 3000, seed=1, held_out=True)[0].tolist()))
    assert not drawn_inputs & apart
    everything = task[name].draw(generator(2, "x"), 5000, task[name].length, task[name].vocabulary)[
        0
    ]
    words = task[name]
    share = (
        is_held_out(everything.unique(dim=0), words.vocabulary, words.held_out, words.until)
        .float()
        .mean()
        .item()
    )
    assert share == pytest.approx(words.held_out, abs=0.05)
    rows = draw_batch(name, 500, seed=1, held_out=True)[0]
    assert len(rows.unique(dim=0)) == 500


def beginnings(name, tokens, targets) -> set[tuple]:
    """Return the tokens before each answer that counts."""
    row, index = task[name].answer_positions(targets).nonzero(as_tuple=True)
    return {tuple(tokens[r, : n + 1].tolist()) for r, n in zip(row.tolist(), index.tolist())}


@pytest.mark.parametrize("name", [name for name, task_used in task.items() if task_used.until])
def test_test_questions_never_begin_like_training(name):
    training = beginnings(name, *draw_batch(name, 20000))
    test = beginnings(name, *draw_batch(name, 500, seed=1, held_out=True))
    assert len(test) > 300 and not training & test


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("copy", 2),
        ("reverse", 2),
        ("reverse", 3),
        ("induction", 8),
        ("induction", 12),
        ("recall", 3),
        ("recall", 6),
    ],
)
def test_overlap_of_test_and_training_is_estimated(name, length):
    """The task's formula is checked by counting drawn sequences."""
    training = Training(task=name, length=length)
    sequences = training.steps * training.batch
    shares = []
    for seed in range(6):
        drawn_inputs = set(
            map(
                tuple,
                task[name](generator(seed, f"{name}.training"), sequences, length)[0].tolist(),
            )
        )
        test = list(map(tuple, held_out(name, seed, length)[0].tolist()))
        shares.append(sum(row in drawn_inputs for row in test) / len(test))
    expected = task[name].share_seen(length, sequences)
    assert expected == pytest.approx(sum(shares) / len(shares), abs=0.05)
    assert ("seen in training" in task[name].tested_on(length, sequences)) == (expected >= 0.005)


# Right answers, found again from the words alone


def copied(words):
    return words


def reversed_(words):
    return [words[len(words) - 1 - index] for index in range(len(words))]


def what_came_next(words):
    answers = []
    for index, word in enumerate(words):
        earlier = [before for before in range(index) if words[before] == word]
        answers.append(words[earlier[-1] + 1] if earlier else None)
    return answers


def looked_up(words):
    pairs = 2 * len(words) // 3
    value = {words[index]: words[index + 1] for index in range(0, pairs, 2)}
    return [None] * pairs + [value[key] for key in words[pairs:]]


def subtracted(words):
    difference = int(words[0]) - int(words[1])
    return [None, None, str(difference if difference >= 0 else difference + 37)]


def remembered(words):
    subject, relation = words
    return [
        None,
        OBJECTS[int(fact_table(len(SUBJECTS))[SUBJECTS.index(subject), RELATIONS.index(relation)])],
    ]


def next_words(words):
    text = words[: words.index("<pad>")] if "<pad>" in words else words
    return [*text[1:], *[None] * (len(words) - len(text) + 1)]


ORACLES = {
    "copy": copied,
    "reverse": reversed_,
    "induction": what_came_next,
    "recall": looked_up,
    "subtraction": subtracted,
    "facts": remembered,
    "sentences": next_words,
}


@EVERY
def test_answers_match_slow_oracle(name):
    assert name in ORACLES, f"write into ORACLES, above, how {name} is answered in plain Python"
    for length in {task[name].length, task[name].lengths[0], task[name].lengths[-1]}:
        tokens, targets = draw_batch(name, 300, length=length)
        for words, answers in zip(in_words(name, tokens), in_words(name, targets)):
            assert answers == ORACLES[name](words), words


def test_keys_and_symbols_are_unique():
    for words in in_words("recall", draw_batch("recall", 200)[0]):
        assert len(set(words[0:12:2])) == 6 and sorted(words[0:12:2]) == sorted(words[12:])
    periods = set()
    for words in in_words("induction", draw_batch("induction", 200)[0]):
        periods.add(words.index(words[0], 1))
    assert periods == set(range(6, 13))  # one layer cannot count its way back: the distance varies


# Sentences


def agreements(words):
    """Return (subject, verb) positions, by a stack of subjects that await their verb."""
    actual = []
    waiting = [words.index("that") + 2 if "that" in words else 1]
    for index, word in enumerate(words):
        if word == "whom":
            waiting.append(index + 2)
        if word in BE:
            actual.append(
                (
                    (
                        index - 3
                        if words[index - 1] == "who" and words[index - 2] == ","
                        else waiting.pop()
                    ),
                    index,
                )
            )
    assert not waiting
    return actual


def plural(noun):
    return noun in ("men", "women", "children") or (noun.endswith("s") and not noun.endswith("ss"))


def test_verbs_agree_with_nouns():
    for words in sentences():
        for subject, verb in agreements(words):
            assert words[subject] in FORMS
            assert words[verb] == BE[plural(words[subject])], words


def test_distances_vary_and_other_nouns_stand_in_between():
    gaps = Counter()
    between = 0
    misled = 0
    for words in sentences():
        subject, verb = agreements(words)[-1]
        gaps[verb - subject] += 1
        nouns = [word for word in words[subject + 1 : verb] if word in FORMS]
        between += bool(nouns)
        misled += bool(nouns) and plural(nouns[-1]) != plural(words[subject])
    assert len(gaps) >= 12 and max(gaps) >= 18 and gaps[1] > 300
    assert between > 1800 and misled > 700  # the nearest noun is often of the other number


# Chance and scoring


@pytest.mark.slow
@EVERY
def test_chance_is_what_guessing_the_most_frequent_answer_gets(name):
    task_used = task[name]

    def answers(seed):
        targets = draw_batch(name, 30000, seed)[1]
        words = [
            answer
            for row in in_words(name, targets[:, -13:] if name != "sentences" else targets)
            for answer in row
        ]
        expected = set().union(*task_used.rivals) or set(task_used.vocabulary)
        return [word for word in words if word in expected]

    guess = Counter(answers(0)).most_common(1)[0][0]
    unseen = answers(1)
    assert unseen.count(guess) / len(unseen) == pytest.approx(
        task_used.chance, abs=max(0.01 * (task_used.chance > 0.2), 0.004)
    )


@EVERY
def test_right_logits_are_right_and_wrong_ones_are_wrong(name):
    targets = draw_batch(name, 20)[1]
    logits = torch.nn.functional.one_hot(targets.clamp(min=0), len(task[name].vocabulary)).float()
    right = task[name].right(logits, targets)
    assert right.all() and not task[name].right(-logits, targets).any()
    expected = (targets != IGNORE).sum().item()
    if task[name].rivals:
        expected = sum(word in BE for row in in_words(name, targets) for word in row)
    assert len(right) == expected > 0


# Slow: what the budgets promise


@pytest.mark.slow
@EVERY
def test_full_model_reaches_best_accuracy_within_budget(name):
    *_, last = train(task[name].config(), Training(task=name), 0)
    assert last.accuracy >= task[name].best - 0.02
