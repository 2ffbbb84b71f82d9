"""Anything in any order, against a plain model: what was accepted is there once, nothing else is, and nothing leaks."""

import tempfile
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.teaching.classroom import CLOSED, DISCUSSION, OPEN, REVEALED, WAITING, ClassError, Classroom
from tests.classes import DAY, Model, later, stored

questions, answers, sides = st.sampled_from("pq"), st.sampled_from("ab"), st.sampled_from([1, 2])
STEPS = ["open", "close", "discuss", "again", "show", "reveal"]
times = st.none() | st.sampled_from([10, 1000])
some = st.integers(0, 11)  # the number of a class, or of a seat in it, counted on from the first where there are fewer


having = precondition(lambda self: bool(self.models))


class Classes(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.where = f"{self.folder.name}/classes.sqlite"
        self.store, self.now, self.models, self.stamps = Classroom(self.where), 0.0, [], {}
        self.gone, self.turn = [], 0
        self.hasty = mock.patch(
            "core.teaching.classroom.votes.TRIES", 10_000
        )  # how often a seat tries is no part of the model
        self.hasty.start()

    def teardown(self):
        self.hasty.stop()
        self.store.shut()
        self.folder.cleanup()

    def alive(self, model) -> bool:
        return model in self.models and self.now < model.began + DAY

    def check(self, model, allowed: bool, call) -> bool:
        """That it is done where it is allowed, and refused where not -> whether it was."""
        allowed = allowed and self.alive(model)
        try:
            call()
        except ClassError:
            assert not allowed
            return False
        assert allowed
        return True

    def room(self, number: int) -> Model:
        return self.models[number % len(self.models)]

    def drop(self, over: list[Model]) -> None:
        self.gone += over
        self.models = [each for each in self.models if each not in over]

    @initialize()
    def begin(self):
        """Two classes, each with two who vote: or most sequences would be over before anybody does."""
        for number in range(2):
            self.start()
            self.join(number)
            self.open(self.room(number), "p", None)

    @precondition(lambda self: len(self.models) < 3)
    @rule()
    def start(self):
        started = self.store.start()
        self.drop([each for each in self.models if not self.alive(each)])  # it sweeps
        self.models.append(Model(started.code, started.token, self.now, [self.store.join(started.code)]))

    @having
    @rule(number=some)
    def join(self, number):
        model, found = self.room(number), []
        if self.check(model, True, lambda: found.append(self.store.join(model.code, "somebody"))):
            model.keys += found

    @having
    @rule(number=some, step=st.sampled_from(STEPS), question=questions, seconds=times)
    def teach(self, number, step, question, seconds):
        """Anything, at any time."""
        given = {"open": [question, seconds], "again": [seconds], "show": [question == "p"]}
        getattr(self, step)(self.room(number), *given.get(step, []))

    @having
    @rule(number=some, second=st.booleans(), question=questions, seconds=times)
    def go_on(self, number, second, question, seconds):
        """What comes next in a lesson."""
        model = self.room(number)
        phase = model.at(self.now)
        if phase == OPEN:
            self.close(model)
            self.show(model, second)
        elif phase in (CLOSED, DISCUSSION):
            (self.again(model, seconds) if second and model.round == 1 else self.reveal(model))
        else:
            self.open(model, question, seconds)

    @having
    @rule(number=some, given=st.lists(answers, min_size=4, max_size=4))
    def everybody_votes(self, number, given):
        model = self.room(number)
        for seat, answer in enumerate(given[: len(model.keys)] if model.asked else []):
            self.voted(model, seat, model.asked[-1], model.round, answer, 1)

    def open(self, model, question, seconds):
        still = model.at(self.now) == OPEN and model.round == 1 and model.asked[-1] == question
        if self.check(model, still or question not in model.asked, lambda: self.store.open(model.token, question, seconds)):  # fmt: skip
            model.asked += [] if still else [question]
            model.phase, model.round, model.shown = OPEN, 1, model.shown and still
            model.closes = None if seconds is None else self.now + seconds

    def close(self, model):
        if self.check(model, model.phase != WAITING, lambda: self.store.close(model.token)):
            model.phase = CLOSED if model.phase == OPEN else model.phase

    def discuss(self, model):
        allowed = model.at(self.now) in (CLOSED, DISCUSSION) and model.round == 1
        if self.check(model, allowed, lambda: self.store.discuss(model.token)):
            model.phase = DISCUSSION

    def again(self, model, seconds):
        still = model.at(self.now) == OPEN and model.round == 2
        allowed = still or model.at(self.now) in (CLOSED, DISCUSSION) and model.round == 1
        if self.check(model, allowed, lambda: self.store.again(model.token, seconds)):
            model.phase, model.round, model.shown = OPEN, 2, False
            model.closes = None if seconds is None else self.now + seconds

    def show(self, model, on):
        allowed = model.at(self.now) not in (WAITING, OPEN)
        if self.check(model, allowed, lambda: self.store.show(model.token, on)):
            model.shown = on

    def reveal(self, model):
        allowed = model.at(self.now) not in (WAITING, OPEN)
        if self.check(model, allowed, lambda: self.store.reveal(model.token)):
            model.phase = REVEALED

    @having
    @rule(number=some, seat=some, question=questions, side=sides, answer=answers, times=sides)
    def vote(self, number, seat, question, side, answer, times):
        model = self.room(number)
        self.voted(model, seat % len(model.keys), question, side, answer, times)

    @having
    @rule(number=some, seat=some, answer=answers, times=sides)
    def vote_on_what_is_asked(self, number, seat, answer, times):
        model = self.room(number)
        if model.asked:
            self.voted(model, seat % len(model.keys), model.asked[-1], model.round, answer, times)

    def voted(self, model, seat, question, side, answer, times):
        place = question, side, seat + 1
        for _ in range(times):
            call = model.code, model.keys[seat], question, side, answer
            if self.check(model, model.takes(self.now, place, answer), lambda call=call: self.store.vote(*call)):
                model.votes[place] = answer

    @having
    @rule(number=some, seat=some)
    def come_back(self, number, seat):
        model = self.room(number)
        self.check(model, True, lambda: self.store.join(model.code, key=model.keys[seat % len(model.keys)]))

    @having
    @rule(number=some, other=some)
    def go_to_another_class(self, number, other):
        one, other = self.room(number), self.room(other)
        for call in (self.store.mine, lambda code, key: self.store.join(code, key=key)):
            self.check(other, one is other, lambda call=call: call(other.code, one.keys[0]))
        self.check(one, False, lambda: self.store.close(one.keys[0]))  # a key is no token
        if one is not other and other.asked:
            place = other.asked[-1], other.round
            self.check(other, False, lambda: self.store.vote(other.code, one.keys[0], *place, "a"))

    @precondition(lambda self: len(self.models) > 1)
    @rule(number=some)
    def end(self, number):
        model = self.room(number)
        if self.check(model, True, lambda: self.store.end(model.token)):
            self.drop([model])

    @precondition(lambda self: bool(self.gone))
    @rule()
    def what_is_gone_is_not_found(self):
        for each in self.gone:
            for call in (lambda each=each: self.store.watch(each.code), lambda each=each: self.store.close(each.token)):
                self.check(each, False, call)

    @rule(seconds=st.sampled_from([1, 11, 11, 61, 61, 1001, DAY // 3]))
    def time_passes(self, seconds):
        if self.models:
            later(self.store, seconds)
        self.now += seconds

    @rule()
    def sweep(self):
        over = [each for each in self.models if not self.alive(each)]
        assert self.store.sweep() == len(over)
        self.drop(over)

    @rule()
    def restart(self):
        self.store.shut()
        self.store = Classroom(self.where)

    @invariant()
    def what_was_accepted_is_there_and_nothing_else(self):
        if self.models:
            expected = [(each.code, *place, answer) for each in self.models for place, answer in each.votes.items()]
            assert sorted(stored(self.store)) == sorted(expected)

    @invariant()
    def everybody_sees_what_they_may(self):
        for each in filter(self.alive, self.models):
            seen, phase = self.store.watch(each.code), each.at(self.now)
            assert (seen.phase, seen.round, seen.seats) == (phase, each.round, len(each.keys))
            assert seen.question == (each.asked[-1] if each.asked else "")
            public = phase == REVEALED or phase not in (WAITING, OPEN) and each.shown
            assert seen.distribution == (each.spread() if public else None)
            without = repr((phase, seen.question, seen.round, seen.seats, seen.votes, seen.distribution))
            before, stamp = self.stamps.get(each.token, (None, -1))
            assert seen.stamp > stamp or seen.stamp == stamp and without == before
            self.stamps[each.token] = without, seen.stamp
            self.turn += 1
            number = self.turn % len(each.keys)  # whose turn it is to be looked at
            own = {place: vote.answer for place, vote in self.store.mine(each.code, each.keys[number]).items()}
            assert own == {place[:2]: answer for place, answer in each.votes.items() if place[2] == number + 1}


Classes.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
test_any_order = Classes.TestCase
