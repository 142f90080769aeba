"""Searches that return rows: the same messages as `search` finds, however long, with what surrounds the match."""

import pytest

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.types import Status

from .script import T0, contents, fail, nack, receive, receive_one, run, send, send_dead_letter

LONG = "x" * (limits.BROWSE_PAGE_BYTES_MAX // 2)


def find(reader, queue="q", before=None, limit=100, scan_max=100, **wanted):
    return reader.find_messages(queue, MessageFilter(**wanted), before, limit, scan_max)


def found(reader, queue="q", **wanted):
    return [row.preview for row in find(reader, queue, **wanted).rows]


def test_it_finds_what_a_search_finds_page_by_page(engine, reader):
    for number in range(9):
        send(engine, f"{'odd' if number % 2 else 'even'} {number}", attributes={"n": str(number % 3)})
    wanted = MessageFilter(text="e", attributes={"n": "0"})
    before = None
    for _ in range(4):
        rows = reader.find_messages("q", wanted, before, 1, 4)
        same = reader.search("q", wanted, before, 1, 4)
        assert [row.preview for row in rows.rows] == contents(same.messages)
        assert (rows.searched, rows.total, rows.next_before) == (same.searched, same.total, same.next_before)
        before = rows.next_before
        if before is None:
            break
    assert before is None


def test_long_contents_leave_a_page_as_it_is(engine, reader):
    for _ in range(5):
        send(engine, LONG)
    page = find(reader, text="x")
    assert [len(row.preview) for row in page.rows] == [limits.PREVIEW_LENGTH_MAX] * 5
    assert (page.searched, page.next_before) == (5, None)


def test_the_oldest_that_was_looked_at(engine, reader):
    assert find(reader).oldest_at is None
    for number in range(4):
        send(engine, str(number), now=T0 + number)
    assert find(reader, text="none").oldest_at == T0
    assert find(reader, text="none", scan_max=3).oldest_at == T0 + 1
    assert find(reader, limit=2).oldest_at == T0 + 2


def test_the_oldest_dead_letter_is_the_one_dead_lettered_first(engine, reader):
    send_dead_letter(engine, now=T0)
    send(engine, "y", now=T0 + 1)
    fail(engine, now=T0 + 7)
    assert find(reader, "q-dlq").oldest_at == T0


@pytest.mark.parametrize("searching", ["search", "find_messages"])
def test_by_last_error(engine, reader, searching):
    def sequences(error):
        result = getattr(reader, searching)("q", MessageFilter(error=error), None, 9, 9)
        return [each.sequence for each in getattr(result, "rows", None) or getattr(result, "messages", [])]

    sent = [send(engine, content).sequence for content in "abcd"]
    for reason in ("503", "503 ", "", None):
        nack(engine, receive_one(engine)[1], 5, reason)
    assert sequences("503") == [sent[0]]
    assert sequences("503 ") == [sent[1]]
    assert sequences("") == [sent[3], sent[2]]
    assert sequences("50") == []
    assert sequences(None) == sent[::-1]


def test_by_status(engine, reader):
    send(engine, "processing")
    receive(engine)
    send(engine, "ready")
    send(engine, "delayed", process_after=T0 + 5)
    assert {
        status.name: found(reader, status=status) for status in Status if found(reader, status=status)
    } == {"READY": ["ready"], "PROCESSING": ["processing"], "DELAYED": ["delayed"]}


def test_above_a_sequence_is_where_a_search_ends(engine, reader):
    sent = [send(engine, content).sequence for content in "abcde"]
    page = find(reader, above_sequence=sent[1])
    assert [row.preview for row in page.rows] == ["e", "d", "c"]
    assert (page.searched, page.total, page.next_before) == (3, 5, None)
    first = find(reader, above_sequence=sent[1], limit=2)
    assert (first.searched, first.next_before) == (2, sent[3])
    assert find(reader, above_sequence=sent[1], before=sent[3]).searched == 1
    assert find(reader, above_sequence=sent[4]).searched == 0
    assert find(reader, above_sequence=0).searched == 5


@pytest.mark.parametrize("before", ["a", "ö", "€", "😀", "aö", "a€", "ö😀", "\0"])
def test_a_preview_begins_near_a_late_match(engine, reader, before, zero):
    before = before.replace("\0", zero)
    late, lead = limits.PREVIEW_MATCH_LATE, limits.PREVIEW_LEAD
    for length in (0, late - 1, late, late + 1, 700):
        content = (before * length)[:length] + "größe" + "€" * 300
        send(engine, content)
        (row,) = find(reader, text="größe", limit=1).rows
        if length < late:
            assert row.preview == content[: limits.PREVIEW_LENGTH_MAX]
        else:
            start = length - lead
            assert row.preview == "…" + content[start : start + limits.PREVIEW_LENGTH_MAX - 1]


def test_only_what_is_committed_is_found(engine, reader):
    run(engine)
    assert find(reader) == find(reader, queue="none")
