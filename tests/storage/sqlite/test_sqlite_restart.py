"""What survives the end of the process, and what the engine keeps in memory beside its tables."""

import random
import shutil
import uuid
from collections import Counter
from contextlib import closing

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Claims,
    Configure,
    Delete,
    Extend,
    ForgetQueue,
    Purge,
    Redrive,
    Release,
    Sweep,
    SweepKind,
)
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.messages.types import QueueCounts, Status
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.actors import T0
from support.batches import do, run
from support.words import ack, claim, contents, nack, receipts, send

NAMES = {
    Status.READY: "ready",
    Status.PROCESSING: "processing",
    Status.FAILED: "failed",
    Status.DELAYED: "delayed",
    Status.HELD: "held",
}


def counted(path: str) -> dict[str, dict[str, int]]:
    """What is in the table, counted row by row; queues without messages left out."""
    with apsw.Connection(path) as connection:
        rows = connection.execute("SELECT queue, status FROM messages").fetchall()
    connection.close()
    counts: dict[str, Counter[str]] = {}
    for queue, status in rows:
        counts.setdefault(queue, Counter())[NAMES[Status(status)]] += 1
    return {queue: dict(counter) for queue, counter in counts.items()}


def kept(engine: SqliteEngine) -> dict[str, dict[str, int]]:
    """What the engine says, in the same form."""
    known = {
        queue: {name: getattr(counts, name) for name in NAMES.values() if getattr(counts, name)}
        for queue, counts in engine.snapshot().counts.items()
    }
    return {queue: counts for queue, counts in known.items() if counts}


def wander(engine: SqliteEngine, rng: random.Random, now_ms: int) -> int:
    """A random history of a few hundred commands over some hours; returns its last moment."""
    held = []
    for _ in range(120):
        now_ms += rng.choice((0, 1, 1_000, 30_000, 600_000))
        queue = rng.choice(("a", "b", "a-dlq"))
        commands = [
            send(
                rng.choice(("x", "größe")),
                queue=rng.choice("ab"),
                process_after=rng.choice((None, now_ms + 5_000)),
                group=rng.choice((None, "g", "h")),
                attributes=rng.choice((None, {"schlüssel": "wert"})),
            )
            for _ in range(rng.randrange(4))
        ]
        commands.append(
            claim(queue=queue, most=rng.randrange(1, 5), lease_ms=rng.choice((0, 1_000, 900_000)))
        )
        if held:
            queue_of, deliveries = held.pop(rng.randrange(len(held)))
            settle = rng.choice(
                (
                    ack(*deliveries, queue=queue_of),
                    nack(*deliveries, queue=queue_of, delay_ms=rng.choice((None, 0))),
                    Extend(queue_of, receipts(deliveries), rng.choice((0, 60_000))),
                    Release(queue_of, receipts(deliveries)),
                    Redrive(queue_of, tuple(each.id for each in deliveries)),
                    Delete(queue_of, tuple(each.id for each in deliveries)),
                )
            )
            commands.append(settle)
        if rng.random() < 0.2:
            commands.append(Sweep(rng.choice(list(SweepKind))))
        if rng.random() < 0.1:
            bounds = SettingsChange(
                group_in_flight_max=rng.choice((None, 1, 3)),
                max_messages=rng.choice((None, 20)),
                overflow=DROP,
            )
            commands.append(rng.choice((Configure("a", bounds), Purge("b"))))
        outcomes = run(engine, *commands, now_ms=now_ms).outcomes
        for command, outcome in zip(commands, outcomes, strict=True):
            if type(command) is type(claim()) and outcome:
                held.append((command.queue, outcome))
    return now_ms


DROP = Overflow.DROP_OLDEST


def test_counts_are_those_of_the_table_after_any_history_and_after_reopening(tmp_path, rng) -> None:
    path = str(tmp_path / "forq.db")
    settings = EngineSettings(queue_ttl_ms=limits.HOUR_MS, attempts_max=3)
    now_ms = T0
    for _ in range(4):
        with closing(SqliteEngine(path, settings, "normal")) as engine:
            assert kept(engine) == counted(path)
            now_ms = wander(engine, rng, now_ms)
            assert kept(engine) == counted(path)
            assert check_file(path).problems == []
    with closing(SqliteEngine(path, settings, "normal")) as engine:
        assert kept(engine) == counted(path) != {}


