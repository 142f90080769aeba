"""How many message batches there are, how much a batch of the writer does for them, and what damaged ones hold up."""

from collections.abc import Callable
from itertools import pairwise

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    CloseMessageBatch,
    Nack,
    OpenMessageBatch,
    Redrive,
    ShowMessageBatches,
)
from forq_trio.model.errors import MessageBatchFull, QueueFull, TooManyMessageBatches
from forq_trio.model.message_batches.types import AddressedMessage, MessageBatch, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import DEFERRED, Batch

from .batched import ALARM, THEN, added, close, counts, opened, shown, waiting
from .engines import on_sql
from .script import (
    DAY_MS,
    HOUR_MS,
    T0,
    ack,
    configure,
    contents,
    counted,
    do,
    fail,
    receipts,
    receive,
    receive_one,
    run,
    send,
)

RETRY_MS = limits.SET_ASIDE_RETRY_MS


@pytest.fixture
def execute(engine, request) -> Callable[[str], None]:
    """Changes the tables behind the engine's back."""
    if request.node.callspec.params["make_engine"] == "sqlite":
        return engine._database.connection.execute
    url = request.getfixturevalue("empty_tables")

    def change(statement):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET search_path = forq")
            connection.execute(statement)

    return change


def test_there_are_so_many_batches(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 2)
    opened(engine, "1")
    opened(engine, "2")
    assert isinstance(opened(engine, "3"), TooManyMessageBatches)
    close(engine, "1")
    assert opened(engine, "3").id == "3"


def test_a_token_leaves_batches_to_others_and_all_of_them_to_the_secret(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 6)
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_OF_TOKENS_MAX", 5)

    def made(by):
        """How many batches are made before one is refused."""
        for number in range(9):
            if isinstance(opened(engine, f"{by} {number}", by=by), TooManyMessageBatches):
                return number

    assert [made(by) for by in ("t", "u", "v", None)] == [3, 1, 0, 2]


def test_what_batches_send_is_bounded_in_bytes(engine, monkeypatch):
    size = NewMessageBatch(then=THEN).stored_bytes
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_BYTES_MAX", 4 * size)
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_BYTES_OF_TOKENS_MAX", 3 * size)
    opened(engine, "1", by="t", then=THEN)
    assert isinstance(opened(engine, "2", by="t", then=THEN, on_dead=THEN), TooManyMessageBatches)
    assert opened(engine, "2", by="t").id == "2"
    assert opened(engine, "3", by="u", then=THEN).id == "3"
    opened(engine, "4", then=THEN, on_dead=THEN)
    assert isinstance(opened(engine, "5", then=THEN, on_dead=THEN), TooManyMessageBatches)
    close(engine, "4")
    assert opened(engine, "5", then=THEN, on_dead=THEN).id == "5"


def test_what_batches_send_counts_as_it_is_stored():
    plain, escaped = (AddressedMessage("r", NewMessage(character * 1_000)) for character in "a\x01")
    assert NewMessageBatch(then=escaped).stored_bytes - NewMessageBatch(then=plain).stored_bytes == 5_000
    assert NewMessageBatch().stored_bytes == 0
    opens = OpenMessageBatch("1", NewMessageBatch(then=escaped, on_dead=escaped))
    assert opens.content_bytes() > 12_000  # of which a commit has 4 MiB


def test_batches_that_have_ended_take_no_place(engine, monkeypatch):
    """The oldest of them are forgotten."""
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 3)
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_OF_TOKENS_MAX", 3)
    opened(engine, "open")
    for number in range(6):
        opened(engine, str(number), by="t", then=THEN)
        assert close(engine, str(number), by="t").state == "ended"
    page = do(engine, ShowMessageBatches(limit=9))
    assert [each.id for each in page.batches] == ["5", "4", "open"]
    assert waiting(engine, "reports") == ["all done"] * 6
    assert opened(engine, "0", by="t").state == "open"


