"""Claims: which messages, in which order, and that each is given to one."""

import threading
from datetime import timedelta

import anyio
import psycopg
import pytest

from forq_trio import pgq
from forq_trio.model import limits
from forq_trio.model.errors import InvalidRequest
from forq_trio.pgq.claims import InvalidRow
from forq_trio.pgq.tables import TableOptions, Tables
from pgq.rows import Rows


async def claimed(tables: Tables, table: str, number: int = 100, **options) -> list[str]:
    """The metadata `n` of what is claimed, in order."""
    found = await tables.receive(table, max_messages=number, **options)
    return [each.attributes["n"] for each in found]


def name(text: str) -> dict[str, str]:
    return {"n": text}


async def test_only_what_is_due_is_claimed(tables, rows, table) -> None:
    rows.add(metadata=name("later"), scheduled_for="now() + interval '1 h'")
    rows.add(metadata=name("past"), scheduled_for="now() - interval '1 h'")
    rows.add(metadata=name("at once"))
    assert await claimed(tables, table) == ["past", "at once"]


async def test_due_times_come_first_then_fewer_deliveries_then_age(tables, rows, table) -> None:
    rows.add(metadata=name("tried"), consumed_count="1", created_at="now() - interval '9 h'")
    rows.add(metadata=name("new"), created_at="now() - interval '1 h'")
    rows.add(metadata=name("old"), created_at="now() - interval '2 h'")
    rows.add(metadata=name("due second"), scheduled_for="now() - interval '1 min'")
    rows.add(metadata=name("due first"), scheduled_for="now() - interval '2 min'")
    wanted = ["due first", "due second", "old", "new", "tried"]
    assert await claimed(tables, table, 3) == wanted[:3]
    assert await claimed(tables, table, 3) == wanted[3:]


async def test_messages_of_one_publish_are_claimed_in_their_order(tables, connection, table) -> None:
    pgq.publish(connection, table, *(pgq.Message({}, name(str(n))) for n in range(250)))
    found = [each for _ in range(3) for each in await claimed(tables, table)]
    assert found == [str(n) for n in range(250)]


async def test_a_claim_locks_the_row_and_counts(tables, rows, table) -> None:
    id = rows.add({"a": 1}, {"b": "c"})
    (delivery,) = await tables.receive(table, lease_ms=60_000)
    assert (delivery.id, delivery.content, delivery.attributes) == (str(id), '{"a": 1}', {"b": "c"})
    assert delivery.attempts == 1
    row = rows.one()
    assert row["consumed_count"] == 1
    assert (
        timedelta(0) <= row["locked_until"] - row["started_at"] - timedelta(minutes=1) < timedelta(seconds=1)
    )
    assert delivery.lease_until == round(row["locked_until"].timestamp() * 1_000)


async def test_a_locked_row_is_given_out_when_its_lock_has_ended(tables, rows, table) -> None:
    rows.add(metadata=name("held"), locked_until="now() + interval '1 h'", consumed_count="1")
    assert await claimed(tables, table) == []
    rows.run("UPDATE {} SET locked_until = now() - interval '1 ms'")
    assert await claimed(tables, table) == ["held"]
    assert rows.one()["consumed_count"] == 2


@pytest.mark.parametrize(("attempts_max", "deliveries"), [(3, 3), (1, 1), (0, 12)])
async def test_deliveries_are_bounded_and_0_is_no_bound(
    pgq_url, rows, table, attempts_max, deliveries
) -> None:
    rows.add(metadata=name("again"))
    async with Tables(pgq_url, TableOptions(attempts_max)).opened() as tables:
        found = 0
        for _ in range(12):
            found += len(await tables.receive(table))
            rows.run("UPDATE {} SET locked_until = NULL")
    assert found == deliveries


async def test_a_filter_takes_what_has_the_value(tables, rows, table) -> None:
    for text, metadata in [
        ("quux", {"baz": "quux"}),
        ("other", {"baz": "x"}),
        ("none", {}),
        ("null", {"baz": None}),
    ]:
        rows.add(metadata=metadata | name(text))
    assert await claimed(tables, table, where={"baz": "quux"}) == ["quux"]
    assert await claimed(tables, table, where={"baz": {"not": "quux"}}) == ["other"]
    rows.run("UPDATE {} SET locked_until = NULL")
    absent = {"baz": {"not": "x", "orAbsent": True}}
    assert sorted(await claimed(tables, table, where=absent)) == ["none", "null", "quux"]