@pytest.mark.parametrize("forgets", [False, True])
def test_a_sequence_number_is_never_used_twice(tmp_path, forgets) -> None:
    """Not even when every message is gone, and maybe the queue forgotten, and the process starts over."""
    used = []
    for _ in range(3):
        with closing(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")) as engine:
            used += [do(engine, send()).sequence for _ in range(5)]
            assert all(do(engine, ack(*do(engine, claim(most=5)))))
            assert engine.snapshot().counts == {"q": QueueCounts()}
            if forgets:
                assert do(engine, ForgetQueue("q"))
                assert engine.snapshot().counts == {}
    assert used == list(range(1, 16))


def test_a_receipt_from_before_a_restore_settles_no_other_message(tmp_path) -> None:
    """The number of a message that the copy had not yet comes back."""
    path, copy = tmp_path / "forq.db", tmp_path / "copy.db"
    with closing(SqliteEngine(str(path), EngineSettings(), "normal")) as engine:
        run(engine, send("both have it"))
    shutil.copy(path, copy)
    given = []
    for each in (path, copy):
        with closing(SqliteEngine(str(each), EngineSettings(), "normal")) as engine:
            run(engine, send("one has it"))
            *_, last = receipts(do(engine, claim(most=2, lease_ms=60_000)))
            given.append(last)
            wanted = Ack("q", (given[0],), claims=Claims.ANY)
            assert do(engine, wanted) == (each is path,)
    assert given[0].seq == given[1].seq


def test_a_batch_that_was_not_committed_never_happened(tmp_path) -> None:
    """The process ends in the middle: the transaction is open, the connection just goes away."""
    path = str(tmp_path / "forq.db")
    engine = SqliteEngine(path, EngineSettings(), "full")
    kept_message = do(engine, send("committed"))
    (claimed,) = do(engine, claim(lease_ms=60_000))
    engine.execute_batch(Batch([send("lost"), ack(claimed)], T0))
    crash(engine)
    with closing(SqliteEngine(path, EngineSettings(), "full")) as again:
        assert again.snapshot().counts == {"q": QueueCounts(processing=1, bytes=9)}
        assert do(again, send("next")).sequence == kept_message.sequence + 1
        assert do(again, ack(claimed)) == (True,)
        assert contents(do(again, claim(most=9))) == ["next"]


def test_after_a_restart_leases_end_and_delays_pass_on_time(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    engine = SqliteEngine(path, EngineSettings(), "full")
    do(engine, send("leased"))
    do(engine, claim(lease_ms=5_000))
    do(engine, send("delayed", process_after=T0 + 7_000))
    crash(engine)
    with closing(SqliteEngine(path, EngineSettings(), "full")) as again:
        assert run(again, now_ms=T0 + 1).next_due_ms == T0 + 5_000
        assert run(again, now_ms=T0 + 5_000).next_due_ms == T0 + 7_000
        assert contents(do(again, claim(most=9), T0 + 6_999)) == ["leased"]
        assert contents(do(again, claim(most=9), T0 + 7_000)) == ["delayed"]


def test_a_file_whose_tables_are_damaged_is_refused_and_let_go(tmp_path) -> None:
    """The lock is not kept by a failed opening: the next try tells the same, not that the file is in use."""
    path = tmp_path / "forq.db"
    SqliteEngine(str(path), EngineSettings(), "full").close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("DROP TABLE queue_counts")
    connection.close()
    for _ in range(2):
        with pytest.raises(StorageOpenError) as refusal:
            SqliteEngine(str(path), EngineSettings(), "full")
        assert "in use" not in str(refusal.value)


def test_f2_ids_are_uuids_of_version_7_and_grow(engine) -> None:
    produced = [do(engine, send(), T0 + n // 7) for n in range(200)]
    ids = [uuid.UUID(each.id) for each in produced]
    assert {(each.version, each.variant) for each in ids} == {(7, uuid.RFC_4122)}
    assert [str(each) for each in sorted(ids)] == [each.id for each in produced]


def crash(engine: SqliteEngine) -> None:
    """End it as a killed process ends: nothing is committed, nothing is tidied up, the kernel closes the files."""
    engine._database.connection.set_wal_hook(None)
    engine.log.close()
    engine._database.close()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("INSERT INTO queues VALUES ('q', 'no JSON', 1)", "the settings of queue q cannot be read"),
        ("INSERT INTO queues VALUES ('q', '[]', 1)", "the settings of queue q cannot be read"),
        ("UPDATE queue_counts SET ready = 'x'", "the counts of queue q cannot be read"),
        ("INSERT INTO tokens VALUES ('t', '', 'none', '*', 1, 1, 1)", "the access token t cannot be read"),
        ("INSERT INTO redrives (id, task) VALUES ('b', 'no JSON')", "the redrive b cannot be read"),
    ],
)
def test_a_row_about_a_queue_that_cannot_be_read_refuses_the_file(tmp_path, damage: str, what: str) -> None:
    path = str(tmp_path / "forq.db")
    engine = SqliteEngine(path, EngineSettings(), "normal")
    do(engine, send("message"))
    engine._database.connection.execute(damage)
    engine.close()
    for _ in range(2):
        with pytest.raises(StorageOpenError) as refusal:
            SqliteEngine(path, EngineSettings(), "normal")
        assert str(refusal.value) == f"{path} is damaged: {what}"
