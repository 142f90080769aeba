"""Claims from a table of many partitions: one plan for all of them, which goes along indexes."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from forq_trio import pgq
from forq_trio.model import limits
from forq_trio.pgq import connections
from forq_trio.pgq.claims import asked_of, claim
from forq_trio.pgq.connections import PgqConnection, connect
from forq_trio.pgq.statements import SQL, statement
from pgq.conftest import NUMBERS
from pgq.rows import Rows
from support.pgbouncer import through

PARTITIONS = 20
PLANS = "SELECT coalesce(sum(generic_plans), 0)::int, coalesce(sum(custom_plans), 0)::int FROM pg_prepared_statements"
FILL = """
    INSERT INTO {} (created_at, payload, metadata)
    SELECT now() - make_interval(hours => n %% %s), '{{}}', '{{}}' FROM generate_series(0, %s - 1) AS n
"""
PARTITION = """
    CREATE TABLE {} PARTITION OF {} FOR VALUES FROM (now() - make_interval(mins => 60 * {} + 30))
    TO (now() - make_interval(mins => 60 * {} - 30))
"""


@pytest.fixture
def partitioned(connection) -> str:
    """A table with a partition for each hour, as pgq's own documents make it."""
    name = f"Events 100% {next(NUMBERS)}"
    with connection.transaction():
        pgq.create_table(connection, f"{name} whole")
        table = sql.Identifier(name)
        like = sql.Identifier(f"{name} whole")
        connection.execute(
            sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS, PRIMARY KEY (id, created_at))"
                    " PARTITION BY RANGE (created_at)").format(table, like)
        )  # fmt: skip
        for hour in range(PARTITIONS):
            partition = sql.Identifier(f"{name}_{hour}")
            connection.execute(sql.SQL(PARTITION).format(partition, table, hour, hour))
        pgq.create_table(connection, name)
    return name


@pytest.fixture
def rows(connection, partitioned) -> Rows:
    return Rows(connection, partitioned)


@pytest.fixture
def ours(pgq_url) -> Iterator[PgqConnection]:
    with closing(connect(pgq_url)) as connection:
        yield connection


def asked(number: int = 1, **more: Any) -> dict[str, Any]:
    return asked_of(number, timedelta(minutes=5), None, 3, None) | more


def plans(connection: psycopg.Connection) -> tuple[int, int]:
    """How often a plan that stayed was used, and one that was made."""
    (found,) = connection.execute(PLANS).fetchall()
    return found


def test_claims_use_one_plan_and_leave_no_settings(ours, partitioned, rows) -> None:
    rows.run(FILL, PARTITIONS, 200)
    settings = ours.execute("SELECT name, setting FROM pg_settings ORDER BY name").fetchall()
    taken = [claim(ours, partitioned, asked()).deliveries[0].id for _ in range(6)]
    assert len(set(taken)) == 6
    assert plans(ours) == (6, 0)
    assert ours.execute("SELECT name, setting FROM pg_settings ORDER BY name").fetchall() == settings
    assert len({row["id"] for row in rows.all() if row["locked_until"] is not None}) == 6


def test_what_asks_for_metadata_or_an_age_is_planned_for_it(ours, partitioned, rows) -> None:
    rows.add(metadata={"region": "eu"})
    found = claim(ours, partitioned, asked(equal='{"region": "eu"}')).deliveries
    assert [each.attributes for each in found] == [{"region": "eu"}]
    assert claim(ours, partitioned, asked(history=timedelta(hours=1))).deliveries == []
    assert plans(ours)[0] <= 1  # that of the next message for later


def test_a_whole_table_is_planned_as_before(ours, partitioned) -> None:
    claim(ours, f"{partitioned} whole", asked())
    assert plans(ours) == (0, 0)


def test_through_a_pool_nothing_is_prepared(postgres, pgq_url, partitioned, rows) -> None:
    rows.run(FILL, PARTITIONS, 10)
    with (
        postgres.pool("transaction") as pool,
        closing(connect(through(pool, pgq_url))) as ours,
        ours.bounded(),
    ):
        assert len(claim(ours, partitioned, asked(5)).deliveries) == 5
        assert plans(ours) == (0, 0)


@pytest.mark.parametrize("analyzed", [True, False])
@pytest.mark.parametrize("number", [10, pytest.param(100_000, marks=pytest.mark.tier2)])
def test_the_plan_goes_along_indexes(ours, partitioned, rows, number, analyzed) -> None:
    rows.run(FILL, PARTITIONS, number + 1)
    if analyzed:
        rows.run("ANALYZE {}")
    assert len(claim(ours, partitioned, asked()).deliveries) == 1
    (prepared,) = ours.execute("SELECT name FROM pg_prepared_statements").fetchone()
    names = re.findall(r"%\((\w+)\)s", statement("claim", partitioned).as_string(ours))
    values = sql.SQL(", ").join(asked(10)[name] for name in dict.fromkeys(names))
    explained = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {} ({})")
    with ours.transaction(force_rollback=True):
        ours.execute(SQL["set_one_plan"])
        (((plan,),),) = ours.execute(explained.format(sql.Identifier(prepared), values)).fetchall()
    assert plan["Plan"]["Actual Rows"] == 10
    scanned = [
        each for each in nodes(plan["Plan"]) if "Relation Name" in each and "Scan" in each["Node Type"]
    ]
    assert {each["Node Type"] for each in scanned} == {"Index Scan"}
    assert len(scanned) == 3 * PARTITIONS
    walked = [each for each in scanned if "consumed_count" in each["Index Name"]]
    assert len(walked) == 2 * PARTITIONS
    assert sum(each["Actual Rows"] for each in walked) <= 10 + PARTITIONS


def test_plans_are_made_anew_when_their_time_is_over(ours, partitioned, rows, monkeypatch) -> None:
    now = [1.0]
    monkeypatch.setattr(connections, "monotonic", lambda: now[0])
    claim(ours, partitioned, asked())
    until = ours._planned_until
    assert until == now[0] + limits.PGQ_PLANNED_SECONDS
    now[0] = until - 0.1
    claim(ours, partitioned, asked())
    assert ours._planned_until == until
    now[0] = until
    claim(ours, partitioned, asked())
    assert ours._planned_until == until + limits.PGQ_PLANNED_SECONDS


def test_a_statement_that_fails_leaves_the_connection_as_it_was(ours, partitioned, rows) -> None:
    rows.add()
    assert len(claim(ours, partitioned, asked()).deliveries) == 1
    rows.run("ALTER TABLE {} RENAME COLUMN payload TO load")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        claim(ours, partitioned, asked())
    rows.run("ALTER TABLE {} RENAME COLUMN load TO payload")
    rows.add()
    assert len(claim(ours, partitioned, asked()).deliveries) == 1


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)
