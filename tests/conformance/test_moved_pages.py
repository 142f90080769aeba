"""Leased messages are where everybody finds them, also those that only a page of their lease has.

The oracle never moves any, so what it does is what the engines on SQL have to look like.
"""

from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Cancel,
    Claims,
    LeaseMessages,
    MoveBack,
    NackById,
    OpenConsumer,
    Purge,
    Resubmit,
    SettleLease,
)
from forq_trio.model.consumers.types import Settling, consumer_key
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import MessageInFlight
from forq_trio.model.messages.types import QueueCounts, Receipt, Status
from forq_trio.storage.engine import DEFERRED, Batch
from support.batches import looking

from .engines import on_sql
from .script import T0, claim, counted, do, drain, look, run, send

SECOND_MS = 1_000
ACKNOWLEDGE, RELEASE, EXPIRE = Settling
CONTENTS = [f"größe {n}" for n in range(9)]


@pytest.fixture(autouse=True)
def _pages_of_two(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)


@pytest.fixture
def sent(engine) -> list:
    """Nine messages, of which the first five are leased."""
    messages = [send(engine, text, attributes={"n": text[-1]}, now=T0 + n) for n, text in enumerate(CONTENTS)]
    do(engine, OpenConsumer("q", "k"))
    lease(engine, 1, 5)
    return messages


def lease(engine, number, most, *, now=T0 + 100, name="k"):
    step = LeaseMessages("q", name, 1, number, most, 10**9)
    while not (consumer := do(engine, step, now)).complete and consumer.open is not None:
        pass
    return consumer


def settle(engine, number=1, how=ACKNOWLEDGE, now=T0 + 200):
    step = SettleLease("q", "k", 1, number, how)
    while (consumer := do(engine, step, now)).open is not None:
        pass
    return consumer


@pytest.mark.parametrize("awaited", [0, 3])
def test_that_they_ended_is_told_where_somebody_waits_for_it(engine, sent, awaited):
    waited_for = {each.id for each in sent[:awaited]}
    ended = {}
    while engine.snapshot().consumers[consumer_key("q", "k")].open is not None:
        step = SettleLease("q", "k", 1, 1, ACKNOWLEDGE)
        ended |= engine.execute_batch(Batch((step,), T0 + 200, awaited_ends=waited_for)).ended
        engine.commit()
    assert ended == dict.fromkeys(waited_for, "acked")


def contents(messages) -> list[str]:
    return [message.content for message in messages]


def test_a_message_is_looked_up_by_its_id(engine, sent):
    for number, message in enumerate(sent):
        found = look(engine, message.id)
        assert found is not None
        is_leased = number < 5
        assert (found.content, found.sequence, found.attributes) == (
            CONTENTS[number],
            message.sequence,
            {"n": str(number)},
        )
        assert (found.status, found.attempts) == (("processing", 1) if is_leased else ("ready", 0))
        assert found.received_at == T0 + number
        assert (found.first_received_at, found.processing_started_at, found.updated_at) == (
            (T0 + 100, T0 + 100, T0 + 100) if is_leased else (None, None, T0 + number)
        )
        assert (found.lease_until is None) is not is_leased
    assert look(engine, sent[0].id, queue="other") is None
    assert look(engine, sent[0].id[:-1] + ("0" if sent[0].id[-1] != "0" else "1")) is None


@pytest.mark.parametrize(
    "between", [{"queue": "other"}, {"ttl_ms": 10**9}, {"priority": 9}, {"delay_ms": 60_000}]
)
def test_what_is_between_them_stays(engine, monkeypatch, between):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 100)
    plain = [send(engine, text) for text in CONTENTS[:2]]
    one = send(engine, "between", **between)
    plain += [send(engine, text) for text in CONTENTS[2:]]
    do(engine, OpenConsumer("q", "k"))
    lease(engine, 1, 100)
    settle(engine)
    queue = between.get("queue", "q")
    is_leased = queue == "q" and "delay_ms" not in between
    found = look(engine, one.id, queue=queue)
    assert (found is None) is is_leased
    assert [look(engine, each.id) for each in plain] == [None] * 9
    assert counted(engine)[queue] == QueueCounts(**({} if is_leased else {found.status: 1}))


def test_pages_of_the_queue_have_them(engine, sent):
    def browsed(before, limit):
        return contents(looking(engine, lambda reader: reader.browse("q", before, limit)))

    assert browsed(None, 3) == CONTENTS[:5:-1]
    assert browsed(sent[6].sequence, 3) == [CONTENTS[5], CONTENTS[4], CONTENTS[3]]
    assert browsed(sent[3].sequence, 9) == CONTENTS[2::-1]
    assert browsed(None, 100) == CONTENTS[::-1]


@pytest.mark.parametrize("state", ["all", "processing", "ready"])
@pytest.mark.parametrize("limit", [1, 2, 4, 20])
def test_lists_have_them(engine, sent, state, limit):
    rows, cursor = [], None
    while True:
        page = looking(engine, lambda reader, at=cursor: reader.list_messages("q", state, at, limit))
        rows += [row.preview for row in page.rows]
        cursor = page.next
        if cursor is None:
            break
        assert len(page.rows) == limit
    assert rows == {"all": CONTENTS[::-1], "processing": CONTENTS[4::-1], "ready": CONTENTS[5:]}[state]


