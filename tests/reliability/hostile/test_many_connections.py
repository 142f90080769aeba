"""Slow connections, and more connections than are allowed.

Both go to a real server with its real limits, so the slow ones take the ten seconds a head may take. The file needs
about 20,500 open files in all, half of them in the server: where the hard limit is lower, it is skipped and says so.
"""

import resource
import select
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from forq_trio.model import limits
from support.real_server import real_server

from .raw import KEY, Queue, connect, request, statuses, until_end

pytestmark = [pytest.mark.process, pytest.mark.tier2]

FILES_MAX = limits.CONNECTIONS_MAX + 500
SLOW_HEADS = 600
SLOW_BODIES = 400
EXTRA = 100

# What else goes on may slow an ordinary client down, but not make its turns a matter of seconds.
TIMES_SLOWER_MAX = 10
SECONDS_MAX = 3.0  # for three turns in four: a busy machine may stop anybody now and then
LATE_SECONDS_MAX = 15.0  # by which a limit in time may be overrun when hundreds reach it together
ALONE = 50


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """As many open files as it takes, for us and for the server we start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES_MAX:
        pytest.skip(f"this needs {FILES_MAX} open files a process, and the hard limit here is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES_MAX), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def serving(tmp_path) -> Iterator[tuple[int, Queue]]:
    """A server's port, and an honest client that had its connection before anybody else."""
    kept = httpx.Limits(max_connections=1, keepalive_expiry=None)
    with (
        real_server(tmp_path / "forq.db") as server,
        httpx.Client(headers=KEY, timeout=120, limits=kept) as client,
    ):
        queue = Queue(server.url, "q", client)
        queue.counts()
        yield int(server.address.rpartition(":")[2]), queue
        assert server.stop() == 0


def turn(queue: Queue) -> float:
    """Send a message and receive it; how many seconds that took."""
    started = time.perf_counter()
    queue.send()
    (message,) = queue.receive()
    acked = queue.client.post(f"{queue.url}{queue.path}/ack", json={"receipts": [message["receipt"]]})
    assert acked.json()["results"][0]["ok"]
    return time.perf_counter() - started


def answered(clients: list[socket.socket]) -> int:
    """How many of them have something to read, be it only an end."""
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLIN)
    return len(poll.poll(0))


def check_turns(seconds: list[float], alone: list[float]) -> None:
    median, median_alone = statistics.median(seconds), statistics.median(alone)
    print(f"{len(seconds)} turns of an ordinary client: median {1_000 * median:.1f} ms, ", end="")
    print(f"longest {1_000 * max(seconds):.1f} ms; alone, median {1_000 * median_alone:.1f} ms")
    assert median < TIMES_SLOWER_MAX * median_alone
    assert statistics.quantiles(seconds, n=4)[-1] < SECONDS_MAX


def test_a_thousand_slow_clients_are_cut_off_and_nobody_waits_for_them(tmp_path) -> None:
    """They send a byte a second each. Heads are answered 408 after ten seconds; bodies have more time."""
    head = request("GET", "/api/v1/queues/q/messages")
    body = request("POST", "/api/v1/queues/q/messages", {"content": "x" * 100})
    with serving(tmp_path) as (port, queue), ExitStack() as stack:
        alone = [turn(queue) for _ in range(ALONE)]
        heads = [stack.enter_context(connect(port)) for _ in range(SLOW_HEADS)]
        bodies = [stack.enter_context(connect(port)) for _ in range(SLOW_BODIES)]
        for client in bodies:
            client.sendall(body[:-100])
        started = time.perf_counter()
        seconds: list[float] = []
        for number in range(round(limits.HEADER_SECONDS_MAX) - 1):
            for client in heads:
                client.sendall(head[number : number + 1])
            for client in bodies:
                client.sendall(b"x")
            while time.perf_counter() < started + number + 1:
                seconds.append(turn(queue))
        assert answered(heads) == 0, "cut off before its time"
        for client in heads:
            assert statuses(until_end(client)) == [408]
        ended_after = time.perf_counter() - started
        assert limits.HEADER_SECONDS_MAX - 1 < ended_after < limits.HEADER_SECONDS_MAX + LATE_SECONDS_MAX
        check_turns(seconds, alone)
        assert answered(bodies) == 0


@pytest.mark.soak
def test_slow_bodies_are_cut_off_after_their_time(tmp_path) -> None:
    """They are answered 408 then, and nothing of them is stored."""
    body = request("POST", "/api/v1/queues/q/messages", {"content": "x" * 100})
    with serving(tmp_path) as (port, queue), ExitStack() as stack:
        bodies = [stack.enter_context(connect(port)) for _ in range(SLOW_BODIES)]
        for client in bodies:
            client.settimeout(limits.BODY_SECONDS_MAX + LATE_SECONDS_MAX)
            client.sendall(body[:-1])
        started = time.perf_counter()
        for client in bodies:
            assert statuses(until_end(client)) == [408]
        ended_after = time.perf_counter() - started
        assert limits.BODY_SECONDS_MAX - 1 < ended_after < limits.BODY_SECONDS_MAX + LATE_SECONDS_MAX
        turn(queue)
        assert queue.receive() == []


def test_ten_thousand_connections_and_a_hundred_more(tmp_path) -> None:
    """Those beyond the limit are told 503 at once; when some leave there is room again; the others are served."""
    with serving(tmp_path) as (port, queue), ExitStack() as stack:
        alone = [turn(queue) for _ in range(ALONE)]
        open_ones = [stack.enter_context(connect(port)) for _ in range(limits.CONNECTIONS_MAX - 1)]
        for client in open_ones:  # with a key: others would make way for new ones
            client.sendall(request("GET", "/api/v1/queues/q"))
            assert client.recv(4_000).startswith(b"HTTP/1.1 200")
        refused = [stack.enter_context(connect(port)) for _ in range(EXTRA)]
        for client in refused:
            answer = until_end(client)
            assert statuses(answer) == [503]
            assert b"\r\nConnection: close\r\n" in answer
            assert b'{"code":"forq.overloaded",' in answer
        check_turns([turn(queue) for _ in range(200)], alone)
        for client in open_ones[::100]:
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
        for client in open_ones[:EXTRA]:
            client.shutdown(socket.SHUT_WR)
            assert until_end(client) == b""
        for _ in range(EXTRA):
            client = stack.enter_context(connect(port))
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
