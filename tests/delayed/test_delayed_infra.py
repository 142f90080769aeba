"""Isolation, payloads, set-up and errors that pass."""

from dataclasses import dataclass
from datetime import date

import msgspec
import pytest
import trio

from forq_trio import (
    InvalidContent,
    InvalidJson,
    InvalidQueueName,
    Overloaded,
    QueueFull,
    StorageFull,
    StorageUnavailable,
    open_broker,
)
from forq_trio.delayed import DelayedQueue, QueueUnavailable, Scheduled, UnreadablePayload
from forq_trio.delayed.retry import with_retries
from forq_trio.model.errors import ForqUnreachable
from forq_trio.model.keys.types import Offering
from forq_trio.model.limits import TTL_MS_MAX
from support.actors import TrioClock, all_idle

from .letters import ACQUIRE_MS, A, Letter, after, take


@dataclass
class Point:
    x: int
    on: date


@pytest.fixture
def make(face):
    """Makes a queue over the face of the test."""

    async def make(name="mail", payload_type=Letter, **options) -> DelayedQueue:
        return await DelayedQueue.create(face.methods, name, payload_type, clock=TrioClock(), **options)

    return make


async def test_d36_names_and_kinds_do_not_see_each_other(make) -> None:
    queues = [await make(), await make("post"), await make(kind="Other"), await make("mail.Letter")]
    for number, queue in enumerate(queues):
        assert await queue.offer_or_update("k", Letter("same", number)) == "created"
    for number, queue in enumerate(queues):
        assert [each.payload.page for each in (await queue.try_poll_many(9)).messages] == [number]
        assert (await queue.read("k")).payload.page == number


@pytest.mark.parametrize("kind", ["", "a.b", "x-dlq", "dict[str, int]", "é", "k" * 101])
def test_d36_a_kind_that_would_not_separate_is_refused(kind) -> None:
    with pytest.raises(ValueError, match="kind"):
        DelayedQueue(None, "mail", Letter, kind=kind)


def test_d36_a_name_that_is_too_long_is_refused() -> None:
    DelayedQueue(None, "n" * (64 - len(".Letter")), Letter)
    with pytest.raises(InvalidQueueName):
        DelayedQueue(None, "n" * (65 - len(".Letter")), Letter)


class Reversed:
    def encode(self, payload: str) -> str:
        return payload[::-1]

    def decode(self, content: str) -> str:
        return content[::-1]


FORMS = (
    (str, 'plain "text" é', 'plain "text" é'),
    (bytes, b"\x00\xff", "AP8="),
    (dict, {"b": 1, "a": [None, 2.5]}, '{"a":[null,2.5],"b":1}'),
    (Point, Point(1, date(2025, 1, 2)), '{"x":1,"on":"2025-01-02"}'),
    (Letter, A, '{"to":"anna","page":1}'),
    (int, 7, "7"),
)


async def test_d37_each_type_has_its_form(make) -> None:
    for payload_type, payload, content in FORMS:
        queue = await make(payload_type=payload_type)
        await queue.offer_or_update("k", payload)
        stored = await queue.source.keyed_message(queue.name, "k", queue.kind)
        assert (stored.message.content, queue.kind) == (content, payload_type.__name__)
        assert (await take(queue)).payload == payload


async def test_d37_any_object_that_encodes_and_decodes(make) -> None:
    queue = await make(payload_type=str, serializer=Reversed())
    await queue.offer_or_update("k", "abc")
    assert (await queue.source.keyed_message(queue.name, "k", "str")).message.content == "cba"
    assert (await take(queue)).payload == "abc"


async def test_d37_what_cannot_be_read_is_set_aside_and_the_rest_goes_on(make, face, caplog) -> None:
    told = []
    queue = await make(on_set_aside=told.append)
    await offer_raw(queue, "bad", '{"to": 7}')
    await offer_raw(queue, "worse", "no JSON")
    await queue.offer_or_update("good", A)
    assert (await take(queue)).message_id == "good"
    assert [(each.message_id, each.content, each.source) for each in told] == [
        ("bad", '{"to": 7}', queue.name),
        ("worse", "no JSON", queue.name),
    ]
    assert "$.to" in told[0].reason
    assert "bad" in caplog.text
    dead = (await queue.source.search_dead_letters("mail.Letter-dlq")).messages
    assert sorted(each.content for each in dead) == ["no JSON", '{"to": 7}']
    assert {each.last_error for each in dead} == {each.reason for each in told}
    await face.advance(ACQUIRE_MS)
    assert (await take(queue)).message_id == "good"


