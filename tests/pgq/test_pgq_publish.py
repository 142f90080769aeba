"""Publishing: what a row has, what is refused, and that several messages are stored together or not at all."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import anyio
import msgspec
import psycopg
import pytest

from forq_trio import pgq

DEEP: list[Any] = []
for _ in range(1_000):
    DEEP = [DEEP]


class Order(msgspec.Struct):
    item: str


@dataclass
class Parcel:
    to: str


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_published_message_is_a_row_that_nobody_has_claimed(pgq_url, rows, table, backend) -> None:
    async def main() -> list[UUID]:
        async with pgq.Publisher(pgq_url) as publisher:
            return await publisher.publish(table, pgq.Message({"item": "tea"}))

    (id,) = anyio.run(main, backend=backend)
    row = rows.one()
    assert isinstance(id, UUID)
    assert row["id"] == id
    assert (row["payload"], row["metadata"], row["consumed_count"]) == ({"item": "tea"}, {}, 0)
    assert abs(row["created_at"] - datetime.now(UTC)) < timedelta(minutes=5)
    unset = ("started_at", "locked_until", "scheduled_for", "processed_at", "error_detail")
    assert [row[name] for name in unset] == [None] * 5


def test_ids_are_in_the_order_of_the_messages_which_they_keep(connection, rows, table) -> None:
    ids = pgq.publish(connection, table, *(pgq.Message({"n": n}) for n in range(500)))
    assert [(row["id"], row["payload"]["n"]) for row in rows.all()] == list(zip(ids, range(500), strict=True))


async def test_one_bad_message_of_several_stores_none(pgq_url, rows, table) -> None:
    async with pgq.Publisher(pgq_url) as publisher:
        with pytest.raises(pgq.InvalidPayload, match=r"^message 1: the payload is no JSON object$"):
            await publisher.publish(table, pgq.Message({}), pgq.Message([1]), pgq.Message({}))
        rows.run("ALTER TABLE {} ADD CHECK (payload ->> 'n' <> '2')")
        with pytest.raises(pgq.DatabaseRefused, match="violates check constraint"):
            await publisher.publish(table, *(pgq.Message({"n": n}) for n in range(4)))
    assert rows.all() == []


def test_nothing_to_publish_writes_nothing(rows, table) -> None:
    with rows.connection.transaction():
        assert pgq.publish(rows.connection, table) == []
        (transaction,) = rows.run("SELECT pg_current_xact_id_if_assigned() AS id")
    assert transaction["id"] is None


@pytest.mark.parametrize("value", [{"item": "tea"}, Order("tea"), '{"item": "tea"}'])
def test_a_payload_is_what_becomes_an_object(connection, rows, table, value) -> None:
    pgq.publish(connection, table, pgq.Message(value), pgq.Message(Parcel("anna")))
    assert [row["payload"] for row in rows.all()] == [{"item": "tea"}, {"to": "anna"}]


NO_OBJECTS = (
    [1],
    "[1]",
    '"text"',
    "7",
    7,
    None,
    "null",
    "no JSON",
    '{"a": ',
    {"a": "\0"},
    '{"a": "\\u0000"}',
    object(),
    {1j: 2},
    {"a": float("nan")},
    {"a": [None, float("inf")]},
    {"a": 10**400},
    '{"a": 1e999}',
    f'{{"a": {"9" * 400}}}',
    '{"a":' * 1_000 + "1" + "}" * 1_000,
    {"a": DEEP},
)


def test_a_payload_that_is_no_object_is_refused(connection, rows, table) -> None:
    for value in NO_OBJECTS:
        with pytest.raises(pgq.InvalidPayload, match=r"^message 0: "):
            pgq.publish(connection, table, pgq.Message(value))
    assert rows.all() == []


def test_a_backslash_before_u0000_is_text(connection, rows, table) -> None:
    pgq.publish(connection, table, pgq.Message({"a": "\\u0000"}))
    assert rows.one()["payload"] == {"a": "\\u0000"}


def test_metadata_that_are_no_texts_are_refused(connection, rows, table) -> None:
    for metadata in ({"a": 1}, {"a": None}, {1: "a"}, {"a": ["b"]}, {"a": "\0"}):
        with pytest.raises(pgq.InvalidPayload, match="metadata"):
            pgq.publish(connection, table, pgq.Message({}, metadata))
    assert rows.all() == []


@pytest.mark.parametrize("own", [None, {"test": "replaced", "kind": "a"}])
def test_injectors_add_metadata_and_win(connection, rows, table, own) -> None:
    injectors = [lambda: {"host": "localhost"}, lambda: {"test": "test_value"}]
    pgq.publish(connection, table, pgq.Message({}, own), injectors=injectors)
    kind = {} if own is None else {"kind": "a"}
    assert rows.one()["metadata"] == {"host": "localhost", "test": "test_value"} | kind


def test_a_time_needs_a_zone_and_a_delay_counts_by_the_clock_of_the_database(connection, rows, table) -> None:
    with pytest.raises(pgq.InvalidPayload, match="scheduled_for has no time zone"):
        pgq.publish(connection, table, pgq.Message({}, scheduled_for=datetime(2030, 1, 1)))
    at = datetime(2030, 1, 1, tzinfo=UTC)
    pgq.publish(
        connection, table, pgq.Message({}, scheduled_for=at), pgq.Message({}, delay=timedelta(hours=1))
    )
    first, second = rows.all()
    assert first["scheduled_for"] == at
    (ahead,) = rows.run("SELECT scheduled_for - now() AS d FROM {} WHERE id = %s", second["id"])
    assert timedelta(minutes=59) < ahead["d"] <= timedelta(hours=1)


def test_too_many_messages_or_bytes_are_refused_before_they_are_sent(
    connection, rows, table, monkeypatch
) -> None:
    monkeypatch.setattr("forq_trio.model.limits.PGQ_PUBLISH_MAX", 3)
    with pytest.raises(pgq.InvalidPayload, match="at most 3 messages"):
        pgq.publish(connection, table, *[pgq.Message({})] * 4)
    monkeypatch.setattr("forq_trio.model.limits.PGQ_PUBLISH_BYTES_MAX", 1_000)
    with pytest.raises(pgq.InvalidPayload, match="1,000 bytes"):
        pgq.publish(connection, table, pgq.Message({"a": "x" * 600}), pgq.Message({"a": "x" * 600}))
    assert rows.all() == []


def test_within_a_transaction_of_the_caller_it_exists_if_that_commits(pgq_url, rows, table) -> None:
    with psycopg.connect(pgq_url) as own:
        pgq.publish(own, table, pgq.Message({"a": 1}))
        assert rows.all() == []
        own.rollback()
        pgq.publish(own, table, pgq.Message({"a": 2}))
        own.commit()
    assert rows.one()["payload"] == {"a": 2}


def test_within_a_transaction_on_asyncio_too(pgq_url, rows, table) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(pgq_url) as own:
            assert await pgq.publish_async(own, table) == []
            await pgq.publish_async(own, table, pgq.Message({"a": 1}))
            await own.rollback()
            await pgq.publish_async(own, table, pgq.Message({"a": 2}))

    anyio.run(main, backend="asyncio")
    assert rows.one()["payload"] == {"a": 2}


async def test_a_table_that_is_not_there_is_named(pgq_url) -> None:
    async with pgq.Publisher(pgq_url) as publisher:
        with pytest.raises(pgq.NoTable, match='relation "nowhere" does not exist'):
            await publisher.publish("nowhere", pgq.Message({}))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim%zz@h/d",
        "mysql://u:geheim@h",
        "",
        "postgresql://u:geheim@h:port/d",
        "postgresql://u:x@geheim@h/d",
        "postgresql://u:geheim/1@h/d",
        "postgresql://u:1/geheim@h/d",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url) -> None:
    with pytest.raises(pgq.InvalidDatabaseUrl) as raised:
        pgq.Publisher(url)
    assert "geheim" not in str(raised.value)


async def test_a_trigger_that_drops_messages_is_told_of(connection, rows, table, tables) -> None:
    rows.run("""
        CREATE FUNCTION pg_temp.none() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
        CREATE TRIGGER none BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION pg_temp.none()""")
    with pytest.raises(pgq.DatabaseRefused, match="took 0 of 1 messages"):
        await tables.produce(table, "{}")
