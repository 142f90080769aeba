"""The leases of an embedded broker end with its process; those of a server, whose clients outlive it, do not."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from forq_trio.model.commands import Extend
from forq_trio.model.messages.types import RECEIPT_TOKEN_BITS, Delivery, Status, claim_token
from forq_trio.storage import lease_marks
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import T0
from support.batches import do, run
from support.words import LEASE_MS, ack, claim, contents, receipts, send

EMBEDDED = EngineSettings(in_process=True, attempts_max=2)
SERVER = EngineSettings(attempts_max=2)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "forq.db")


@contextmanager
def opened(path: str, settings: EngineSettings) -> Iterator[SqliteEngine]:
    with closing(SqliteEngine(path, settings)) as engine:
        yield engine


@pytest.fixture
def another_process():
    """Call it, and this process counts as another one."""
    yield lease_marks._mark_of.cache_clear
    lease_marks._mark_of.cache_clear()


def claimed(engine: SqliteEngine, *, now_ms: int = T0) -> Sequence[Delivery]:
    found: Sequence[Delivery] = do(engine, claim(most=10), now_ms=now_ms)
    return found


@pytest.mark.parametrize("settings", [EMBEDDED, SERVER], ids=["embedded", "server"])
def test_the_next_process_gives_back_what_nobody_has_any_more(
    path: str, settings: EngineSettings, another_process
) -> None:
    """It waited for the end of the leases. The attempt counts, as it does then."""
    with opened(path, EMBEDDED) as engine:
        run(engine, send("stored before"))
        run(engine, send("stored leased"), claim(most=10))
        run(engine, send("waits"))
    another_process()
    with opened(path, settings) as engine:
        result = run(engine, now_ms=T0 + 1)
        assert [(event.kind, event.count) for event in result.events] == [("stale_recovered", 2)]
        again = claimed(engine, now_ms=T0 + 1)
        assert {each.content: each.attempts for each in again} == {
            "stored before": 2,
            "stored leased": 2,
            "waits": 1,
        }


def test_a_message_dies_like_this_at_its_last_attempt(path: str, another_process) -> None:
    for attempt in (1, 2):
        with opened(path, EMBEDDED) as engine:
            if attempt == 1:
                run(engine, send("x"))
            assert [each.attempts for each in claimed(engine)] == [attempt]
        another_process()
    with opened(path, EMBEDDED) as engine:
        assert claimed(engine) == ()
        assert engine.snapshot().counts["q-dlq"].ready == 1


def test_the_leases_of_a_server_stand(path: str, another_process) -> None:
    with opened(path, SERVER) as engine:
        run(engine, send("x"))
        deliveries = claimed(engine)
    for _ in range(2):
        another_process()
        with opened(path, EMBEDDED) as engine:
            assert claimed(engine, now_ms=T0 + 1) == ()
    with opened(path, SERVER) as engine:
        assert do(engine, ack(*deliveries)) == (True,)


def test_the_leases_of_a_process_that_goes_on_stand(path: str, another_process) -> None:
    """It has closed the broker and opens it again; a thread may still have the message."""
    with opened(path, EMBEDDED) as engine:
        run(engine, send("x"))
        deliveries = claimed(engine)
        run(engine, Extend("q", receipts(deliveries), LEASE_MS))
    with opened(path, EMBEDDED) as engine:
        assert claimed(engine, now_ms=T0 + 1) == ()
        assert do(engine, ack(*deliveries)) == (True,)


def test_what_was_given_back_meanwhile_stays_as_it_is(path: str, another_process) -> None:
    with opened(path, EMBEDDED) as engine:
        run(engine, send("x", process_after=T0 + 5_000), send("y"))
        claimed(engine)
        run(engine, now_ms=T0 + LEASE_MS)  # the lease ends
    another_process()
    with opened(path, EMBEDDED) as engine:
        assert run(engine, now_ms=T0 + LEASE_MS).events == []
        assert sorted(contents(claimed(engine, now_ms=T0 + LEASE_MS))) == ["x", "y"]


def test_a_full_disk_is_no_reason_not_to_open(
    path: str, another_process, monkeypatch: pytest.MonkeyPatch
) -> None:
    import apsw

    from forq_trio.storage.sqlite.connection import SqliteConnection

    query = SqliteConnection.query

    def full(self: SqliteConnection, name: str, *bindings: object) -> list[object]:
        if name == "end_leases":
            raise apsw.FullError
        return query(self, name, *bindings)

    monkeypatch.setattr(SqliteConnection, "query", full)
    with opened(path, EMBEDDED) as engine:
        run(engine, send("x"))
        assert contents(claimed(engine)) == ["x"]


def test_marks_of_processes_differ_and_leave_tokens_their_size(another_process) -> None:
    marks = set()
    for _ in range(20):
        another_process()
        mark = lease_marks.own_mark()
        assert mark == lease_marks.own_mark()
        assert lease_marks.MARKED <= mark < lease_marks.MARKED_MAX < 1 << RECEIPT_TOKEN_BITS
        assert mark % (1 << lease_marks.RANDOM_BITS) == 0
        marks.add(mark)
    assert len(marks) > 10


def test_a_claim_of_an_embedded_broker_alone_has_a_mark(path: str) -> None:
    with opened(path, EMBEDDED) as engine:
        run(engine, send("x"))
        (token,) = [each.token for each in receipts(claimed(engine))]
        assert lease_marks.own_mark() <= token < lease_marks.own_mark() + (1 << lease_marks.RANDOM_BITS)
        rows = engine.connection.database.execute("SELECT status, receipt FROM messages").fetchall()
        assert rows == [(Status.PROCESSING, token)]


def test_no_token_without_a_mark_begins_like_one_with_it() -> None:
    assert all(claim_token(f"message {number}") < lease_marks.MARKED for number in range(100))
