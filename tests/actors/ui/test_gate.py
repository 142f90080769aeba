"""What a request passes before the application: length, time, a budget for all bodies, and nothing but HTTP."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.ui.gate import Gate
from support.actors import elapse


class Asked:
    """An application that reads its request and answers with its length; `sent` is what went out."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: list[str] = []

    async def __call__(self, scope, receive, send) -> None:
        self.paths.append(scope["path"])
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(gate, messages, length=None, cookie=b"", path="/", method="POST"):
    """The status of the answer to a request with these parts of a body; None without one."""
    headers = [(b"cookie", cookie)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    sent = []
    left = list(messages)

    async def receive():
        await trio.lowlevel.checkpoint()
        if not left:
            await trio.sleep_forever()
        part = left.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        await trio.lowlevel.checkpoint()
        sent.append(message)

    await gate({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    return sent[0]["status"] if sent else None


@pytest.fixture
def app() -> Asked:
    return Asked()


@pytest.fixture
def gate(app) -> Gate:
    return Gate(app, "/forq", lambda cookies: cookies == b"in", budget_bytes=3 * limits.UI_BODY_BYTES_MAX)


async def test_the_application_gets_the_body_in_one_piece(gate, app):
    assert await ask(gate, [b"a=", b"1"], 3) == 200
    assert await ask(gate, [b"b=", b"2"]) == 200
    assert app.bodies == [b"a=1", b"b=2"]


@pytest.mark.parametrize("length", [None, limits.UI_LOGIN_BYTES_MAX + 1])
async def test_a_long_body_needs_a_session(gate, app, length):
    long = [b"x" * limits.UI_LOGIN_BYTES_MAX, b"x"]
    assert await ask(gate, long, length) == 413
    assert app.bodies == []
    assert await ask(gate, long, length, b"in") == 200


async def test_nobody_sends_more_than_the_longest_body(gate, app):
    part = b"x" * (limits.UI_BODY_BYTES_MAX // 4)
    assert await ask(gate, [part] * 5, None, b"in") == 413
    assert await ask(gate, [], limits.UI_BODY_BYTES_MAX + 1, b"in") == 413


async def test_a_slow_body_is_given_up(gate, autojump_clock):
    started = trio.current_time()
    assert await ask(gate, [b"a", b"b"][:1] * 1, 2) in (200, 408)
    assert await ask(gate, [], 2) == 408
    assert trio.current_time() - started == pytest.approx(limits.UI_BODY_SECONDS_MAX)


async def test_all_bodies_share_a_budget_that_is_given_back(gate, autojump_clock):
    statuses = []

    async def one(parts):
        statuses.append(await ask(gate, parts, limits.UI_BODY_BYTES_MAX, b"in"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one, [])
        await wait_all_tasks_blocked()
        await one([b"x"])
        assert statuses == [503]
        await elapse(limits.UI_BODY_SECONDS_MAX + 1)
        assert statuses == [503, 408, 408, 408]
        await one([b"x"])
        assert statuses[-1] == 200


async def test_a_client_that_left_is_not_answered(gate, app):
    assert await ask(gate, [None], 5) is None
    assert app.bodies == []


async def test_the_base_path_is_removed_where_a_proxy_left_it_on(gate, app):
    for path in ("/forq/queue/a", "/queue/a", "/forq", "/forqs"):
        await ask(gate, [b""], 0, path=path)
    assert app.paths == ["/queue/a", "/queue/a", "/", "/forqs"]


async def test_a_websocket_is_refused(gate, app):
    sent = []

    async def send(message):
        await trio.lowlevel.checkpoint()
        sent.append(message["type"])

    await gate({"type": "websocket", "path": "/x"}, None, send)
    assert sent == ["websocket.close"]
    assert app.paths == []
