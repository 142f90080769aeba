"""Consumers of pipelines: numbered leases that never change, settled page by page, fenced by generation."""

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    AckById,
    DropPages,
    ForgetConsumer,
    LeaseMessages,
    NackById,
    NoteConsumerUse,
    OpenConsumer,
    Purge,
    SettleLease,
    SweepKind,
)
from forq_trio.model.consumers.types import Settling, consumer_key
from forq_trio.model.errors import (
    ConsumerFenced,
    ConsumerNotFound,
    LeaseGone,
    LeaseOutOfOrder,
    LeasesFull,
    TooManyConsumers,
)
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.messages.types import LEASE_ENDED, QueueCounts
from forq_trio.storage.engine import DEFERRED, Batch

from .engines import on_sql
from .script import DAY_MS, T0, configure, counted, do, drain, look, pause, receive, run, send, sweep

LINES = msgspec.json.Decoder(ExportedMessage)
ACKNOWLEDGE, RELEASE, EXPIRE = Settling


@pytest.fixture(autouse=True)
def _two_messages_a_page(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 2)


def open_k(engine, idle_ms=None, now=T0, name="k"):
    return do(engine, OpenConsumer("q", name, idle_ms), now)


def step(engine, number=1, most=100, size=10**9, *, generation=1, now=T0, name="k"):
    return do(engine, LeaseMessages("q", name, generation, number, most, size), now)


def lease(engine, number=1, most=100, **options):
    """The consumer when the lease is complete, or was not made."""
    while (consumer := step(engine, number, most, **options)).open is not None and not consumer.complete:
        pass
    return consumer


def settle_step(engine, number=1, how=ACKNOWLEDGE, *, generation=None, now=T0):
    return do(engine, SettleLease("q", "k", generation, number, how), now)


def settle(engine, number=1, how=ACKNOWLEDGE, **options):
    """The consumer when the lease is settled."""
    while (consumer := settle_step(engine, number, how, **options)).open is not None:
        pass
    return consumer


def stored(engine, name="k"):
    return engine.snapshot().consumers[consumer_key("q", name)]


def read(engine, number=1, first=0, count=99, name="k"):
    """The contents of these pages."""
    reader = engine.open_reader()
    try:
        pages = reader.lease_pages("q", name, number, first, count)
    finally:
        reader.close()
    return [[line.content for line in LINES.decode_lines(page)] for page in pages]


def send_each(engine, contents, **fields):
    return [send(engine, content, **fields) for content in contents]


@on_sql
def test_a_step_makes_and_settles_several_pages_and_fewer_beside_others(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 8)

    def batch(command, shared):
        (outcome,) = engine.execute_batch(Batch([command], T0, shared=shared)).outcomes
        engine.commit()
        return outcome

    open_k(engine)
    send_each(engine, "abcdefghijklm")
    make = LeaseMessages("q", "k", 1, 1, 100, 10**9)
    assert [batch(make, shared).open.pages for shared in (True, False)] == [1, 5]
    assert lease(engine).open.pages == 7
    assert read(engine, 1, 4) == [["i", "j"], ["k", "l"], ["m"]]
    settling = SettleLease("q", "k", 1, 1, ACKNOWLEDGE)
    assert [batch(settling, shared).settled_pages for shared in (True, False)] == [1, 5]
    assert settle(engine).acknowledged == 1
    assert counted(engine) == {"q": QueueCounts()}


@on_sql
def test_a_lease_is_made_page_by_page_and_read_again_and_again(engine):
    open_k(engine)
    send_each(engine, "abcde")
    assert (step(engine).open.messages, step(engine).complete) == (2, False)
    assert read(engine) == [["a", "b"], ["c", "d"]]
    consumer = lease(engine)
    assert (consumer.leased, consumer.open.messages, consumer.open.pages) == (1, 5, 3)
    send(engine, "later")
    assert lease(engine) == consumer
    assert read(engine) == [["a", "b"], ["c", "d"], ["e"]]
    assert read(engine, 1, 1, 1) == [["c", "d"]]
    assert read(engine, 1, 3) == read(engine, 2) == []
    assert counted(engine) == {"q": QueueCounts(ready=1, processing=5)}


