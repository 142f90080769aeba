"""A broker under asyncio: trio runs as a guest in the thread of the running asyncio loop.

A thread has one guest run at most, so the brokers of a loop share it: the first one starts it, and the last ends it.
The block is left like this:

    body ended       the broker is closed, through any number of cancellations, which are raised after it
    broker ended     (a commit failed) the task of the block is cancelled, and the block raises the broker's error
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.embedded.bridges import AsyncioBroker, running_loop
from forq_trio.embedded.calls import Host, only

NO_LOOP = "open_broker needs a running trio or asyncio; a blocking program uses open_blocking_broker"
OTHER_GUEST = "trio runs as a guest of this asyncio loop already: open the broker in one of its trio tasks"


class _GuestRun:
    """The guest run of a loop. users: how many brokers are open in it. error: the one that ended it early, or None."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if trio.lowlevel.in_trio_run():
            raise RuntimeError(OTHER_GUEST)
        self.users = 0
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.error: BaseException | None = None
        self.nursery: trio.Nursery
        self.stop = trio.Event()
        self._loop = loop
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=loop.call_soon,
            done_callback=self._done,
            host_uses_signal_set_wakeup_fd=True,
        )

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            _answer(self.ready)
            await self.stop.wait()

    def _done(self, outcome: Any) -> None:
        error = getattr(outcome, "error", None)
        self.error = None if error is None else only(error)
        _RUNS.pop(self._loop, None)
        _answer(self.ready)
        _answer(self.ended)


_RUNS: dict[asyncio.AbstractEventLoop, _GuestRun] = {}
"""The guest runs that have not ended. A loop has an entry only while it runs."""


@asynccontextmanager
async def in_asyncio(opening: Callable[[], AbstractAsyncContextManager[Broker]]) -> AsyncIterator[Broker]:
    """Open a broker in the running asyncio loop, and yield one that asyncio tasks can call.

    opening: makes the context manager that opens it in trio. Raises the errors of that one unchanged; RuntimeError if
    no asyncio loop runs, or if trio runs as a guest of the loop already.
    """
    loop = running_loop()
    if loop is None:
        raise RuntimeError(NO_LOOP)
    async with _guest_run(loop) as run:
        host = Host(opening)
        opened, ended = loop.create_future(), loop.create_future()
        host.opened, host.ended = (lambda: _answer(opened)), (lambda: _answer(ended))
        run.nursery.start_soon(host.run)
        try:
            await asyncio.wait((opened, ended), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            host.leave()
            await settle(ended)
            raise
        if host.broker is None or ended.done():
            raise host.failure or run.error or RuntimeError("trio ended")
        async with _interrupted_by(host, run, ended):
            yield AsyncioBroker(host, host.broker, loop)


@asynccontextmanager
async def _interrupted_by(host: Host, run: _GuestRun, ended: asyncio.Future[None]) -> AsyncIterator[None]:
    """The body of the block: cancelled when the broker ends early. Closes the broker."""
    owner = asyncio.current_task()
    assert owner is not None
    cancelled_before = owner.cancelling()
    interrupted = False

    def interrupt(_: object) -> None:
        nonlocal interrupted
        if not host.left:
            interrupted = True
            owner.cancel()

    ended.add_done_callback(interrupt)
    try:
        yield
    finally:
        host.leave()
        cancelled = await settle(ended)
        if interrupted and host.failure is None:  # the guest run itself has ended, because trio got a Ctrl-C
            cancelled = await settle(run.ended) or cancelled
        failure = host.failure or run.error
        ours = interrupted and owner.uncancel() <= cancelled_before
        if failure is not None and (ours or not interrupted):
            raise failure
        if cancelled and not ours:
            raise asyncio.CancelledError


@asynccontextmanager
async def _guest_run(loop: asyncio.AbstractEventLoop) -> AsyncIterator[_GuestRun]:
    """Use the loop's guest run, which the first user starts. The last user waits for its end."""
    while (run := _RUNS.get(loop)) is not None and run.stop.is_set():
        await asyncio.wait((run.ended,))
    if run is None:
        run = _RUNS[loop] = _GuestRun(loop)
    run.users += 1
    try:
        await asyncio.wait((run.ready,))
        yield run
    finally:
        run.users -= 1
        if not run.users:
            run.stop.set()
            if await settle(run.ended):
                raise asyncio.CancelledError


def _answer(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def settle(future: asyncio.Future[None]) -> bool:
    """Wait for a future in spite of cancellations; returns whether there was one."""
    cancelled = False
    while not future.done():  # a wait takes a turn of the loop even then, and anyio cancels in every turn
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
