"""One trial of schedules: they run through faults, cancelled calls, ends of lives and times without a server.

Somebody saves, pauses and runs schedules by hand, and somebody consumes their messages. The first schedule stays as it
is and catches up with every run, so in the end it has a run for each of its times. The others change; each has no time
twice. What was noted of the runs and the messages that are stored, or were received, are the same.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.errors import ScheduleNotFound, ServiceError
from forq_trio.model.schedules.types import NewSchedule, SavedRun, is_dropped
from forq_trio.storage.engine import Engine
from forq_trio.store import CommitFailed
from reliability.simulation.trial import TRIAL_SECONDS_MAX, Trial
from support.actors import elapse

QUEUE, STEADY = "scheduled", "steady"
NAMES = ("a", "b", "c")
EVERY_MS = 20_000


class ScheduleTrial(Trial):
    """received: the names of schedules by the id of each message that somebody got."""

    def __init__(self, seed: int, open_store: Callable[[], Engine]) -> None:
        super().__init__(seed, open_store)
        self.received: dict[str, str] = {}

    async def run(self) -> None:
        with trio.fail_after(TRIAL_SECONDS_MAX):
            async with self._writer() as (_, broker):
                new = NewSchedule(
                    queue=QUEUE, content=STEADY, every=f"{EVERY_MS}ms", missed="all", jitter="9s"
                )
                await broker.save_schedule(STEADY, new)
            for _ in range(self.rng.randrange(1, 5)):
                await self._live()
                await elapse(self.rng.choice((0, 5, 90, 4_000)))
            async with self._writer() as (_, broker):
                await elapse(2 * EVERY_MS / 1_000)
                await self._check(broker)

    async def _live(self) -> None:
        with trio.CancelScope() as life:
            try:
                async with self._writer() as (engine, broker), trio.open_nursery() as nursery:
                    for work in (self._change, self._consume_some):
                        nursery.start_soon(work, broker)
                    nursery.start_soon(self._disturb, engine)
                    await elapse(self.rng.choice((0.05, 5, 400)))
                    match self.rng.randrange(3):
                        case 0:
                            nursery.cancel_scope.cancel()
                        case 1:
                            life.cancel()
            except* CommitFailed:
                pass

    async def _change(self, broker: Broker) -> None:
        for _ in range(self.rng.randrange(20)):
            await self._pause()
            name = self.rng.choice(NAMES)
            with self._cancellable(), suppress(ServiceError, ScheduleNotFound):
                match self.rng.randrange(5):
                    case 0:
                        await broker.pause_schedule(name)
                    case 1:
                        await broker.resume_schedule(name)
                    case 2:
                        await broker.run_schedule(name)
                    case _:
                        await broker.save_schedule(name, self._draw(name))

    def _draw(self, name: str) -> NewSchedule:
        timing = self.rng.choice(
            ({"every": "1s"}, {"every": "30s"}, {"cron": "*/7 * * * * *"}, {"cron": "* * * * *"})
        )
        return NewSchedule(
            queue=QUEUE,
            content=name,
            jitter=self.rng.choice((None, "3s")),
            missed=self.rng.choice(("skip", "last", "all")),
            while_pending=self.rng.choice(("send", "skip")),
            **timing,
        )

    async def _consume_some(self, broker: Broker) -> None:
        for _ in range(self.rng.randrange(40)):
            with self._cancellable(), suppress(ServiceError):
                deliveries = await broker.receive(QUEUE, max_messages=5, lease_ms=1_000)
                self.received |= {delivery.id: delivery.content for delivery in deliveries}
                await broker.ack(QUEUE, [delivery.receipt for delivery in deliveries])

    async def _check(self, broker: Broker) -> None:
        """The server stands still meanwhile: no run is due before the next millisecond."""
        messages = dict(self.received)
        after = 0
        while True:
            page = await broker.export(QUEUE, after=after)
            messages |= {message.id: message.content for message in page.messages}
            if page.next is None:
                break
            after = page.next
        noted: dict[str, str] = {}
        for schedule in (await broker.schedules()).schedules:
            runs = (await broker.schedule(schedule.name, runs=limits.RUNS_KEPT_MAX)).runs[::-1]
            check_runs(runs)
            if schedule.name == STEADY:
                last = schedule.next_run
                assert last is not None
                wanted = list(range(schedule.made_at + EVERY_MS, last, EVERY_MS))
                assert [run.nominal for run in runs] == wanted, "a time was left out"
                assert {run.result for run in runs} <= {"sent"}
            ids = [run.message_id for run in runs if run.result in ("sent", "by_hand")]
            assert len(ids) == len(set(ids)) == len({*ids} - {None})
            noted |= dict.fromkeys(filter(None, ids), schedule.name)
        assert messages == noted


def check_runs(runs: tuple[SavedRun, ...]) -> None:
    """The note of dropped runs stays behind those that are sent after it, which are later."""
    dropped = {run.nominal for run in runs if is_dropped(run)}
    nominal = [run.nominal for run in runs if run.nominal is not None and not is_dropped(run)]
    assert all(before < later for before, later in pairwise(nominal)), "a time ran twice"
    assert dropped.isdisjoint(nominal), "a time was dropped and ran"
