"""The store on SQLite and PostgreSQL: nothing lost, duplicated or given to two owners."""

import math
import sqlite3
import sys
import threading

import pytest
from sqlalchemy import update

from core.settings import process
from core.study.database import connection as databases
from core.study.database import schema
from core.study.database.connection import BusyError, StoreError, patiently
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED
from core.study.database.store import Report, Store
from core.study.file import parse
from core.train import Row
from tests.databases import PASSWORD, database, postgresql  # noqa: F401  (fixtures)

TEXT = 'name = "one"\ntasks = ["copy", "reverse"]\nseeds = 3\n[variants]\na = {ffn = false}\n'
STUDY = parse(TEXT)
ROWS = [
    Row(1, 2.75, 0.1 + 0.2, 1e-308, 5e-324, 3e-3),
    Row(2, math.inf, math.nan, -math.inf, math.nan, 0.1, "diverged"),
]


@pytest.fixture
def store(database):  # noqa: F811
    opened_store = Store(database)
    yield opened_store
    opened_store.close()


@pytest.fixture
def study(store):
    return store.enrol(STUDY).study


def claim_runs(store, study, owner, limit=100) -> list[int]:
    return [run for run, *_ in store.claim(study, owner, limit)]


def states(store, study) -> dict:
    return {state: count for state, (count, _, _) in store.counts([study]).items()}


def test_study_is_added_whole_and_once(store):
    first = store.enrol(STUDY)
    repeated = store.enrol(STUDY)
    assert (first.new, first.ended, first.unwanted) == (12, 0, 0)
    assert (repeated.study, repeated.new, repeated.ended, repeated.unwanted) == (
        first.study,
        0,
        0,
        0,
    )
    actual = store.runs(first.study)
    assert [(r.task, r.variant, r.seed, r.hash, r.spec) for r in actual] == [
        (r.task, r.variant, r.seed, r.hash, r.spec) for r in STUDY.runs
    ]
    assert (
        {r.state for r in actual} == {QUEUED}
        and store.find("one") == first.study
        and store.find("two") is None
    )


def test_changed_study_adds_new_runs_and_keeps_old(store, study):
    run = claim_runs(store, study, "me|1|a", 1)[0]
    store.store_reports("me|1|a", [Report(run, DONE, ROWS[:1], 100)])
    changed = parse(TEXT.replace("seeds = 3", "seeds = [0, 5]").replace("a =", "renamed ="))
    actual = store.enrol(changed)
    assert (actual.study, actual.new, actual.ended, actual.unwanted) == (study, 4, 1, 8)
    assert len(store.runs(study)) == 8 and {run.variant for run in store.runs(study)} == {
        "baseline",
        "renamed",
    }
    assert states(store, study) == {DONE: 1, QUEUED: 7}
    back = store.enrol(STUDY)
    assert (back.new, back.ended, back.unwanted) == (0, 1, 4) and len(store.rows(study)) == 1


def test_rows_come_back_to_the_last_bit(store, study):
    (run,) = claim_runs(store, study, "me|1|a", 1)
    assert (
        store.store_reports("me|1|a", [Report(run, RUNNING, ROWS[:1], 1, 0.5, device="x")]) == set()
    )
    assert (
        store.store_reports(
            "me|1|a", [Report(run, DIVERGED, ROWS, 2, 0.7, "diverged at step 2", device="x")]
        )
        == set()
    )
    actual = [(number, Row(*row)) for number, *row in store.rows(study)]
    assert [number for number, _ in actual] == [run, run]
    assert repr([row for _, row in actual]) == repr(ROWS)
    (stored,) = store.runs(study, DIVERGED)
    assert (stored.step, stored.seconds, stored.message, stored.device, stored.tries) == (
        2,
        0.7,
        "diverged at step 2",
        "x",
        1,
    )
    assert stored.torch and stored.numpy and stored.python == sys.version.split()[0] and stored.code
    assert 0 <= stored.ended - stored.started < 60


def test_nobody_gets_what_another_has(store, study):
    first = claim_runs(store, study, "me|1|a", 5)
    two = claim_runs(store, study, "me|1|b", 100)
    assert len(first) == 5 and len(two) == 7 and not set(first) & set(two)
    assert first == [run.id for run in store.runs(study)][:5]  # in the order of the study
    assert claim_runs(store, study, "me|1|c") == []
    assert states(store, study) == {RUNNING: 12}


def test_former_owner_cannot_write_run(store, study, monkeypatch):
    (run,) = claim_runs(store, study, "elsewhere|1|a", 1)
    store.store_reports("elsewhere|1|a", [Report(run, RUNNING, ROWS[:1], 1)])
    assert store.reclaim([study], "me|1|b", []) == 0  # it lives
    monkeypatch.setattr(process, "STALE", -1.0)
    assert store.reclaim([study], "me|1|b", []) == 1
    assert store.rows(study) == [] and states(store, study) == {QUEUED: 12}
    assert store.store_reports("elsewhere|1|a", [Report(run, DONE, ROWS, 2)]) == {run}
    assert store.rows(study) == []
    assert claim_runs(store, study, "me|1|b", 1) == [run]
    assert store.store_reports("elsewhere|1|a", [Report(run, DONE, ROWS, 2)]) == {run}
    assert store.rows(study) == [] and store.runs(study, RUNNING)[0].tries == 2


