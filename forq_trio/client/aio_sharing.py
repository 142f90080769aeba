"""Acks that are made in one pass of the event loop share a request.

The first ack of a queue waits for one pass of the loop, in which others join it. A lone ack is a request like any
other. A shared request is made by a task of its own, so that cancelling one ack does not affect the others.
`sync_sharing.py` has the same class for the blocking client, written by hand.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from copy import copy
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from forq_trio.model.bounds.client import SHARED_RECEIPT_LENGTH_MAX
from forq_trio.model.errors import ClientClosed, ForqProtocolError
from forq_trio.model.limits import RECEIPTS_BATCH_MAX
from forq_trio.model.messages.receipts import ReceiptResult

Send = Callable[[str, list[str]], Awaitable[list[ReceiptResult]]]


class _Group:
    """Acks that share a request. problem: the error, if the request has no results."""

    def __init__(self, receipts: list[str]) -> None:
        self.receipts = list(receipts)
        self.shared = False
        self.results: list[ReceiptResult] = []
        self.problem: Exception | None = None
        self._ended = anyio.Event()

    def fits(self, receipts: list[str]) -> bool:
        return len(self.receipts) + len(receipts) <= RECEIPTS_BATCH_MAX

    async def join(self, receipts: list[str]) -> list[ReceiptResult]:
        """Add receipts, and wait for their results."""
        self.shared = True
        first = len(self.receipts)
        self.receipts += receipts
        return await self.results_from(first, len(receipts))

    async def results_from(self, first: int, number: int) -> list[ReceiptResult]:
        """The results of the receipts from `first` on. Raises the error of the request, a new one for each caller."""
        await self._ended.wait()
        if self.problem is not None:
            raise copy(self.problem) from self.problem
        return self.results[first : first + number]

    async def run(self, queue: str, send: Send) -> None:
        """Make the request."""
        self.problem = ClientClosed()  # holds if the event loop ends before the request
        try:
            self.results = await send(queue, self.receipts)
            whole = len(self.results) == len(self.receipts)
            self.problem = (
                None if whole else ForqProtocolError("the answer has not one result for each receipt")
            )
        except Exception as problem:
            self.problem = problem
        finally:
            self._ended.set()


class SharedAcks:
    """The acks of one client."""

    def __init__(self) -> None:
        self._gathering: dict[str, _Group] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ack(self, queue: str, receipts: list[str], send: Send) -> list[ReceiptResult]:
        """Acknowledge by `send`, together with other acks of this pass of the event loop."""
        if not receipts or not all(map(_may_share, receipts)):
            return await send(queue, receipts)
        group = self._gathering.get(queue)
        if group is not None and group.fits(receipts):
            return await group.join(receipts)
        group = self._gathering[queue] = _Group(receipts)
        try:
            await checkpoint()
        finally:
            if self._gathering.get(queue) is group:
                del self._gathering[queue]
            if group.shared:
                self._start(group.run(queue, send))
        if group.shared:
            return await group.results_from(0, len(receipts))
        return await send(queue, receipts)

    def _start(self, request: Coroutine[Any, Any, None]) -> None:
        """Run a request beside the caller, which may be cancelled. trio holds its task; for asyncio we have to."""
        trio = sys.modules.get("trio")
        if trio is not None and trio.lowlevel.in_trio_task():
            trio.lowlevel.spawn_system_task(lambda: request)
            return
        task = asyncio.get_running_loop().create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _may_share(receipt: str) -> bool:
    """Whether the server would refuse this receipt alone, and not the whole request with those of others."""
    return len(receipt) <= SHARED_RECEIPT_LENGTH_MAX and receipt.isascii()
