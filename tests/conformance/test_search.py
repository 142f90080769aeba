"""Finding messages: newest first, page by page, looking at a bounded number of them."""

import pytest

from forq_trio.model.commands import SweepKind
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.types import REASON_EXPIRED, REASON_MAX_ATTEMPTS

from .script import T0, contents, fail, receive, run, send, sweep

EVERYTHING = MessageFilter()


def search(reader, wanted=EVERYTHING, before=None, limit=100, scan_max=100, queue="q"):
    return reader.search(queue, wanted, before, limit, scan_max)


def found(reader, queue="q", **wanted):
    return contents(search(reader, MessageFilter(**wanted), queue=queue).messages)


def test_without_a_filter_all_are_found_newest_first(engine, reader):
    for content in "abc":
        send(engine, content)
    send(engine, "elsewhere", queue="other")
    receive(engine)
    result = search(reader)
    assert contents(result.messages) == ["c", "b", "a"]
    assert (result.searched, result.total, result.next_before) == (3, 3, None)


def test_a_page_says_where_to_go_on(engine, reader):
    sequences = [send(engine, content).sequence for content in "abcde"]
    first = search(reader, limit=2)
    assert (contents(first.messages), first.searched, first.total) == (["e", "d"], 2, 5)
    assert first.next_before == sequences[3]
    second = search(reader, before=first.next_before, limit=2)
    assert contents(second.messages) == ["c", "b"]
    last = search(reader, before=second.next_before, limit=2)
    assert (contents(last.messages), last.next_before) == (["a"], None)


def test_it_looks_at_a_bounded_number(engine, reader):
    for content in ("match", "-", "-", "-"):
        send(engine, content)
    wanted = MessageFilter(text="match")
    first = search(reader, wanted, scan_max=3)
    assert (first.messages, first.searched, first.total) == ([], 3, 4)
    rest = search(reader, wanted, before=first.next_before, scan_max=3)
    assert (contents(rest.messages), rest.searched, rest.next_before) == (["match"], 1, None)


def test_it_stops_at_the_message_that_fills_the_page(engine, reader):
    sequences = [send(engine, content).sequence for content in ("x1", "x2", "-", "x3", "-")]
    result = search(reader, MessageFilter(text="x"), limit=2)
    assert contents(result.messages) == ["x3", "x2"]
    assert (result.searched, result.next_before) == (4, sequences[1])


def test_nothing_there(reader):
    result = search(reader)
    assert (result.messages, result.searched, result.total, result.next_before) == ([], 0, 0, None)


def test_text_is_taken_as_it_is(engine, reader):
    for content in ("100%", "100 percent", "größe", "Größe", "a_b", "axb"):
        send(engine, content)
    assert found(reader, text="%") == ["100%"]
    assert found(reader, text="größe") == ["größe"]
    assert found(reader, text="_") == ["a_b"]
    assert found(reader, text="GRÖSSE") == []
    assert len(found(reader, text="")) == 6


@pytest.mark.parametrize(
    ("attributes", "matches"),
    [
        ({"k": "v"}, ["both", "one"]),
        ({"k": "v", "l": "w"}, ["both"]),
        ({"k": "w"}, []),
        ({"K": "v"}, []),
        ({"quote": '"'}, ["quoted"]),
        ({}, ["quoted", "both", "one", "none"]),
    ],
)
def test_all_attributes_must_be_there(engine, reader, attributes, matches):
    send(engine, "none")
    send(engine, "one", attributes={"k": "v"})
    send(engine, "both", attributes={"l": "w", "k": "v"})
    send(engine, "quoted", attributes={"quote": '"'})
    assert found(reader, attributes=attributes) == matches


@pytest.mark.usefixtures("failed_stay")
def test_by_reason_and_age_as_a_dead_letter(engine, reader):
    send(engine, "failed", now=T0)
    fail(engine, now=T0)
    sweep(engine, SweepKind.FAILED, now=T0 + 10)
    send(engine, "expired", ttl_ms=1, now=T0)
    run(engine, now=T0 + 20)
    send(engine, "sent", queue="q-dlq", now=T0 + 30)
    assert found(reader, "q-dlq", reason=REASON_MAX_ATTEMPTS) == ["failed"]
    assert found(reader, "q-dlq", reason=REASON_EXPIRED) == ["expired"]
    assert found(reader, "q-dlq", since=T0 + 11) == ["sent", "expired"]
    assert found(reader, "q-dlq", since=T0 + 10, until=T0 + 20) == ["expired", "failed"]
    assert found(reader, "q-dlq", until=T0 + 9) == []
    assert found(reader, "q-dlq", since=T0 + 11, reason=REASON_MAX_ATTEMPTS) == []


def test_what_is_found_is_told_whole(engine, reader):
    produced = send(engine, attributes={"k": "v"}, group="g")
    assert search(reader).messages == [reader.message("q", produced.id)]


def test_where_messages_are_by_their_sequences(engine, reader):
    here = send(engine)
    there = send(engine, queue="other")
    gone = there.sequence + 1
    assert reader.queues_of([gone, there.sequence, here.sequence]) == {
        here.sequence: "q",
        there.sequence: "other",
    }
    assert reader.queues_of([]) == {}
