"""Page runs take turns: a waiting or long run lets the others go on."""

import threading

from core.settings.progress import report_progress
from ui.kit import guard, turns


def other_run_has_turn() -> list[bool]:
    """Return whether another run has its turn now, by its own check."""
    had = []

    def run():
        turn = turns.Turn()
        had.append(turn.taken)
        turn.give_up()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return had


def test_large_runs_take_turns(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.05)
    with turns.one_turn():
        assert other_run_has_turn() == [False], "it goes on beside, after it has waited"
    assert other_run_has_turn() == [True]


def test_progress_report_lets_others_run(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.05)
    monkeypatch.setattr(guard, "AFTER", 1e9)  # nothing is drawn
    with turns.one_turn(), guard.show_progress():
        report_progress(0.5, "half of it")
        assert other_run_has_turn() == [True]
        report_progress(1.0, "all of it")  # and what is given up is not given up twice
    assert other_run_has_turn() == [True]


def test_failed_run_gives_up_its_turn(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.05)
    for _ in range(3):
        try:
            with turns.one_turn():
                raise RuntimeError
        except RuntimeError:
            assert other_run_has_turn() == [True]
