"""The history: messages that go for good stay readable, with how they ended, until it is trimmed or purged."""

from contextlib import closing

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Cancel,
    Delete,
    ForgetQueue,
    Produce,
    ProduceMany,
    Purge,
    PurgeHistory,
    Removed,
    Resubmit,
    SweepKind,
    TrimHistory,
)
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import EngineSettings

from .engines import on_sql
from .script import (
    DAY_MS,
    T0,
    ack,
    configure,
    do,
    drain,
    fail,
    receive_one,
    run,
    send,
    send_dead_letter,
    sweep,
)

EVERYTHING = 10**12


@pytest.fixture
def engine(make_engine):
    return make_engine(EngineSettings(history=True))


def counts(engine):
    return {queue: engine.snapshot().history_of(queue) for queue in (None, "q", "r")}


def lines(engine, after=0, until=None, limit=1_000, queue=None):
    with closing(engine.open_reader()) as reader:
        page = reader.log_lines("history", after, until, limit, queue)
    return [msgspec.json.decode(line) for line in page.lines.splitlines()]


def next_after(engine, after, until=None, limit=1_000, queue=None):
    with closing(engine.open_reader()) as reader:
        return reader.log_lines("history", after, until, limit, queue).next


def found(engine, wanted=None, outcome=None, before=None, limit=10, scan_max=1_000, queue="q"):
    with closing(engine.open_reader()) as reader:
        return reader.find_finished(queue, wanted or MessageFilter(), outcome, before, limit, scan_max)


def ends(engine, *queues):
    """How the messages of these queues ended, oldest first."""
    return [(line["outcome"], line.get("reason")) for queue in queues for line in lines(engine, queue=queue)]


def finish(engine, *contents, queue="q", now=T0):
    for content in contents:
        send(engine, content, queue=queue, now=now)
    assert drain(engine, queue=queue, now=now) == list(contents)


def test_an_acknowledged_message_is_kept_as_it_was(engine, zero):
    produced = send(engine, f'a{zero}"ö\u2028', attributes={"k": "ö"}, group="g", priority=7)
    _, receipt = receive_one(engine, now=T0 + 5)
    assert lines(engine) == []
    assert ack(engine, receipt, now=T0 + 9)
    assert lines(engine) == [
        {
            "id": produced.id,
            "queue": "q",
            "sequence": produced.sequence,
            "content": f'a{zero}"ö\u2028',
            "receivedAt": T0,
            "attempts": 1,
            "priority": 7,
            "group": "g",
            "attributes": {"k": "ö"},
            "historyId": 1,
            "outcome": "acked",
            "finishedAt": T0 + 9,
        }
    ]
    (message,) = found(engine).messages
    assert (message.first_received_at, message.failures, message.reason) == (T0 + 5, (), None)
    with closing(engine.open_reader()) as reader:
        assert reader.finished("q", produced.id) == message
        assert reader.finished("r", produced.id) is None


def test_nothing_is_kept_while_it_is_off(make_engine):
    engine = make_engine(EngineSettings())
    finish(engine, "a")
    assert lines(engine) == []
    assert engine.snapshot().logs["history"][1:3] == (1, 0)


def test_how_messages_end(engine):
    configure(engine, "q", dead_letter_queue="", ttl_ms=1_000)
    send(engine)
    run(engine, now=T0 + 1_000)
    configure(engine, "r", dead_letter_queue="", max_attempts=1)
    send(engine, queue="r")
    fail(engine, queue="r", attempts=1)
    sweep(engine, SweepKind.FAILED)
    configure(engine, "s", max_messages=1, overflow=Overflow.DROP_OLDEST)
    send(engine, queue="s")
    send(engine, queue="s")
    do(engine, Purge("s"))
    deleted = send(engine, queue="t")
    assert do(engine, Delete("t", (deleted.id,))) == (True,)
    assert do(engine, Cancel("u", send(engine, queue="u").id)) is None
    assert ends(engine, *"qrstu") == [
        ("expired", None),
        ("discarded", "failed"),
        ("discarded", "overflow"),
        ("deleted", None),
        ("deleted", None),
        ("cancelled", None),
    ]


