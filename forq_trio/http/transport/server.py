"""A server on listening sockets: accepts connections, bounds their number, ends those that time out, and shuts down.

Time-outs need no timer per request: every connection has a deadline, a plain number, and one task, the reaper, sleeps
until the earliest of them. A deadline set meanwhile is at least the shortest time-out ahead, so the reaper never sleeps
longer than that and is never late.
"""

import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf

import trio

from forq_trio.http.message import Admit, Handler, admit_everybody
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.config import Refuse, TransportConfig, refuse_without_body
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http2.block_encoder import BlockEncoder
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.http.transport.poller import Poller
from forq_trio.http.transport.response_bytes import CLOSE, ResponseEncoder
from forq_trio.http.transport.services import Services
from forq_trio.http.transport.tls_socket import TlsSocket
from forq_trio.model import limits
from forq_trio.model.budget import Budget

ACCEPT_ROUND_MAX = 64
ACCEPT_PAUSE_SECONDS = 0.1
REAP_PAUSE_SECONDS_MAX = 0.1
_OUT_OF_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Server:
    """HTTP/1.1 and HTTP/2 on the given non-blocking listening sockets, over TLS if there is an `ssl_context`.

    It owns the listeners from now on.
    """

    def __init__(
        self,
        handler: Handler,
        listeners: Sequence[socket.socket],
        config: TransportConfig | None = None,
        *,
        admit: Admit = admit_everybody,
        on_error: Callable[[Exception], None],
        refuse: Refuse = refuse_without_body,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """admit: called with every request when its head is whole; handler: with each that it let pass and is whole.

        on_error: called (synchronously) with every exception that the handler or the transport did not expect; the
        client has been answered 500 or cut off. refuse: makes the answers that the transport gives by itself.
        ssl_context: must offer h2 and http/1.1 by ALPN for HTTP/2 to be chosen.
        """
        self._config = config or TransportConfig()
        self._listeners = list(listeners)
        self._on_error = on_error
        self._ssl_context = ssl_context
        self._response_encoder = ResponseEncoder(hsts=self._config.hsts)
        self._body_budget = Budget(self._config.bodies_bytes_max)
        self._answer_budget = AnswerBudget(self._config.answers_bytes_max)
        self._make_services = partial(
            Services,
            admit=admit,
            handler=handler,
            config=self._config,
            response_encoder=self._response_encoder,
            block_encoder=BlockEncoder(hsts=self._config.hsts),
            body_budget=self._body_budget,
            answer_budget=self._answer_budget,
            on_error=on_error,
            refuse=refuse,
        )
        self._connections: OpenConnections[ClientSocket] = OpenConnections(self._config.connections_max)
        self._connections.on_empty = self._none_is_open
        self._start: Callable[[socket.socket, str], None] | None = None
        self._all_closed = trio.Event()
        self._drained = trio.Event()
        self._stopped = trio.Event()

    @property
    def ports(self) -> tuple[int, ...]:
        """The port of every listener that still accepts."""
        return tuple(listener.getsockname()[1] for listener in self._listeners)

    @property
    def budgets(self) -> dict[str, Budget]:
        """The budgets that all clients share, by their names in the metrics."""
        return {
            "bodies": self._body_budget,
            "answers": self._answer_budget,
            "connections": self._connections.budget,
        }

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `drain` has ended; to be called once. Cancelled, it cuts all connections at once."""
        now = trio.lowlevel.current_clock().current_time
        poller = Poller()
        try:
            async with trio.open_nursery() as nursery:
                services = self._make_services(poller=poller, start_task=nursery.start_soon, now=now)
                self._start = partial(self._start_connection, services)
                nursery.start_soon(self._reap, now)
                nursery.start_soon(poller.run)
                for listener in self._listeners:
                    nursery.start_soon(self._accept, listener)
                task_status.started()
                try:
                    await self._drained.wait()
                finally:
                    for connection in self._connections:
                        connection.cut()
                nursery.cancel_scope.cancel()
        finally:
            self._start = None
            self.stop_accepting()
            poller.close()
            self._stopped.set()

    def stop_accepting(self) -> None:
        """Accept the connections in the backlog, then close the listeners; open connections go on."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            with suppress(OSError):
                self._accept_waiting(listener, limits.ACCEPT_BACKLOG)
            trio.lowlevel.notify_closing(listener)
            listener.close()

    def finish_connections(self) -> None:
        """Close each open connection after its next answer, whether its request is running or still to come."""
        for connection in self._connections:
            connection.finish()

    async def drain(self, seconds: float) -> bool:
        """Stop accepting, let running requests finish for `seconds`, cut the rest; returns when `serve` has ended.

        Requests are answered with `Connection: close`. Idle connections stay open for SHUTDOWN_IDLE_SECONDS: their next
        request may be on its way, and its client could not tell a lost request from an executed one. A request that is
        not whole is given up when nothing more of it comes for as long. Cancelled, no connection is cut until `serve`
        is cancelled. Returns True if all requests finished in time.
        """
        self.stop_accepting()
        self.finish_connections()
        if self._connections:
            with trio.move_on_after(seconds):
                while not self._all_closed.is_set():
                    with trio.move_on_after(limits.SHUTDOWN_IDLE_SECONDS):
                        await self._all_closed.wait()
                    for connection in self._connections:
                        connection.finish_idle()
        in_time = not self._connections
        for connection in self._connections:
            connection.cut()
        self._drained.set()
        await self._stopped.wait()
        return in_time

    async def _accept(self, listener: socket.socket) -> None:
        while listener.fileno() >= 0:  # a drain may have closed it before this task began
            try:
                await trio.lowlevel.wait_readable(listener)
                self._accept_waiting(listener, ACCEPT_ROUND_MAX)
            except BlockingIOError:
                continue
            except trio.ClosedResourceError:
                return
            except OSError as error:
                if error.errno == errno.EBADF:
                    return
                if error.errno in _OUT_OF_RESOURCES:
                    await trio.sleep(ACCEPT_PAUSE_SECONDS)

    def _accept_waiting(self, listener: socket.socket, connections_max: int) -> None:
        """Accept up to `connections_max` connections of the backlog; raises BlockingIOError when it is empty."""
        for _ in range(connections_max):
            if self._start is None:
                return
            accepted, address = listener.accept()
            self._start(accepted, str(address[0]))

    def _start_connection(self, services: Services, accepted: socket.socket, client: str) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            accepted.close()
            return
        if not self._connections.admit(client, services.now()):
            self._refuse(accepted, services)
            return
        shared, context = (services, accepted, client, self._connections), self._ssl_context
        connection = HttpSocket(*shared) if context is None else TlsSocket(*shared, context)
        self._connections.add(connection, client, services.now())

    def _refuse(self, accepted: socket.socket, services: Services) -> None:
        with accepted:
            try:
                if self._ssl_context is None:
                    accepted.send(self._response_encoder.encode(services.refuse(503, "", "", {}), CLOSE))
                    accepted.shutdown(socket.SHUT_WR)
                    accepted.recv(self._config.receive_chunk_bytes)
            except OSError:
                return

    def _none_is_open(self) -> None:
        if not self._listeners:
            self._all_closed.set()

    async def _reap(self, now: Callable[[], float]) -> None:
        config = self._config
        shortest = min(
            config.header_seconds,
            config.body_seconds,
            config.idle_seconds,
            config.send_seconds,
            config.linger_seconds or inf,
        )
        pause = min(REAP_PAUSE_SECONDS_MAX, shortest / 10)
        while True:
            time = now()
            next_time = time + shortest
            for connection in self._connections:
                if connection.deadline <= time:
                    connection.expire()
                else:
                    next_time = min(next_time, connection.deadline)
            await trio.sleep_until(max(next_time, time + pause))
