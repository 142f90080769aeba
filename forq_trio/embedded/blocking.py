"""A broker for blocking programs: trio runs in a thread of its own, and any number of threads call it.

A call hands its method to trio's thread and waits for the outcome. A signal handler that raises meanwhile (Ctrl-C)
ends the wait at once and cancels the call. The thread ends with `close`, at the latest when the process ends.
"""

import atexit
import contextvars
import functools
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

import trio

from forq_trio.broker.broker import Broker
from forq_trio.client.sync import ForqClient
from forq_trio.embedded.bridges import running_loop
from forq_trio.embedded.calls import CLOSED, EmbeddedCall, Host
from forq_trio.model.clock import Clock
from forq_trio.model.errors import Stopping
from forq_trio.system import open_broker

IN_LOOP = "open_blocking_broker would block the event loop that runs here: use open_broker"
OWN_THREAD = "a callback of a call cannot call the broker: it would wait for itself"
FORKED = "this broker was opened before a fork, and belongs to the parent: open one in the child, with another file"
NO_SERVER = "only a server has it"


class BrokerOptions(TypedDict, total=False):
    """The options of `open_broker`, whose docstring explains each."""

    durability: Literal["full", "normal"]
    queue_ttl_hours: int
    dlq_ttl_hours: int
    disk_reserve_mb: int
    history: bool
    history_hours: int
    history_max_mib: int
    events: bool
    events_hours: int
    events_max_mib: int
    outbox: str | os.PathLike[str] | None
    listen_url: str | None
    replica_url: str | None
    clock: Clock | None


class BlockingBroker(ForqClient):
    """A queue in this process for blocking programs, made by `open_blocking_broker`. Safe to share between threads.

    It has the methods of `ForqClient`, and can be used wherever a program takes one; its errors are the broker's. It
    has no `queue_health` (AttributeError), because only a server watches its queues. After `close`, calls raise
    Stopping; calls in a forked child raise RuntimeError.
    """

    def __init__(self, host: Host) -> None:
        # Not super: there is no connection.
        self._host = host
        self._process = os.getpid()
        self._up = threading.Event()
        host.opened = host.ended = self._up.set
        self._token: trio.lowlevel.TrioToken | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._main,), name="forq-trio", daemon=True)
        self._thread.start()
        atexit.register(self._end)
        try:
            self._up.wait()
        except BaseException:
            self._end()
            raise
        if host.failure is not None:
            self.close()

    @property
    def inner(self) -> Broker:
        """The broker in trio's thread, where alone its methods may be called."""
        assert self._host.broker is not None
        return self._host.broker

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        await self._host.run()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish the calls that were made, answer waiting receivers with nothing, and close the file.

        A second call does nothing. Raises CommitFailed if a failed commit has ended the broker.
        """
        self._end()
        failure, self._host.failure = self._host.failure, None
        if failure is not None:
            raise failure

    def _end(self) -> None:
        if self._process != os.getpid():
            return
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError(OWN_THREAD)
        self._up.wait()  # after it the thread has set its trio token
        assert self._token is not None
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._host.leave)
        self._thread.join()
        atexit.unregister(self._end)

    def _run(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self._process != os.getpid():
            raise RuntimeError(FORKED)
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError(OWN_THREAD)
        broker, token = self._host.broker, self._token
        assert broker is not None
        assert token is not None
        call = EmbeddedCall(broker, getattr(broker, name), args, options)
        answered = threading.Lock()
        answered.acquire()
        call.answer = answered.release
        try:
            token.run_sync_soon(contextvars.copy_context().run, self._host.start, call)
            answered.acquire()
        except trio.RunFinishedError:
            raise Stopping(CLOSED) from None
        except BaseException:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(call.abandon)
            raise
        return call.outcome()


def open_blocking_broker(url: str, **options: Unpack[BrokerOptions]) -> BlockingBroker:
    """A queue inside this process: `with open_blocking_broker("sqlite:///queue.db") as broker: ...`. No HTTP.

    url, options: those of `open_broker`. It is open when this returns, and closed by leaving the block, by `close`, or
    at the end of the process. Raises StorageOpenError, OutOfRange; RuntimeError in a running event loop.
    """
    if trio.lowlevel.in_trio_task() or running_loop() is not None:
        raise RuntimeError(IN_LOOP)
    return BlockingBroker(Host(functools.partial(open_broker, url, **options)))


def _blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__

    @functools.wraps(method)
    def call(self: BlockingBroker, *args: Any, **options: Any) -> Any:
        return self._run(name, args, options)

    return call


def _missing(name: str) -> property:
    def refuse(_: BlockingBroker) -> None:
        raise AttributeError(f"a broker has no {name}: {NO_SERVER}")

    return property(refuse)


for _name, _method in inspect.getmembers(ForqClient, inspect.isfunction):
    if _name[0] != "_" and _name not in vars(BlockingBroker):
        setattr(BlockingBroker, _name, _blocking(_method) if hasattr(Broker, _name) else _missing(_name))
