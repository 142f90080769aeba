"""Keeps jobs running: each is an actor, restarted with back-off when it fails; the server goes on."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from forq_trio.model import limits
from forq_trio.model.errors import Stopping
from forq_trio.telemetry.log import LogEvent, log


class SupervisedJob(Protocol):
    """Something that runs until it is cancelled."""

    name: str

    async def run(self) -> None: ...


async def supervise(job: SupervisedJob, sleep: Callable[[float], Awaitable[None]] = trio.sleep) -> None:
    """Run `job` until cancelled or until the queue stops, restarting it after each failure.

    The pause doubles with each failure up to JOB_RESTART_SECONDS_MAX, and starts over once the job ran that long.
    """
    pause = limits.JOB_RESTART_SECONDS_MIN
    while True:
        started = trio.current_time()
        try:
            await job.run()
            return
        except Stopping:
            return
        except Exception as error:
            log(LogEvent.JOB_FAILED, job=job.name, error=f"{type(error).__name__}: {error}")
        if trio.current_time() - started >= limits.JOB_RESTART_SECONDS_MAX:
            pause = limits.JOB_RESTART_SECONDS_MIN
        await sleep(pause)
        log(LogEvent.JOB_RESTARTED, job=job.name, after_seconds=pause)
        pause = min(2 * pause, limits.JOB_RESTART_SECONDS_MAX)
