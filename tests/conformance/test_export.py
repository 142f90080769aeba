"""Exports: every message of a range once, as a line, by sequence; nothing is changed."""

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Redrive
from forq_trio.model.messages.export import ExportedMessage

from .script import T0, fail, receive, run, send, send_dead_letter

END = limits.SEQUENCE_MAX


def lines(rows):
    return [msgspec.json.decode(line, type=ExportedMessage) for line in rows.lines.splitlines()]


def test_a_line_has_what_a_message_is(engine, reader, zero):
    odd = f'größe {zero} \x1f "\\ \u2028 \U0001f600\n'
    first = send(engine, odd, priority=7, attributes={"k": "ö\n"}, group="g", now=T0 + 5)
    second = send(engine, "", delay_ms=1_000)
    send(engine, "elsewhere", queue="p")
    receive(engine)
    rows = reader.export("q", 0, END, 10)
    assert rows.next is None
    assert lines(rows) == [
        ExportedMessage(
            first.id, "q", first.sequence, odd, T0 + 5, 1, 7, "g", {"k": "ö\n"}, state="processing"
        ),
        ExportedMessage(second.id, "q", second.sequence, "", T0, state="delayed"),
    ]
    assert reader.export("q", 0, END, 10) == rows


def test_the_line_of_a_dead_letter_has_where_it_came_from(engine, reader):
    sent = send_dead_letter(engine, "x}", group="g}", now=T0 + 5)
    (line,) = lines(reader.export("q-dlq", 0, END, 10))
    assert line == ExportedMessage(
        sent.id,
        "q-dlq",
        sent.sequence,
        "x}",
        T0 + 5,
        group="g}",
        state="ready",
        source_queue="q",
        source_attempts=line.source_attempts,
        failure_reason="max_attempts_reached",
        dead_lettered_at=T0 + 5,
    )
    assert line.source_attempts
    run(engine, Redrive("q-dlq", (sent.id,)))
    (line,) = lines(reader.export("q", 0, END, 10))
    assert (line.source_queue, line.source_attempts, line.failure_reason, line.dead_lettered_at) == (
        None,
    ) * 4


@pytest.mark.usefixtures("failed_stay")
def test_states(engine, reader):
    send(engine, "f")
    fail(engine)
    send(engine, "r")
    assert [line.state for line in lines(reader.export("q", 0, END, 10))] == ["failed", "ready"]


def test_pages_of_a_range(engine, reader, monkeypatch):
    sent = [send(engine, 1_000 * size * "x").sequence for size in (0, 5, 1, 2, 9, 0, 1)]
    found, after = [], sent[0] - 1
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 4_000)
    while after is not None:
        rows = reader.export("q", after, sent[-2], 2)
        found.append([line.sequence for line in lines(rows)])
        after = rows.next
    assert found == [sent[0:1], sent[1:2], sent[2:4], sent[4:5], sent[5:6]]
    assert reader.export("q", sent[-1], END, 2).lines == b""
    assert reader.export("nothing", 0, END, 2).next is None


def test_partitions_cover_everything_once(engine, reader):
    assert reader.export_bounds("q", 3).bounds == []
    for number in range(17):
        send(engine, f"{number}", queue="qp"[number % 2])
    stored = [line.sequence for line in lines(reader.export("q", 0, END, 100))]
    for count in (1, 2, 3, 4, 8, 9, 20):
        bounds = reader.export_bounds("q", count)
        parts = [[seq for seq in stored if after < seq <= until] for after, until in bounds.bounds]
        assert [each for part in parts for each in part] == stored
        assert bounds.messages == 9
        assert len(parts) <= count
        assert all(0 < len(part) <= -(-9 // count) for part in parts)
    run(engine)


def test_a_page_is_bounded_in_the_bytes_that_it_writes(engine, reader, monkeypatch):
    sent = [send(engine, "\u0001" * 400).sequence for _ in range(5)]
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 6_000)
    found, after = [], 0
    while after is not None:
        rows = reader.export("q", after, END, 10)
        assert len(rows.lines) <= 6_000
        found.append([line.sequence for line in lines(rows)])
        after = rows.next
    assert found == [sent[0:2], sent[2:4], sent[4:]]
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 100)
    assert [line.sequence for line in lines(reader.export("q", 0, END, 10))] == sent[:1]
