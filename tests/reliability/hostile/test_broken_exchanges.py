"""Exchanges that break off at every point (F3).

A claim whose answer could not be written is claimable again within 100 ms, its attempt uncounted. What was written is
the client's, read or not: its lease stands. The bound is on the lower quartile of several tries, because what else a
machine does only makes them longer; a look every half second would be beyond it. A slow machine has as many round trips
as fit into it elsewhere. Each single try has a generous bound.
"""

import socket
import statistics
import time

import pytest

from support.effort import count

from .raw import BREAKS, close, connect, half_close, request, reset, send_and_break, statuses, until_end

pytestmark = pytest.mark.process

TRIES = count("broken_exchanges")
SECONDS_QUARTILE_MAX = 0.1
ROUND_TRIPS_QUARTILE_MAX = 50
SECONDS_MAX = 30.0  # long before a lease ends
BIG = "\x01" * 250_000  # six bytes each in JSON

RECEIVES = {
    "Forq": lambda queue: request("GET", queue.path),
    "Forq, several": lambda queue: request("POST", f"{queue.path}/receive", {"max": 3, "waitMs": 20_000}),
    "Sasquatch": lambda queue: request(
        "POST", "/receive", {"queue_name": queue.name, "wait_time_seconds": 20}
    ),
}


def delivered_after(queue, started: float, content: str) -> float:
    """Receive `content`, which nobody may have been handed before; how long after `started` that was."""
    (message,) = queue.receive()
    seconds = time.perf_counter() - started
    assert (message["content"], message["attempts"]) == (content, 1)
    assert seconds < SECONDS_MAX
    return seconds


def check_seconds(queue, seconds: list[float]) -> None:
    quartile, trip = statistics.quantiles(seconds, n=4)[0], round_trip_seconds(queue)
    quick, longest, request_ms = (f"{1_000 * each:.1f} ms" for each in (quartile, max(seconds), trip))
    print(f"lower quartile {quick}, longest {longest}, a request {request_ms}")
    assert quartile < max(SECONDS_QUARTILE_MAX, ROUND_TRIPS_QUARTILE_MAX * trip), seconds


def round_trip_seconds(queue) -> float:
    """How long a request takes that only reads counts, here and now."""
    trips = []
    for _ in range(9):
        started = time.perf_counter()
        queue.counts()
        trips.append(time.perf_counter() - started)
    return statistics.median(trips)


@pytest.mark.parametrize(
    ("dialect", "how"), [("Forq", how) for how in BREAKS] + [(dialect, "reset") for dialect in RECEIVES][1:]
)
def test_a_receiver_that_breaks_off_while_it_waits_costs_no_message(port, queue, dialect, how) -> None:
    seconds = []
    for number in range(TRIES):
        with connect(port) as client:
            client.sendall(RECEIVES[dialect](queue))
            queue.until_waiting(1)
            BREAKS[how](client)
            queue.send(str(number))
            seconds.append(delivered_after(queue, time.perf_counter(), str(number)))
    check_seconds(queue, seconds)
    assert queue.counts()["waiting"] == 0


@pytest.mark.parametrize(
    ("dialect", "how"), [("Forq", "close"), *((dialect, "half close") for dialect in RECEIVES)]
)
def test_a_client_that_asks_and_leaves_costs_no_message(port, queue, dialect, how) -> None:
    """Its end arrives with its request, so it is there before the claim is."""
    seconds = []
    for number in range(TRIES):
        queue.send(str(number))
        with connect(port) as client:
            send_and_break(client, RECEIVES[dialect](queue), BREAKS[how])
            started = time.perf_counter()
            if how == "half close":
                assert until_end(client) == b""
        seconds.append(delivered_after(queue, started, str(number)))
    check_seconds(queue, seconds)