def test_a_dead_letter_ends_in_its_own_queue(engine):
    letter = send_dead_letter(engine, "x")
    assert lines(engine) == []
    assert do(engine, Resubmit("q-dlq", letter.id, "y", remove=True)) is not None
    (message,) = found(engine, queue="q-dlq").messages
    assert (message.outcome, message.source_queue, message.source_attempts) == ("deleted", "q", 5)
    assert (message.failure_reason, len(message.failures)) == ("max_attempts_reached", 5)
    assert drain(engine) == ["y"]
    assert [line["historyId"] for line in lines(engine)] == [1, 2]
    (line,) = lines(engine, queue="q-dlq")
    origin = ("sourceQueue", "sourceAttempts", "failureReason", "deadLetteredAt")
    assert [line[name] for name in origin] == ["q", 5, "max_attempts_reached", T0]


def test_pages_end_at_their_limit_and_say_where_to_go_on(engine):
    finish(engine, "a", "b", "c")
    finish(engine, "d", queue="r")
    finish(engine, "e")
    assert [line["content"] for line in lines(engine, after=1, limit=2)] == ["b", "c"]
    assert [line["content"] for line in lines(engine, after=1, until=2)] == ["b"]
    assert [line["content"] for line in lines(engine, after=1, queue="q")] == ["b", "c", "e"]
    assert next_after(engine, 1, limit=2) == 3
    assert next_after(engine, 0, limit=1, queue="r") == 5  # none of this queue follows
    assert next_after(engine, 0, limit=3, queue="q") == 3
    assert next_after(engine, 0, until=2, limit=9) == 2
    assert next_after(engine, 5) == 5
    assert next_after(engine, 9) == 9


def test_a_page_has_a_bound_in_bytes(engine, monkeypatch):
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 2 * (limits.HISTORY_LINE_BYTES + 10))
    finish(engine, "x" * 10, "y" * 10, "z", "w" * 10_000, "v")
    assert [len(line["content"]) for line in lines(engine)] == [10, 10]
    assert [len(line["content"]) for line in lines(engine, after=3)] == [10_000]
    assert [message.content[0] for message in found(engine).messages] == ["v"]


def test_a_page_is_bounded_in_the_bytes_that_it_writes(engine, monkeypatch):
    finish(engine, *["\u0001" * 400] * 5)
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 6_000)
    for queue in (None, "q"):
        found, after = [], 0
        while page := lines(engine, after, queue=queue):
            found.append([line["historyId"] for line in page])
            after = next_after(engine, after, queue=queue)
        assert found == [[1, 2], [3, 4], [5]]


def test_searches_go_from_the_newest_down(engine):
    configure(engine, "q", dead_letter_queue="")
    finish(engine, "one", "two", "three")
    do(engine, Produce("q", NewMessage("gone", attributes={"k": "v"})), T0 + 1)
    do(engine, Purge("q"), T0 + 2)
    page = found(engine, limit=2)
    assert [message.content for message in page.messages] == ["gone", "three"]
    assert (page.searched, page.total, page.next_before) == (2, 4, 3)
    assert [message.content for message in found(engine, before=3).messages] == ["two", "one"]
    assert [m.content for m in found(engine, MessageFilter(text="o")).messages] == ["gone", "two", "one"]
    assert [m.content for m in found(engine, outcome="deleted").messages] == ["gone"]
    assert [m.content for m in found(engine, MessageFilter(attributes={"k": "v"})).messages] == ["gone"]
    assert [m.content for m in found(engine, MessageFilter(since=T0 + 2)).messages] == ["gone"]
    assert len(found(engine, MessageFilter(until=T0 + 1, error="")).messages) == 3
    assert found(engine, scan_max=1, outcome="acked").next_before == 4
    assert found(engine, MessageFilter(reason="overflow")).messages == []


def test_it_is_trimmed_by_age_oldest_first(engine):
    finish(engine, "a", "b")
    finish(engine, "c", queue="r", now=T0 + 10)
    finish(engine, "d", now=T0 + 20)
    assert do(engine, TrimHistory(T0 + 10, EVERYTHING)) == Removed(2, more=False)
    assert [line["content"] for line in lines(engine)] == ["c", "d"]
    assert engine.snapshot().logs["history"][1:3] == (3, 4)
    assert counts(engine) == {None: HistoryCounts(2, 2), "q": HistoryCounts(1, 1), "r": HistoryCounts(1, 1)}
    assert do(engine, TrimHistory(T0 + 10, EVERYTHING)) == Removed(0, more=False)


