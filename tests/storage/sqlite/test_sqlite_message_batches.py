"""What message batches cost, and what a restart knows of them."""

from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do
from support.words import ack, claim, contents

LARGE = AddressedMessage("reports", NewMessage("\x01" * limits.CONTENT_BYTES_MAX))


def make(engine, *ids: str, members: int = 2, **terms) -> None:
    for id in ids:
        do(engine, OpenMessageBatch(id, NewMessageBatch(**terms), "t"))
        added = tuple(AddressedMessage("q", NewMessage(id)) for _ in range(members))
        do(engine, AddToMessageBatch(id, added))
        do(engine, CloseMessageBatch(id))


def test_what_a_batch_sends_is_not_written_again_with_each_member(engine) -> None:
    """Of four batches: each has 128 pages to send, and six times as many as JSON."""
    make(engine, *"abcd", then=LARGE, on_dead=LARGE)
    deliveries = do(engine, claim(most=8))
    before = engine.log.pages()
    do(engine, ack(*deliveries[::2]))
    assert engine.log.pages() - before < 20
    assert [each.left for each in do(engine, ShowMessageBatches(limit=9)).batches] == [1] * 4


def test_nothing_is_left_of_batches_that_are_over_but_themselves(engine) -> None:
    make(engine, "a", "b", then=AddressedMessage("reports", NewMessage("done")))
    make(engine, "abandoned", then=LARGE)
    do(engine, OpenMessageBatch("inside", NewMessageBatch(then=LARGE, outer="abandoned")))
    for id in ("abandoned", "inside"):
        do(engine, CloseMessageBatch(id, abandon=True))
    do(engine, ack(*do(engine, claim(most=9))))
    left = {
        table: engine._database.connection.execute(f"SELECT count(*) FROM {table}").get
        for table in ("message_batches", "message_batch_sends", "batch_members")
    }
    assert left == {"message_batches": 4, "message_batch_sends": 0, "batch_members": 0}


def test_a_commit_that_changes_a_batch_reads_neither_what_is_due_first_nor_members(
    engine, monkeypatch
) -> None:
    """Where removed entries stay in the indexes, each of these reads would walk past all of them."""
    make(engine, "first", members=0)
    asked: list[str] = []
    query = engine.connection.query

    def noting(name: str, *bindings: object) -> list[tuple]:
        asked.append(name)
        return query(name, *bindings)

    monkeypatch.setattr(engine.connection, "query", noting)
    for id in "abc":
        make(engine, id, then=AddressedMessage("reports", NewMessage("done")))
        do(engine, ack(*do(engine, claim(most=2))))
        assert engine.tx.message_batches.totals.members == 0
    assert contents(do(engine, claim(queue="reports", most=9))) == ["done"] * 3
    assert {"first_message_batch", "first_count", "count_batch_members"}.isdisjoint(asked)
    assert asked.count("due_message_batch") == 3


@pytest.mark.parametrize("counted", [1, 10])
def test_a_restart_knows_that_there_are_members(tmp_path, monkeypatch, counted) -> None:
    """It counts them up to a bound, and again once so many are gone."""
    monkeypatch.setattr(limits, "MESSAGE_BATCH_MEMBERS_COUNTED_MAX", counted)
    path = str(tmp_path / "forq.db")
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        make(engine, "a", members=3, then=AddressedMessage("reports", NewMessage("done")))
        before = engine.tx.message_batches.totals
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        totals = engine.tx.message_batches.totals
        assert (totals.active, totals.made, totals.stored) == (before.active, {"t": before.active}, 1)
        for delivery in do(engine, claim(most=3)):
            assert engine.tx.message_batches.totals.members > 0
            do(engine, ack(delivery))
        assert engine.tx.message_batches.totals.members == 0
        assert contents(do(engine, claim(queue="reports"))) == ["done"]
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        totals = engine.tx.message_batches.totals
        assert (totals.active, totals.made, totals.stored) == ((0, 0), {}, 1)
