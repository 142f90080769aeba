"""Serves the UI's application with Hypercorn, over HTTP/1.1, in the nursery of the server.

Hypercorn has no bounds on connections, on the bytes and time of a client, or on its use of the event loop. So we accept
the connections ourselves. Each has a place (`connections`). Its requests are read and bounded before Hypercorn sees
them (`request_reader`), wait for a permit, and are charged to a share of the loop's time (`loop_share`). Requests
without a session have one share, all sessions together another one. The API's port speaks HTTP/2; an admin UI does not
need it.
"""

import errno
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import parse_socket_addr

from forq_trio.http.access import client_address
from forq_trio.http.message import Response
from forq_trio.http.rejections import counting_refusals
from forq_trio.http.transport.config import Refuse
from forq_trio.http.transport.response_bytes import CLOSE, ResponseEncoder
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.errors import Overloaded
from forq_trio.model.holders import network
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui.connections import ConnectionPlace, UiConnections
from forq_trio.ui.loop_share import ACCOUNT, Account, LoopShare, Permit, metered
from forq_trio.ui.request_reader import Arrived, FindViewer, RequestReader, RequestRefused

_RECEIVE_BYTES = 64 * 1024
_ACCEPT_PAUSE_SECONDS = 0.1
_ACCEPT_ROUND_MAX = 16
"""Few, so that those that were accepted show their sessions before others take their places."""
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REASONS = {
    408: b"The request did not arrive in time.\n",
    413: b"The request is longer than it may be.\n",
    414: b"The address, or its query, is longer than it may be.\n",
    431: b"The head of the request is longer than it may be.\n",
    503: b"Too many requests are on their way. Try again in some seconds.\n",
}


def _refusal(status: int, method: str, path: str, asked: Mapping[bytes, bytes]) -> Response:
    """The answer to a request that the application does not see."""
    headers = [(b"cache-control", b"no-store"), (b"content-security-policy", b"default-src 'none'")]
    if status == 503:
        headers.append((b"retry-after", b"5"))
    reason = _REASONS.get(status, b"The request is none that this server understands.\n")
    return Response(status, reason, b"text/plain; charset=utf-8", tuple(headers))


