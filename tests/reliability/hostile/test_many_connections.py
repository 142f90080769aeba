"""Slow connections, and more connections than are allowed.

Both go to a real server with its real limits, so the slow ones take the ten seconds a head may take. The file needs
about 20,500 open files in all, half of them in the server: where the hard limit is lower, it is skipped and says so.

No time limit here is one of the machine:
- What an ordinary client waits for is compared, in turns, with a second server that has no other client.
- Work that grows faster than the number of connections is found by the server's processor time.
- A connection may be cut when its time is over, however little was done in it.
"""

import resource
import select
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from forq_trio.model import limits
from support.processes import WAIT_SECONDS_MAX, processor_seconds
from support.real_server import RealServer, real_server

from .raw import KEY, Queue, connect, request, reset, statuses, until_end

pytestmark = [pytest.mark.process, pytest.mark.tier2]

FILES_MAX = limits.CONNECTIONS_MAX + 500
SLOW_HEADS = 600
SLOW_BODIES = 400
EXTRA = 100
# How many connections send their requests before the first answer is read. One at a time would be 10,000 round trips,
# each of which waits twice until a busy machine runs the other process; the first would be idle for too long.
TOGETHER = 100

# What else goes on may slow an ordinary client down: these limits are for its median turn, and for three turns in four.
TIMES_SLOWER_MAX = 5
TURNS = 100
# Of the second half of the connections, in processor time of the first half: it would be 3 if it grew with the square.
TIMES_DEARER_MAX = 2


class Serving(NamedTuple):
    """One server, and an honest client that had its connection before anybody else."""

    server: RealServer
    port: int
    queue: Queue


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
def serving(database: Path) -> Iterator[Serving]:
    kept = httpx.Limits(max_connections=1, keepalive_expiry=None)
    with (
        real_server(database) as server,
        httpx.Client(headers=KEY, timeout=120, limits=kept, verify=False) as client,
    ):
        queue = Queue(server.url, "q", client)
        queue.send()
        queue.receive()
        yield Serving(server, int(server.address.rpartition(":")[2]), queue)
        assert server.stop() == 0


@pytest.fixture
def crowded(tmp_path) -> Iterator[Serving]:
    """The server of the test."""
    with serving(tmp_path / "crowded.db") as crowded:
        yield crowded


@pytest.fixture
def empty(tmp_path) -> Iterator[Serving]:
    """The server to compare it with."""
    with serving(tmp_path / "empty.db") as empty:
        yield empty