async def offer_raw(queue, key: str, content: str, kind: str | None = None) -> None:
    (offered,) = await queue.source.offer_many(
        queue.name, [Offering(content, key=key, kind=queue.kind if kind is None else kind)]
    )
    assert offered.outcome == "created"


async def test_d37_a_batch_of_nothing_readable_is_empty_and_ends(make) -> None:
    queue = await make()
    await queue.source.offer_many(
        queue.name, [Offering("no JSON", key=f"{number}", kind=queue.kind) for number in range(250)]
    )
    assert (await queue.try_poll_many(1_000)).messages == ()
    assert (await queue.source.queue_stats("mail.Letter-dlq")).ready == 250


async def test_d37_a_message_of_something_else_is_set_aside(make) -> None:
    told = []
    queue = await make(on_set_aside=told.append)
    sent = await queue.source.produce(queue.name, '{"to": "anna"}')
    await offer_raw(queue, "k", '{"to": "anna"}', kind="Other")
    assert await queue.try_poll() is None
    assert [each.message_id for each in told] == [sent.id, "k"]
    assert "no key" in told[0].reason
    assert "'Other'" in told[1].reason


async def test_d37_where_there_are_no_dead_letters_it_is_out_of_the_way_and_not_lost(make, face) -> None:
    told = []
    queue = await make(on_set_aside=told.append)
    await queue.source.configure(queue.name, dead_letter_queue="")
    await offer_raw(queue, "bad", "no JSON")
    assert await queue.try_poll() is None
    await face.advance(12 * 3_600_000 - 1)
    assert await queue.try_poll() is None
    assert len(told) == 1
    assert await queue.contains_message("bad")
    with pytest.raises(UnreadablePayload, match="bad"):
        await queue.read("bad")


async def test_d37_what_json_has_not_is_refused_when_it_is_offered(make) -> None:
    queue = await make(payload_type=float)
    for number in (float("nan"), float("inf")):
        with pytest.raises(InvalidJson, match="which JSON has no number for"):
            await queue.offer_or_update("k", number)
        with pytest.raises(InvalidJson, match="which JSON has no number for"):
            await queue.offer_batch([Scheduled("k", number)])
    assert not await queue.contains_message("k")


async def test_d37_what_is_nested_too_deep_is_set_aside(make, face) -> None:
    told = []
    queue = await make(payload_type=list, on_set_aside=told.append)
    await offer_raw(queue, "k", "[" * 1_000 + "]" * 1_000)
    assert await queue.try_poll() is None
    assert "nested deeper than 100 levels" in told[0].reason


async def test_d37_a_reason_of_any_length_is_stored(make) -> None:
    class Wordy(Reversed):
        def decode(self, content: str) -> str:
            raise ValueError("\ud800 \0 é" * 2_000)

    queue = await make(payload_type=str, serializer=Wordy())
    await queue.offer_or_update("k", "x")
    assert await queue.try_poll() is None
    (dead,) = (await queue.source.search_dead_letters(f"{queue.name}-dlq")).messages
    assert len(dead.last_error) == 1_024


async def test_a_payload_that_is_none_is_refused_by_the_offer(make) -> None:
    queue = await make()
    with pytest.raises(TypeError):
        await queue.offer_or_update("k", Letter(object()))
    assert not await queue.contains_message("k")


async def test_a_content_that_is_no_text_is_refused_alone(make) -> None:
    queue = await make(payload_type=str)
    found = await queue.offer_batch([Scheduled("a", "\ud800"), Scheduled("b", "fine")])
    assert [each.outcome for each in found] == [None, "created"]
    assert isinstance(found[0].error, InvalidContent)


async def test_d38_set_up_twice_changes_nothing_the_second_time(make) -> None:
    queue = await make()
    first = await queue.source.settings(queue.name)
    assert (first.effective.order, first.effective.lease_ms, first.effective.ttl_ms) == (
        "due",
        ACQUIRE_MS,
        TTL_MS_MAX,
    )
    changes = []

    class Watched:
        settings = queue.source.settings

        async def configure(self, name, **wanted) -> None:
            changes.append(wanted)
            await trio.lowlevel.checkpoint()

    watched = Watched()
    await DelayedQueue.create(watched, "mail", Letter)
    assert changes == []
    await DelayedQueue.create(watched, "mail", Letter, deliveries_max=3)
    assert [each["max_attempts"] for each in changes] == [3]


