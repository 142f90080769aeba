"""The table of a message's life, and that both engines refuse what is not in it."""

import pytest

from forq_trio.model.messages.types import Status
from forq_trio.storage import engine, transitions
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.transaction import Transaction as SqliteTransaction
from forq_trio.storage.transitions import TRANSITIONS, frees_group
from oracle.engine import MemoryEngine
from oracle.transaction import Transaction as MemoryTransaction

CHANGES = {change for change, _, _ in TRANSITIONS}
UNCOUNTED = {
    transitions.PROMOTED,
    transitions.EXTENDED,
    transitions.SHORTENED,
    transitions.HELD_BACK,
    transitions.UNHELD,
    transitions.UPDATED,
}


def test_every_counted_event_is_a_change_and_the_others_have_names_of_their_own() -> None:
    assert set(engine.EVENT_KINDS) - {engine.OFFERED} | UNCOUNTED == CHANGES
    assert not UNCOUNTED & set(engine.EVENT_KINDS)


@pytest.mark.parametrize("status", Status)
def test_every_status_can_be_reached_and_left(status) -> None:
    assert any(target == status and source != status for _, source, target in TRANSITIONS)
    assert any(source == status and target is None for _, source, target in TRANSITIONS)


def test_only_a_claim_or_an_extension_puts_a_message_in_process() -> None:
    to_processing = {change for change, _, target in TRANSITIONS if target == Status.PROCESSING}
    assert to_processing == {engine.CONSUMED, transitions.EXTENDED}


def test_a_failed_message_is_only_moved_or_removed_but_by_its_key() -> None:
    from_failed = {change for change, source, _ in TRANSITIONS if source == Status.FAILED}
    by_its_key = {transitions.UPDATED, engine.ACKED}
    assert from_failed - by_its_key == {engine.MOVED_TO_DLQ, engine.REQUEUED, engine.CLEANED_UP}


@pytest.mark.parametrize(
    ("source", "target", "moved", "frees"),
    [
        (Status.PROCESSING, None, False, True),
        (Status.PROCESSING, Status.READY, False, True),
        (Status.PROCESSING, Status.PROCESSING, False, False),
        (Status.READY, Status.PROCESSING, False, False),
        (Status.READY, Status.HELD, False, False),
        (Status.READY, Status.READY, True, True),
        (Status.READY, None, False, True),
        (Status.HELD, None, False, False),
        (Status.DELAYED, Status.READY, True, True),
        (Status.DELAYED, None, False, True),
        (Status.DELAYED, Status.READY, False, False),
        (None, Status.READY, False, False),
    ],
)
def test_which_changes_make_room_in_a_group(source, target, moved, frees) -> None:
    assert frees_group(source, target, moved=moved) is frees


def test_sqlite_refuses_a_change_that_is_not_in_the_table() -> None:
    tx = SqliteTransaction.__new__(SqliteTransaction)
    with pytest.raises(AssertionError, match="consumed"):
        tx.transition(engine.CONSUMED, "q", int(Status.DELAYED), None, [(1,)])


def test_the_reference_engine_refuses_it_too() -> None:
    tx = MemoryTransaction(MemoryEngine(EngineSettings())._committed, 0, 0, 0)
    with pytest.raises(AssertionError, match="acked"):
        tx.transition(engine.ACKED, None, None)