async def test_several_conditions_hold_together_and_an_unknown_one_is_refused(tables, rows, table) -> None:
    for n in range(8):
        rows.add(metadata=name(str(n)) | {"a": str(n & 1), "b": str(n >> 1 & 1), "c": str(n >> 2)})
    where = {"a": "1", "b": {"not": "1"}, "c": {"not": "0"}}
    assert await claimed(tables, table, where=where) == ["5"]
    with pytest.raises(InvalidRequest, match="where"):
        await tables.receive(table, where={"a": {"like": "1"}})


async def test_a_filter_that_looks_like_sql_is_a_value(tables, rows, table) -> None:
    value = "' OR 1 = 1 --"
    rows.add(metadata=name("plain"))
    rows.add(metadata=name("odd") | {value: value})
    assert await claimed(tables, table, where={value: value}) == ["odd"]


async def test_older_messages_than_the_history_are_left_alone(pgq_url, rows, table) -> None:
    rows.add(metadata=name("old"), created_at="now() - interval '3 h'")
    rows.add(metadata=name("new"), created_at="now() - interval '1 h'")
    async with Tables(pgq_url, TableOptions(history=timedelta(hours=2))).opened() as tables:
        assert await claimed(tables, table) == ["new"]


@pytest.mark.parametrize(
    ("payload", "metadata", "reason"),
    [
        ([1, 2], {"a": "b"}, "the payload is no object"),
        ("text", {"a": "b"}, "the payload is no object"),
        ({"a": 1}, {"a": 1}, "the metadata are not texts"),
        ({"a": 1}, ["a"], "the metadata are not texts"),
    ],
)
async def test_a_row_that_is_no_message_is_discarded_and_the_others_go_on(
    pgq_url, rows, table, payload, metadata, reason
) -> None:
    told: list[InvalidRow] = []
    rows.add(metadata=name("before"))
    bad = rows.add(payload, metadata)
    rows.add(metadata=name("after"))
    async with Tables(pgq_url, TableOptions(on_invalid=told.append)).opened() as tables:
        assert await claimed(tables, table) == ["before", "after"]
        assert await claimed(tables, table) == []
    (row,) = rows.run("SELECT payload::text AS p, metadata::text AS m, * FROM {} WHERE id = %s", bad)
    assert told == [InvalidRow(table, str(bad), row["p"], row["m"], reason)]
    assert row["error_detail"] == f"invalid: {reason}"
    assert row["processed_at"] is not None
    assert row["locked_until"] is None


@pytest.mark.parametrize("metadata", [{}, {"n": "x" * 900}])
async def test_a_row_that_is_too_large_is_discarded_unread(
    pgq_url, rows, table, monkeypatch, metadata
) -> None:
    monkeypatch.setattr(limits, "PGQ_ROW_BYTES_MAX", 1_000)
    told: list[InvalidRow] = []
    rows.add({"a": "x" * (1_000 - len('{"a": ""}{"n": "full"}'))}, metadata=name("full"))
    bad = rows.add({"a": "x" * 990}, metadata)
    rows.add(metadata=name("after"))
    async with Tables(pgq_url, TableOptions(on_invalid=told.append)).opened() as tables:
        assert await claimed(tables, table) == ["full", "after"]
        assert await claimed(tables, table) == []
    (row,) = rows.run("SELECT * FROM {} WHERE id = %s", bad)
    (reason,) = (each.reason for each in told)
    assert told == [InvalidRow(table, str(bad), None, None, reason)]
    assert reason.endswith("bytes; at most 1,000 are read")
    assert row["error_detail"] == f"invalid: {reason}"


async def test_a_row_whose_metadata_are_too_large_is_discarded(pgq_url, rows, table, monkeypatch) -> None:
    """Decoding those of millions of keys would stop the process for seconds."""
    monkeypatch.setattr(limits, "PGQ_METADATA_BYTES_MAX", 100)
    told: list[InvalidRow] = []
    text = "x" * (100 - len('{"n": ""}'))
    rows.add({"a": "x" * 1_000}, metadata=name(text))
    bad = rows.add({"a": 1}, metadata=name(f"{text}x"))
    rows.add(metadata=name("after"))
    async with Tables(pgq_url, TableOptions(on_invalid=told.append)).opened() as tables:
        assert [len(each.attributes) for each in await tables.peek(table, 10)] == [1, 0, 1]
        assert await claimed(tables, table) == [text, "after"]
        assert await claimed(tables, table) == []
    (row,) = rows.run("SELECT * FROM {} WHERE id = %s", bad)
    reason = "the metadata have more than 100 bytes"
    assert told == [InvalidRow(table, str(bad), '{"a": 1}', None, reason)]
    assert row["error_detail"] == f"invalid: {reason}"


