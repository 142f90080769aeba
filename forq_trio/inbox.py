"""The writer's inbox: a bounded queue of calls, and a second one for calls that must not be refused.

The calls of others wait in a bounded memory channel: when it stays full, the caller gets Overloaded, which is the
back-pressure of the whole queue. Posted calls, without a caller (the release of an abandoned claim, a tick of the
timer), may go into `_urgent`, which is taken first. It cannot grow without bound: every entry comes from a call that
was taken, or from one job.
"""

from collections import deque
from typing import Any

import trio

from forq_trio.model import limits
from forq_trio.model.commands import content_bytes, message_count
from forq_trio.model.errors import Overloaded, Stopping
from forq_trio.waiters import Call


class Inbox:
    """Calls that wait to be taken into a batch."""

    def __init__(self, calls_max: int) -> None:
        self._send, self._receive = trio.open_memory_channel[Call[Any]](calls_max)
        self._urgent: deque[Call[Any]] = deque()
        self._next: Call[Any] | None = None

    def __len__(self) -> int:
        waiting = self._receive.statistics().current_buffer_used + len(self._urgent)
        return waiting + (self._next is not None)

    async def put(self, call: Call[Any]) -> None:
        """Add a call; no checkpoint if the inbox has space.

        Waits up to INBOX_FULL_WAIT_SECONDS, then raises Overloaded. Raises Stopping once closed. Cancelled, the call is
        not added.
        """
        try:
            self._send.send_nowait(call)
            return
        except trio.WouldBlock:
            pass
        except trio.ClosedResourceError:
            raise Stopping from None
        with trio.move_on_after(limits.INBOX_FULL_WAIT_SECONDS):
            try:
                await self._send.send(call)
            except trio.ClosedResourceError:
                raise Stopping from None
            return
        raise Overloaded

    def post(self, call: Call[Any]) -> None:
        """Add a call without a waiting caller; never refused."""
        try:
            self._send.send_nowait(call)
        except (trio.WouldBlock, trio.ClosedResourceError):
            self._urgent.append(call)

    def post_first(self, call: Call[Any]) -> None:
        """Add a call without a waiting caller before all others; never refused."""
        self._urgent.append(call)

    async def take(self) -> list[Call[Any]] | None:
        """Wait for a call and take all that wait, up to the bounds of one commit. None: closed and empty.

        A call that is itself above a bound is taken alone.
        """
        if self._urgent or self._next is not None:
            await trio.lowlevel.checkpoint()
            call = self._take_one()
        else:
            try:
                call = await self._receive.receive()
            except trio.EndOfChannel:
                call = self._take_one()
        calls: list[Call[Any]] = []
        messages = size = 0
        while call is not None:
            messages += message_count(call.command)
            size += content_bytes(call.command)
            if calls and (messages > limits.COMMIT_MESSAGES_MAX or size > limits.COMMIT_BYTES_MAX):
                self._next = call
                break
            calls.append(call)
            call = self._take_one() if len(calls) < limits.COMMIT_CALLS_MAX else None
        return calls or None

    def _take_one(self) -> Call[Any] | None:
        if self._urgent:
            return self._urgent.popleft()
        if self._next is not None:
            call, self._next = self._next, None
            return call
        try:
            return self._receive.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None

    def close(self) -> None:
        """Refuse calls from now on, except posted ones; those that wait can still be taken."""
        self._send.close()

    def take_rest(self) -> list[Call[Any]]:
        """All calls that are left, without waiting."""
        rest = []
        while (call := self._take_one()) is not None:
            rest.append(call)
        return rest
