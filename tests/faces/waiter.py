"""A consumer that waits in a task of its own."""

from collections.abc import Awaitable, Callable

import trio

from forq_trio.model.limits import WAIT_MS_MAX

from .face import Face


class Waiter:
    """`got` is what its call returned, None until then."""

    def __init__(self) -> None:
        self.got: list[str] | None = None
        self._done = trio.Event()
        self._scope = trio.CancelScope()

    async def run(self, call: Callable[[], Awaitable[list[str]]]) -> None:
        with self._scope:
            self.got = await call()
            self._done.set()

    def leave(self) -> None:
        """Stop waiting, as a client that goes away."""
        self._scope.cancel()

    async def contents(self) -> list[str]:
        """What it gets, once it has it."""
        await self._done.wait()
        assert self.got is not None
        return self.got


async def park(
    face: Face, nursery: trio.Nursery, queue: str = "q", *, most: int = 1, wait_ms: int = WAIT_MS_MAX
) -> Waiter:
    """A consumer that is parked behind those of `queue` that wait already."""

    async def receive() -> list[str]:
        return [delivery.content for delivery in await face.receive(queue, most=most, wait_ms=wait_ms)]

    return await _parked(face, nursery, queue, receive)


async def park_poll(face: Face, nursery: trio.Nursery, queue: str = "q") -> Waiter:
    """The same by Forq's own receive."""

    async def poll() -> list[str]:
        polled = await face.poll(queue)
        return [] if polled is None else [polled.content]

    return await _parked(face, nursery, queue, poll)


async def _parked(
    face: Face, nursery: trio.Nursery, queue: str, call: Callable[[], Awaitable[list[str]]]
) -> Waiter:
    already = await face.waiting(queue)
    waiter = Waiter()
    nursery.start_soon(waiter.run, call)
    await face.has_parked(already + 1, queue)
    return waiter
