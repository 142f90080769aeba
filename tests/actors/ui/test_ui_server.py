"""The admin UI's server over real sockets, with a small application: what Hypercorn gets, and when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.http.transport.listeners import open_listeners
from forq_trio.model import limits
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.rejections import Cause
from forq_trio.ui.server import UiServer
from forq_trio.ui.viewer import Viewer
from support.actors import until
from support.transport import get, post

SESSION = "Cookie: in"
WAITING = (("/a", "127.0.0.1"), ("/b", "127.0.0.2"), ("/c", "127.0.0.2"))
LONG_BYTES = 32 * limits.MIB


class App:
    """Answers with method, path and body; a path that is held waits until it is let go, and /live never ends.

    paths: what arrived, in order. left: whose clients did not wait.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.left: list[str] = []
        self.held: dict[str, trio.Event] = {}

    def hold(self, path: str) -> None:
        self.held[path] = trio.Event()

    async def __call__(self, scope, receive, send) -> None:
        path = scope["path"]
        self.paths.append(path)
        body = (await receive())["body"]
        if path == "/live":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            await receive()
            return
        if path in self.held:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._notice_leaving, path, receive, nursery.cancel_scope)
                await self.held[path].wait()
                nursery.cancel_scope.cancel()
        if path not in self.left:
            text = f"{scope['method']} {path} ".encode() + body
            text += b"x" * LONG_BYTES if path == "/long" else b""
            headers = [(b"content-length", str(len(text)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": text})

    async def _notice_leaving(self, path, receive, scope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.append(path)
        scope.cancel()


class Running:
    def __init__(self, server: UiServer, app: App, counters: Counters) -> None:
        self.server = server
        self.app = app
        self.counters = counters
        self.streams: list[trio.SocketStream] = []

    async def send(self, data: bytes, address: str = "127.0.0.1") -> trio.SocketStream:
        """Send on a new connection from this address."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.server.ports[0], local_address=address)
        self.streams.append(stream)
        await stream.send_all(data)
        return stream


@asynccontextmanager
async def running(**options) -> AsyncIterator[Running]:
    def find_viewer(cookies: bytes) -> Viewer | None:
        return Viewer("in", f"digest of {cookies.decode()}", None) if cookies.startswith(b"in") else None

    app, counters = App(), Counters()
    listeners = await open_listeners("127.0.0.1", 0)
    server = UiServer(app, listeners, find_viewer, counters, **options)
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            ui = Running(server, app, counters)
            yield ui
            for stream in ui.streams:
                await trio.aclose_forcefully(stream)
            await until(lambda: server.connections == 0)
            nursery.cancel_scope.cancel()


async def answer(stream: trio.SocketStream) -> tuple[int, bytes]:
    """Status and body of the next answer."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += await _some(stream)
    head, _, body = head.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += await _some(stream)
    assert len(body) == length
    return int(head[9:12]), body


async def _some(stream: trio.SocketStream) -> bytes:
    received = await stream.receive_some(65_536)
    assert received, "the connection has ended"
    return received


async def has_ended(stream: trio.SocketStream) -> bool:
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some(65_536):
            continue
    return True


async def test_requests_are_answered_in_order_on_one_connection():
    async with running() as ui:
        stream = await ui.send(get("/1"))
        assert await answer(stream) == (200, b"GET /1 ")
        await stream.send_all(post(b"two"))
        assert await answer(stream) == (200, b"POST / two")
        await stream.send_all(get("/3", "Connection: close"))
        assert await answer(stream) == (200, b"GET /3 ")
        assert await has_ended(stream)


async def test_what_is_pipelined_is_answered_one_by_one():
    async with running() as ui:
        ui.app.hold("/1")
        stream = await ui.send(get("/1") + get("/2"))
        await until(lambda: ui.app.paths == ["/1"])
        await wait_all_tasks_blocked()
        assert ui.app.paths == ["/1"]
        ui.app.held["/1"].set()
        assert await answer(stream) == (200, b"GET /1 ")
        assert await answer(stream) == (200, b"GET /2 ")


async def test_hypercorn_sees_nothing_of_what_is_refused_and_it_is_counted():
    async with running() as ui:
        for data, status in (
            (get("/", *(f"a{number}: x" for number in range(200))), 431),
            (get("/?" + "a&" * 200), 414),
            (post(b"x" * (limits.UI_LOGIN_BYTES_MAX + 1)), 413),
        ):
            stream = await ui.send(data)
            found, body = await answer(stream)
            assert found == status
            assert body.endswith(b".\n")
            assert await has_ended(stream)
        assert ui.app.paths == []
        assert ui.counters.rejections[Cause.TOO_LARGE] == 3


async def test_without_a_session_one_request_is_worked_on_at_a_time():
    async with running() as ui:
        ui.app.hold("/1")
        first = await ui.send(get("/1"))
        await until(lambda: ui.app.paths == ["/1"])
        second = await ui.send(get("/2"))
        with_session = await ui.send(get("/3", SESSION))
        assert await answer(with_session) == (200, b"GET /3 ")
        assert ui.app.paths == ["/1", "/3"]
        ui.app.held["/1"].set()
        assert await answer(first) == (200, b"GET /1 ")
        assert await answer(second) == (200, b"GET /2 ")


async def test_who_leaves_while_it_is_answered_is_noticed():
    async with running() as ui:
        ui.app.hold("/1")
        first = await ui.send(get("/1"))
        await until(lambda: ui.app.paths == ["/1"])
        await first.aclose()
        await until(lambda: ui.app.left == ["/1"])
        second = await ui.send(get("/2"))
        assert await answer(second) == (200, b"GET /2 ")


async def test_who_leaves_while_it_waits_costs_nothing_more():
    async with running() as ui:
        ui.app.hold("/1")
        first = await ui.send(get("/1"))
        await until(lambda: ui.app.paths == ["/1"])
        waiting = await ui.send(get("/2"))
        await until(lambda: ui.server.connections == 2)
        await waiting.aclose()
        await until(lambda: ui.server.connections == 1)
        ui.app.held["/1"].set()
        await answer(first)
        assert ui.app.paths == ["/1"]


async def test_who_reads_no_answer_holds_up_nobody():
    async with running() as ui:
        await ui.send(get("/long"))
        await until(lambda: ui.app.paths == ["/long"])
        second = await ui.send(get("/2"))
        assert await answer(second) == (200, b"GET /2 ")


async def test_idle_connections_lock_nobody_out():
    """1,200 of them, as it was found; from one address, so that most are ended for those that come later."""
    async with running() as ui:
        inside = await ui.send(get("/1", SESSION))
        assert await answer(inside) == (200, b"GET /1 ")
        for _ in range(3 * limits.UI_CONNECTIONS_AN_ADDRESS_MAX):
            await ui.send(b"")
        late = await ui.send(get("/2"))
        assert await answer(late) == (200, b"GET /2 ")
        assert ui.server.connections <= limits.UI_CONNECTIONS_AN_ADDRESS_MAX + 1
        await inside.send_all(get("/3", SESSION))
        assert await answer(inside) == (200, b"GET /3 ")


async def test_an_address_that_waits_with_all_its_requests_locks_no_session_of_it_out():
    async with running() as ui:
        ui.app.hold("/1")
        for _ in range(2 * limits.UI_CONNECTIONS_AN_ADDRESS_MAX):
            await ui.send(get("/1"))
        await until(lambda: ui.server.connections == limits.UI_CONNECTIONS_AN_ADDRESS_MAX)
        inside = await ui.send(get("/2", SESSION))
        assert await answer(inside) == (200, b"GET /2 ")
        assert ui.app.paths == ["/1", "/2"]


async def test_two_addresses_whose_requests_wait_lock_no_third_out():
    async with running(connections_max=16) as ui:  # four without a session, an address has two
        ui.app.hold("/held")
        held = await ui.send(get("/held"))
        await until(lambda: ui.app.paths == ["/held"])
        waiting = [await ui.send(get(path), address) for path, address in WAITING]
        await until(lambda: ui.server.connections == 4)
        await wait_all_tasks_blocked()
        third = await ui.send(get("/third"), "127.0.0.3")
        assert await has_ended(waiting[0])
        ui.app.held["/held"].set()
        assert await answer(held) == (200, b"GET /held ")
        assert await answer(third) == (200, b"GET /third ")
        assert [(await answer(stream))[0] for stream in waiting[1:]] == [200, 200]


async def test_a_session_has_no_more_connections_than_it_may():
    async with running() as ui:
        for _ in range(limits.UI_CONNECTIONS_A_SESSION_MAX):
            await ui.send(get("/live", "Cookie: in1"))
            await until(lambda: len(ui.app.paths) == len(ui.streams))
        refused = await ui.send(get("/1", "Cookie: in1"))
        assert (await answer(refused))[0] == 503
        other = await ui.send(get("/2", "Cookie: in2"))
        assert await answer(other) == (200, b"GET /2 ")


async def test_what_it_used_of_the_loop_is_told():
    async with running() as ui:
        for data in (get("/1"), get("/2", SESSION)):
            await answer(await ui.send(data))
        used = ui.server.loop_seconds()
        assert list(used) == ["arrivals", "keyless", "sessions"]
        assert min(used.values()) > 0
        assert ui.server.connections == 2


async def test_behind_a_proxy_connections_are_bounded_in_all_alone():
    async with running(trust_proxy_headers=True) as ui:
        for _ in range(limits.UI_CONNECTIONS_AN_ADDRESS_MAX + 5):
            await ui.send(b"")
        await until(lambda: ui.server.connections == limits.UI_CONNECTIONS_AN_ADDRESS_MAX + 5)
