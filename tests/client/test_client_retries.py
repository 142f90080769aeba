"""Repeating a call: only where it certainly did nothing, and not for ever."""

import socket
from collections.abc import Callable

import msgspec
import pytest
import trio

from client.fake_time import Clock
from forq_trio import AsyncForqClient, ForqClient, ForqError, ForqUnreachable
from forq_trio.client.failures import ClosedUnanswered, ConnectFailed, NoAnswer, TransportError
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.client.retry import Retries
from support.fake_transport import AsyncFakeTransport, FakeTransport, Handler, answer_of
from support.real_server import SECRET


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def client_with(handler: Handler, retry_seconds: float = 10.0) -> ForqClient:
    return ForqClient("http://forq", SECRET, retry_seconds=retry_seconds, transport=FakeTransport(handler))


def empty() -> HttpAnswer:
    return answer_of(json={"queues": []})


def test_a_refused_connection_is_tried_again_with_growing_pauses(clock: Clock):
    tries = []

    def handler(request: ClientRequest) -> HttpAnswer:
        tries.append(request)
        if len(tries) < 4:
            raise ConnectFailed("Connection refused")
        return empty()

    assert client_with(handler).queues() == []
    assert clock.slept == [0.1, 0.2, 0.4]


def test_trying_ends_within_the_budget(clock: Clock):
    def handler(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("Connection refused")

    with pytest.raises(ForqUnreachable) as caught:
        client_with(handler, retry_seconds=20.0).queues()
    assert str(caught.value) == "no server can be reached at http://forq (Connection refused)"
    assert caught.value.sent is False
    assert sum(clock.slept) <= 20.0
    assert max(clock.slept) == 5.0


def test_without_a_budget_nothing_is_repeated(clock: Clock):
    def handler(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("timed out after 5 s")

    with pytest.raises(ForqUnreachable, match="timed out after 5 s"):
        client_with(handler, retry_seconds=0).queues()
    assert clock.slept == []


@pytest.mark.parametrize("problem", [NoAnswer, ClosedUnanswered])
def test_what_may_have_reached_the_server_is_never_repeated(clock: Clock, problem: type[TransportError]):
    tries = []

    def handler(request: ClientRequest) -> HttpAnswer:
        tries.append(request)
        raise problem("gone")

    with pytest.raises(ForqUnreachable, match="did not answer") as caught:
        client_with(handler).produce("orders", "a")
    assert caught.value.sent is True
    assert (len(tries), clock.slept) == (1, [])


def test_a_server_that_asks_to_come_back_is_obeyed(clock: Clock):
    answers = [
        answer_of(503, Retry_After="2", json={"code": "forq.overloaded"}),
        answer_of(503, Retry_After="0", json={"code": "forq.overloaded"}),
        empty(),
    ]
    assert client_with(lambda request: answers.pop(0)).queues() == []
    assert clock.slept == [2.0, 0.1]


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(503, json={"code": "forq.overloaded"}),
        answer_of(503, Retry_After="6", json={"code": "forq.overloaded"}),
        answer_of(503, Retry_After="Sat, 21 Nov 2026 09:00:00 GMT", json={"code": "x"}),
        answer_of(429, Retry_After="1", json={"code": "too_many_requests"}),
        answer_of(500, Retry_After="1", json={"code": "internal"}),
        answer_of(500, Retry_After="1", json={"code": "forq.outcome_unknown"}),
    ],
)
def test_other_answers_are_taken_as_they_are(clock: Clock, answer: HttpAnswer):
    with pytest.raises(ForqError) as caught:
        client_with(lambda request: answer).queues()
    assert caught.value.code == msgspec.json.decode(answer.content)["code"]
    assert clock.slept == []


def test_a_server_that_stays_overloaded_is_given_up(clock: Clock):
    busy = answer_of(503, Retry_After="3", json={"code": "forq.overloaded"})
    with pytest.raises(ForqError, match="more work is waiting"):
        client_with(lambda request: busy).queues()
    assert clock.slept == [3.0, 3.0, 3.0]


def test_a_full_queue_is_waited_for_within_the_budget(clock: Clock):
    """Nothing of the request was stored, so it may be repeated; meanwhile consumers may have made room."""
    full = answer_of(503, Retry_After="1", json={"code": "forq.queue_full"})
    stored = answer_of(200, json={"results": [{"id": "a", "sequence": 1}]})
    answers = [full, full, stored]
    assert client_with(lambda request: answers.pop(0)).produce("orders", "a").sequence == 1
    assert clock.slept == [1.0, 1.0]
    with pytest.raises(ForqError, match="as many messages or bytes as its settings allow"):
        client_with(lambda request: full).produce("orders", "a")


def test_the_budget_is_each_calls_own(clock: Clock):
    retries = Retries(1.0)
    clock.now += 2.0
    assert retries.next_pause() is None
    assert Retries(1.0).next_pause() == 0.1


@pytest.mark.parametrize(
    ("call", "answer_seconds"),
    [
        (lambda client: client.receive("q", wait_ms=30_000), 60.0),
        (lambda client: client.receive("q", wait_ms=0), 30.0),
        (lambda client: client.ack("q", ["r"]), 30.0),
        (lambda client: client.purge("q"), 630.0),
    ],
)
def test_time_outs_leave_room_for_the_long_poll(call: Callable[[ForqClient], object], answer_seconds: float):
    seen = []

    def handler(request: ClientRequest) -> HttpAnswer:
        seen.append(request.answer_seconds)
        return answer_of(200, json={"messages": [], "results": [], "purged": 0})

    call(client_with(handler))
    assert seen == [answer_seconds]


async def test_the_asynchronous_client_repeats_too(autojump_clock: trio.testing.MockClock):
    answers = [503, 0, 200]

    def handler(request: ClientRequest) -> HttpAnswer:
        match answers.pop(0):
            case 0:
                raise ConnectFailed("refused")
            case 503:
                return answer_of(503, Retry_After="3", json={"code": "forq.stopping"})
        return empty()

    transport = AsyncFakeTransport(handler)
    started = trio.current_time()
    async with AsyncForqClient("http://forq", SECRET, transport=transport) as client:
        assert await client.queues() == []
    assert trio.current_time() - started == pytest.approx(3.1)


async def test_the_asynchronous_client_gives_up_like_the_other():
    def refuse(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("refused")

    def break_off(request: ClientRequest) -> HttpAnswer:
        raise NoAnswer("gone")

    for handler, sent in ((refuse, False), (break_off, True)):
        transport = AsyncFakeTransport(handler)
        async with AsyncForqClient("http://forq", SECRET, retry_seconds=0, transport=transport) as client:
            with pytest.raises(ForqUnreachable) as caught:
                await client.queues()
        assert caught.value.sent is sent


async def test_cancelling_a_receive_closes_its_connection():
    """The server learns from the closed connection that nobody waits any more."""
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    async with (
        listener,
        AsyncForqClient(f"http://127.0.0.1:{port}", SECRET) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.receive, "orders")
        stream = await listener.accept()
        async with stream:
            received = b""
            while b"waitMs" not in received:
                received += await stream.receive_some()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert await stream.receive_some() == b""


def test_nobody_listens(clock: Clock):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with ForqClient(url, SECRET, retry_seconds=0) as client, pytest.raises(ForqUnreachable) as caught:
            client.queues()
    assert str(caught.value) == f"no server can be reached at {url} (Connection refused)"
