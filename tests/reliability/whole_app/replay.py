"""One trio run in which everything random comes from a seed, so that it can be had again.

What would otherwise differ from run to run, and where it comes from here:

- waiting: a MockClock that jumps to the next deadline as soon as nobody has anything to do;
- the order in which trio runs tasks that are ready at the same time: trio shuffles them with `trio._core._run._r`,
  which is seeded, after sorting them (its switch for Hypothesis), so that their order before does not matter;
- worker threads: there are none. What is meant for one runs on the loop, before or after a random wait in which others
  go on, as they would beside a thread. Under a MockClock a real thread would look like idleness;
- the module `random`, from which engines draw.

Receipts and ids stay really random; nothing decides by them. The order of a set of strings is not fixed
(PYTHONHASHSEED), so neither the application nor the clients may act in such an order; a test compares two processes.
"""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import trio
from trio.testing import MockClock

from support.actors import elapse

THREAD_SECONDS = (0.0, 0.0, 0.0, 0.0002, 0.001, 0.02)


def run_seeded(
    seed: int,
    main: Callable[[random.Random], Awaitable[Any]],
    thread_seconds: Sequence[float] = THREAD_SECONDS,
) -> Any:
    """What `main(rng)` returns or raises, run by the rules above. thread_seconds: how long a thread may take."""
    rng = random.Random(seed)
    with _seeded_scheduler(seed), _simulated_threads(rng, thread_seconds):
        return trio.run(main, rng, clock=MockClock(autojump_threshold=0))


@contextmanager
def _seeded_scheduler(seed: int) -> Iterator[None]:
    scheduler = trio._core._run
    sorts = scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    states = scheduler._r.getstate(), random.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = sorts
        scheduler._r.setstate(states[0])
        random.setstate(states[1])


@contextmanager
def _simulated_threads(rng: random.Random, thread_seconds: Sequence[float]) -> Iterator[None]:
    async def run_sync(
        work: Callable[..., Any],
        *args: object,
        abandon_on_cancel: bool = False,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Any:
        assert not abandon_on_cancel, "nothing here leaves a thread to itself"
        await trio.lowlevel.checkpoint_if_cancelled()
        async with AsyncExitStack() as stack:
            if limiter is not None:
                await stack.enter_async_context(limiter)
            waits_first = rng.random() < 0.5
            with trio.CancelScope(shield=True):
                if waits_first:
                    await _take_time(rng.choice(thread_seconds))
                result = work(*args)
                if not waits_first:
                    await _take_time(rng.choice(thread_seconds))
            return result

    threads = trio.to_thread
    real = threads.run_sync
    threads.run_sync = run_sync
    try:
        yield
    finally:
        threads.run_sync = real


async def _take_time(seconds: float) -> None:
    if seconds:
        await elapse(seconds)
    else:
        await trio.lowlevel.checkpoint()
