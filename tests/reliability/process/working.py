"""A worker in a process of its own: `python -m` this module's name, with a URL. It prints what its handler does."""

import os
import random
import sys
import time

import anyio

from forq_trio.worker import Job, Worker

QUEUE = "work"
SLOTS = 4
LEASE_SECONDS = 1.0


def say(what: str, content: str, job: Job) -> None:
    """A whole line in one write, of which a kill leaves nothing or all. Its time is on a clock of all processes."""
    os.write(1, f"{what} {content} {job.attempt} {time.monotonic_ns()}\n".encode())


def worker(url: str) -> Worker:
    """A worker whose handler takes up to three leases, and fails now and then."""
    app = Worker(url, drain_seconds=5)

    @app.on(QUEUE, concurrency=SLOTS, lease=LEASE_SECONDS, retry=[0] * 1_000)
    async def handle(content: str, job: Job) -> None:
        say("begun", content, job)
        try:
            with anyio.move_on_after(random.choice((0, 0, 0, 0.01, 0.3, 3))):  # the work takes so long
                await anyio.sleep_forever()
            if random.random() < 0.1:
                raise OSError("now and then")
        except BaseException:
            say("failed", content, job)
            raise
        say("done", content, job)

    return app


if __name__ == "__main__":
    worker(sys.argv[1]).run()
