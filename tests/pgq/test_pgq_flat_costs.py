"""What a claim reads does not grow with what else is in the table."""

from datetime import timedelta

import pytest
from psycopg import sql

from forq_trio.pgq.claims import asked_of, claim
from forq_trio.pgq.connections import connected
from forq_trio.pgq.statements import statement

BUFFERS_MAX = 60
FILL = """
    INSERT INTO {} (payload, metadata, scheduled_for, processed_at, locked_until, consumed_count)
    SELECT jsonb_build_object('n', n), '{{}}', %s::timestamptz, %s::timestamptz, %s::timestamptz, %s
    FROM generate_series(1, 4000) AS n
"""


@pytest.mark.parametrize("analyzed", [True, False])
async def test_a_claim_reads_a_few_pages_beside_many_messages(pgq_url, rows, table, analyzed) -> None:
    rows.run(FILL, None, None, None, 0)  # waiting
    rows.run(FILL, "infinity", None, None, 0)  # for later
    rows.run(FILL, None, "now", None, 1)  # finished
    rows.run(FILL, None, None, "infinity", 1)  # in process
    rows.run(FILL, None, None, None, 3)  # exhausted
    if analyzed:
        rows.run("ANALYZE {}")
    asked = asked_of(1, timedelta(minutes=5), None, 3, None)
    explained = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + statement("claim", table)
    for _ in range(3):
        ((plan,),) = rows.connection.execute(explained, asked).fetchone()
        root = plan["Plan"]
        assert root["Actual Rows"] == 1
        assert root["Shared Hit Blocks"] + root["Shared Read Blocks"] <= BUFFERS_MAX


async def test_what_is_due_and_in_process_is_walked_past_once(pgq_url, rows, table) -> None:
    """By the pages that the next claim reads: some hundreds where it looks at all of them again."""
    rows.run(FILL, "yesterday", None, "infinity", 1)
    rows.run(FILL, None, None, None, 0)
    asked = asked_of(1, timedelta(minutes=5), None, 3, None)
    with connected(pgq_url) as connection:
        first = claim(connection, table, asked)
    assert len(first.deliveries) == 1
    explained = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + statement("claim", table)
    found = []
    for walked in (None, first.due_at):
        ((plan,),) = rows.connection.execute(explained, asked | {"walked": walked}).fetchone()
        found.append(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
    anew, going_on = found
    assert going_on <= BUFFERS_MAX < anew