def test_searches_find_them(engine, sent):
    leased = MessageFilter(status=Status.PROCESSING)
    by_text = MessageFilter(text="größe 2")
    by_attribute = MessageFilter(attributes={"n": "4"})
    for wanted, expected in [
        (leased, CONTENTS[4::-1]),
        (by_text, [CONTENTS[2]]),
        (by_attribute, [CONTENTS[4]]),
    ]:
        found = looking(engine, lambda reader, wanted=wanted: reader.search("q", wanted, None, 100, 100))
        assert contents(found.messages) == expected
        rows = looking(
            engine, lambda reader, wanted=wanted: reader.find_messages("q", wanted, None, 100, 100)
        )
        assert [row.preview for row in rows.rows] == expected


@pytest.mark.parametrize("scan_max", [1, 3, 4, 5, 6, 9, 10])
def test_searches_look_at_the_newest_messages_whether_or_not_they_are_moved(engine, sent, scan_max):
    count = looking(engine, lambda reader: reader.count_messages("q", MessageFilter(), None, scan_max))
    assert (count.count, count.searched, count.processing) == (
        min(scan_max, 9),
        min(scan_max, 9),
        max(min(scan_max, 9) - 4, 0),
    )
    groups = looking(engine, lambda reader: reader.error_groups("q", None, scan_max))
    assert groups.searched == min(scan_max, 9)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 100])
def test_an_export_has_them(engine, sent, limit):
    lines: list[bytes] = []
    after, until = 0, sent[-1].sequence
    while after is not None:
        page = looking(engine, lambda reader, at=after: reader.export("q", at, until, limit))
        lines += page.lines.splitlines()
        after = page.next
    assert [f'"content":"{text}"' in line.decode() for line, text in zip(lines, CONTENTS, strict=True)] == [
        True
    ] * 9
    states = ["processing"] * 5 + ["ready"] * 4
    assert [f'"state":"{state}"' in line.decode() for line, state in zip(lines, states, strict=True)] == [
        True
    ] * 9


