"""What a batch looks at behind the gate does not grow with what somebody made up: rows and pages are counted."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Configure, ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support import waits_of_messages, waits_of_work
from support.actors import T0
from support.effort import EFFORT
from support.much import much_of_everything
from support.postgres import Postgres
from support.waits_of import CASES, World, names

assert waits_of_messages, waits_of_work
MANY = 1_000 if EFFORT.times is None else 5_000
"""Queues, groups, deduplication ids, keys, tokens, stages, apps, outboxes, schedules, finished messages, events …"""
COMMANDS = 4
QUEUES = {"in other queues": "'r'", "in the same queues": "'q', 'p', 'q' || n % 8"}
"""Which queues have MANY messages of each status."""
ROWS_A_COMMAND, PAGES_A_COMMAND = 50, 200
LOGGED = {"discards", "purges_the_history", "trims_the_history", "trims_events"}
PAGE = {
    # A page of messages that go, each found, read and removed; of their keys, too.
    "purges": 3 * limits.PURGE_BATCH_MAX,
    "purges_of_moved_messages": 3 * limits.PURGE_BATCH_MAX,
    "sends_that_evict": limits.EVICTED_MAX,
    "sends_that_evict_into_dead_letters": limits.EVICTED_MAX,
    "purges_the_history": 2 * limits.HISTORY_STEP_MESSAGES,
    "trims_the_history": 2 * limits.HISTORY_STEP_MESSAGES,
    "trims_events": 3 * limits.EVENTS_TRIMMED_MAX,
    # Held messages become ready, or ready ones above a limit held, so that no later claim looks at them.
    "configures": limits.DUE_BATCH_MAX,
    "limits_that_are_lifted": 2 * limits.DUE_BATCH_MAX,
    "claims_of_many_queues_under_a_limit_of_groups": limits.CLAIM_FILTERED_MAX,
    "claims_of_many_queues_under_a_rate_of_groups": limits.CLAIM_FILTERED_MAX,
    "claims_that_find_exhausted_messages": limits.CLAIM_FILTERED_MAX,
    # Attributes, and sequences to draw from.
    "claims_by_attributes": limits.CLAIM_SCAN_MAX,
    "claims_by_attributes_of_many_queues": limits.CLAIM_SCAN_MAX,
    "shuffled_claims": limits.SHUFFLE_EXACT_MAX,
    # Once for the page that waits for all of them, and again behind the first one, which changed its queue.
    "shuffled_claims_of_many_queues": 2 * limits.SHUFFLE_EXACT_MAX,
    # Counted once in a batch, by an administrator or the first time that an outbox is relayed.
    "relays_of_new_outboxes": MANY // COMMANDS,
    "forgets_consumers": MANY // COMMANDS,
}
"""Commands that look at up to so many rows each, and why."""
PAGES_A_ROW = 10
"""Of one that is changed: the indexes of messages."""


QUICK = {
    *("acks", "claims", "claims_of_many_queues", "delays_that_end", "last_nacks", "leases_messages"),
    *("leases_that_end", "messages_that_expire", "nacks", "offers", "sends", "sends_with_deduplication"),
}
"""What every message passes. A case takes half a second, for the copy of a database with much of everything."""


class Looked(NamedTuple):
    """rows: of tables and indexes that were read. pages: buffers of them. most: what was read most, to be named."""

    rows: int
    pages: int
    most: list[tuple[str, int]]


LOOKED = b"""
SELECT relname, pg_stat_get_xact_tuples_returned(pg_class.oid), pg_stat_get_xact_blocks_fetched(pg_class.oid)
FROM pg_class WHERE relnamespace = 'forq'::regnamespace ORDER BY 2 DESC
"""


def execute(engine: PostgresEngine, statement: bytes) -> list[list[str]]:
    """Run a statement of ours in the connection of an engine."""
    pg = engine.connection._pg
    engine.connection.wait()
    pg.exit_pipeline_mode()
    found = pg.exec_(statement)
    pg.enter_pipeline_mode()
    values = [
        [found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)
    ]
    return [[(each or b"").decode() for each in row] for row in values]


def looked(url: str, name: str) -> Looked:
    """What the batch of a case looked at."""
    _, prepare = CASES[name]
    settings = EngineSettings(history=name in LOGGED, events=name in LOGGED)
    with closing(PostgresEngine(url, settings, "normal")) as engine:
        world = World(engine)
        # A start does not know which held messages have room: the first batches look, beside whatever they are given.
        engine.tx.freed.take(sys.maxsize)
        engine.tx.freed.adopt()
        commands = prepare(world, COMMANDS)
        execute(engine, b"SELECT pg_stat_force_next_flush()")  # what was counted so far is not of the batch
        engine.execute_batch(Batch(commands, world.now_ms, world.receivers, moves_staged=world.is_due))
        found = [(name, int(rows), int(pages)) for name, rows, pages in execute(engine, LOOKED)]
        engine.commit()
    rows, pages = (sum(each[column] for each in found) for column in (1, 2))
    return Looked(rows, pages, [each[:2] for each in found[:3]])


@pytest.fixture(
    scope="module", params=["in the same queues", pytest.param("in other queues", marks=pytest.mark.tier2)]
)
def filled(postgres: Postgres, request: pytest.FixtureRequest) -> Iterator[str]:
    with much_of_everything(postgres, MANY, QUEUES[request.param]) as name:
        yield name


@pytest.fixture
def much(postgres: Postgres, filled: str) -> Iterator[str]:
    """The URL of a database with much of everything."""
    url = postgres.new_database(filled)
    yield url
    postgres.drop_database(url)


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.tier2) for each in CASES]
)
def test_a_batch_looks_at_so_many_rows_and_pages(much, name):
    found = looked(much, name)
    rows = COMMANDS * (ROWS_A_COMMAND + PAGE.get(name, 0))
    assert found.rows <= rows, found
    assert found.pages <= COMMANDS * (PAGES_A_COMMAND + PAGES_A_ROW * PAGE.get(name, 0)), found


@pytest.mark.tier2
def test_the_groups_that_a_start_finds_are_looked_at_in_parts(postgres):
    with much_of_everything(postgres, MANY, QUEUES["in the same queues"]) as name:
        url = postgres.new_database(name)
        with closing(PostgresEngine(url, EngineSettings(), "normal")) as engine:
            while engine.tx.freed:
                execute(engine, b"SELECT pg_stat_force_next_flush()")
                engine.execute_batch(Batch((), T0))
                rows = {name: int(found) for name, found, _ in execute(engine, LOOKED)}
                assert rows["messages_held"] <= 2 * limits.DUE_BATCH_MAX, rows
                engine.commit()
        postgres.drop_database(url)


def test_held_messages_of_many_queues_are_read_as_many_as_become_ready(empty_tables):
    """With its limit lifted, each of 40 queues had its 100 read, in each of 8 batches."""
    with closing(PostgresEngine(empty_tables, EngineSettings(), "normal")) as engine:
        world = World(engine)
        queues = names(40)
        world.configure(queues, group_in_flight_max=1)
        for queue in queues:
            world.run(ProduceMany(queue, (NewMessage("x", group="g"),) * 101))
        world.claim(queues, 2)
        while (held := sum(each.held for each in engine.snapshot().counts.values())) < 40 * 100:
            world.claim(queues, 2)
        world.run(*[Configure(queue, SettingsChange(group_in_flight_max=None)) for queue in queues])
        execute(engine, b"SELECT pg_stat_force_next_flush()")
        world.engine.execute_batch(Batch((), world.now_ms))
        rows = {name: int(found) for name, found, _ in execute(engine, LOOKED)}
        assert limits.DUE_BATCH_MAX <= rows["messages_held"] <= limits.UNHOLD_READ_MAX
        engine.commit()
        assert held - sum(each.held for each in engine.snapshot().counts.values()) == 2 * limits.DUE_BATCH_MAX