class UiServer:
    """Accepts connections on `listeners` and serves them until cancelled. connections: how many are open.

    find_viewer: finds the viewer by a request's cookies. connections_max: in all. trust_proxy_headers: a proxy names
    the client in X-Forwarded-For; its own connections count only against the bound of all. `keyless` and `sessions` are
    the shares of the loop.
    """

    def __init__(
        self,
        app: ASGIFramework,
        listeners: Sequence[socket.socket],
        find_viewer: FindViewer,
        counters: Counters,
        ssl_context: ssl.SSLContext | None = None,
        *,
        connections_max: int = limits.UI_CONNECTIONS_MAX,
        trust_proxy_headers: bool = False,
    ) -> None:
        self.app = ASGIWrapper(app)
        self._sockets = listeners
        self.ssl_context = ssl_context
        self.find_viewer = find_viewer
        self.trust_proxy_headers = trust_proxy_headers
        self.config = _hypercorn_config()
        self.context = WorkerContext(None)
        self.refuse: Refuse = counting_refusals(_refusal, counters)
        self.bodies = Budget(limits.UI_BODIES_BYTES_MAX)
        self.arrivals = LoopShare(limits.UI_ARRIVALS_SHARE_MAX, limits.UI_KEYLESS_BURST_SECONDS, 1)
        self.keyless = LoopShare(limits.UI_KEYLESS_SHARE_MAX, limits.UI_KEYLESS_BURST_SECONDS, 1)
        self.sessions = LoopShare(
            limits.UI_SHARE_MAX, limits.UI_BURST_SECONDS, limits.UI_REQUESTS_AT_ONCE, idle_share=1.0
        )
        self.places = UiConnections(connections_max, by_address=not trust_proxy_headers)
        self.ports = [listener.getsockname()[1] for listener in listeners]

    @property
    def connections(self) -> int:
        return len(self.places)

    def loop_seconds(self) -> dict[str, float]:
        """How many seconds of the event loop each share has used."""
        shares = {"arrivals": self.arrivals, "keyless": self.keyless, "sessions": self.sessions}
        return {name: share.spent for name, share in shares.items()}

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; requests that run then are cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keyless.run)
            nursery.start_soon(self.sessions.run)
            nursery.start_soon(self._accept_all, nursery)
            task_status.started()

    async def _accept_all(self, connections: trio.Nursery) -> None:
        ACCOUNT.set(Account(self.arrivals))
        async with trio.open_nursery() as nursery:
            for listener in self._sockets:
                nursery.start_soon(metered, self._accept(listener, connections))

    async def _accept(self, listener: socket.socket, connections: trio.Nursery) -> None:
        listener.setblocking(False)
        with listener:
            while True:
                await self.arrivals.paid()
                await trio.lowlevel.wait_readable(listener)
                try:
                    for _ in range(_ACCEPT_ROUND_MAX):
                        self._start(*listener.accept(), connections)
                except OSError as error:
                    if error.errno in _OUT_OF_RESOURCES:
                        await trio.sleep(_ACCEPT_PAUSE_SECONDS)

    def _start(self, accepted: socket.socket, peer: tuple[Any, ...], connections: trio.Nursery) -> None:
        """Serve a connection, if it has a place and its client is still there."""
        accepted.setblocking(False)
        try:
            left = accepted.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            left = False
        except OSError:
            left = True
        scope = trio.CancelScope()
        place = None if left else self.places.enter(network(str(peer[0])), scope.cancel)
        if place is None:
            accepted.close()
            return
        self.arrivals.spend(limits.UI_CONNECTION_SECONDS)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
        connections.start_soon(self._serve, stream, str(peer[0]), place, scope)

    async def _serve(
        self, stream: trio.SocketStream, client: str, place: ConnectionPlace, scope: trio.CancelScope
    ) -> None:
        account = Account(self.arrivals)
        ACCOUNT.set(account)
        try:
            with scope:
                await metered(_Connection(self, stream, client, place, account).run())
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # the client is gone, or is told while it goes
        except* Exception as group:
            log(LogEvent.UI_CONNECTION_FAILED, exception=group)
        finally:
            self.places.leave(place)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)