def test_stopped_and_failed_runs_requeue_without_rows(store, study):
    inputs = claim_runs(store, study, "me|1|a", 4)
    ends = (DONE, DIVERGED, FAILED, STOPPED)
    store.store_reports(
        "me|1|a", [Report(run, end, ROWS[:1], 1, 1.0, "why") for run, end in zip(inputs, ends)]
    )
    assert store.requeue(study) == 2
    assert states(store, study) == {DONE: 1, DIVERGED: 1, QUEUED: 10}
    assert {run for run, *_ in store.rows(study)} == set(inputs[:2])
    assert all(
        (r.step, r.message, r.owner, r.ended) == (0, "", None, None)
        for r in store.runs(study, QUEUED)
    )


def test_only_finished_runs_of_the_study_are_trained_again(store, study):
    ids = claim_runs(store, study, "me|1|a", 4)
    reports = [Report(run, end, ROWS, 1, device="A") for run, end in zip(ids, [DONE, DIVERGED])]
    store.store_reports("me|1|a", reports)
    other = store.enrol(parse(TEXT.replace('"one"', '"two"'))).study
    assert store.rerun(other, ids) == 0 and len(store.rows(study)) == 2 * len(ROWS)
    assert store.rerun(study, ids) == 2 and store.rerun(study, ids) == 0
    assert states(store, study) == {QUEUED: 10, RUNNING: 2} and store.rows(study) == []
    assert claim_runs(store, study, "me|1|b", 1) == ids[:1]  # in the order of the study
    store.store_reports("me|1|b", [Report(ids[0], DONE, ROWS[:1], 3, device="B")])
    line = next(run for run in store.runs(study) if run.id == ids[0])
    assert (line.state, line.device) == (DONE, "B")
    assert [Row(*row) for run, *row in store.rows(study) if run == ids[0]] == ROWS[:1]


def test_concurrent_writers_share_runs_without_loss(store, study):
    """Each writer has its own connection and works as fast as it can."""
    got = {}
    problems = []

    def work(name):
        connection = Store(store.url.render_as_string(hide_password=False))
        try:
            while True:
                claimed = patiently(lambda: claim_runs(connection, study, name, 2))
                if not claimed:
                    break
                for run in claimed:
                    got.setdefault(run, []).append(name)
                for count in (1, 2):
                    reports = [
                        Report(run, DONE if count == 2 else RUNNING, ROWS[:count], count)
                        for run in claimed
                    ]
                    assert (
                        patiently(lambda reports=reports: connection.store_reports(name, reports))
                        == set()
                    )
        except BaseException as error:
            problems.append(error)
        connection.close()

    threads = [threading.Thread(target=work, args=(f"me|1|{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(got) == 12 and all(len(names) == 1 for names in got.values())
    assert states(store, study) == {DONE: 12} and len(store.rows(study)) == 24


@pytest.mark.parametrize("number", [0, 7])
def test_other_schema_version_is_refused_and_untouched(store, study, number):
    inputs = store.url.render_as_string(hide_password=False)
    with store.writing() as connection:
        connection.execute(update(schema.schema_version).values(version=number))
    with pytest.raises(
        StoreError,
        match=f"schema version {number}, but this version of the project supports 1: update",
    ):
        Store(inputs)
    with store.writing() as connection:
        connection.execute(update(schema.schema_version).values(version=1))
    assert len(Store(inputs).runs(study)) == 12


DAMAGES = {
    "another program's": (
        ["DROP TABLE schema_version"],
        "another program: the table schema_version is missing",
    ),
    "no table": (["DROP TABLE rows"], "the table rows is missing"),
}


@pytest.mark.parametrize(("statements", "words"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_store_is_refused_in_words(tmp_path, statements, words):
    path = tmp_path / "studies.sqlite"
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    for create in (True, False):
        with pytest.raises(StoreError, match=words):
            Store(str(path), create=create)


def test_password_is_never_printed(postgresql):  # noqa: F811
    wrong = postgresql.address.replace("lab:", "nobody:") + "postgres?application_name=hidden"
    store = None
    with pytest.raises(StoreError) as caught:
        store = Store(wrong)
    for words in (str(caught.value), repr(caught.value)):
        assert PASSWORD not in words and PASSWORD.split()[0] not in words and "hidden" not in words
    assert store is None and "nobody:***@127.0.0.1" in str(caught.value)


def test_missing_store_is_not_created_by_reading(tmp_path, database):  # noqa: F811
    with pytest.raises(StoreError, match="There are no studies at"):
        Store(database, create=False)
    assert list(tmp_path.iterdir()) == []


def test_locked_database_is_busy_temporarily(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "PATIENCE", 0.1)
    store = Store(str(tmp_path / "x.sqlite"))
    study = store.enrol(STUDY).study
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match="locked by another program"):
        store.claim(study, "me|1|a", 1)
    assert states(store, study) == {QUEUED: 12}  # who reads need not wait
    other.execute("ROLLBACK")
    assert len(claim_runs(store, study, "me|1|a", 1)) == 1


@pytest.mark.parametrize(
    "address", ["postgres://a:b@h/d", "postgresql://a:b@h/d", "postgresql+psycopg://a:b@h/d"]
)
def test_postgresql_uses_psycopg_3_without_prepared_statements(address, monkeypatch):
    """Addresses without a driver use psycopg 3 and no prepared statements.

    SQLAlchemy 2.0 would take psycopg2; a transaction pooler knows no prepared statement.
    """
    options = {}
    monkeypatch.setattr(
        databases, "create_engine", lambda url, **how: options.update(how, driver=url.drivername)
    )
    databases.connect(databases.address(address))
    assert (
        options["driver"] == "postgresql+psycopg"
        and options["connect_args"]["prepare_threshold"] is None
    )
