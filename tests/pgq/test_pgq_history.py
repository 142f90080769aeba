"""What is in a table by its state, what took long, what begins again, and what goes."""

from datetime import UTC, datetime, timedelta

import pytest

from forq_trio.model.errors import OutOfRange
from forq_trio.pgq import history
from forq_trio.pgq.tables import Tables

ROWS = {
    "waiting": {},
    "scheduled": {"scheduled_for": "now() + interval '1 h'"},
    "in process": {"locked_until": "now() + interval '1 h'", "consumed_count": "3"},
    "exhausted": {"consumed_count": "3", "error_detail": "'ValueError: x'"},
    "ok": {"processed_at": "now()", "started_at": "now() - interval '5 min'", "consumed_count": "3"},
    "failed": {"processed_at": "now()", "error_detail": "'no such customer'", "consumed_count": "1"},
}


@pytest.fixture
def filled(rows) -> dict[str, str]:
    """The id of a message in each state."""
    return {state: str(rows.add({"s": state}, **columns)) for state, columns in ROWS.items()}


def test_each_message_is_in_one_state(connection, rows, table, filled) -> None:
    rows.add(consumed_count="2", error_detail="'x'")
    assert list(ROWS) == list(history.STATES)
    assert history.counts(connection, table) == dict.fromkeys(ROWS, 1) | {"waiting": 2}
    assert history.counts(connection, table, attempts_max=0)["waiting"] == 3
    for state in history.STATES:
        found = {str(row.id): row for row in history.find(connection, table, state)}
        assert filled[state] in found
        assert {row.state for row in found.values()} == {state}
        assert f'"{state}"' in found[filled[state]].payload


def test_reasons_and_times_are_told(connection, table, filled) -> None:
    (failed,) = history.find(connection, table, "failed")
    assert (failed.reason, failed.attempts, failed.took) == ("no such customer", 1, None)
    (ok,) = history.find(connection, table, "ok")
    assert ok.took == timedelta(minutes=5)


def test_the_slowest_come_first(connection, rows, table) -> None:
    for minutes in (1, 3, 2):
        rows.add(started_at=f"now() - interval '{minutes} min'", processed_at="now()")
    rows.add(started_at="now() - interval '3 d'", processed_at="now() - interval '2 d'")
    since = datetime.now(UTC) - timedelta(days=1)
    found = history.slowest(connection, table, since=since, limit=2)
    assert [row.took for row in found] == [timedelta(minutes=3), timedelta(minutes=2)]


def test_times_that_no_datetime_can_be_are_the_first_or_the_last_one(connection, rows, table) -> None:
    for created_at in ("'infinity'", "'-infinity'", "'20000-01-01'"):
        rows.add(created_at=created_at)
    found = history.find(connection, table, "waiting")
    assert [row.created_at.year for row in found] == [9999, 9999, 1]
    assert {row.started_at for row in found} == {None}


def test_lists_are_bounded_in_messages_and_in_what_each_has(connection, rows, table) -> None:
    for _ in range(3):
        rows.add({"a": "x" * 200_000})
    found = history.find(connection, table, "waiting", limit=2)
    assert [len(row.payload) for row in found] == [64 * 1024] * 2
    for limit in (0, 1_001):
        with pytest.raises(OutOfRange):
            history.find(connection, table, "waiting", limit=limit)


async def test_failed_and_exhausted_messages_begin_again(
    tables: Tables, connection, rows, table, filled
) -> None:
    assert await tables.receive(table, max_messages=9) != []
    assert history.requeue(connection, table, [filled["ok"], filled["in process"], filled["failed"]]) == 1
    assert history.requeue(connection, table) == 1
    assert history.requeue(connection, table) == 0
    found = await tables.receive(table, max_messages=9)
    assert {(each.id, each.attempts) for each in found} == {(filled["failed"], 1), (filled["exhausted"], 1)}
    assert (await tables.ack(table, [each.receipt for each in found]))[1].ok
    assert history.counts(connection, table)["ok"] == 3


def test_what_ended_long_ago_is_deleted_and_nothing_else(
    connection, rows, table, filled, monkeypatch
) -> None:
    monkeypatch.setattr("forq_trio.model.limits.PGQ_STEP_MAX", 2)
    for _ in range(3):
        rows.add(processed_at="now() - interval '31 d'", error_detail="'x'")
    rows.add(created_at="now() - interval '99 d'")
    month = timedelta(days=30)
    assert [history.purge(connection, table, older_than=month) for _ in range(3)] == [2, 1, 0]
    assert sum(history.counts(connection, table).values()) == len(ROWS) + 1