class _Connection:
    """One connection: its requests go to Hypercorn one after the other, each with a permit."""

    def __init__(
        self,
        server: UiServer,
        stream: trio.SocketStream,
        client: str,
        place: ConnectionPlace,
        account: Account,
    ) -> None:
        self._server = server
        self._client = client
        self._place = place
        self._account = account
        self._connected = stream.socket
        self._stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = stream
        self._sending = trio.Lock()
        self._protocol: ProtocolWrapper
        self._permit: Permit | None = None
        self._answered = trio.Event()
        self._ended = False

    async def run(self) -> None:
        """Serve until the client leaves, misbehaves or is too slow."""
        server, connected = self._server, self._connected
        if server.ssl_context is not None and not await self._secure(server.ssl_context):
            return
        client = parse_socket_addr(connected.family, connected.getpeername())
        reader = RequestReader(self._receive, self._send_all, self._client, server.find_viewer, server.bodies)
        try:
            async with TaskGroup() as tasks:
                self._protocol = ProtocolWrapper(
                    server.app,
                    server.config,
                    server.context,
                    tasks,
                    ConnectionState({}),
                    server.ssl_context is not None,
                    client,
                    parse_socket_addr(connected.family, connected.getsockname()),
                    self._send,
                )
                await self._protocol.initiate()
                await self._serve_requests(reader)
                with trio.move_on_after(limits.UI_CLOSE_SECONDS_MAX):
                    await self._stream.aclose()
                await self._protocol.handle(Closed())
        finally:
            reader.close()

    async def _secure(self, context: ssl.SSLContext) -> bool:
        """Do the handshake of TLS; False if it fails or takes too long."""
        assert isinstance(self._stream, trio.SocketStream)
        self._stream = trio.SSLStream(self._stream, context, server_side=True, https_compatible=True)
        with trio.move_on_after(limits.UI_HANDSHAKE_SECONDS_MAX) as handshake:
            await self._stream.do_handshake()
        return not handshake.cancelled_caught

    async def _serve_requests(self, reader: RequestReader) -> None:
        while not self._ended:
            try:
                arrived = await reader.next()
                if arrived is None:
                    return
                await self._answer(arrived, reader)
            except RequestRefused as refused:
                await self._refuse(refused.status)
                return
            finally:
                reader.release()

    async def _answer(self, arrived: Arrived, reader: RequestReader) -> None:
        """Have Hypercorn answer, and return when it has. Raises Refused where it gets no place or permit."""
        server, viewer = self._server, arrived.viewer
        share = server.keyless if viewer is None else server.sessions
        self._account.share = share
        if not server.places.begin(self._place, viewer):
            raise RequestRefused(503)
        caller = (
            client_address(arrived.request, trust_proxy_headers=server.trust_proxy_headers)
            if viewer is None
            else viewer.digest
        )
        self._answered = trio.Event()
        self._permit = None
        refused = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(metered, self._notice_leaving(reader, nursery.cancel_scope))
                try:
                    self._permit = await share.permit(caller)
                    server.places.run(self._place)
                    await self._protocol.handle(RawData(arrived.encode()))
                    await self._answered.wait()
                except Overloaded:
                    # Answered at once, a client that asks again at once would cost more than one that waits.
                    refused = True
                    server.places.end(self._place)
                    self._account.share = share = server.arrivals
                    await trio.sleep(limits.UI_REFUSE_SECONDS)
                nursery.cancel_scope.cancel()
        finally:
            if self._permit is not None:
                self._permit.end()
            self._account.share = share
            server.places.end(self._place)
        if refused:
            raise RequestRefused(503)

    async def _notice_leaving(self, reader: RequestReader, waiting: trio.CancelScope) -> None:
        """Give up the answer when the client leaves."""
        if await reader.read_ahead():
            self._end()
            if self._permit is None:
                waiting.cancel()
            else:
                await self._protocol.handle(Closed())

    async def _send(self, event: Event) -> None:
        """Send what Hypercorn gives. When an answer begins, the work for it is done, so another request may run."""
        if isinstance(event, RawData):
            if self._permit is not None:
                self._permit.end()
            try:
                await self._send_all(event.data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._end()
                await self._protocol.handle(Closed())
        elif isinstance(event, Closed):
            self._end()
            await self._protocol.handle(Closed())
        elif isinstance(event, Updated) and event.idle:
            self._answered.set()

    def _end(self) -> None:
        self._ended = True
        self._answered.set()

    async def _receive(self) -> bytes:
        return bytes(await self._stream.receive_some(_RECEIVE_BYTES))

    async def _send_all(self, data: bytes) -> None:
        """Send data within UI_SEND_SECONDS_MAX, or cut the connection, because it is not known what was sent."""
        async with self._sending:
            with trio.move_on_after(limits.UI_SEND_SECONDS_MAX) as time:
                await self._stream.send_all(data)
            if time.cancelled_caught:
                await trio.aclose_forcefully(self._stream)
                raise trio.ClosedResourceError

    async def _refuse(self, status: int) -> None:
        """Answer, and read for a moment: a close with unread bytes would take the answer away from the client."""
        answer = ResponseEncoder().encode(self._server.refuse(status, "", "", {}), CLOSE)
        with trio.move_on_after(limits.UI_CLOSE_SECONDS_MAX):
            await self._stream.send_all(answer)
            if isinstance(self._stream, trio.SocketStream):
                await self._stream.send_eof()
            for _ in range(limits.UI_RECEIVES_MAX):
                if not await self._receive():
                    return


def _hypercorn_config() -> Config:
    config = Config()
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = None
    config.keep_alive_max_requests = 2**31
    config.h11_max_incomplete_size = limits.UI_HEAD_BYTES_MAX + limits.UI_BODY_BYTES_MAX
    return config