@contextmanager
def connected(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many connections. They end with a reset: thousands of closed ones have their ports for another minute."""
    clients: list[socket.socket] = []
    try:
        clients += (connect(port) for _ in range(count))
        yield clients
    finally:
        for client in clients:
            reset(client)


def turn(queue: Queue) -> float:
    """Send a message and receive it; how many seconds that took."""
    started = time.perf_counter()
    queue.send()
    (message,) = queue.receive()
    acked = queue.client.post(f"{queue.url}{queue.path}/ack", json={"receipts": [message["receipt"]]})
    assert acked.json()["results"][0]["ok"]
    return time.perf_counter() - started


def answered(clients: Sequence[socket.socket]) -> int:
    """How many of them have something to read, be it only an end."""
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLIN)
    return len(poll.poll(0))


def ask(clients: Sequence[socket.socket], path: str, status: int) -> None:
    """Get the path on each connection, and see it answered so."""
    for first in range(0, len(clients), TOGETHER):
        together = clients[first : first + TOGETHER]
        for client in together:
            client.sendall(request("GET", path))
        for client in together:
            assert client.recv(4_000).startswith(f"HTTP/1.1 {status} ".encode())


def check_turns(turns: list[tuple[float, float]]) -> None:
    """Of pairs: with the crowd and, right after it, without one."""
    crowded, alone = (sorted(seconds) for seconds in zip(*turns, strict=True))
    for name, at in (("median", statistics.median), ("three in four", lambda them: them[3 * len(them) // 4])):
        print(f"{name} of {len(turns)} turns: {1_000 * at(crowded):.1f} ms, alone {1_000 * at(alone):.1f} ms")
        assert at(crowded) < TIMES_SLOWER_MAX * at(alone)


def test_a_thousand_slow_clients_are_cut_off_and_nobody_waits_for_them(crowded, empty) -> None:
    """They send a byte a second each. Heads are answered 408 after ten seconds; bodies have more time.

    One more client begins its head a second later and waits: what the others have sent since must not have put their
    end off, so theirs has come when its own has.
    """
    head = request("GET", "/api/v1/queues/q/messages")
    body = request("POST", "/api/v1/queues/q/messages", {"content": "x" * 100})
    with (
        connected(crowded.port, SLOW_HEADS) as heads,
        connected(crowded.port, SLOW_BODIES) as bodies,
        connect(crowded.port) as later,
    ):
        started = time.perf_counter()
        for client in bodies:
            client.sendall(body[:-100])
        turns: list[tuple[float, float]] = []
        for number in range(round(limits.HEADER_SECONDS_MAX) - 1):
            for client in heads:
                client.sendall(head[number : number + 1])
            for client in bodies:
                client.sendall(b"x")
            if number == 1:
                later.sendall(head[:1])
            while time.perf_counter() < started + number + 1:
                turns.append((turn(crowded.queue), turn(empty.queue)))
        cut_off = answered(heads)
        assert cut_off == 0 or time.perf_counter() - started >= limits.HEADER_SECONDS_MAX, "before its time"
        assert statuses(until_end(later)) == [408]
        assert time.perf_counter() - started >= limits.HEADER_SECONDS_MAX
        turn(crowded.queue)  # by its end all that was due with the later client's is answered
        assert answered(heads) == SLOW_HEADS
        for client in heads:
            assert statuses(until_end(client)) == [408]
        check_turns(turns)
        cut_off = answered(bodies)
        assert cut_off == 0 or time.perf_counter() - started >= limits.BODY_SECONDS_MAX, "before its time"


@pytest.mark.soak
def test_slow_bodies_are_cut_off_after_their_time(crowded) -> None:
    """They are answered 408 then, and nothing of them is stored."""
    body = request("POST", "/api/v1/queues/q/messages", {"content": "x" * 100})
    with connected(crowded.port, SLOW_BODIES) as bodies:
        started = time.perf_counter()
        for client in bodies:
            client.settimeout(limits.BODY_SECONDS_MAX + WAIT_SECONDS_MAX)
            client.sendall(body[:-1])
        for client in bodies:
            assert statuses(until_end(client)) == [408]
            assert time.perf_counter() - started >= limits.BODY_SECONDS_MAX
        turn(crowded.queue)
        assert crowded.queue.receive(wait_ms=0) == []


def test_ten_thousand_connections_and_a_hundred_more(crowded, empty) -> None:
    """Those beyond the limit are told 503 at once; when some leave there is room again; the others are served."""
    port, pid = crowded.port, crowded.server.process.pid
    open_ones: list[socket.socket] = []
    spent = [processor_seconds(pid)]
    with ExitStack() as stack:
        while len(open_ones) < limits.CONNECTIONS_MAX - 1:
            count = min(TOGETHER, limits.CONNECTIONS_MAX - 1 - len(open_ones))
            more = stack.enter_context(connected(port, count))
            ask(more, "/api/v1/queues/q", 200)  # with a key: others would make way for new ones
            open_ones += more
            if len(open_ones) == limits.CONNECTIONS_MAX // 2:
                spent.append(processor_seconds(pid))
        spent.append(processor_seconds(pid))
        print(f"processor time of the server: {spent[1] - spent[0]:.2f} s, then {spent[2] - spent[1]:.2f} s")
        assert spent[2] - spent[1] < TIMES_DEARER_MAX * (spent[1] - spent[0])
        for client in stack.enter_context(connected(port, EXTRA)):
            answer = until_end(client)
            assert statuses(answer) == [503]
            assert b"\r\nConnection: close\r\n" in answer
            assert b'{"code":"forq.overloaded",' in answer
        ask(open_ones[::100], "/healthcheck", 204)
        check_turns([(turn(crowded.queue), turn(empty.queue)) for _ in range(TURNS)])
        for client in open_ones[:EXTRA]:
            client.shutdown(socket.SHUT_WR)
            assert until_end(client) == b""
        ask(stack.enter_context(connected(port, EXTRA)), "/healthcheck", 204)
