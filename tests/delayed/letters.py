"""Payloads, times and short words of these tests."""

from datetime import datetime, timedelta

import msgspec

from forq_trio.delayed import AckEnvelope, DelayedQueue
from forq_trio.delayed.cron import of_epoch_ms
from support.actors import T0, TrioClock

MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
ACQUIRE_MS = 5 * 60_000


class Letter(msgspec.Struct, frozen=True):
    to: str
    page: int = 1


A, B, C = Letter("anna"), Letter("bela"), Letter("cora", 3)


def after(seconds: float) -> datetime:
    """The time so many seconds after the start of a test."""
    return of_epoch_ms(T0 + round(seconds * 1_000))


def now() -> datetime:
    return of_epoch_ms(TrioClock().now_ms())


async def take(queue: DelayedQueue[Letter]) -> AckEnvelope[Letter]:
    """The message that is due."""
    envelope = await queue.try_poll()
    assert envelope is not None, "nothing is due"
    return envelope


async def take_all(queue: DelayedQueue[Letter]) -> list[str]:
    """Acknowledge everything that is due; the keys."""
    batch = await queue.try_poll_many(1_000)
    await batch.acknowledge()
    return [each.message_id for each in batch.messages]
