"""Another server takes over, or the database is restored: it is not the one it was. And COMMIT waits for replicas."""

import threading
import time

import psycopg
import pytest

from forq_trio.model.commands import Configure
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.postgres import open as module
from support.batches import do
from support.processes import WAIT_SECONDS_MAX
from support.words import claim, send

WAITS_FOR_A_REPLICA = """
SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND clock_timestamp() - query_start > '1 s'
"""


def undo_last_batch(database: str) -> None:
    """What became of the last batch, one send to the queue `q`, on a replica that did not get it."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "DELETE FROM forq.batches_2 WHERE version = (SELECT max(version) FROM forq.batches_2)"
        )
        connection.execute("DELETE FROM forq.messages WHERE queue = 'q'")
        connection.execute("DELETE FROM forq.queue_counts WHERE queue = 'q'")


@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_process_whose_last_batch_is_gone_reads_all_anew(open_one, empty_tables, others):
    """others: batches that another process has made since, so that the version of the lost one is there again."""
    a, b = open_one(), open_one()
    do(a, send("first", queue="p"))
    do(a, send("lost"))
    do(b, claim(queue="nothing"))
    undo_last_batch(empty_tables)
    c = open_one()
    for number in range(others):
        do(c, Configure("p", SettingsChange(lease_ms=1_000 * (number + 1))))
    for engine in (a, b):
        assert do(engine, claim()) == ()
        assert "q" not in engine.snapshot().counts
        assert engine.snapshot().rules("p") == c.snapshot().rules("p")


def test_the_maker_of_a_lost_batch_may_make_its_version_anew(open_one, empty_tables):
    """Its last batch has the same number and the same maker for a process that has seen the lost one."""
    a, b = open_one(), open_one()
    do(a, send("lost"))
    do(b, claim(queue="nothing"))
    undo_last_batch(empty_tables)
    do(a, claim(queue="p"))
    do(a, send("x", queue="p"))
    assert [each.content for each in do(b, claim(queue="p"))] == ["x"]
    assert do(b, claim()) == ()
    assert "q" not in b.snapshot().counts


def test_a_commit_waits_for_the_replica_however_long(open_one, empty_tables, monkeypatch):
    """No time-out ends the wait, for the COMMIT would end, too: as if it were replicated."""
    monkeypatch.setitem(module.SESSION, "statement_timeout", "200ms")
    a = open_one("full")
    ended = threading.Event()

    def send_until_ended() -> None:
        while not ended.is_set():
            do(a, send())

    sending = threading.Thread(target=send_until_ended)
    with psycopg.connect(empty_tables, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            sending.start()
            ends_at = time.monotonic() + WAIT_SECONDS_MAX
            while admin.execute(WAITS_FOR_A_REPLICA).fetchone() == (0,):
                assert time.monotonic() < ends_at, "no COMMIT waited"
        finally:
            ended.set()
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")
            sending.join(WAIT_SECONDS_MAX)
    assert not sending.is_alive()