async def test_the_largest_metadata_that_are_published_are_delivered(tables, table, pgq_url) -> None:
    keys = limits.PGQ_PUBLISH_METADATA_BYTES_MAX // len('"12345":"",')
    metadata = {f"{number:05}": "" for number in range(keys - 1)}
    async with pgq.Publisher(pgq_url) as publisher:
        await publisher.publish(table, pgq.Message({}, metadata))
        with pytest.raises(pgq.InvalidPayload, match="the metadata have more than"):
            await publisher.publish(table, pgq.Message({}, metadata | {"more": "x" * 20}))
    (delivery,) = await tables.receive(table)
    assert delivery.attributes == metadata


async def test_null_metadata_are_the_empty_text(tables, rows, table) -> None:
    rows.add(metadata={"n": None})
    assert await claimed(tables, table) == [""]


async def test_metadata_that_are_null_as_a_whole_are_none(tables, rows, table) -> None:
    """As pgq reads them; its own publishers store an empty object."""
    rows.run("ALTER TABLE {} ALTER metadata DROP NOT NULL")
    rows.run("INSERT INTO {} (payload, metadata) VALUES ('{{}}', NULL), ('{{}}', 'null')")
    assert [each.attributes for each in await tables.receive(table, max_messages=9)] == [{}, {}]


async def test_times_that_are_no_times_are_claimed_too(tables, rows, table) -> None:
    rows.add(metadata=name("first"), created_at="'-infinity'")
    rows.add(metadata=name("last"), created_at="'infinity'")
    rows.add(metadata=name("never"), scheduled_for="'infinity'")
    found = await tables.receive(table, max_messages=9)
    assert [each.attributes["n"] for each in found] == ["first", "last"]
    assert all(result.ok for result in await tables.ack(table, [each.receipt for each in found]))


async def test_a_callback_that_fails_loses_no_message(pgq_url, rows, table, caplog) -> None:
    def fail(row: InvalidRow) -> None:
        raise RuntimeError("of the callback")

    rows.add([])
    rows.add(metadata=name("good"))
    async with Tables(pgq_url, TableOptions(on_invalid=fail)).opened() as tables:
        assert await claimed(tables, table) == ["good"]
    assert "of the callback" in caplog.text


async def test_a_row_that_cannot_even_be_discarded_stops_no_other(tables, rows, table, caplog) -> None:
    rows.run("ALTER TABLE {} ADD CHECK (error_detail IS NULL)")
    bad = rows.add([])
    rows.add(metadata=name("good"))
    assert await claimed(tables, table) == ["good"]
    assert f"row {bad} could not be discarded" in caplog.text


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        pytest.param("payload", [(10_000_000, 1), (1_800_000, 3), (100, 9)], marks=pytest.mark.tier2),
        ("metadata", [(1_000_000, 5), (100, 9)]),
    ],
)
async def test_a_claim_is_bounded_in_bytes_but_has_one_message(tables, rows, table, column, bounds) -> None:
    fill = f"UPDATE {{}} SET locked_until = NULL, {column} = jsonb_build_object('a', repeat('x', %s))"
    for _ in range(9):
        rows.add()
    for size, number in bounds:
        rows.run(fill, size)
        found = await tables.receive(table, max_messages=100)
        assert [len(each.content) + len(each.attributes.get("a", "")) >= size for each in found] == [
            True
        ] * number


