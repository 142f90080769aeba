"""forq.send beside very many queues: a batch looks at a bounded number of rows, and each queue gets its messages."""

from collections.abc import Callable, Iterator
from itertools import count, islice

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Configure
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch
from forq_trio.storage.postgres.engine import PostgresEngine
from support.actors import T0
from support.batches import do, run
from support.words import claim

Application = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def engine(open_one: Callable[[], PostgresEngine]) -> PostgresEngine:
    return open_one()


@pytest.fixture
def shop(engine, empty_tables: str) -> Iterator[Application]:
    """An application's connection."""
    with psycopg.connect(empty_tables) as connection:
        yield connection


def sends(shop: Application, content: str, queue: str) -> None:
    shop.execute("SELECT forq.send(%s, %s)", (queue, content))


def contents(engine: PostgresEngine, queue: str) -> list[str]:
    return [each.content for each in do(engine, claim(queue=queue, most=100))]


READ = (
    b"SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'forq.sent'::regclass"
)


def rows_read(engine: PostgresEngine) -> int:
    """Run a batch; returns how many rows of `sent` it read, with those of batches before that are not reported yet."""
    engine.execute_batch(Batch([], T0))
    pg = engine.connection._pg
    engine.connection.wait()
    pg.exit_pipeline_mode()
    found = pg.exec_(READ).get_value(0, 0)
    pg.enter_pipeline_mode()
    engine.commit()
    assert found is not None
    return int(found)


def test_a_batch_reads_no_more_rows_for_the_names_that_somebody_made_up(engine, shop):
    """5,000 names cost each batch of every process 280 to 796 ms."""
    shop.execute("SELECT forq.send('made-up-' || n % 5000, n::text) FROM generate_series(1, 10000) n")
    shop.commit()
    for number in range(1, 5):
        queues = len(engine.snapshot().counts)
        assert 0 < rows_read(engine) <= number * 1.5 * limits.OUTBOX_PAGE_MAX
        assert 0 < len(engine.snapshot().counts) - queues <= limits.SENT_QUEUES_MAX


def test_beside_many_names_each_queue_gets_its_messages_in_their_order(engine, shop, monkeypatch):
    monkeypatch.setattr(limits, "SENT_QUEUES_MAX", 3)
    monkeypatch.setattr(limits, "OUTBOX_PAGE_MAX", 10)
    for number in range(60):
        sends(shop, str(number), f"q{number % 7}")
    shop.commit()
    batches = 1
    while run(engine).next_due_ms == T0:
        batches += 1
    assert batches <= 60
    for queue in range(7):
        assert contents(engine, f"q{queue}") == [str(number) for number in range(queue, 60, 7)]


def test_behind_more_full_queues_than_a_page_walks_past_another_gets_its_message(engine, shop, monkeypatch):
    monkeypatch.setattr(limits, "SENT_QUEUES_MAX", 2)
    for number in range(5):
        do(engine, Configure(f"a{number}", SettingsChange(max_messages=1, overflow="reject")))
        for content in ("1", "2"):
            sends(shop, content, f"a{number}")
    shop.commit()
    while run(engine).next_due_ms == T0:
        pass
    sends(shop, "x", "z")
    shop.commit()
    while run(engine).next_due_ms == T0:
        pass
    assert contents(engine, "z") == ["x"]
    assert [len(contents(engine, f"a{number}")) for number in range(5)] == [1] * 5


@pytest.mark.parametrize("option", ["deduplication_id", '"group"'])
def test_a_batch_waits_as_often_for_many_messages_with_an_option_as_for_one(engine, shop, option):
    values = map(str, count())

    def waits(number: int) -> int:
        for value in islice(values, number):
            shop.execute(f"SELECT forq.send('q', 'x', {option} => %s)", (value,))
        shop.commit()
        engine.connection.waits = 0
        run(engine)
        return engine.connection.waits

    waits(1)
    assert waits(64) <= waits(1) + 1
    assert len(contents(engine, "q")) == 66
