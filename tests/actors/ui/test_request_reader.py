"""What a request to the admin UI may be before Hypercorn sees it, and the form in which Hypercorn gets it."""

import h11
import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.budget import Budget
from forq_trio.ui.request_reader import Arrived, RequestReader, RequestRefused
from forq_trio.ui.viewer import Viewer
from support.access import access_token
from support.actors import elapse
from support.transport import chunked, get, post

SESSION = "Cookie: in"
LOGIN_MAX = limits.UI_LOGIN_BYTES_MAX


class Wire:
    """What a client sends, in pieces; after the last one it waits (or has left, with `ends`)."""

    def __init__(self, *pieces: bytes, ends: bool = False, bodies: Budget | None = None) -> None:
        self._pieces = list(pieces)
        self._ends = ends
        self.sent = b""
        self.received = 0
        self.reader = RequestReader(
            self._receive,
            self._send,
            "192.0.2.1",
            self._find_viewer,
            bodies or Budget(limits.UI_BODIES_BYTES_MAX),
        )

    async def _receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._pieces:
            self.received += 1
            return self._pieces.pop(0)
        if not self._ends:
            await trio.sleep_forever()
        return b""

    async def _send(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.sent += data

    @staticmethod
    def _find_viewer(cookies: bytes) -> Viewer | None:
        if cookies == b"token":
            return Viewer("token", "digest", access_token("narrow", "digest", (Scope.BROWSE,), "*", 0))
        return Viewer("in", "digest", None) if cookies == b"in" else None

    async def next(self) -> Arrived:
        arrived = await self.reader.next()
        assert arrived is not None
        self.reader.release()
        return arrived

    async def refused(self) -> int:
        """The status by which the next request is refused."""
        with pytest.raises(RequestRefused) as raised:
            await self.reader.next()
        self.reader.release()
        return raised.value.status


def understood(data: bytes) -> list:
    """Request and body as Hypercorn's parser understands them; it must find nothing behind."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=2 * limits.MIB)
    connection.receive_data(data)
    request, body = connection.next_event(), b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert connection.trailing_data == (b"", False)
    return [request.method, request.target, request.http_version, dict(request.headers), body]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (get("/a%20b?x=1", "Accept: b"), [b"GET", b"/a%20b?x=1", b"1.1", {b"accept": b"b"}, b""]),
        (post(b"a=1"), [b"POST", b"/", b"1.1", {b"content-length": b"3"}, b"a=1"]),
        (chunked(b"a=", b"1"), [b"POST", b"/", b"1.1", {b"content-length": b"3"}, b"a=1"]),
        (
            post(b"a", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AA"),
            [b"POST", b"/", b"1.1", {b"content-length": b"1"}, b"a"],
        ),
        (get("/", "Connection: close"), [b"GET", b"/", b"1.0", {}, b""]),
        (b"GET / HTTP/1.0\r\n\r\n", [b"GET", b"/", b"1.0", {}, b""]),
    ],
)
async def test_hypercorn_gets_a_request_in_one_form(data, expected):
    arrived = await Wire(data).next()
    found = understood(arrived.encode())
    found[3] = {name: value for name, value in found[3].items() if name != b"host"}
    assert found == expected


async def test_requests_come_one_by_one_however_they_are_cut(autojump_clock):
    data = get("/1") + post(b"two") + chunked(b"th", b"ree") + get("/4", "Connection: close")
    for size in (len(data), 40, 7):
        wire = Wire(*(data[start : start + size] for start in range(0, len(data), size)), ends=True)
        arrived = [await wire.next() for _ in range(4)]
        assert [(each.request.path, each.request.body) for each in arrived] == [
            ("/1", b""),
            ("/", b"two"),
            ("/", b"three"),
            ("/4", b""),
        ]
        assert [each.is_last for each in arrived] == [False, False, False, True]
        assert await wire.reader.next() is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get("/", *(f"a{number}: x" for number in range(limits.UI_FIELDS_MAX))), 431),
        (get("/", *["a: x"] * limits.UI_FIELDS_MAX), 431),
        (get("/", "A: " + "x" * limits.UI_HEAD_BYTES_MAX), 431),
        (get("/", "Cookie: " + "a=b; " * limits.UI_FIELDS_MAX + "a=b"), 431),
        (get("/?" + "a&" * limits.UI_FIELDS_MAX), 414),
        (get("/" + "a" * limits.URI_BYTES_MAX), 414),
        (post(b"x" * (LOGIN_MAX + 1)), 413),
        (chunked(b"x" * LOGIN_MAX, b"x"), 413),
        (post(b"a&" * limits.UI_FIELDS_MAX), 413),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
async def test_what_is_too_much_is_refused(data, status):
    assert await Wire(data).refused() == status


async def test_requests_at_the_bounds_are_taken():
    head = get(
        "/?" + "a&" * (limits.UI_FIELDS_MAX - 1), *(f"a{n}: x" for n in range(limits.UI_FIELDS_MAX - 1))
    )
    assert (await Wire(head).next()).request.path == "/"
    assert len((await Wire(post(b"x" * LOGIN_MAX)).next()).request.body) == LOGIN_MAX


async def test_a_body_that_is_too_long_is_refused_by_its_head():
    wire = Wire(post(b"x" * (LOGIN_MAX + 1))[: -LOGIN_MAX - 1], b"never")
    assert await wire.refused() == 413
    assert wire.received == 1


async def test_a_session_may_send_more_and_in_many_pieces():
    body = b"x&" * (limits.UI_BODY_BYTES_MAX // 2)
    data = post(body, SESSION)
    wire = Wire(*(data[start : start + 2_000] for start in range(0, len(data), 2_000)))
    arrived = await wire.next()
    assert arrived.request.body == body
    assert arrived.viewer is not None
    assert await Wire(post(body + b"x", SESSION)).refused() == 413


async def test_all_bodies_have_a_budget_and_a_token_a_share_of_it():
    bodies = Budget(30_000)
    from_token, from_secret = post(b"x" * 15_000, "Cookie: token"), post(b"x" * 15_000, SESSION)
    holding = Wire(from_token, bodies=bodies)
    assert await holding.reader.next() is not None
    assert await Wire(from_token, bodies=bodies).refused() == 503
    assert (await Wire(from_secret, bodies=bodies).next()).viewer is not None
    holding.reader.release()
    assert (await Wire(from_token, bodies=bodies).next()).viewer is not None
    holding.reader.close()
    assert bodies.used == 0


async def test_slow_requests_are_given_up(autojump_clock):
    started = trio.current_time()
    assert await Wire().reader.next() is None
    assert trio.current_time() - started == pytest.approx(limits.UI_KEYLESS_IDLE_SECONDS_MAX)
    for data, seconds in (
        (get("/")[:-1], limits.UI_HEAD_SECONDS_MAX),
        (post(b"ab")[:-1], limits.UI_BODY_SECONDS_MAX),
        (post(b"ab", SESSION)[:-1], limits.UI_BODY_SECONDS_MAX),
    ):
        started = trio.current_time()
        assert await Wire(data).refused() == 408
        assert trio.current_time() - started == pytest.approx(seconds)


async def test_bytes_that_trickle_in_prolong_nothing(autojump_clock):
    data = get("/", "A: " + "x" * 100)
    wire = Wire()
    started = trio.current_time()

    async def drip() -> bytes:
        await elapse(1)
        return data[int(trio.current_time() - started) - 1 :][:1]

    wire.reader._receive = drip
    assert await wire.refused() == 408
    assert trio.current_time() - started == pytest.approx(limits.UI_HEAD_SECONDS_MAX + 1)


async def test_without_a_session_a_request_comes_in_few_pieces():
    data = get("/", "A: " + "x" * 100)
    wire = Wire(*(data[start : start + 1] for start in range(len(data))))
    assert await wire.refused() == 408
    assert wire.received == limits.UI_RECEIVES_MAX + 1


async def test_a_client_that_waits_for_100_continue_gets_it():
    head, body = post(b"ab", "Expect: 100-continue")[:-2], b"ab"
    wire = Wire(head, body)
    assert (await wire.next()).request.body == b"ab"
    assert wire.sent == b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_what_is_read_ahead_is_bounded_and_not_lost():
    pieces = [get("/1"), *[b"x" * limits.UI_AHEAD_BYTES_MAX] * 3]
    wire = Wire(*pieces)
    await wire.next()
    assert await wire.reader.read_ahead() is False
    assert wire.received == 2
    follows = Wire(get("/1"), get("/2")[:5], get("/2")[5:])
    await follows.next()
    with trio.move_on_after(0.01):
        await follows.reader.read_ahead()
    assert (await follows.next()).request.path == "/2"
    left = Wire(get("/1"), ends=True)
    await left.next()
    assert await left.reader.read_ahead() is True
