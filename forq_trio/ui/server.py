"""Serves the UI's application with Hypercorn, over HTTP/1.1, in the nursery of the server.

Hypercorn bounds neither connections nor how long a client may take to read an answer, and it has no way to leave
HTTP/2 out; both of its switches to HTTP/2 end the connection here instead. The API's port speaks HTTP/2, with bounds of
its own, and an admin UI has no need of it.
"""

import socket
import ssl
from collections.abc import Sequence
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H2CProtocolRequiredError, H2ProtocolAssumedError
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import parse_socket_addr

from forq_trio.model import limits
from forq_trio.telemetry.log import LogEvent, log


class UiServer:
    """Accepts connections on `listeners` and serves them until cancelled. connections: how many are open."""

    def __init__(
        self,
        app: ASGIFramework,
        listeners: Sequence[socket.socket],
        ssl_context: ssl.SSLContext | None = None,
        connections_max: int = limits.UI_CONNECTIONS_MAX,
    ) -> None:
        self._app = ASGIWrapper(app)
        self._sockets = listeners
        self._ssl_context = ssl_context
        self._connections_max = connections_max
        self._config = _hypercorn_config()
        self._context = WorkerContext(None)
        self.connections = 0
        self.ports = [listener.getsockname()[1] for listener in listeners]

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; requests that run then are cancelled."""
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(each)) for each in self._sockets]
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, self._serve_connection, listeners)
            task_status.started()

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        if self.connections >= self._connections_max:
            await trio.aclose_forcefully(stream)
            return
        self.connections += 1
        try:
            wrapped: Any = stream
            if self._ssl_context is not None:
                wrapped = trio.SSLStream(stream, self._ssl_context, server_side=True, https_compatible=True)
            await _Connection(self._app, self._config, self._context, ConnectionState({}), wrapped)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # the client is gone, or is told while it goes
        except* Exception as group:
            log(LogEvent.UI_CONNECTION_FAILED, exception=group)
        finally:
            self.connections -= 1
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)


class _Protocol(ProtocolWrapper):
    """HTTP/1.1 alone."""

    async def handle(self, event: Event) -> None:
        try:
            await self.protocol.handle(event)
        except (H2ProtocolAssumedError, H2CProtocolRequiredError):
            await self.send(Closed())


class _Connection(TCPServer):
    """A connection of Hypercorn whose client has to read what it asked for, within UI_SEND_SECONDS_MAX a piece."""

    async def run(self) -> None:
        stream = self.stream
        is_tls = isinstance(stream, trio.SSLStream)
        if is_tls:
            with trio.move_on_after(limits.UI_HANDSHAKE_SECONDS_MAX) as handshake:
                await stream.do_handshake()
            if handshake.cancelled_caught:
                return
        connected = stream.transport_stream.socket if is_tls else stream.socket
        client = parse_socket_addr(connected.family, connected.getpeername())
        server = parse_socket_addr(connected.family, connected.getsockname())
        async with TaskGroup() as task_group:
            self._task_group = task_group
            self.protocol = _Protocol(
                self.app,
                self.config,
                self.context,
                task_group,
                ConnectionState({}),
                is_tls,
                client,
                server,
                self.protocol_send,
            )
            await self.protocol.initiate()
            await self.idle_task.restart(task_group, self._idle_timeout)
            try:
                await self._read_data()
            finally:
                with trio.move_on_after(limits.UI_CLOSE_SECONDS_MAX, shield=True):
                    await self._close()

    async def protocol_send(self, event: Event) -> None:
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                with trio.fail_after(limits.UI_SEND_SECONDS_MAX):
                    await self.stream.send_all(event.data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await self.protocol.handle(Closed())
            except trio.TooSlowError:
                await trio.aclose_forcefully(self.stream)
                await self.protocol.handle(Closed())


def _hypercorn_config() -> Config:
    config = Config()
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = None
    config.keep_alive_timeout = limits.UI_IDLE_SECONDS_MAX
    config.h11_max_incomplete_size = limits.UI_HEAD_BYTES_MAX
    config.websocket_max_message_size = 1
    return config