def test_a_line_has_the_message_with_this_delivery_counted(engine):
    open_k(engine)
    plain = send(engine, "plain")
    rich = send(engine, "größe\n", priority=7, group="g", attributes={"k": "ü"}, now=T0 + 1)
    lease(engine, now=T0 + 5)
    reader = engine.open_reader()
    lines = LINES.decode_lines(b"".join(reader.lease_pages("q", "k", 1, 0, 9)))
    reader.close()
    assert lines == [
        ExportedMessage(plain.id, "q", plain.sequence, "plain", T0, 1),
        ExportedMessage(
            rich.id, "q", rich.sequence, "größe\n", T0 + 1, 1, 7, group="g", attributes={"k": "ü"}
        ),
    ]
    message = look(engine, plain.id)
    assert (message.status, message.attempts) == ("processing", 1)
    assert message.lease_until > T0 + 1_000 * DAY_MS


def test_claim_order_pause_and_the_group_limit_hold(engine):
    open_k(engine)
    configure(engine, group_in_flight_max=1)
    send_each(engine, "ab", group="g")
    send(engine, "urgent", priority=500)
    pause(engine)
    assert lease(engine).open is None
    pause(engine, paused=False)
    lease(engine)
    assert read(engine) == [["urgent", "a"]]
    settle(engine)
    run(engine)
    lease(engine, 2)
    assert read(engine, 2) == [["b"]]


