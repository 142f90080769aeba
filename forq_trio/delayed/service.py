"""Cron over a delayed queue: messages of ticks are offered ahead of time, under keys that name their schedule and tick.

At each interval every node that runs a schedule offers the same keys, and a key has one pending message at most. A node
whose clock is slow could offer a tick again that was just delivered. So no node offers ticks of the next 10 s, which
were offered at earlier intervals. For that neither node nor server has to remember anything.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import anyio

from forq_trio.delayed import cron
from forq_trio.delayed.cron import CronConfigHash, CronDailySchedule, CronMessage
from forq_trio.delayed.offers import Scheduled
from forq_trio.delayed.queue import DelayedQueue
from forq_trio.model.durations import Duration, timedelta_of
from forq_trio.model.errors import MessageInFlight, MessageNotFound

T = TypeVar("T")

CLOSE_SECONDS = 5.0
CLOCK_ERROR = timedelta(seconds=10)
"""By how much the clocks of nodes and server may differ."""

logger = logging.getLogger("forq_trio.delayed")

Generate = Callable[[datetime], Sequence[CronMessage[T]]]
"""Returns the messages of the ticks after a time in UTC."""


class Tasks(Protocol):
    """A trio nursery, or a task group of anyio."""

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, Any]], /, *arguments: Any) -> Any: ...


class CronHandle:
    """A schedule that runs in a task."""

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()

    async def close(self) -> None:
        """End the task, within 5 s. Messages that it has offered stay. A second call does nothing."""
        self._scope.cancel()
        with anyio.move_on_after(CLOSE_SECONDS):
            await self._ended.wait()

    async def _run(self, run_once: Callable[[], Any], interval: timedelta) -> None:
        try:
            with self._scope:
                while True:
                    await anyio.sleep(interval.total_seconds())
                    await run_once()
        finally:
            self._ended.set()


class CronService(Generic[T]):
    """Recurring messages of a delayed queue. Cancellation and errors are those of the queue."""

    def __init__(self, queue: DelayedQueue[T]) -> None:
        self._queue = queue

    async def install_tick(
        self, config_hash: CronConfigHash, key_prefix: str, messages: Sequence[CronMessage[T]]
    ) -> None:
        """Offer the messages of ticks, and remove pending ones of other hashes under this prefix.

        A key that has a message already is not changed. Messages that were delivered before are not removed.
        Raises ValueError for a wrong prefix, and the error of a message that was refused.
        """
        cron.check_prefix(key_prefix)
        results = await self._queue.offer_batch(
            [
                Scheduled(each.key(config_hash, key_prefix), each.payload, each.due_at, can_update=False)
                for each in messages
            ]
        )
        await self._remove(key_prefix, lambda found: found != config_hash)
        for result in results:
            if result.error is not None:
                raise result.error

    async def uninstall_tick(self, config_hash: CronConfigHash, key_prefix: str) -> None:
        """Remove the pending messages with exactly this hash and prefix, except those that were delivered before."""
        cron.check_prefix(key_prefix)
        await self._remove(key_prefix, lambda found: found == config_hash)

    async def install(
        self,
        tasks: Tasks,
        config_hash: CronConfigHash,
        key_prefix: str,
        interval: Duration,
        generate: Generate[T],
    ) -> CronHandle:
        """Install what `generate` returns, now and at each interval, in a task of `tasks` until the handle is closed.

        An error of a run, even of `generate`, is logged, and the next run takes place. `generate` should return ticks
        early, and leave out those that are nearer than CLOCK_ERROR. Raises ValueError for a wrong prefix, or an
        interval of 0 or less.
        """
        cron.check_prefix(key_prefix)
        every = timedelta_of(interval)
        if every <= timedelta(0):
            raise ValueError(f"the interval is more than 0, not {interval}")

        async def run_once() -> None:
            try:
                await self.install_tick(config_hash, key_prefix, generate(self._now()))
            except Exception:
                logger.exception(
                    "a run of the schedule %s failed; the next one comes in %s", key_prefix, every
                )

        await run_once()
        handle = CronHandle()
        tasks.start_soon(handle._run, run_once, every)
        return handle

    async def install_daily_schedule(
        self, tasks: Tasks, key_prefix: str, schedule: CronDailySchedule, generate: Callable[[datetime], T]
    ) -> CronHandle:
        """Install a message for each tick of a daily schedule. generate: the payload of a tick, in UTC."""
        return await self.install(
            tasks,
            CronConfigHash.of_daily(schedule),
            key_prefix,
            schedule.interval,
            _messages(schedule.next_times, generate),
        )

    async def install_periodic_tick(
        self, tasks: Tasks, key_prefix: str, period: Duration, generate: Callable[[datetime], T]
    ) -> CronHandle:
        """Install a message for each multiple of `period` since 1970. generate: the payload of a tick, in UTC."""
        every = timedelta_of(period)
        return await self.install(
            tasks,
            CronConfigHash.of_periodic(every),
            key_prefix,
            cron.periodic_interval(every),
            _messages(lambda now: cron.periodic_times(now, every), generate),
        )

    def _now(self) -> datetime:
        return cron.of_epoch_ms(self._queue.clock.now_ms())

    async def _remove(self, key_prefix: str, wanted: Callable[[CronConfigHash], bool]) -> None:
        """Remove the pending messages under a prefix whose hash is `wanted` and that were not delivered yet."""
        after: str | None = None
        while True:
            page = await self._queue.pending(f"{key_prefix}/", after)
            for message in page.messages:
                found = None if message.key is None else cron.hash_of_key(message.key, key_prefix)
                if found is not None and wanted(found) and not message.attempts:
                    with suppress(MessageInFlight, MessageNotFound):
                        await self._queue.cancel(message.id)
            after = page.next
            if after is None:
                return


def _messages(times: Callable[[datetime], list[datetime]], generate: Callable[[datetime], T]) -> Generate[T]:
    """Make a `Generate` of a function of times; it is asked for ticks that lie ahead by every node's clock."""
    return lambda now: [CronMessage(generate(at), at) for at in times(now + CLOCK_ERROR)]
