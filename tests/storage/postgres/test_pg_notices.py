"""Who notifies: never a batch in its transaction, and an application only while somebody waits."""

import select
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import TakeSetAside
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.server.processes import ProcessReport
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.postgres.listener import PgListener
from forq_trio.storage.postgres.notices import Notice, Notices, read_notice
from forq_trio.storage.postgres.open import migrate
from support.batches import do, run
from support.postgres import POOL_MODE, Postgres, programs
from support.processes import WAIT_SECONDS_MAX
from support.words import ack, claim, send

Open = Callable[..., PostgresEngine]
pytestmark = pytest.mark.skipif(POOL_MODE is not None, reason="nothing is heard through a pool")


@pytest.fixture(scope="module")
def waiting_server(postgres) -> Iterator[Postgres]:
    """A server whose commits can wait, for a replica that is not there."""
    bin = programs()
    assert bin is not None
    with tempfile.TemporaryDirectory(prefix="forq-waiting-", ignore_cleanup_errors=True) as directory:
        settings = {"synchronous_standby_names": "nobody", "synchronous_commit": "local"}
        server = Postgres(bin, Path(directory), **settings)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def open_here(waiting_server) -> Iterator[Open]:
    """Opens engines on a database of it."""
    url = waiting_server.new_database()
    with ThreadPoolExecutor(1) as thread, psycopg.connect(waiting_server.url(), autocommit=True) as admin:
        made = thread.submit(migrate, url)
        while not made.done():
            admin.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        made.result()
    with ExitStack() as engines:
        yield lambda: engines.enter_context(closing(PostgresEngine(url, EngineSettings(), "normal")))
    waiting_server.drop_database(url)