def test_a_message_that_was_delivered_too_often_is_not_leased(engine):
    open_k(engine)
    send(engine, "worn")
    receive(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    configure(engine, max_attempts=1)
    send(engine, "fresh", now=T0 + 10)
    lease(engine, now=T0 + 10)
    assert read(engine) == [["fresh"]]


def test_bounds_end_a_lease(engine):
    open_k(engine)
    send_each(engine, "abcde")
    consumer = lease(engine, most=3)
    assert (consumer.open.messages, consumer.complete) == (3, True)
    settle(engine)
    assert lease(engine, 2, size=1).open.messages == 2
    assert lease(engine, 2, size=1).open.bytes == sum(len(page) for page in raw(engine, 2))


def raw(engine, number):
    reader = engine.open_reader()
    pages = reader.lease_pages("q", "k", number, 0, 99)
    reader.close()
    return pages


def test_without_messages_a_lease_is_not_made(engine):
    open_k(engine)
    assert lease(engine).leased == 0
    send(engine, "a")
    assert lease(engine).leased == 1


@on_sql
def test_an_acknowledged_lease_is_removed_and_still_read(engine):
    open_k(engine)
    send_each(engine, "abc")
    lease(engine)
    half = settle_step(engine)
    assert (half.acknowledged, half.settling, half.settled_pages) == (0, ACKNOWLEDGE, 1)
    assert counted(engine) == {"q": QueueCounts(processing=1)}
    result = run(engine, SettleLease("q", "k", 1, 1, ACKNOWLEDGE))
    assert [(event.kind, event.count) for event in result.events] == [("acked", 1)]
    assert result.outcomes[0].acknowledged == 1
    assert settle(engine) == stored(engine)
    assert read(engine) == [["a", "b"], ["c"]]
    assert counted(engine) == {"q": QueueCounts()}


@on_sql
def test_what_somebody_else_settled_is_left_alone(engine):
    open_k(engine)
    first, second, third, fourth = send_each(engine, "abcd")
    lease(engine)
    assert do(engine, AckById("q", first.id))
    assert do(engine, NackById("q", second.id))
    (again,) = receive(engine, now=T0 + 2_000)
    assert again.id == second.id
    result = run(engine, SettleLease("q", "k", None, 1, ACKNOWLEDGE), now=T0 + 2_000)
    assert result.events == []
    settle(engine, now=T0 + 2_000)
    assert look(engine, second.id).status == "processing"
    assert look(engine, third.id) is look(engine, fourth.id) is None


def test_a_purge_empties_the_queue_and_not_the_pages(engine):
    open_k(engine)
    send_each(engine, "ab")
    lease(engine)
    do(engine, Purge("q"))
    assert read(engine) == [["a", "b"]]
    assert settle(engine).acknowledged == 1


def test_a_released_lease_gives_everything_back_uncounted(engine):
    open_k(engine)
    sent = send_each(engine, "abc")
    lease(engine)
    settle_step(engine, how=RELEASE, generation=1)
    assert isinstance(step(engine), LeaseGone)
    assert isinstance(settle_step(engine), LeaseGone)
    consumer = settle(engine, how=RELEASE)
    assert (consumer.released_before, consumer.acknowledged, consumer.leased) == (2, 0, 1)
    assert read(engine) == []
    assert look(engine, sent[0].id).attempts == 0
    assert isinstance(settle_step(engine), LeaseGone)
    assert isinstance(step(engine), LeaseGone)
    assert settle_step(engine, how=RELEASE) == consumer
    lease(engine, 2)
    assert read(engine, 2) == [["a", "b"], ["c"]]


def test_an_acknowledgement_that_has_begun_is_finished_by_a_release(engine):
    open_k(engine)
    send_each(engine, "abc")
    lease(engine)
    settle_step(engine)
    assert settle(engine, how=RELEASE).acknowledged == 1
    assert counted(engine) == {"q": QueueCounts()}


def test_a_lease_of_an_unused_consumer_ends_with_the_attempt_counted(engine):
    open_k(engine, 60_000)
    sent = send_each(engine, "abc")
    lease(engine)
    before = stored(engine)
    assert settle_step(engine, how=EXPIRE, now=T0 + 59_999) == before
    do(engine, NoteConsumerUse("q", "k"), T0 + 30_000)
    do(engine, NoteConsumerUse("q", "nobody"), T0 + 30_000)
    assert settle_step(engine, how=EXPIRE, now=T0 + 60_000).settling is None
    consumer = settle(engine, how=EXPIRE, now=T0 + 90_000)
    assert consumer.released_before == 2
    message = look(engine, sent[0].id)
    assert (message.status, message.attempts) == ("ready", 1)
    assert message.failures[0].reason == LEASE_ENDED
    assert isinstance(step(engine, now=T0 + 90_000), LeaseGone)


@pytest.mark.usefixtures("failed_stay")
def test_ended_at_the_last_attempt_it_becomes_a_dead_letter(engine):
    open_k(engine, 60_000)
    send(engine, "a", max_attempts=1)
    lease(engine)
    result = run(engine, SettleLease("q", "k", None, 1, EXPIRE), now=T0 + 60_000)
    assert result.failed_queued
    sweep(engine, SweepKind.FAILED, now=T0 + 60_000)
    assert drain(engine, queue="q-dlq", now=T0 + 60_000) == ["a"]


@on_sql
def test_numbers_have_an_order(engine):
    open_k(engine)
    send_each(engine, "abcd")
    assert isinstance(step(engine, 2), LeaseOutOfOrder)
    assert isinstance(settle_step(engine, 1), LeaseOutOfOrder)
    step(engine, 1, 3)
    assert isinstance(settle_step(engine, 1), LeaseOutOfOrder)
    lease(engine, 1, 3)
    assert isinstance(step(engine, 2), LeaseOutOfOrder)
    assert isinstance(settle_step(engine, 2), LeaseOutOfOrder)
    settle(engine)
    assert lease(engine, 1, 3) == stored(engine)
    assert lease(engine, 2).leased == 2


def test_an_older_generation_is_fenced(engine):
    assert open_k(engine).generation == 1
    send_each(engine, "ab")
    lease(engine)
    assert open_k(engine, 90_000, T0 + 5).generation == 2
    for outcome in (step(engine), settle_step(engine, generation=1)):
        assert isinstance(outcome, ConsumerFenced)
    consumer = open_k(engine)
    assert (consumer.generation, consumer.idle_ms, consumer.open.messages) == (3, 90_000, 2)
    assert settle(engine, generation=3).acknowledged == 1


def test_only_the_newest_acknowledged_leases_are_kept(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_STEP_DROPPED_MAX", 1)
    open_k(engine)
    for number in range(1, 6):
        send_each(engine, "abc")
        lease(engine, number)
        settle(engine, number)
    assert [kept.number for kept in stored(engine).kept] == [3, 4, 5]
    assert isinstance(step(engine, 2), LeaseGone)
    while stored(engine).dropping:
        do(engine, DropPages("q", "k"))
    assert read(engine, 1) == read(engine, 2) == []
    assert len(read(engine, 3)) == 2
    assert do(engine, DropPages("q", "nobody")) is None


def test_kept_leases_have_a_bound_in_bytes(engine, monkeypatch):
    open_k(engine)
    send(engine, "a")
    size = lease(engine).open.bytes
    settle(engine)
    monkeypatch.setattr(limits, "CONSUMER_KEPT_BYTES_MAX", 2 * size - 1)
    send(engine, "b")
    lease(engine, 2)
    settle(engine, 2)
    assert [kept.number for kept in stored(engine).kept] == [2]


def test_a_consumer_is_forgotten_with_its_pages(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_STEP_DROPPED_MAX", 1)
    open_k(engine)
    send_each(engine, "abc")
    lease(engine)
    settle(engine)
    send(engine, "d")
    lease(engine, 2)
    settle(engine, 2, RELEASE, generation=1)
    while do(engine, ForgetConsumer("q", "k")) is not None:
        assert stored(engine).kept == ()
    assert read(engine) == []
    assert isinstance(step(engine), ConsumerNotFound)
    assert isinstance(settle_step(engine), ConsumerNotFound)
    assert do(engine, ForgetConsumer("q", "k")) is None
    assert engine.snapshot().consumers == {}


def test_no_generation_comes_back_after_a_consumer_was_forgotten(engine):
    old = open_k(engine).generation
    assert do(engine, ForgetConsumer("q", "k")) is None
    new = open_k(engine).generation
    assert new > old
    send_each(engine, "ab")
    assert isinstance(step(engine, generation=old), ConsumerFenced)
    assert lease(engine, generation=new).leased == 1
    assert isinstance(settle_step(engine, generation=old), ConsumerFenced)


def test_whoever_has_a_consumer_open_is_fenced_from_the_first_command_that_forgets_it(engine):
    open_k(engine)
    send_each(engine, "abc")
    lease(engine)
    fenced = do(engine, ForgetConsumer("q", "k"))
    assert (fenced.generation, fenced.open.number) == (2, 1)
    assert isinstance(step(engine, 1), ConsumerFenced)
    assert isinstance(settle_step(engine, generation=1), ConsumerFenced)
    assert settle(engine, how=RELEASE, generation=2).generation == 2
    assert open_k(engine).generation == 3
    assert isinstance(do(engine, ForgetConsumer("q", "k", 2)), ConsumerFenced)
    assert do(engine, ForgetConsumer("q", "k", 3)) is None


def test_a_release_fences_whoever_has_the_consumer_open(engine):
    open_k(engine)
    send_each(engine, "abc")
    lease(engine)
    assert settle(engine, how=RELEASE).generation == 2
    assert isinstance(step(engine, 2), ConsumerFenced)
    assert settle_step(engine, how=RELEASE).generation == 2


def test_kept_pages_of_an_idle_consumer_are_dropped(engine):
    open_k(engine, 60_000)
    send_each(engine, "abc")
    lease(engine)
    settle(engine)
    assert [kept.number for kept in do(engine, DropPages("q", "k"), T0 + 59_999).kept] == [1]
    consumer = do(engine, DropPages("q", "k"), T0 + 60_000)
    assert (consumer.kept, consumer.dropping, consumer.stored_bytes) == ((), (), 0)
    assert read(engine) == []


@on_sql
def test_kept_pages_are_evicted_before_a_lease_is_refused(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_STEP_DROPPED_MAX", 1)
    for now, name in enumerate("klm"):
        open_k(engine, name=name, now=T0 + now)
    for now, name in enumerate("lk"):
        send_each(engine, "abc")
        lease(engine, name=name, now=T0 + 5 + now)
        while do(engine, SettleLease("q", name, 1, 1, ACKNOWLEDGE), T0 + 5 + now).open is not None:
            pass
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_MAX", stored(engine).stored_bytes + 1)
    send_each(engine, "ab")
    while (outcome := step(engine, name="m")) is DEFERRED:
        pass
    assert outcome.open.messages == 2
    assert (read(engine, name="l"), stored(engine, "l").kept) == ([], ())
    assert read(engine) == [["a", "b"], ["c"]]


def test_an_empty_lease_stores_the_use_only_now_and_then(engine):
    before = open_k(engine)
    assert step(engine, now=T0 + limits.CONSUMER_USE_SAVE_MS - 1) == before
    noted = step(engine, now=T0 + limits.CONSUMER_USE_SAVE_MS)
    assert noted.used_at == T0 + limits.CONSUMER_USE_SAVE_MS


def test_there_are_bounds(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMERS_MAX", 2)
    open_k(engine)
    open_k(engine, name="l")
    assert isinstance(open_k(engine, name="m"), TooManyConsumers)
    assert open_k(engine, name="l").generation == 2
    send_each(engine, "abcdef")
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_MAX", 1)
    assert lease(engine).open.messages == 2
    assert isinstance(step(engine, name="l", generation=2), LeasesFull)


@on_sql
def test_a_batch_leases_and_settles_one_page_the_rest_is_deferred(engine):
    open_k(engine)
    open_k(engine, name="l")
    send_each(engine, "abcd")
    commands = [LeaseMessages("q", name, 1, 1, 100, 10**9) for name in "kl"]
    first, second = run(engine, *commands).outcomes
    assert (first.open.messages, second) == (2, DEFERRED)
    lease(engine)
    commands = [SettleLease("q", "k", 1, 1, ACKNOWLEDGE)] * 2
    first, second = run(engine, *commands).outcomes
    assert (first.settled_pages, second) == (1, DEFERRED)


def test_two_consumers_share_a_queue(engine):
    open_k(engine)
    open_k(engine, name="l")
    send_each(engine, "abcd")
    lease(engine, most=2)
    lease(engine, name="l")
    assert (read(engine), read(engine, name="l")) == ([["a", "b"]], [["c", "d"]])


def test_only_what_is_committed_is_told(engine):
    open_k(engine)
    from forq_trio.storage.engine import Batch

    send(engine, "a")
    engine.execute_batch(Batch([LeaseMessages("q", "k", 1, 1, 9, 9)], T0))
    assert stored(engine).open is None
    engine.commit()
    assert stored(engine).open is not None


@on_sql
@pytest.mark.parametrize("group_limit", [None, 10])
def test_a_page_is_bounded_in_the_bytes_of_its_lines(engine, monkeypatch, group_limit):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 100)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 100)
    monkeypatch.setattr(limits, "CONSUMER_STEP_BYTES_MAX", 5_000)
    configure(engine, group_in_flight_max=group_limit)
    for number in range(5):
        send(engine, f"{number}" + "\u0001" * 400, group="g" if group_limit else None)
    open_k(engine)
    assert [stored_after.open.messages for stored_after in (step(engine), step(engine), step(engine))] == [
        2,
        4,
        5,
    ]
    assert [[content[0] for content in page] for page in read(engine)] == [["0", "1"], ["2", "3"], ["4"]]
