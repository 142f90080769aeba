"""Jobs fail, wait, and run again; nobody else notices."""

import trio

from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.supervisor import supervise
from forq_trio.model import limits
from forq_trio.model.errors import Stopping, StorageUnavailable
from support.actors import elapse


class FailingJob:
    """Fails each time it runs, after `seconds`; notes when it started."""

    name = "failing"

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)
        self.starts: list[float] = []

    async def run(self) -> None:
        self.starts.append(trio.current_time())
        await elapse(self._seconds.pop(0) if self._seconds else 0)
        raise StorageUnavailable("disk I/O error")


async def run_for(job, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await supervise(job)


async def test_the_pause_doubles_up_to_a_minute(autojump_clock) -> None:
    job = FailingJob()
    await run_for(job, 300)
    pauses = [round(later - earlier, 3) for earlier, later in zip(job.starts, job.starts[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_a_job_that_held_out_starts_over_with_the_shortest_pause(autojump_clock) -> None:
    job = FailingJob(0, 0, 0, limits.JOB_RESTART_SECONDS_MAX)
    await run_for(job, 80)
    pauses = [round(later - earlier, 3) for earlier, later in zip(job.starts, job.starts[1:], strict=False)]
    assert pauses[:5] == [1, 2, 4, 60 + 1, 2]


async def test_a_job_ends_when_the_queue_stops(autojump_clock) -> None:
    class Stopped:
        name = "stopped"

        async def run(self) -> None:
            await trio.lowlevel.checkpoint()
            raise Stopping

    await supervise(Stopped())
    assert trio.current_time() == 0


async def test_a_job_that_fails_with_a_group_is_restarted_too(autojump_clock) -> None:
    class Grouped(FailingJob):
        async def run(self) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(super().run)

    job = Grouped()
    await run_for(job, 4)
    assert len(job.starts) == 3


async def test_a_periodic_job_works_at_its_interval(autojump_clock) -> None:
    times = []

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        times.append(round(trio.current_time(), 3))

    await run_for(Periodic("p", 300.0, work), 1_000)
    assert times == [300, 600, 900]


async def test_a_nudge_brings_the_next_run_forward(autojump_clock) -> None:
    times = []

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        times.append(round(trio.current_time(), 3))

    job = Periodic("p", 300.0, work, nudged=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, job)
        await elapse(10)
        for _ in range(5):
            job.nudge()
        await elapse(320)
        nursery.cancel_scope.cancel()
    assert times == [0, 10, 310]


async def test_a_nudge_during_the_work_is_not_lost(autojump_clock) -> None:
    runs = []

    async def work() -> None:
        runs.append(trio.current_time())
        if len(runs) < 3:
            job.nudge()
        await trio.lowlevel.checkpoint()
        await elapse(1)

    job = Periodic("p", 300.0, work, nudged=True)
    await run_for(job, 100)
    assert runs == [0, 1, 2]


async def test_work_that_failed_is_tried_again_after_the_pause_not_after_the_interval(autojump_clock) -> None:
    """The nudge that asked for it is still open: a failed message must not wait six minutes for it."""
    times = []

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        times.append(round(trio.current_time(), 3))
        if len(times) < 3:
            raise StorageUnavailable

    await run_for(Periodic("p", 360.0, work, nudged=True), 300)
    assert times == [0, 1, 3]