@contextmanager
def a_commit_that_notifies_waits(server: Postgres) -> Iterator[None]:
    """A transaction of another database that notified is being committed."""
    with (
        psycopg.connect(server.url(), autocommit=True) as admin,
        psycopg.connect(server.url(), autocommit=True) as stranger,
        ThreadPoolExecutor(1) as thread,
    ):
        stranger.execute("SET synchronous_commit = on")
        notify = "SELECT pg_notify('anything', ''), pg_logical_emit_message(true, 'to be committed', '')"
        committed = thread.submit(stranger.execute, notify)
        while not admin.execute("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchall():
            assert not committed.done()
        try:
            yield
        finally:
            admin.execute("SELECT pg_cancel_backend(%s)", [stranger.info.backend_pid])
        committed.result(WAIT_SECONDS_MAX)


def answer(listener: PgListener) -> set[str] | None:
    """What this listener hears next."""
    assert select.select([listener.socket], [], [], WAIT_SECONDS_MAX)[0]
    heard = listener.heard()
    return None if heard is None else set(heard)


def heard_of(listener: PgListener, most: int) -> list[set[str] | None]:
    """What this listener hears until it has heard of so many queues."""
    heard: list[set[str] | None] = []
    while sum(len(queues or ()) for queues in heard) < most:
        heard.append(answer(listener))
    return [queues for queues in heard if queues != set()]


def test_a_batch_does_not_wait_for_the_notifying_commits_of_the_cluster(waiting_server, open_here: Open):
    a, b = open_here(), open_here()
    with closing(a.listen()) as own, closing(b.listen()) as listener:
        with a_commit_that_notifies_waits(waiting_server):
            do(a, send("first", queue="q"))
            do(a, send("second", queue="r"))  # one is under way
            do(a, send("third", queue="s"))
            own.tell(awaited=False)
        assert heard_of(listener, 1) == [{"q"}]
        assert answer(own) == set()
        own.tell(awaited=False)
        assert heard_of(listener, 2) == [{"r", "s"}]


def test_others_hear_of_a_batch_while_it_waits_for_the_disk(waiting_server, open_here: Open):
    """From its own thread: nobody runs an event loop here."""
    b = open_here()
    url, _ = b.tables_urls
    with (
        closing(PostgresEngine(url, EngineSettings(), "full")) as a,
        closing(a.listen()),
        closing(b.listen()) as listener,
        psycopg.connect(url, autocommit=True) as admin,
        ThreadPoolExecutor(1) as thread,
    ):
        sent = thread.submit(do, a, send())
        try:
            assert heard_of(listener, 1) == [{"q"}]
            assert [each.content for each in do(b, claim())] == ["x"]
            assert not sent.done()
        finally:
            while not sent.done():
                admin.execute(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                )
        assert sent.result() is not None


def test_what_was_set_aside_is_sent_again_without_a_notification_in_the_batch(
    waiting_server, open_here: Open
):
    a = open_here()
    with psycopg.connect(a.tables_urls[0], autocommit=True) as shop:
        shop.execute("INSERT INTO forq.sent_set_aside VALUES (7, 'q', '{\"content\": \"x\"}', 'c', 'r')")
    with a_commit_that_notifies_waits(waiting_server):
        assert do(a, TakeSetAside((7,), again=True)) == (7,)
    run(a)  # there is more to do at once
    assert [each.content for each in do(a, claim())] == ["x"]


def test_a_listener_that_is_closed_tells_the_last_batch(open_one: Open):
    a, b = open_one(), open_one()
    with closing(b.listen()) as listener:
        with closing(a.listen()):
            do(a, send())
        assert answer(listener) == {"q"}


def test_who_tells_is_called_only_where_a_batch_cannot_tell_at_once(open_one: Open):
    a, b = open_one("full"), open_one()
    calls: list[None] = []
    with closing(b.listen()) as listener:
        with closing(a.listen()) as own:
            own.on_notice(lambda: calls.append(None))
            do(a, send())
            do(a, claim())
            assert heard_of(listener, 1) == [{"q"}]
            assert calls == []
        do(a, send())
        assert len(calls) == 1
        with closing(a.listen()) as own:
            own.tell(awaited=False)
            assert heard_of(listener, 1) == [{"q"}]


def test_a_batch_does_not_fail_with_the_connection_on_which_it_tells(open_one: Open, empty_tables):
    a, b = open_one(), open_one()
    with closing(b.listen()) as listener:
        with closing(a.listen()) as own, psycopg.connect(empty_tables, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid = %s",
                [own._connection._pg.backend_pid],
            )
            for number in range(3):
                do(a, send(str(number)))
            with pytest.raises(StorageUnavailable):
                heard_of(own, 1)
        with closing(a.listen()):
            do(a, send("3"))
            assert heard_of(listener, 1) == [{"q"}]
    assert [each.content for each in do(b, claim(most=9))] == ["0", "1", "2", "3"]


def test_nobody_is_told_of_what_he_took_over_already(open_one: Open):
    a, b = open_one(), open_one()
    with closing(a.listen()) as own, closing(b.listen()) as listener:
        do(a, send(queue="q"))
        answer(own)
        do(b, claim(queue="r"))
        do(a, send(queue="s"))
        assert heard_of(listener, 1) == [{"s"}]


def waits_to_serve(
    monkeypatch: pytest.MonkeyPatch, engine: PostgresEngine, notified: set[str], most: int = 1
) -> int:
    """How often the batch that serves a receiver waits for the database."""
    waits: list[None] = []
    original = PgConnection._results

    def counted(self: PgConnection) -> Any:
        waits.append(None)
        return original(self)

    with monkeypatch.context() as counting:
        counting.setattr(PgConnection, "_results", counted)
        result = run(engine, parked={"q": [claim(1_000, most=most)]}, notified=notified)
    ((_, deliveries),) = result.served["q"]
    do(engine, ack(*deliveries))
    return len(waits)


def test_who_was_told_waits_twice_for_the_message(open_one: Open, monkeypatch):
    """It begins behind the gate, reads the message with that, and commits."""
    a, b = open_one(), open_one()
    do(a, send())
    assert waits_to_serve(monkeypatch, b, set()) == 4
    do(a, send())
    assert waits_to_serve(monkeypatch, b, {"q", "another"}) == 2
    do(a, send())
    do(a, send())  # more than it counts on
    assert waits_to_serve(monkeypatch, b, {"q"}, most=2) == 3


def test_who_was_told_of_what_is_gone_serves_nobody(open_one: Open):
    a, b = open_one(), open_one()
    do(a, send())
    do(a, claim())
    assert run(b, parked={"q": [claim(1_000)]}, notified={"q"}).served == {}


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("7-ab:12 q r-dlq", Notice("7-ab", 12, frozenset({"q", "r-dlq"}))),
        ("7-ab:12", Notice("7-ab", 12, frozenset())),
        ("7-ab q", Notice("7-ab", 0, frozenset({"q"}))),
        ("sent q", Notice("sent", 0, frozenset({"q"}))),
        ("", Notice("", 0, frozenset())),
        ("7-ab:\u0663 q", Notice("7-ab", 0, frozenset({"q"}))),
        ("7-ab:" + "9" * 7_000, Notice("7-ab", 0, frozenset())),
    ],
)
def test_notices_of_earlier_versions_and_of_strangers_are_read(text: str, notice: Notice):
    assert read_notice(text) == notice


def test_notices_are_joined_and_bounded():
    notices = Notices("7-ab")
    assert notices.take() is None
    notices.add(1, ["a", "b"])
    notices.add(2, ["b", "c"])
    told = notices.take()
    assert told == Notice("7-ab", 2, frozenset({"a", "b", "c"}))
    assert read_notice(told.text()) == told
    notices.add(3, ["a"])
    notices.add(4, None)
    assert notices.take() == Notice("7-ab", 4, frozenset())
    notices.add(5, (f"queue-{number}" for number in range(10_000)))
    notices.add(6, ["a"])
    assert notices.take() == Notice("7-ab", 6, frozenset())
    assert notices.take() is None


# forq.send


@pytest.fixture
def listener(open_one: Open) -> Iterator[PgListener]:
    with closing(open_one().listen()) as listener:
        yield listener


@pytest.fixture
def shop(listener, empty_tables) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty_tables, autocommit=True) as shop:
        shop.execute("LISTEN forq")
        yield shop


