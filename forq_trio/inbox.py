"""The writer's inbox: a bounded queue of calls, and a second one for calls that must not be refused.

Calls wait in a bounded memory channel. If it stays full, the caller gets Overloaded, which is the back-pressure of the
whole queue. Posted calls, which have no caller (the release of an abandoned claim, a tick of the timer), may go into
`_urgent`, which is taken first. That cannot grow without bound, because every entry comes from a call that was taken,
or from one job. Large calls that were overtaken by small ones are in `_passed`.
"""

from collections import deque
from typing import Any

import trio

from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.commands import Command, Effect, Traits
from forq_trio.model.errors import Overloaded, Stopping
from forq_trio.waiters import Call

_SHARE_OF_PASSED = 0.75
"""The part of a commit for calls that were overtaken before; the rest is for new calls."""


class PauseWriter(Command[None], frozen=True, gc=False):
    """Asks the writer to pause between two batches."""

    traits = Traits(None, Effect.REPEATS, weighs=1)


class Pauses:
    """The pauses between two batches."""

    def __init__(self) -> None:
        self.calls: list[Call[None]] = []  # the calls that ask for a pause
        self.resume = trio.Event()  # ends the current pause

    async def run(self) -> None:
        """Give each call its pause; returns when all pauses have ended."""
        while self.calls:
            self.resume = trio.Event()
            if self.calls.pop().resolve(None):
                await self.resume.wait()


class Tick(Command[None], frozen=True, gc=False):
    """Wakes the writer: a message may be due."""

    traits = Traits(None, Effect.REPEATS, weighs=1)


class _CommitCalls:
    """The calls of one commit, with its bounds on messages and bytes."""

    def __init__(self) -> None:
        self.calls: list[Call[Any]] = []
        self._messages = 0
        self._bytes = 0
        self._bytes_max: float = limits.COMMIT_BYTES_MAX

    def add(self, call: Call[Any], share: float = 1.0) -> bool:
        """Add a call if it is the first one, or fits into this share of a commit; returns whether it was added."""
        messages = self._messages + call.command.message_count()
        size = self._bytes + call.command.content_bytes()
        if self._bytes == 0:
            # The first call with content always fits, and still leaves space for others.
            self._bytes_max = max(self._bytes_max, size + (1 - _SHARE_OF_PASSED) * self._bytes_max)
        if self.calls and (messages > share * limits.COMMIT_MESSAGES_MAX or size > share * self._bytes_max):
            return False
        self.calls.append(call)
        self._messages, self._bytes = messages, size
        return True


class Inbox:
    """Calls that wait to be taken into a batch."""

    def __init__(self, calls_max: int) -> None:
        self._send, self._receive = trio.open_memory_channel[Call[Any]](calls_max)
        self._urgent: deque[Call[Any]] = deque()
        self._passed: deque[Call[Any]] = deque()
        self.budget = Budget(calls_max)

    def __len__(self) -> int:
        return self._receive.statistics().current_buffer_used + len(self._urgent) + len(self._passed)

    async def put(self, call: Call[Any]) -> None:
        """Add a call; no checkpoint if the inbox has space.

        If the inbox is full, waits up to INBOX_FULL_WAIT_SECONDS and then raises Overloaded. Raises it at once if the
        holder has as many calls in the inbox as it may. Raises Stopping once closed. Cancelled, the call is not added.
        """
        if self.budget.used >= self.budget.size:
            require_task()  # before a refusal is counted, which would be counted again
        admitted = self.budget.change(call.holder, 1)
        added = False
        try:
            if not admitted and self.budget.used <= self.budget.size:
                raise Overloaded
            added = await self._put(call)
        except trio.ClosedResourceError:
            raise Stopping from None
        finally:
            if not added:
                self.budget.change(call.holder, -1)
        if not added:
            raise Overloaded

    async def _put(self, call: Call[Any]) -> bool:
        """Add a call; no checkpoint if the inbox has space. False if the inbox stays full."""
        try:
            self._send.send_nowait(call)
            return True
        except trio.WouldBlock:
            require_task()  # posted calls, which the budget does not count, may fill the channel
        with trio.move_on_after(limits.INBOX_FULL_WAIT_SECONDS):
            await self._send.send(call)
            return True
        return False

    def post(self, call: Call[Any]) -> None:
        """Add a call without a waiting caller; never refused."""
        try:
            self._send.send_nowait(call)
        except (trio.WouldBlock, trio.ClosedResourceError):
            self._urgent.append(call)

    def post_first(self, call: Call[Any]) -> None:
        """Add a call without a waiting caller in front of all others; never refused."""
        self._urgent.append(call)

    async def take(self) -> list[Call[Any]] | None:
        """Wait for a call, and take all waiting calls up to the bounds of one commit. None: closed and empty.

        A large call that does not fit waits for the next commit, and small calls overtake it. Overtaken calls come
        first in the next commit, but leave a part of it to others. A call that alone exceeds a bound is taken anyway.
        """
        if self._urgent or self._passed:
            await trio.lowlevel.checkpoint()
            call = self._take_one()
        else:
            try:
                call = self._taken(await self._receive.receive())
            except trio.EndOfChannel:
                call = self._take_one()
        batch = _CommitCalls()
        while self._passed and batch.add(self._passed[0], _SHARE_OF_PASSED):
            self._passed.popleft()
        while call is not None:
            if not batch.add(call):
                self._passed.append(call)
            full = len(batch.calls) == limits.COMMIT_CALLS_MAX or len(self._passed) >= limits.COMMIT_CALLS_MAX
            call = None if full else self._take_one()
        return batch.calls or None

    def _take_one(self) -> Call[Any] | None:
        if self._urgent:
            return self._urgent.popleft()
        try:
            return self._taken(self._receive.receive_nowait())
        except (trio.WouldBlock, trio.EndOfChannel):
            return None

    def _taken(self, call: Call[Any]) -> Call[Any]:
        if not call.posted:
            self.budget.change(call.holder, -1)
        return call

    def close(self) -> None:
        """Refuse new calls, except posted ones; those that wait can still be taken."""
        self._send.close()

    def take_rest(self) -> list[Call[Any]]:
        """Take all remaining calls, without waiting."""
        rest = list(self._passed)
        self._passed.clear()
        while (call := self._take_one()) is not None:
            rest.append(call)
        return rest
