"""Settings at their bounds and past them, pause, purge and removal, by the broker."""

from typing import Any

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.errors import InvalidQueueName, InvalidSetting, QueueNotFound
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import ExponentialBackOff, Order, Overflow
from forq_trio.model.queues.settings import QueueSettings

RANGES = [
    ("lease_ms", "leaseMs", 0, limits.LEASE_MS_MAX),
    ("delay_ms", "delayMs", 0, limits.DELAY_MS_MAX),
    ("ttl_ms", "ttlMs", 1, limits.TTL_MS_MAX),
    ("max_attempts", "maxAttempts", 1, limits.MAX_ATTEMPTS_MAX),
    ("deduplication_window_ms", "deduplicationWindowMs", 1, limits.DEDUPLICATION_WINDOW_MS_MAX),
    ("max_messages", "maxMessages", 1, limits.QUEUE_MESSAGES_MAX),
    ("max_bytes", "maxBytes", 1, limits.QUEUE_BYTES_MAX),
    ("group_in_flight_max", "groupInFlightMax", 1, limits.GROUP_IN_FLIGHT_MAX),
]
LONGEST = limits.NACK_DELAY_MS_MAX


async def refused(broker, **change: Any) -> InvalidSetting:
    """The error of a change that changes nothing."""
    before = broker.known.settings_of("q")
    with pytest.raises(InvalidSetting) as refusal:
        await broker.configure("q", **change)
    assert broker.known.settings_of("q") == before
    return refusal.value


async def test_ranges(broker) -> None:
    for name, member, low, high in RANGES:
        for value in (low, low + 1, high - 1, high):
            settings = await broker.configure("q", **{name: value})
            assert getattr(settings.settings, name) == getattr(settings.effective, name) == value
        for value in (low - 1, high + 1, -(2**63), 2**63):
            error = await refused(broker, **{name: value})
            assert (error.field, error.member) == (name, member)
            assert str(error) == f"{name}: it must be between {low} and {high}, not {value}"
        assert (await broker.configure("q", **{name: None})).settings == QueueSettings()


async def test_back_offs(broker) -> None:
    for back_off in (
        (0,),
        (LONGEST,) * limits.BACKOFF_STEPS_MAX,
        ExponentialBackOff(1, 1, 1, 0),
        ExponentialBackOff(LONGEST, limits.BACKOFF_FACTOR_MAX, LONGEST, 1),
    ):
        assert (await broker.configure("q", back_off=back_off)).settings.back_off == back_off


async def test_back_offs_out_of_range(broker) -> None:
    for back_off in (
        (),
        (1,) * (limits.BACKOFF_STEPS_MAX + 1),
        (-1,),
        (1, LONGEST + 1),
        ExponentialBackOff(0),
        ExponentialBackOff(LONGEST + 1),
        ExponentialBackOff(1, factor=0.9),
        ExponentialBackOff(1, factor=limits.BACKOFF_FACTOR_MAX + 0.1),
        ExponentialBackOff(1, factor=float("nan")),
        ExponentialBackOff(1, max_ms=LONGEST + 1),
        ExponentialBackOff(2, max_ms=1),
        ExponentialBackOff(1, jitter=-0.1),
        ExponentialBackOff(1, jitter=1.1),
        ExponentialBackOff(1, jitter=float("nan")),
    ):
        assert (await refused(broker, back_off=back_off)).field == "back_off"


async def test_targets_of_dead_letters(broker) -> None:
    for name in ("", "other", "x" * 64, "q-dlq"):
        await broker.configure("q", dead_letter_queue=name)
    for name in ("q", " ", "x" * 65):
        assert (await refused(broker, dead_letter_queue=name)).field == "dead_letter_queue"


async def test_a_queue_without_settings_is_virtual(broker) -> None:
    with pytest.raises(QueueNotFound):
        await broker.settings("q")
    assert (await broker.configure("q")).settings == QueueSettings()
    assert broker.known.settings() == {}
    await broker.configure("q", overflow=Overflow.DROP_OLDEST, order=Order.LIFO)
    assert broker.known.settings() == {"q": QueueSettings(overflow=Overflow.DROP_OLDEST, order=Order.LIFO)}
    await broker.reset_settings("q")
    assert broker.known.settings() == {}
    with pytest.raises(QueueNotFound):
        await broker.pause("q")
    await broker.configure("q", lease_ms=7)
    await broker.pause("q")
    await broker.reset_settings("q")
    assert broker.known.settings() == {"q": QueueSettings(paused=True)}
    await broker.resume("q")
    assert broker.known.settings() == broker.known.counts() == {}
    assert await broker.queues() == []


async def test_names_are_checked(broker) -> None:
    for call in (
        broker.reset_settings,
        broker.pause,
        broker.resume,
        broker.purge,
        broker.delete_queue,
        broker.settings,
    ):
        with pytest.raises(InvalidQueueName):
            await call("no name")
    with pytest.raises(InvalidQueueName):
        await broker.configure("no name")
    with pytest.raises(InvalidQueueName):
        broker.known.rules("no name")


async def test_a_purge_leaves_what_is_sent_while_it_goes_on(broker) -> None:
    """It is done in parts; those who send meanwhile are served between them."""
    for _ in range(3):
        await broker.produce_many("q", [NewMessage("old")] * limits.PURGE_BATCH_MAX)
    removed: list[int] = []

    async def purge() -> None:
        removed.append(await broker.purge("q"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(purge)
        while broker.known.counts()["q"].total == 3 * limits.PURGE_BATCH_MAX:
            await trio.lowlevel.checkpoint()
        await broker.produce("q", "new")
    assert removed == [3 * limits.PURGE_BATCH_MAX]
    assert [delivery.content for delivery in await broker.receive("q", max_messages=9, wait_ms=0)] == ["new"]


async def test_a_purge_that_is_cancelled_stops(broker) -> None:
    for _ in range(4):
        await broker.produce_many("q", [NewMessage("x")] * limits.PURGE_BATCH_MAX)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.purge, "q")
        while broker.known.counts()["q"].total == 4 * limits.PURGE_BATCH_MAX:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    await broker.healthcheck()
    left = broker.known.counts()["q"].total
    assert left % (limits.PURGE_BATCH_MAX // limits.STEP_SHARE) == 0
    await broker.healthcheck()
    assert broker.known.counts()["q"].total == left > 0


async def test_a_queue_whose_name_ends_in_fifo_has_strict_groups(broker) -> None:
    with pytest.raises(InvalidSetting, match="strict groups") as refusal:
        await broker.configure("x.fifo", group_order="fair")
    assert refusal.value.field == "group_order"
    for wanted in ("strict", None):
        settings = await broker.configure("x.fifo", group_order=wanted)
        assert settings.effective.group_order == "strict"
