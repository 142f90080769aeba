"""Objects of a broker whose asynchronous methods can be called in asyncio.

The methods are made from those of the broker's classes, so that none is missing. Synchronous methods work as they are,
because asyncio and its guest trio share a thread. An object shares its members with the one that trio's tasks use.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

from forq_trio.broker.broker import Broker
from forq_trio.embedded.calls import EmbeddedCall, Host

OTHER_LOOP = "this broker was opened in another event loop: call it there"


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The asyncio loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Bridge:
    """Runs calls of asyncio tasks in the guest run."""

    def __init__(self, host: Host, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._broker = broker
        self._loop = loop

    async def call(self, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a method in trio. Cancelled, it cancels the call and waits for its end."""
        if running_loop() is not self._loop:
            raise RuntimeError(OTHER_LOOP)
        call = EmbeddedCall(self._broker, method, args, options)
        done = self._answer_of(call)
        self._host.start(call)
        try:
            await done
        except asyncio.CancelledError:
            call.abandon()
            while not call.finished:
                try:
                    await self._answer_of(call)
                except asyncio.CancelledError:  # a second one; the first is raised when the call has ended
                    continue
            raise
        return call.outcome()

    def _answer_of(self, call: EmbeddedCall) -> asyncio.Future[None]:
        answer = self._loop.create_future()
        call.answer = lambda: None if answer.done() else answer.set_result(None)
        return answer


def async_methods(kind: type) -> list[str]:
    """The public asynchronous methods of a class."""
    return [name for name, _ in inspect.getmembers(kind, inspect.iscoroutinefunction) if name[0] != "_"]


def _bridged(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__

    @functools.wraps(method)
    async def call(self: Any, *args: Any, **options: Any) -> Any:
        return await self._bridge.call(getattr(self._inner, name), args, options)

    return call


def _bridged_class(kind: Any) -> Any:
    methods = {name: _bridged(getattr(kind, name)) for name in async_methods(kind)}
    return type(f"Asyncio{kind.__name__}", (kind,), {**methods, "__doc__": kind.__doc__})


def _bridged_object(inner: Any, bridge: Bridge) -> Any:
    """An object whose asynchronous methods are bridged; the object itself if it has none."""
    if not async_methods(type(inner)):
        return inner
    made = object.__new__(_bridged_class(type(inner)))
    made.__dict__.update(inner.__dict__, _inner=inner, _bridge=bridge)
    return made


class AsyncioBroker(Broker):
    """The broker of `open_broker` under asyncio: the methods, results and errors of `Broker`, for asyncio tasks.

    Safe to use from any number of tasks of the loop in which it was opened; RuntimeError in another loop. After its
    block, calls raise Stopping.
    """

    def __init__(self, host: Host, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        # No super().__init__: the inner broker's objects exist. Only trio's tasks use the private ones.
        bridge = Bridge(host, broker, loop)
        self.__dict__.update(
            (name, each if name[0] == "_" else _bridged_object(each, bridge))
            for name, each in vars(broker).items()
        )
        self._inner = broker
        self._bridge = bridge


for _name in async_methods(Broker):
    setattr(AsyncioBroker, _name, _bridged(getattr(Broker, _name)))
