"""Lists of the messages in a state: pages in order, stable while others come, and previews instead of contents."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Nack, SweepKind
from forq_trio.model.errors import OutOfRange
from forq_trio.model.keys.checks import check_key
from forq_trio.model.messages.types import STATUS_NAMES
from forq_trio.model.queues.setting_values import Order

from .keyed import offer
from .script import (
    T0,
    claim,
    configure,
    do,
    fail,
    receipts,
    receive,
    receive_one,
    run,
    send,
    send_dead_letter,
    sweep,
)


def previews(page):
    return [row.preview for row in page.rows]


def pages(reader, state, limit, queue="q"):
    """The previews of each page."""
    shown, cursor = [], None
    while True:
        page = reader.list_messages(queue, state, cursor, limit)
        shown.append("".join(previews(page)))
        cursor = page.next
        if cursor is None:
            return shown


def test_each_list_shows_the_messages_in_its_state_newest_first(engine, reader):
    configure(engine, group_in_flight_max=1)
    for content in "ab":
        send(engine, content)
    receive(engine, 2)
    for content in "gh":
        send(engine, content, group="one")
    receive(engine, 2)
    send(engine, "d", process_after=T0 + 5)
    send(engine, "e", process_after=T0 + 5)
    send(engine, "r")
    send(engine, "elsewhere", queue="other")
    states = ("all", "ready", "delayed", "processing", "held", "failed")
    assert {state: pages(reader, state, 50) for state in states} == {
        "all": ["redhgba"],
        "ready": ["r"],
        "delayed": ["ed"],
        "processing": ["gba"],
        "held": ["h"],
        "failed": [""],
    }


@pytest.mark.parametrize("queue", ["q", "q-dlq"])
@pytest.mark.usefixtures("failed_stay")
def test_failed_messages(engine, reader, queue):
    for content in "ab":
        send(engine, content, queue=queue, max_attempts=1)
        send(engine, content, queue="other", max_attempts=1)
    for each in (queue, "other"):
        taken = receive(engine, 2, queue=each)
        do(engine, Nack(each, receipts(taken), 0, "broke"))
    assert pages(reader, "failed", 1, queue) == ["b", "a"]
    assert reader.list_messages(queue, "failed", None, 1).rows[0].last_error == "broke"


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_ready_messages_come_in_claim_order(engine, reader, limit):
    for content, priority in (("e", 1), ("c", 100), ("a", 1_000), ("d", 100), ("b", 1_000), ("f", 0)):
        send(engine, content, priority=priority)
    shown = pages(reader, "ready", limit)
    assert "".join(shown) == "abcdef"
    assert [len(page) for page in shown[:-1]] == [limit] * (len(shown) - 1)


def test_ready_messages_of_equal_position(engine, reader):
    """The groups of a grouped queue may share positions; within one the sequence counts."""
    for _ in range(3):
        for group in ("g", "h", "i"):
            send(engine, group, group=group)
    everything = pages(reader, "ready", 50)
    assert [page for size in (1, 2, 4) for page in ["".join(pages(reader, "ready", size))]] == 3 * everything


def test_a_lifo_queue_shows_its_newest_first(engine, reader):
    configure(engine, order=Order.LIFO)
    for content in "abc":
        send(engine, content)
    assert pages(reader, "ready", 2) == ["cb", "a"]


@pytest.mark.parametrize("state", ["all", "ready", "delayed"])
def test_pages_are_stable_while_messages_come_and_go(engine, reader, state):
    fields = {"process_after": T0 + 5} if state == "delayed" else {}
    for content in "abcd":
        send(engine, content, **fields)
    first = reader.list_messages("q", state, None, 2)
    send(engine, "e", **fields)
    second = reader.list_messages("q", state, first.next, 2)
    shown = previews(first) + previews(second)
    assert shown == (list("abcd") if state == "ready" else list("dcba"))
    if state == "ready":
        receive(engine, 2)
        assert previews(reader.list_messages("q", state, first.next, 2)) == ["c", "d"]


@pytest.mark.parametrize("state", ["all", "ready"])
def test_there_is_a_next_page_only_if_it_has_messages(engine, reader, state):
    assert reader.list_messages("q", state, None, 2).next is None
    for _ in range(4):
        send(engine)
    cursor = reader.list_messages("q", state, None, 2).next
    assert cursor is not None
    assert reader.list_messages("q", state, cursor, 2).next is None


@pytest.mark.parametrize(
    ("state", "cursor"),
    [
        *(("all", cursor) for cursor in ("", "x", "-1", "1_2_3", "9" * 19, "\u0663", "1\n")),
        *(("ready", cursor) for cursor in ("5", "1_2", "1_2_x", "1_2_3_4", f"1_{'9' * 19}_1")),
    ],
)
def test_a_cursor_that_is_none(reader, state, cursor):
    with pytest.raises(OutOfRange):
        reader.list_messages("q", state, cursor, 2)


def test_a_row_says_what_the_message_says(engine, reader):
    send(engine, "first", group="g", priority=7, max_attempts=3, attributes={"k": "v"}, ttl_ms=1_000)
    send_dead_letter(engine, "dead")
    receive(engine, 1)
    for queue in ("q", "q-dlq"):
        (row,) = reader.list_messages(queue, "all", None, 5).rows
        message = reader.message(queue, row.id)
        for member in row.__struct_fields__:
            assert getattr(row, member) == (
                message.content if member == "preview" else getattr(message, member)
            )
        assert row.status in STATUS_NAMES


@pytest.mark.parametrize("character", ["x", "ö", "€", "😀"])
def test_a_preview_is_the_beginning(engine, reader, character):
    most = limits.PREVIEW_LENGTH_MAX
    for length in (0, most - 1, most, most + 1, 5 * most):
        send(engine, character * length)
        assert reader.list_messages("q", "all", None, 1).rows[0].preview == character * min(length, most)


def test_a_preview_goes_on_behind_a_zero_character(engine, reader, zero):
    send(engine, f"a{zero}b" + "c" * 300)
    assert reader.list_messages("q", "all", None, 1).rows[0].preview == f"a{zero}b" + "c" * 197


def test_time_moves_messages_between_lists_only_by_a_batch(engine, reader):
    send(engine, "d", process_after=T0 + 5)
    send(engine, "p")
    run(engine, claim(lease_ms=5))
    assert (pages(reader, "delayed", 5), pages(reader, "processing", 5)) == (["d"], ["p"])
    run(engine, now=T0 + 5)
    assert (pages(reader, "delayed", 5), pages(reader, "processing", 5)) == ([""], [""])
    assert sorted(pages(reader, "ready", 5)[0]) == ["d", "p"]


@pytest.mark.usefixtures("failed_stay")
def test_a_failed_message_leaves_with_the_sweep(engine, reader):
    send(engine, "x")
    fail(engine)
    assert pages(reader, "failed", 5) == ["x"]
    sweep(engine, SweepKind.FAILED)
    assert pages(reader, "failed", 5) == [""]
    assert pages(reader, "all", 5, "q-dlq") == ["x"]


def test_lists_tell_the_keys_of_messages_and_how_many_there_are_by_kind(engine, reader):
    send(engine, "plain")
    for key, kind in (("b", ""), ("a", ""), ("a", "z"), ("c", "z"), ("d", "z")):
        offer(engine, key, kind=kind, process_after=T0 + 5)
    offer(engine, "a", "changed", process_after=T0 + 5)
    receive_one(engine, now=T0)
    (*keyed, plain) = reader.list_messages("q", "all", None, 50).rows
    assert plain.keyed is None
    assert [(row.keyed.kind, row.keyed.key, row.keyed.offers) for row in keyed] == [
        *(("z", "d", 1), ("z", "c", 1), ("z", "a", 1)),
        *(("", "a", 2), ("", "b", 1)),
    ]
    assert [row.bytes for row in keyed] == [1, 1, 1, len("changed"), 1]
    assert reader.count_keys("q", 100) == {"": 2, "z": 3}
    assert reader.count_keys("q", 3) == {"": 2, "z": 1}
    assert reader.count_keys("other", 3) == {}


def test_pages_of_keys_go_on_in_the_next_kind(engine, reader):
    for key, kind in (("b", ""), ("a", "z"), ("c", "z"), ("d", "za"), ("a", "y")):
        offer(engine, key, kind=kind, process_after=T0 + 5)
    expected = [("", "b"), ("y", "a"), ("z", "a"), ("z", "c"), ("za", "d")]
    for limit in (1, 2, 9):
        found, after = [], None
        while True:
            page, after = reader.keyed_messages("q", "", None, after, limit)
            found += [(message.keyed.kind, message.keyed.key) for message in page]
            if after is None:
                break
            check_key(after[1], after[0])  # as whoever is given it, and brings it back, has it checked
        assert found == expected


def test_a_page_of_keys_that_has_looked_at_many_kinds_goes_on(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "KINDS_LOOKED_AT_MAX", 2)
    for kind in "abcde":
        offer(engine, "wanted" if kind == "e" else "other", kind=kind, process_after=T0 + 5)
    found, after = [], None
    for _ in range(9):
        page, after = reader.keyed_messages("q", "want", None, after, 5)
        found += [message.keyed.kind for message in page]
        if after is None:
            break
        check_key(after[1], after[0])
    assert (found, after) == (["e"], None)


def test_the_bytes_of_a_row_are_its_own_and_not_those_that_wait_behind_it(engine, reader):
    offer(engine, "k", "12")
    receive_one(engine)
    offer(engine, "k", "12345", mode="onceMore")
    (row,) = reader.list_messages("q", "processing", None, 50).rows
    assert (row.bytes, row.keyed.offers) == (2, 1)
