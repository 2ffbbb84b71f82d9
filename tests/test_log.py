"""The log of a server: visitors cannot make it long, and what is missing in it is counted."""

import logging

import pytest

from ui.kit.server import log


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    return now


def failed(error: Exception, times: int = 1):
    for _ in range(times):
        try:
            raise error
        except Exception:
            logging.getLogger("a.page").exception("a page failed")


def lines(caplog) -> list[str]:
    return [each.getMessage() for each in caplog.records]


def test_of_one_kind_ten_lines_a_minute_are_written_and_the_rest_is_counted(clock, caplog):
    logging.getLogger("a.page")
    with log.kept_short():
        for n in range(1000):
            logging.getLogger("a.page").warning("no fragment %s", n)
            logging.warning("something else") if n % 250 == 0 else None
        assert lines(caplog) == [
            *(each for n in range(10) for each in (f"no fragment {n}", *["something else"] * (n == 0))),
            *["something else"] * 3,
        ]
        caplog.clear()
        for each in (59.9, 60.0, 61.0):
            clock[0] = each
            failed_before = len(lines(caplog))
            for _ in range(2):
                logging.getLogger("a.page").warning("another place")
            assert len(lines(caplog)) == failed_before + 2
    caplog.clear()
    for _ in range(50):
        logging.getLogger("a.page").warning("as before")
    assert len(lines(caplog)) == 50


def test_a_long_traceback_is_cut_in_its_middle(clock, caplog):
    def deep(n: int):
        return other(n - 1) if n else 1 / 0

    def other(n: int):  # two in turn: Python leaves out only what one repeats
        return deep(n)

    logging.getLogger("a.page")
    with log.kept_short():
        for layers in (1, 400):
            try:
                deep(layers)
            except ZeroDivisionError:
                logging.getLogger("a.page").exception("a page failed")
    short, long = (each.exc_text or "" for each in caplog.records)
    assert "…" not in short and short.endswith("ZeroDivisionError: division by zero")
    assert len(long) < log.LONG + 50 and long.startswith("Traceback (most") and " characters …\n" in long
    assert long.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize("said", ["x" * 900_000, "x\n" * 200_000, "x\n2026-01-01 00:00:00.000 FORGED \x1b[31mred"])
def test_what_a_visitor_made_up_is_one_short_entry(clock, caplog, said):
    logging.getLogger("a.page")
    with log.kept_short():
        for n in range(12):
            clock[0] = 61.0 if n == 11 else 0.0
            logging.getLogger("a.page").warning("The fragment with id %s does not exist", said)
    for each in lines(caplog):
        assert len(each) < log.LINE + 60 and each.startswith("The fragment with id x") and "\x1b" not in each
        assert all(line.startswith("  ") for line in each.split("\n")[1:])
    assert len(lines(caplog)) == 11 and lines(caplog)[-1].endswith("(and 1 more of this kind, not shown)")


def test_a_message_that_cannot_be_put_together_harms_nobody(clock, caplog):
    logging.getLogger("a.page")
    with log.kept_short():
        logging.getLogger("a.page").warning("two of %s %s", "one")
    assert len(caplog.records) == 1


def test_the_next_minute_says_how_many_are_missing(clock, caplog):
    logging.getLogger("a.page")

    def said(count):
        for n in range(count):
            logging.getLogger("a.page").warning("no fragment %s", n)

    with log.kept_short():
        said(25)
        clock[0] = 60.0
        caplog.clear()
        said(3)
        clock[0] = 130.0
        said(1)
    assert lines(caplog) == [
        "no fragment 0 (and 15 more of this kind, not shown)",
        "no fragment 1",
        "no fragment 2",
        "no fragment 0",
    ]


def test_an_error_of_another_kind_is_not_drowned(clock, caplog):
    logging.getLogger("a.page")
    with log.kept_short():
        failed(ValueError("a"), 100)
        failed(KeyError("b"))
    assert [each.exc_info[0] for each in caplog.records] == [ValueError] * log.A_MINUTE + [KeyError]