async def test_two_consumers_get_each_message_once(pgq_url, connection, rows, table) -> None:
    number = 400
    for _ in range(2):
        pgq.publish(connection, table, *[pgq.Message({})] * (number // 2))
    seen: list[str] = []

    async def consume() -> None:
        async with Tables(pgq_url, TableOptions()).opened() as tables:
            while found := await tables.receive(table, max_messages=20):
                seen.extend(each.id for each in found)
                assert all(result.ok for result in await tables.ack(table, [each.receipt for each in found]))

    threads = [threading.Thread(target=anyio.run, args=(consume,)) for _ in range(2)]
    async with anyio.create_task_group() as tasks:
        for thread in threads:
            thread.start()
            tasks.start_soon(anyio.to_thread.run_sync, thread.join)
    assert len(seen) == len(set(seen)) == number
    assert rows.run("SELECT count(*) AS n FROM {} WHERE processed_at IS NULL OR consumed_count <> 1") == [
        {"n": 0}
    ]


async def test_a_row_that_somebody_works_on_is_passed_by(pgq_url, tables, rows, table) -> None:
    rows.add(metadata=name("locked"))
    rows.add(metadata=name("free"))
    with psycopg.connect(pgq_url) as other:
        other.execute(
            psycopg.sql.SQL("SELECT FROM {} WHERE metadata ->> 'n' = 'locked' FOR UPDATE").format(rows.table)
        )
        assert await claimed(tables, table) == ["free"]


async def test_a_partitioned_table_is_checked_claimed_and_settled(tables, rows, table, connection) -> None:
    """As one would make it by hand: its primary key has to have the time."""
    rows.run(
        "CREATE TABLE events (LIKE {} INCLUDING DEFAULTS, PRIMARY KEY (created_at, id))"
        " PARTITION BY RANGE (created_at)"
    )
    for begin, end in (("-infinity", "2026-01-01"), ("2026-01-01", "infinity")):
        connection.execute(
            f"CREATE TABLE \"events {begin}\" PARTITION OF events FOR VALUES FROM ('{begin}') TO ('{end}')"
        )
    pgq.create_table(connection, "events")
    pgq.check_table(connection, "events")
    events = Rows(connection, "events")
    events.add(metadata=name("old"), created_at="'2025-05-05'")
    pgq.publish(connection, "events", pgq.Message({}, name("new")))
    old, new = await tables.receive("events", max_messages=9)
    assert [old.attributes, new.attributes] == [name("old"), name("new")]
    assert (await tables.ack("events", [old.receipt]))[0].ok
    assert (await tables.nack("events", [new.receipt], reason="x"))[0].ok
    assert [(each["processed_at"] is None, each["error_detail"]) for each in events.all()] == [
        (False, None),
        (True, "x"),
    ]


@pytest.mark.tier2
async def test_a_row_that_postgresql_cannot_read_keeps_no_other_from_being_claimed(
    pgq_url, rows, table
) -> None:
    """A short row whose text would have more than 1 GiB: the claims of all rows failed."""
    ids = [rows.add(metadata=name("first"))]
    bad = """INSERT INTO {} (created_at, metadata, payload) SELECT 'epoch', '{{}}',
        jsonb_build_object('a', jsonb_agg('1e131000'::numeric)) FROM generate_series(1, 8300) RETURNING id"""
    ids += [row["id"] for row in rows.run(bad)]
    told: list[InvalidRow] = []
    async with Tables(pgq_url, TableOptions(on_invalid=told.append)).opened() as tables:
        assert await claimed(tables, table) == ["first"]
    (reason,) = (each.reason for each in told)
    assert reason.startswith("it cannot be read: ")
    assert told == [InvalidRow(table, str(ids[1]), None, None, reason)]
    (row,) = rows.run("SELECT error_detail FROM {} WHERE id = %s", ids[1])
    assert row["error_detail"] == f"invalid: {reason}"


async def test_a_claim_begins_where_a_long_one_found_something(tables, table, rows, monkeypatch) -> None:
    """What becomes free before that waits for its turn, but never alone; what we give back is first at once."""
    monkeypatch.setattr(limits, "PGQ_LONG_WALK_SECONDS", 0.0)
    monkeypatch.setattr(limits, "PGQ_WALKED_SECONDS", 3_600.0)
    first = rows.add({"n": 1}, scheduled_for="now() - interval '4 h'", locked_until="'infinity'")
    for n in (2, 3, 4):
        rows.add({"n": n}, scheduled_for=f"now() - interval '{4 - n} h 1 min'")

    async def claimed() -> list[int]:
        found = await tables.receive(table)
        receipts.extend(each.receipt for each in found)
        return [each.json()["n"] for each in found]

    receipts: list[str] = []
    assert await claimed() == [2]
    rows.run("UPDATE {} SET locked_until = NULL WHERE id = %s", first)
    assert await claimed() == [3]
    await tables.release(table, receipts[-1:])
    assert await claimed() == [1]
    assert [await claimed(), await claimed(), await claimed()] == [[3], [4], []]
    rows.run("UPDATE {} SET locked_until = NULL WHERE id = %s", first)
    assert await claimed() == [1]