@pytest.mark.parametrize("outer", [None, "outer"])
def test_who_abandons_a_batch_gives_up_what_its_queue_refuses(engine, outer):
    """It held its place until it expired."""
    configure(engine, "reports", max_messages=1)
    send(engine, "in the way", queue="reports")
    opened(engine, "outer", then=ALARM)
    opened(engine, then=THEN, outer=outer)
    assert close(engine, abandon=False).outcome == "sent"
    assert shown(engine).refused == QueueFull.code
    close(engine, "outer")
    batch = close(engine, abandon=True)
    assert (batch.outcome, batch.then_id, batch.refused) == ("abandoned", None, None)
    _, receipt = receive_one(engine, queue="reports")
    ack(engine, receipt, queue="reports")
    run(engine, now=T0 + limits.MESSAGE_BATCH_RETRY_MS)
    assert waiting(engine, "reports") == []
    assert waiting(engine, "alarms") == ["one is dead"]
    assert counts(engine, "outer") == (0, 0, int(outer is not None), 0)


def test_what_an_abandoned_batch_has_sent_stays_sent(engine):
    configure(engine, "alarms", max_messages=1)
    send(engine, "in the way", queue="alarms")
    opened(engine, then=THEN, on_dead=ALARM)
    added(engine, "1", max_attempts=1)
    close(engine)
    fail(engine, attempts=1)
    assert (shown(engine).outcome, shown(engine).refused) == ("sent", QueueFull.code)
    batch = close(engine, abandon=True)
    assert (batch.outcome, batch.refused, batch.on_dead_id) == ("sent", None, None)
    assert batch.then_id is not None


def test_a_member_of_a_forgotten_batch_is_no_member_of_the_next_one(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 1)
    opened(engine)
    added(engine, "1")
    close(engine, abandon=True)
    opened(engine, "next")
    assert shown(engine) is None
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert counts(engine, "next") == (0, 0, 0, 0)


def test_a_batch_that_has_ended_is_known_again(engine):
    opened(engine, then=THEN)
    close(engine)
    assert opened(engine, then=THEN).state == "ended"
    assert shown(engine).then_id is not None