async def test_d39_a_year_passes_without_waiting(queue, face) -> None:
    await queue.offer_or_update("k", A, after(365 * 86_400))
    await face.advance(365 * 86_400_000 - 1)
    assert await queue.try_poll() is None
    await face.advance(1)
    assert (await take(queue)).payload == A


class Failing:
    """Fails as it is told, then works. calls: the simulated times of the calls."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[float] = []

    async def __call__(self) -> str:
        self.calls.append(round(trio.current_time(), 3))
        await trio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_d40_errors_that_pass_are_tried_again_with_growing_pauses(autojump_clock) -> None:
    call = Failing(StorageUnavailable(), Overloaded(), ForqUnreachable(sent=False), StorageUnavailable())
    assert await with_retries(call, 10, repeatable=False) == "done"
    assert call.calls == [0, 0.05, 0.15, 0.35, 0.75]


async def test_d40_the_budget_is_honoured_and_ends_in_one_error(autojump_clock) -> None:
    call = Failing(*[StorageUnavailable("busy") for _ in range(100)])
    with pytest.raises(QueueUnavailable, match="busy"):
        await with_retries(call, 10, repeatable=True)
    assert 8 < call.calls[-1] <= 10
    assert max(b - a for a, b in zip(call.calls, call.calls[1:], strict=False)) <= 2.001


async def test_d40_no_budget_is_one_try(autojump_clock) -> None:
    call = Failing(Overloaded())
    with pytest.raises(QueueUnavailable):
        await with_retries(call, 0, repeatable=True)
    assert call.calls == [0]


@pytest.mark.parametrize("error", [StorageFull(), QueueFull(), InvalidQueueName(), ValueError("x")])
async def test_d40_other_errors_are_not_tried_again(autojump_clock, error) -> None:
    call = Failing(error)
    with pytest.raises(type(error)):
        await with_retries(call, 10, repeatable=True)
    assert len(call.calls) == 1


async def test_d40_a_poll_ends_at_once_when_its_broker_stops() -> None:
    ended = []

    async def work(queue: DelayedQueue) -> None:
        with pytest.raises(QueueUnavailable):
            await queue.poll()
        ended.append(trio.current_time())

    async with trio.open_nursery() as nursery, open_broker("memory:") as broker:
        nursery.start_soon(work, await DelayedQueue.create(broker, "mail", Letter))
        while (await broker.queue_stats("mail.Letter")).waiting != 1:
            await trio.lowlevel.checkpoint()
        stopped = trio.current_time()
    assert ended == [pytest.approx(stopped, abs=0.01)]


@pytest.mark.parametrize(("repeatable", "calls"), [(True, 2), (False, 1)])
async def test_d40_what_was_perhaps_done_is_repeated_only_if_it_may_be(
    autojump_clock, repeatable, calls
) -> None:
    call = Failing(ForqUnreachable(sent=True))
    if repeatable:
        assert await with_retries(call, 10, repeatable=True) == "done"
    else:
        with pytest.raises(QueueUnavailable):
            await with_retries(call, 10, repeatable=False)
    assert len(call.calls) == calls


async def test_d40_a_queue_tries_again(make, face) -> None:
    """The clock is moved by hand: one that jumps by itself passes over the time-outs of a client's sockets."""
    queue = await make()
    offer_many, failures = queue.source.offer_many, [StorageUnavailable(), Overloaded()]
    failed, offered = trio.Event(), trio.Event()

    class Shaky:
        async def offer_many(self, name, offers) -> list:
            if failures:
                failed.set()
                await trio.lowlevel.checkpoint()
                raise failures.pop()
            return await offer_many(name, offers)

    async def offer() -> None:
        assert (await queue.offer_batch([Scheduled("k", A)]))[0].outcome == "created"
        offered.set()

    source, queue.source = queue.source, Shaky()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(offer)
        for pause_ms in (50, 100):
            await failed.wait()
            failed = trio.Event()
            await all_idle()
            await face.advance(pause_ms)
        await offered.wait()
    queue.source = source
    assert failures == []
    assert await queue.contains_message("k")
    assert (
        msgspec.json.decode((await source.keyed_message(queue.name, "k", "Letter")).message.content)["to"]
        == "anna"
    )