def test_dates_of_a_clock_that_was_far_ahead_do_not_keep_others(engine):
    year = 365 * DAY_MS
    finish(engine, "a", now=T0 + year)
    finish(engine, "b", now=T0)
    finish(engine, "c", now=T0 + 2 * DAY_MS)
    now = T0 + 2 * DAY_MS
    assert do(engine, TrimHistory(now - DAY_MS, EVERYTHING), now) == Removed(2, more=False)
    assert [line["content"] for line in lines(engine)] == ["c"]
    finish(engine, "d", now=now + DAY_MS // 2)
    assert do(engine, TrimHistory(now - DAY_MS, EVERYTHING), now) == Removed(0, more=False)


def test_it_is_trimmed_by_bytes(engine):
    finish(engine, "aaaa", "bbb", "cc")
    assert do(engine, TrimHistory(0, 5)) == Removed(1, more=False)
    assert do(engine, TrimHistory(0, 4)) == Removed(1, more=False)
    assert counts(engine) == {None: HistoryCounts(1, 2), "q": HistoryCounts(1, 2), "r": HistoryCounts()}
    assert engine.snapshot().logs["history"].bytes == engine.snapshot().history_of(None).bytes > 0


def test_ids_go_on_when_nothing_is_left(engine):
    finish(engine, "a", "b")
    assert do(engine, TrimHistory(T0 + 1, EVERYTHING)).count == 2
    assert engine.snapshot().logs["history"][1:3] == (3, 2)
    finish(engine, "c")
    assert do(engine, PurgeHistory("q")).count == 1
    assert engine.snapshot().logs["history"][1:3] == (4, 3)
    finish(engine, "d")
    assert [line["historyId"] for line in lines(engine)] == [4]


@on_sql
def test_a_step_takes_so_many_messages_and_bytes(engine, monkeypatch):
    monkeypatch.setattr(limits, "HISTORY_STEP_MESSAGES", 3)
    monkeypatch.setattr(limits, "HISTORY_STEP_BYTES", 4)
    finish(engine, "a", "b", "c", "dddd", "e")
    assert do(engine, TrimHistory(T0 + 1, EVERYTHING)) == Removed(3, more=True)
    assert do(engine, TrimHistory(T0 + 1, EVERYTHING)) == Removed(1, more=True)
    assert do(engine, TrimHistory(T0 + 1, EVERYTHING)) == Removed(1, more=False)


def test_a_step_is_the_longer_the_more_there_is_beyond_the_bound(engine, monkeypatch):
    monkeypatch.setattr(limits, "HISTORY_STEP_MESSAGES", 1)
    finish(engine, *"abcdefghijkl")
    assert do(engine, TrimHistory(0, 11)) == Removed(1, more=False)
    assert do(engine, TrimHistory(0, 9)) == Removed(2, more=False)
    assert do(engine, TrimHistory(0, 8)) == Removed(1, more=False)
    assert do(engine, TrimHistory(0, 6)).count == 2
    assert do(engine, TrimHistory(0, 3)) == Removed(3, more=False)


@on_sql
def test_a_purge_leaves_other_queues_and_what_ends_later(engine, monkeypatch):
    monkeypatch.setattr(limits, "HISTORY_STEP_MESSAGES", 2)
    finish(engine, "a")
    finish(engine, "b", queue="r")
    finish(engine, "c", "d")
    first = do(engine, PurgeHistory("q"))
    finish(engine, "e")
    assert first.count == 2
    assert do(engine, PurgeHistory("q", first.up_to)).count == 1
    assert [line["content"] for line in lines(engine)] == ["b", "e"]
    assert engine.snapshot().logs["history"][1:3] == (1, 5)
    assert counts(engine) == {None: HistoryCounts(2, 2), "q": HistoryCounts(1, 1), "r": HistoryCounts(1, 1)}
    assert found(engine).total == 1


def test_it_outlives_its_queue(engine):
    finish(engine, "a")
    assert do(engine, ForgetQueue("q"))
    assert found(engine).total == 1


def test_many_that_end_at_once(engine):
    run(engine, ProduceMany("q", tuple(NewMessage(str(number)) for number in range(50))))
    assert do(engine, Purge("q")).count == 50
    assert [line["historyId"] for line in lines(engine)] == list(range(1, 51))
    assert engine.snapshot().history_of("q") == HistoryCounts(50, 90)