@pytest.mark.parametrize("how", [close, reset])
def test_an_answer_that_is_cut_while_it_is_written_costs_no_message(port, queue, how) -> None:
    """An answer of 9 MB fits into no buffer, so the server is in the middle of it."""
    seconds = []
    for number in range(6):
        queue.send(f"{number}{BIG}")
    for _ in range(TRIES):
        with connect(port, receive_buffer_bytes=4_096) as client:
            client.sendall(request("POST", f"{queue.path}/receive", {"max": 6, "leaseMs": 60_000}))
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
            assert queue.counts()["processing"] == 6
            how(client)
            started = time.perf_counter()
            while queue.counts()["ready"] != 6:
                assert time.perf_counter() - started < SECONDS_MAX
            seconds.append(time.perf_counter() - started)
    check_seconds(queue, seconds)
    assert [message["attempts"] for message in queue.receive(most=6)] == [1] * 6


def test_an_answer_that_was_written_is_the_clients_read_or_not(port, queue) -> None:
    """The limit of the promise: what the kernel has taken cannot be taken back, so the lease has to end first."""
    queue.send()
    started = time.perf_counter()
    with connect(port) as client:
        client.sendall(request("POST", f"{queue.path}/receive", {"leaseMs": 500}))
        assert client.recv(1) == b"H"
        reset(client)
    (message,) = queue.receive()
    assert message["attempts"] == 2
    assert time.perf_counter() - started > 0.45


@pytest.mark.parametrize("how", BREAKS)
def test_a_request_that_breaks_off_does_nothing(port, queue, how) -> None:
    """After each class of byte boundary: within and after request line, header, head and body."""
    queue.send()
    wanted = {"max": 1, "leaseMs": 60_000}
    whole = request("POST", f"{queue.path}/receive", wanted)
    head, _, body = whole.partition(b"\r\n\r\n")
    line = head.index(b"\r\n")
    ends = [0, 1, 3, 6, line - 1, line, line + 1, line + 2, line + 8, len(head) - 1, len(head)]
    ends += [len(head) + 2, len(head) + 3, len(head) + 4, len(head) + 5, len(whole) - 1]
    assert len(whole) == len(head) + 4 + len(body)
    for end in ends:
        with connect(port) as client:
            client.sendall(whole[:end])
            BREAKS[how](client)
            if how == "half close":
                assert until_end(client) == b"", f"after {whole[:end]!r}"
    (message,) = queue.receive()
    assert message["attempts"] == 1


@pytest.mark.parametrize("how", BREAKS)
def test_a_send_that_breaks_off_is_stored_whole_or_not_at_all(port, queue, how) -> None:
    """Once when all of it arrived; a reset may take with it what the server had not read yet."""
    whole = request("POST", queue.path, {"content": "a" * 100})
    for end in range(len(whole) - 20, len(whole) + 1):
        with connect(port) as client:
            send_and_break(client, whole[:end], BREAKS[how])
            if how == "half close":
                until_end(client)
    if how == "close":
        (message,) = queue.receive()
        assert message["content"] == "a" * 100
        assert queue.receive(wait_ms=0) == []
    else:
        found = [message["content"] for message in queue.receive(wait_ms=0, most=100)]
        assert found == ["a" * 100] if how == "half close" else found in ([], ["a" * 100])


def test_pipelined_requests_of_a_client_that_leaves(port, queue) -> None:
    """The claims among them that nobody reads are given back; the sends are carried out or not, whole."""
    receive = request("POST", f"{queue.path}/receive", {"leaseMs": 60_000})
    for number in range(3):
        queue.send(str(number))
    with connect(port) as client:
        send_and_break(client, receive * 3, half_close)
        assert statuses(until_end(client)) == []
    started = time.perf_counter()
    while queue.counts()["ready"] != 3:
        assert time.perf_counter() - started < SECONDS_MAX
    assert [message["attempts"] for message in queue.receive(most=3)] == [1, 1, 1]


def test_the_break_is_seen_at_the_socket_not_by_the_tests_luck(port, queue) -> None:
    """Control: the same request of a client that stays keeps its message."""
    queue.send()
    with connect(port) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.sendall(RECEIVES["Forq"](queue))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        assert queue.receive(wait_ms=0) == []
