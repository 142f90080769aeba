"""Calls of a broker's methods from outside of trio, and the trio task that keeps the broker open for them.

A call runs in a trio task of its own, with the context variables of its caller. If the caller leaves (its asyncio task
was cancelled, or a signal handler raised), it abandons the call: the task is cancelled, with the effects that the
broker documents. If a `receive` has got messages for a caller that left, they are released at once, the attempt
uncounted.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.errors import OutcomeUnknown, Stopping

ANSWERS_SECONDS = 5.0
"""How long a closed broker waits for calls that it has answered to return."""

CLOSED = "the broker was closed"


class EmbeddedCall:
    """One call. answer: called once, in trio's thread, after `finished` has become True."""

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
        """Run the call; the body of its task. It never raises an Exception."""
        try:
            with self._scope:
                self._result = await self._method(*self._args, **self._options)
                self._error = None
        except Exception as error:
            self._error = error
        finally:
            self._finish()

    def refuse(self, error: Exception) -> None:
        """Finish the call with an error, without running it."""
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
        """Open the broker and wait for `leave`; sets `failure` instead of raising, except for Cancelled."""
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
        """Run a call in a task; a closed broker refuses it with Stopping."""
        if self._calls is None:
            call.refuse(Stopping(CLOSED))
        else:
            self._calls.start_soon(call.run)

    def leave(self) -> None:
        """Close the broker: calls that were made are finished, and waiting receivers are answered with nothing."""
        self.left = True
        self._leave.set()


def only(error: BaseException) -> BaseException:
    """The error inside a group; of several errors the first that is not a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        found = [only(each) for each in error.exceptions]
        return next((each for each in found if not isinstance(each, trio.Cancelled)), found[0])
    return error
