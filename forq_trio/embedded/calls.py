"""Calls of a broker's methods from outside of trio, and the trio task that has the broker open for them.

A call runs in a trio task of its own, in the context variables of its caller. A caller that leaves (its asyncio task
was cancelled, a signal handler raised) abandons the call: that cancels the task, with the broker's contract. Messages
that a `receive` got for a caller who left are released at once, the attempt uncounted.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.errors import OutcomeUnknown, Stopping

ANSWERS_SECONDS = 5.0
"""How long a broker that was closed waits for the calls that it answered to return."""

CLOSED = "the broker was closed"


class EmbeddedCall:
    """One call. answer: is called once, in trio's thread, when `finished` is True."""

    def __init__(
        self, broker: Broker, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self.finished = False
        self.answer: Callable[[], object] = lambda: None
        self._broker = broker
        self._method = method
        self._args = args
        self._options = options
        self._scope = trio.CancelScope()
        self._abandoned = False
        self._result: Any = None
        self._error: Exception | None = OutcomeUnknown()

    async def run(self) -> None:
        """The task of the call: never raises an Exception."""
        try:
            with self._scope:
                self._result = await self._method(*self._args, **self._options)
                self._error = None
        except Exception as error:
            self._error = error
        finally:
            self._finish()

    def refuse(self, error: Exception) -> None:
        """Finish it without running it."""
        self._error = error
        self._finish()

    def outcome(self) -> Any:
        """What the method returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def abandon(self) -> None:
        """The caller left: cancel the call, and release what it received. Only in trio's thread."""
        self._abandoned = True
        if self.finished:
            self._undeliver()
        else:
            self._scope.cancel()

    def _finish(self) -> None:
        self.finished = True
        if self._abandoned:
            self._undeliver()
        self.answer()

    def _undeliver(self) -> None:
        if self._method.__name__ == "receive" and self._error is None and self._result:
            queue = self._args[0] if self._args else self._options["queue"]
            self._broker.undeliver(queue, [delivery.receipt for delivery in self._result])


class Host:
    """Opens a broker in a trio task, `run`, and runs calls until `leave`. All methods belong to trio's thread.

    opened, ended: are called when the broker is open, and when it is closed or could not be opened. broker: None until
    it is open. failure: why it could not be opened, or ended before `leave`; never a group.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Broker]]) -> None:
        self.opened: Callable[[], object] = lambda: None
        self.ended: Callable[[], object] = lambda: None
        self.broker: Broker | None = None
        self.failure: BaseException | None = None
        self.left = False
        self._opening = opening
        self._leave = trio.Event()
        self._calls: trio.Nursery | None = None

    async def run(self) -> None:
        """The task of the broker: ends with `failure`, and raises only that it is cancelled."""
        try:
            async with trio.open_nursery() as calls:
                await self._hold(calls)
        except BaseException as error:  # noqa: ASYNC103  a Ctrl-C, too: the block raises it; cancellation goes on
            failure = only(error)
            if isinstance(failure, trio.Cancelled):
                raise
            self.failure = failure
        finally:
            self.ended()

    async def _hold(self, calls: trio.Nursery) -> None:
        try:
            async with self._opening() as self.broker:
                self._calls = calls
                if not self.left:
                    self.opened()
                await self._leave.wait()
        finally:
            self._calls = None
            calls.cancel_scope.deadline = trio.current_time() + ANSWERS_SECONDS

    def start(self, call: EmbeddedCall) -> None:
        """Run a call; a broker that is closed refuses it with Stopping."""
        if self._calls is None:
            call.refuse(Stopping(CLOSED))
        else:
            self._calls.start_soon(call.run)

    def leave(self) -> None:
        """Close the broker: what was sent is finished, and waiting receivers are answered with nothing."""
        self.left = True
        self._leave.set()


def only(error: BaseException) -> BaseException:
    """The error that a group has; the first one of several that is no cancellation."""
    if isinstance(error, BaseExceptionGroup):
        found = [only(each) for each in error.exceptions]
        return next((each for each in found if not isinstance(each, trio.Cancelled)), found[0])
    return error