@on_sql
def test_members_of_many_batches_are_counted_in_parts(engine, monkeypatch):
    """Each batch sends its message once, and what is left over is due at once."""
    texts = [str(number) for number in range(9)]
    for text in texts:
        opened(engine, text, then=AddressedMessage("reports", NewMessage(text)))
        added(engine, text, id=text)
        close(engine, text)
    monkeypatch.setattr(limits, "MESSAGE_BATCH_WEIGHT", limits.COMMIT_MESSAGES_MAX // 4)
    result = run(engine, Ack("q", receipts(receive(engine, 9))))
    sent = [0]
    while result.next_due_ms == T0:
        result = run(engine)
        sent.append(sum(counts.ready for queue, counts in counted(engine).items() if queue == "reports"))
    monkeypatch.undo()
    assert max(after - before for before, after in pairwise(sent)) <= 4
    assert sorted(contents(receive(engine, 10, queue="reports"))) == texts
    assert [counts(engine, text) for text in texts] == [(0, 1, 0, 0)] * 9


@pytest.fixture
def busy(engine, monkeypatch) -> Callable[..., None]:
    """Runs commands in a batch of the writer which has already counted as much as it may."""
    opened(engine, "busy")

    def run_busy(*commands):
        added(engine, "x", id="busy", queue="busy")
        acked = Ack("busy", receipts(receive(engine, queue="busy")))
        with monkeypatch.context() as patched:
            patched.setattr(limits, "MESSAGE_BATCH_WEIGHT", limits.COMMIT_MESSAGES_MAX)
            assert run(engine, acked, *commands).next_due_ms == T0

    return run_busy


@on_sql
def test_a_member_that_waits_to_be_counted_may_change_again(engine, busy):
    opened(engine, then=THEN, on_dead=ALARM)
    (one,) = added(engine, "1", max_attempts=1)
    busy(Nack("q", receipts(receive(engine)), 0))
    busy(Redrive("q-dlq", (one.id,)))
    close(engine)
    assert counts(engine) == (1, 0, 0, 0)
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert waiting(engine, "reports") == ["all done"]
    assert waiting(engine, "alarms") == ["one is dead"]


@on_sql
def test_a_batch_is_not_closed_over_members_that_wait_to_be_counted(engine, busy):
    """A dead letter was redriven, but is still counted as dead: the batch would end without it."""
    opened(engine, then=THEN)
    (one,) = added(engine, "1", max_attempts=1)
    do(engine, Nack("q", receipts(receive(engine)), 0))
    busy(Redrive("q-dlq", (one.id,)))
    batch = CloseMessageBatch("b")
    assert engine.execute_batch(Batch([batch], T0, moves_staged=False)).outcomes[0].left == 1
    engine.commit()
    assert waiting(engine, "reports") == []


@on_sql
@pytest.mark.parametrize("closed_first", [True, False])
def test_a_batch_does_not_end_while_more_of_its_members_wait_than_are_counted_at_once(
    engine, busy, monkeypatch, closed_first
):
    """One that was redriven waited behind those: the batch ended without it."""
    opened(engine, then=THEN)
    _, other = added(engine, "1", "2", max_attempts=1)
    first, second = receive(engine, 2)
    do(engine, Nack("q", receipts([second]), 0))
    if closed_first:
        close(engine)
    busy(Ack("q", receipts([first])), Redrive("q-dlq", (other.id,)))
    with monkeypatch.context() as patched:
        patched.setattr(limits, "COMMIT_MESSAGES_MAX", 1)
        if closed_first:
            run(engine)
        else:
            assert engine.execute_batch(Batch([CloseMessageBatch("b")], T0, moves_staged=False)).outcomes
            engine.commit()
    run(engine)
    assert counts(engine) == (1, 1, 0, 0)
    assert waiting(engine, "reports") == []
    ack(engine, *receipts(receive(engine)))
    assert waiting(engine, "reports") == ["all done"]


@on_sql
def test_closes_count_together_no_more_members_than_a_commit_may(engine, busy, monkeypatch):
    """Each of them counted as many as all may."""
    for id in "bc":
        opened(engine, id, then=THEN)
        added(engine, id, id=id)
    busy(*[Ack("q", receipts([each])) for each in receive(engine, 2)])
    closes = [CloseMessageBatch(id) for id in "bc"]
    with monkeypatch.context() as patched:
        patched.setattr(limits, "MESSAGE_BATCH_WEIGHT", limits.COMMIT_MESSAGES_MAX)
        first, second = engine.execute_batch(Batch(closes, T0, moves_staged=False)).outcomes
        engine.commit()
    assert (first.left, first.done, second) == (0, 1, DEFERRED)
    assert close(engine, "c").done == 1
    run(engine)
    assert waiting(engine, "reports") == ["all done"] * 2


@on_sql
@pytest.mark.parametrize("damaged", ["progress", "terms"])
def test_a_damaged_batch_does_not_hold_up_others(engine, execute, damaged):
    for id in "xy":
        opened(engine, id, then=AddressedMessage("reports", NewMessage(id)))
        added(engine, id, id=id)
        close(engine, id)
    execute(f"UPDATE message_batches SET {damaged} = '{{' || {damaged} WHERE id = 'x'")
    result = run(engine, Ack("q", receipts(receive(engine, 2))))
    assert result.outcomes == [(True, True)]
    assert [each.error.startswith("batch ") for each in result.set_aside] == [True]
    assert waiting(engine, "reports") == ["y"]
    page = run(engine, ShowMessageBatches(limit=9))
    assert [each.id for each in page.outcomes[0].batches] == ["y"]
    assert ["batch x" in each.error for each in page.set_aside] == [True]
    execute(f"UPDATE message_batches SET {damaged} = substr({damaged}, 2) WHERE id = 'x'")
    later = T0 + RETRY_MS
    run(engine, now=later)
    assert sorted(contents(receive(engine, 9, queue="reports", now=later))) == ["x", "y"]  # y: again


@on_sql
def test_what_becomes_of_members_of_a_damaged_batch_is_not_read_again_and_again(engine, execute):
    """Each commit with one of its members would run twice."""
    opened(engine, "x", then=THEN)
    added(engine, "1", "2", id="x")
    execute("UPDATE message_batches SET progress = '{' || progress WHERE id = 'x'")
    for number_of_reports in (1, 0):
        _, receipt = receive_one(engine)
        assert len(run(engine, Ack("q", (receipt,))).set_aside) == number_of_reports


@on_sql
def test_a_batch_inside_of_a_damaged_one_ends(engine, execute):
    opened(engine, "outer", then=THEN)
    opened(engine, "inner", then=AddressedMessage("q", NewMessage("second")), outer="outer")
    added(engine, "first", id="inner")
    close(engine, "outer")
    close(engine, "inner")
    execute("UPDATE message_batches SET progress = '{' || progress WHERE id = 'outer'")
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert waiting(engine, "q") == ["second"]
    assert shown(engine, "inner").outcome == "sent"


@on_sql
def test_a_batch_that_could_not_be_read_expires_at_its_time(engine, execute):
    opened(engine, expires_ms=HOUR_MS)
    (one,) = added(engine, "1", max_attempts=1)
    execute("UPDATE message_batches SET progress = '{' || progress")
    do(engine, Nack("q", receipts(receive(engine)), 0))
    do(engine, Redrive("q-dlq", (one.id,)))
    outcomes = []
    for later in (RETRY_MS, HOUR_MS):
        assert len(run(engine, now=T0 + later).set_aside) > 0
        execute("UPDATE message_batches SET progress = substr(progress, 2)")
        run(engine, now=T0 + later + RETRY_MS)
        assert counts(engine, now=T0 + later + RETRY_MS) == (1, 0, 0, 0)
        outcomes.append(shown(engine, now=T0 + later + RETRY_MS).outcome)
        execute("UPDATE message_batches SET progress = '{' || progress")
    assert outcomes == [None, "expired"]


@on_sql
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message_batches SET terms = '{' || terms WHERE id = 'b'",
        "UPDATE message_batches SET progress = '{' || progress WHERE id = 'b'",
        "UPDATE message_batch_sends SET sends = '{' || sends",
        "DELETE FROM message_batch_sends",
    ],
    ids=["terms", "progress", "sends", "no sends"],
)
def test_a_damaged_batch_is_forgotten_when_its_time_is_over(engine, execute, monkeypatch, damage):
    """It held its place for ever."""
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 2)
    monkeypatch.setattr(limits, "MESSAGE_BATCH_EXPIRES_MS_MAX", DAY_MS)
    configure(engine, "reports", max_messages=1)
    send(engine, "in the way", queue="reports")
    opened(engine, "outer", expires_ms=2 * DAY_MS)
    opened(engine, then=THEN, expires_ms=HOUR_MS, outer="outer", by="t")
    added(engine, "1")
    close(engine, "outer")
    if "sends" in damage:
        ack(engine, *receipts(receive(engine)))
        close(engine, by="t")
    execute(damage)
    for now in (T0 + HOUR_MS, T0 + DAY_MS - 1):
        assert len(run(engine, now=now).set_aside) == 1
        assert isinstance(opened(engine, "next", now=now), TooManyMessageBatches)
    later = T0 + DAY_MS - 1 + RETRY_MS
    assert len(run(engine, now=later).set_aside) == 1
    assert run(engine, now=later + RETRY_MS).set_aside == []
    assert shown(engine, now=later) is None
    assert counts(engine, "outer", now=later) == (0, 0, 0, 1)
    assert isinstance(opened(engine, by="t", then=THEN, now=later), MessageBatch)


@on_sql
def test_a_damaged_batch_that_is_over_is_forgotten_in_its_turn(engine, execute):
    opened(engine)
    close(engine)
    execute("UPDATE message_batches SET progress = '{' || progress")
    assert len(run(engine, now=T0 + limits.MESSAGE_BATCH_REMEMBERED_MS).set_aside) == 1
    assert shown(engine) is None


def test_a_batch_has_so_many_members(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCH_MEMBERS_MAX", 2)
    opened(engine)
    added(engine, "1")
    assert isinstance(added(engine, "2", "3"), MessageBatchFull)
    added(engine, "2")
    assert isinstance(opened(engine, "inner", outer="b"), MessageBatchFull)
    assert counts(engine) == (2, 0, 0, 0)