@pytest.mark.parametrize("parts", [1, 2, 4, 9])
def test_the_parts_of_an_export_have_all_messages(engine, parts):
    messages = [send(engine, text) for text in CONTENTS]
    do(engine, OpenConsumer("q", "k"))
    lease(engine, 1, 100)
    found = []
    bounds = looking(engine, lambda reader: reader.export_bounds("q", parts))
    assert bounds.messages == 9
    size = -(-9 // parts)
    assert len(bounds.bounds) >= min(-(-9 // size), 5)  # of pages of two
    for after, until in bounds.bounds:
        page = looking(engine, lambda reader, a=after, u=until: reader.export("q", a, u, 100))
        found += page.lines.splitlines()
    assert len(found) == len(messages)


def test_their_queue_is_known(engine, sent):
    sequences = [message.sequence for message in sent]
    with closing(engine.open_reader()) as reader:
        assert reader.queues_of([*sequences, 99]) == dict.fromkeys(sequences, "q")


def test_one_is_acknowledged_and_nacked_by_its_id(engine, sent):
    assert run(engine, AckById("q", sent[0].id), AckById("q", sent[0].id)).outcomes == [True, False]
    assert do(engine, NackById("q", sent[2].id)) is True
    assert do(engine, AckById("other", sent[1].id)) is False
    counts = counted(engine)["q"]
    assert (counts.processing, counts.ready + counts.delayed) == (3, 5)
    assert settle(engine).acknowledged == 1
    assert sorted(drain(engine, now=T0 + 60 * SECOND_MS)) == [CONTENTS[2], *CONTENTS[5:]]


def test_one_is_not_cancelled_while_it_is_leased(engine, sent):
    assert isinstance(do(engine, Cancel("q", sent[1].id)), MessageInFlight)
    assert look(engine, sent[1].id) is not None


def test_one_is_sent_again(engine, sent):
    copy = do(engine, Resubmit("q", sent[1].id, target="q"))
    assert look(engine, copy.id).content == CONTENTS[1]
    assert look(engine, sent[1].id).status == "processing"


def test_a_purge_removes_them(engine, sent):
    removed = 0
    up_to = None
    while True:
        purged = do(engine, Purge("q", up_to))
        removed += purged.count
        up_to = purged.up_to
        if up_to is None:
            break
    assert removed == 9
    assert counted(engine)["q"] == QueueCounts()
    assert settle(engine).acknowledged == 1


@on_sql
def test_a_purge_works_in_steps(engine, monkeypatch, sent):
    monkeypatch.setattr(limits, "CONSUMER_MOVED_BACK_MESSAGES_MAX", 1)
    monkeypatch.setattr(limits, "PURGE_BATCH_MAX", 3)
    counts, up_to = [], None
    while True:
        purged = do(engine, Purge("q", up_to))
        counts.append(purged.count)
        up_to = purged.up_to
        if up_to is None:
            break
    assert sum(counts) == 9
    assert max(counts) <= 3


@pytest.mark.parametrize("how", [RELEASE, EXPIRE])
def test_what_comes_back_is_as_it_was(engine, how):
    """Its id, place, priority, attributes and times; the attempt is counted where the lease ended by itself."""
    low = send(engine, "low", priority=10, now=T0)
    first = send(engine, "first", attributes={"a": "ü\n"}, now=T0 + 1)
    second = send(engine, "second", now=T0 + 2)
    before = {each.id: look(engine, each.id) for each in (low, first, second)}
    do(engine, OpenConsumer("q", "k", 60_000))
    lease(engine, 1, 100)
    ended = T0 + 100 + 60_000
    settle(engine, 1, how, now=ended)
    for each in (low, first, second):
        old, new = before[each.id], look(engine, each.id)
        counts = how is EXPIRE
        assert (new.content, new.sequence, new.attributes, new.priority) == (
            old.content,
            old.sequence,
            old.attributes,
            old.priority,
        )
        assert (new.received_at, new.expires_after) == (old.received_at, old.expires_after)
        assert (new.status, new.attempts, new.first_received_at) == ("ready", int(counts), T0 + 100)
        assert new.lease_until is new.processing_started_at is None
    assert drain(engine, now=ended) == ["first", "second", "low"]


def test_one_that_expired_while_it_was_leased_follows_its_rule_when_it_comes_back(engine):
    message = send(engine, "short")
    do(engine, OpenConsumer("q", "k"))
    lease(engine, 1, 1)
    late = look(engine, message.id).expires_after + 1
    assert counted(engine)["q"].processing == 1
    do(engine, MoveBack("q", 0, 10**9), late)
    assert counted(engine)["q"].processing == 1
    settle(engine, 1, RELEASE, now=late)
    assert drain(engine, now=late) == []
    assert look(engine, message.id) is None


def test_a_page_of_which_some_were_looked_at_is_settled_whole(engine, sent):
    assert look(engine, sent[0].id) is not None
    assert settle(engine).acknowledged == 1
    assert counted(engine)["q"] == QueueCounts(ready=4, bytes=counted(engine)["q"].bytes)
    assert drain(engine) == CONTENTS[5:]


def test_messages_of_all_kinds_share_a_lease(engine):
    plain = [send(engine, f"plain {n}") for n in range(3)]
    grouped = send(engine, "grouped", group="g")
    bounded = send(engine, "bounded", max_attempts=9)
    later = send(engine, "plain 3")
    do(engine, OpenConsumer("q", "k"))
    assert lease(engine, 1, 100).open.messages == 6
    for message in (*plain, grouped, bounded, later):
        assert look(engine, message.id).status == "processing"
    assert settle(engine).acknowledged == 1
    assert counted(engine)["q"] == QueueCounts()


def test_two_consumers_have_pages_of_one_queue(engine, sent):
    do(engine, OpenConsumer("q", "other"))
    lease(engine, 1, 2, name="other")
    settle(engine, 1, RELEASE)
    lease(engine, 2, 7)
    for number, message in enumerate(sent):
        assert look(engine, message.id).content == CONTENTS[number]
    assert counted(engine)["q"].processing == 9
    settle(engine, 2)
    assert counted(engine)["q"].processing == 2


def test_who_names_many_waits_for_the_next_batch(engine, monkeypatch):
    """Each id may cost a whole page: as many as one batch may move back."""
    messages = [send(engine, str(n)) for n in range(8)]
    do(engine, OpenConsumer("q", "k"))
    lease(engine, 1, 100)
    monkeypatch.setattr(limits, "CONSUMER_MOVED_BACK_MESSAGES_MAX", 2)
    waiting = [AckById("q", message.id) for message in messages]
    rounds = 0
    while waiting:
        outcomes = run(engine, *waiting).outcomes
        assert set(outcomes) <= {True, DEFERRED}
        waiting = [each for each, outcome in zip(waiting, outcomes, strict=True) if outcome is DEFERRED]
        rounds += 1
        assert rounds <= 8
    assert counted(engine)["q"] == QueueCounts()
    assert settle(engine).acknowledged == 1


@pytest.mark.parametrize(
    "named",
    [AckById("q", "no such id"), Ack("q", (Receipt(1_000, 1), Receipt(1_000, 2)), claims=Claims.ANY)],
    ids=["by id", "by receipt"],
)
def test_who_names_the_same_often_is_answered_at_once(engine, monkeypatch, sent, named):
    monkeypatch.setattr(limits, "CONSUMER_MOVED_BACK_MESSAGES_MAX", 1)
    outcomes = run(engine, named, named).outcomes
    assert DEFERRED not in outcomes


def test_the_group_limit_counts_them(make_engine, engine):
    from .script import configure

    configure(engine, in_flight_max=3)
    for text in CONTENTS:
        send(engine, text)
    do(engine, OpenConsumer("q", "k"))
    assert lease(engine, 1, 100).open.messages == 3
    assert do(engine, claim(5)) == ()
    settle(engine)
    assert len(do(engine, claim(5))) == 3
