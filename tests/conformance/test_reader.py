"""Looking without touching: what the readers show."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Produce, SweepKind
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import Batch

from .script import DAY_MS, T0, ack, contents, fail, receive, receive_one, run, send, sweep


def test_queues_are_listed_by_name_with_their_counts(engine, reader):
    for queue in ("b", "a", "C"):
        send(engine, queue=queue)
    send(engine, queue="a", process_after=T0 + 5)
    receive(engine, queue="b")
    assert list(reader.queues().items()) == [
        ("C", QueueCounts(ready=1, bytes=1)),
        ("a", QueueCounts(ready=1, delayed=1, bytes=2)),
        ("b", QueueCounts(processing=1, bytes=1)),
    ]


def test_a_queue_stays_listed_when_it_is_empty(engine, reader):
    send(engine)
    assert ack(engine, receive_one(engine)[1])
    assert reader.queues() == {"q": QueueCounts()}


@pytest.mark.usefixtures("failed_stay")
def test_a_dead_letter_queue_is_listed_once_it_has_a_message(engine, reader):
    send(engine)
    fail(engine)
    assert list(reader.queues()) == ["q"]
    sweep(engine, SweepKind.FAILED)
    assert list(reader.queues()) == ["q", "q-dlq"]


def test_one_queue_says_since_when_its_oldest_ready_message_waits(engine, reader):
    send(engine, now=T0 + 5)
    send(engine, now=T0 + 9, priority=1_000)
    assert reader.queue("q") == (QueueCounts(ready=2, bytes=2), T0 + 5)
    receive(engine, 2, now=T0 + 10)
    send(engine, now=T0 + 10, process_after=T0 + 50)
    assert reader.queue("q") == (QueueCounts(processing=2, delayed=1, bytes=3), None)


def test_a_queue_nobody_used_has_zeros(reader):
    assert reader.queues() == {}
    assert reader.queue("none") == (QueueCounts(), None)


def test_a_message_is_found_by_its_id_in_its_queue_only(engine, reader):
    produced = send(engine, "body")
    assert reader.message("q", produced.id).content == "body"
    assert reader.message("other", produced.id) is None
    assert reader.message("q", "00000000-0000-7000-8000-000000000000") is None
    assert reader.message("q", produced.id).attempts == 0


def test_peek_shows_ready_messages_in_claim_order_untouched(engine, reader):
    for content, priority in (("a", 100), ("b", 500), ("c", 100)):
        send(engine, content, priority=priority)
    send(engine, "delayed", process_after=T0 + 5)
    assert contents(reader.peek("q", 2)) == ["b", "a"]
    assert contents(reader.peek("q", 9)) == ["b", "a", "c"]
    assert contents(receive(engine, 9)) == ["b", "a", "c"]
    assert reader.peek("q", 9) == []


def test_browse_pages_from_the_newest_whatever_the_status(engine, reader):
    sent = [send(engine, str(number)) for number in range(5)]
    send(engine, "elsewhere", queue="other")
    receive(engine, 2)
    send(engine, "5", process_after=T0 + 5)
    page = reader.browse("q", None, 3)
    assert contents(page) == ["5", "4", "3"]
    send(engine, "newer")
    assert contents(reader.browse("q", page[-1].sequence, 3)) == ["2", "1", "0"]
    assert reader.browse("q", sent[0].sequence, 3) == []
    assert reader.browse("none", None, 3) == []


def test_only_what_is_committed_is_seen(engine, reader):
    send(engine)
    engine.execute_batch(Batch([Produce("q", NewMessage("uncommitted"))], T0))
    assert contents(reader.browse("q", None, 9)) == ["x"]
    assert reader.queue("q")[0].ready == 1
    engine.commit()
    assert contents(reader.browse("q", None, 9)) == ["uncommitted", "x"]


def test_a_reader_sees_what_time_did_only_after_a_batch(engine, reader):
    send(engine)
    assert list(reader.queues()) == ["q"]
    run(engine, now=T0 + DAY_MS)
    assert contents(reader.peek("q-dlq", 1)) == ["x"]


THIRD = "x" * (limits.BROWSE_PAGE_BYTES_MAX // 3)


def test_a_page_has_a_bound_in_bytes(engine, reader):
    for _ in range(5):
        send(engine, THIRD)
    for page in (reader.peek("q", 9), reader.peek_shuffled("q", 9), reader.browse("q", None, 9)):
        assert len(page) == 3
    assert len(reader.browse("q", page[-1].sequence, 9)) == 2


def test_a_page_has_one_message_however_long(engine, reader):
    for _ in range(2):
        send(engine, 4 * THIRD)
    assert (
        len(reader.peek("q", 9)) == len(reader.peek_shuffled("q", 9)) == len(reader.browse("q", None, 9)) == 1
    )


def test_a_search_goes_on_with_the_message_that_did_not_fit(engine, reader):
    sequences = [send(engine, content).sequence for content in (THIRD, THIRD, "other", THIRD, THIRD)]
    wanted = MessageFilter(text="x")
    first = reader.search("q", wanted, None, 9, 9)
    assert [message.sequence for message in first.messages] == [sequences[4], sequences[3], sequences[1]]
    assert (first.searched, first.total, first.next_before) == (4, 5, sequences[1])
    rest = reader.search("q", wanted, first.next_before, 9, 9)
    assert [message.sequence for message in rest.messages] == [sequences[0]]
    assert (rest.searched, rest.next_before) == (1, None)