def told(shop: psycopg.Connection) -> list[str]:
    """What an application that sends a message has told."""
    shop.execute("SELECT forq.send('q', 'x')")
    shop.execute("SELECT")
    return [each.payload for each in shop.notifies(timeout=0)]


LOCK = "SELECT FROM pg_locks WHERE objid = 3 AND locktype = 'advisory'"


def await_sent(listener: PgListener) -> None:
    """Have applications told that somebody waits; returns when they know."""
    listener.tell(awaited=True)
    assert answer(listener) == set()
    assert listener.rest_seconds == 0.0


def test_an_application_notifies_only_while_somebody_waits(listener, shop, monkeypatch):
    assert told(shop) == []
    await_sent(listener)
    assert told(shop) == ["sent q"]
    assert answer(listener) == {"q"}
    monkeypatch.setattr(limits, "WAKE_AWAITED_SECONDS", 0.0)
    listener.tell(awaited=True)
    answer(listener)
    assert told(shop) == []


def test_also_one_whose_snapshot_is_older(listener, shop):
    with shop.transaction():
        shop.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        shop.execute("SELECT")
        await_sent(listener)
        shop.execute("SELECT forq.send('q', 'x')")
    assert answer(listener) == {"q"}


@pytest.fixture
def slow_motion(monkeypatch) -> None:
    """The times of wake-ups are so long that none ends between two lines of a test."""
    for name, seconds in {"LOOK": 10.0, "UNTOLD": 20.0, "AWAITED": 30.0, "QUIET": 40.0}.items():
        monkeypatch.setattr(limits, f"WAKE_{name}_SECONDS", seconds)


def test_it_notifies_for_no_role_that_has_the_lock_alone(slow_motion, listener, shop, empty_tables):
    """Then who waits cannot have it, and looks often."""
    with psycopg.connect(empty_tables, autocommit=True) as stranger:
        stranger.execute("SELECT pg_advisory_lock(1718579825, 3)")
        listener.tell(awaited=True)
        assert answer(listener) == set()
        listener.note_look()
        assert 0 < listener.rest_seconds <= limits.WAKE_UNTOLD_SECONDS
        assert told(shop) == []


def test_applications_that_notify_too_often_are_told_to_be_quiet(slow_motion, listener, shop, monkeypatch):
    monkeypatch.setattr(limits, "WAKE_NOTICES_MAX", 0)
    await_sent(listener)
    assert told(shop) == ["sent q"]
    while shop.execute(LOCK).fetchall():
        listener.tell(awaited=True)
        listener.heard()
    assert told(shop) == []
    listener.note_look()
    assert 0 < listener.rest_seconds <= limits.WAKE_LOOK_SECONDS


def test_the_lock_is_known_of_and_given_back_where_its_answer_comes_with_that_of_another_statement(
    listener, shop, monkeypatch
):
    for _ in range(2):
        listener.tell(awaited=True)
        listener.meet(ProcessReport(id="1", name="host-a", process=7, version="1.0", started_at=0))
        assert listener.heard() == set()
        assert listener.rest_seconds == 0.0
        assert told(shop) == ["sent q"]
        assert answer(listener) == {"q"}
    with monkeypatch.context() as nobody_waits:
        nobody_waits.setattr(limits, "WAKE_AWAITED_SECONDS", 0.0)
        listener.tell(awaited=True)
        answer(listener)
    assert shop.execute(LOCK).fetchall() == []


def test_the_lock_is_known_of_where_a_batch_tells_at_once_behind_its_answer(open_one: Open, monkeypatch):
    monkeypatch.setattr(limits, "WAKE_UNTOLD_SECONDS", 60.0)
    a = open_one()
    with closing(a.listen()) as own:
        own.tell(awaited=True)
        own.meet(ProcessReport(id="1", name="host-a", process=7, version="1.0", started_at=0))
        do(a, send())
        assert answer(own) == set()
        own.note_look()
        assert own.rest_seconds < 1.0


def test_an_earlier_answer_is_not_taken_for_that_of_the_lock(listener, shop, empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "WAKE_UNTOLD_SECONDS", 0.0)
    await_sent(listener)
    with monkeypatch.context() as nobody_waits:
        nobody_waits.setattr(limits, "WAKE_AWAITED_SECONDS", 0.0)
        listener.tell(awaited=True)
        answer(listener)  # that it is given back is answered as the lock is
    monkeypatch.setattr(limits, "WAKE_UNTOLD_SECONDS", 60.0)
    with psycopg.connect(empty_tables, autocommit=True) as stranger:
        stranger.execute("SELECT pg_advisory_lock(1718579825, 3)")
        listener.tell(awaited=True)
        listener.meet(ProcessReport(id="1", name="host-a", process=7, version="1.0", started_at=0))
        listener.heard()
        listener.note_look()
        assert listener.rest_seconds > 1.0  # it does not count on being told


def test_the_lock_is_gone_with_its_process(listener, shop):
    await_sent(listener)
    listener.close()
    while shop.execute(LOCK).fetchall():
        pass
    assert told(shop) == []
