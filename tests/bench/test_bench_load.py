"""The load generator against a server that answers as told: what it counts, from when, and what ends it."""

import socket
from itertools import pairwise
from time import perf_counter_ns

import pytest

from bench.load.generator import CLOSED, MALFORMED, Address, Load, Request, Series
from bench.load.wire import encode_request
from bench.scenarios.handoff import Arrivals

LONG_SECONDS = 60.0


def post(series: Series, body: bytes = b"{}", due_ns: int = 0) -> Request:
    return Request(encode_request("POST", "test", "/", {}, body), series, due_ns)


def repeating(request: Request, times: int):
    for _ in range(times):
        yield request


def test_conversations_run_side_by_side_to_their_ends(answering):
    series = Series("send")
    with Load(answering.address) as load:
        load.add_all(repeating(post(series), 5) for _ in range(3))
        seconds = load.run(LONG_SECONDS)
        assert load.open_connections == 0
    assert 0 < seconds < LONG_SECONDS
    assert series.latency.count == load.answered == len(answering.bodies) == 15
    assert not series.errors


def test_a_conversation_is_resumed_with_the_answer(answering):
    answering.answer = lambda number: b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number
    got = []

    def conversation():
        for _ in range(2):
            got.append((yield post(Series("send"))))

    with Load(answering.address) as load:
        load.add(conversation())
        load.run(LONG_SECONDS)
    assert got == [(200, b"0"), (200, b"1")]


def test_a_run_ends_after_its_number_of_answers_and_can_go_on(answering):
    series = Series("send")
    with Load(answering.address) as load:
        load.add(repeating(post(series), 10))
        load.run(LONG_SECONDS, answers_max=4)
        assert series.latency.count == 4
        load.run(LONG_SECONDS)
    assert series.latency.count == 10


def test_a_run_ends_after_its_time_with_requests_unanswered(answering):
    series = Series("send")
    request = encode_request("POST", "test", "/", {"Content-Length": "1"})  # and never sends that byte
    with Load(answering.address) as load:
        load.add(repeating(Request(request, series), 1))
        assert load.run(0.02) >= 0.02
        assert load.open_connections == 1
    assert series.latency.count == 0


def test_the_warm_up_is_not_recorded(answering):
    series = Series("send")
    with Load(answering.address) as load:
        load.add(repeating(post(series), 5))
        load.run(LONG_SECONDS, warm_up_seconds=LONG_SECONDS)
    assert len(answering.bodies) == 5
    assert series.latency.count == 0


def test_errors_are_counted_by_status_and_have_no_latency(answering):
    answers = [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"]
    answering.answer = lambda number: answers[number % 2]
    series = Series("send")
    with Load(answering.address) as load:
        load.add(repeating(post(series), 4))
        load.run(LONG_SECONDS)
    assert series.errors == {"503": 2}
    assert series.latency.count == 2


@pytest.mark.parametrize(("answer", "error"), [(b"", CLOSED), (b"nonsense here\r\n\r\n", MALFORMED)])
def test_a_broken_connection_is_an_error_and_ends_its_conversation_only(answering, answer, error):
    answering.answer = lambda number: answer if number == 0 else b"HTTP/1.1 204 No Content\r\n\r\n"
    series = Series("send")
    with Load(answering.address) as load:
        load.add_all(repeating(post(series), 3) for _ in range(2))
        load.run(LONG_SECONDS)
    assert series.errors == {error: 1}
    assert series.latency.count == 3


def test_a_body_larger_than_the_socket_takes_at_once_arrives_whole(answering):
    body = bytes(range(256)) * 64 * 1024
    with Load(answering.address) as load:
        load.add(repeating(post(Series("send"), body), 1))
        load.run(LONG_SECONDS)
    assert answering.bodies == [body]


def test_open_loop_counts_from_the_moment_a_request_was_due(answering):
    """No coordinated omission: a request that had to wait for its turn is charged the wait."""
    series = Series("send")
    late_ns = 250_000_000
    with Load(answering.address) as load:
        load.add(repeating(post(series, due_ns=perf_counter_ns() - late_ns), 1))
        load.run(LONG_SECONDS)
    assert series.latency.max_ns >= late_ns


def test_open_loop_sends_nothing_early(answering):
    seen_ns = []
    due_ns = perf_counter_ns() + 30_000_000

    def answer(number):
        seen_ns.append(perf_counter_ns())
        return b"HTTP/1.1 204 No Content\r\n\r\n"

    answering.answer = answer
    with Load(answering.address) as load:
        load.add(repeating(post(Series("send"), due_ns=due_ns), 1))
        load.run(LONG_SECONDS)
    assert len(seen_ns) == 1
    assert seen_ns[0] >= due_ns


def test_a_request_that_is_due_later_holds_nobody_up(answering):
    in_an_hour_ns = perf_counter_ns() + 3_600_000_000_000
    with Load(answering.address) as load:
        load.add(repeating(post(Series("send"), b"later", in_an_hour_ns), 1))
        load.add(repeating(post(Series("send"), b"now"), 1))
        load.run(LONG_SECONDS, answers_max=1)
    assert answering.bodies == [b"now"]


def test_nobody_listening_is_an_error():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        with Load(Address(*deaf.getsockname())) as load, pytest.raises(ConnectionRefusedError):
            load.add(repeating(post(Series("send")), 1))


def test_arrivals_keep_to_their_timetable_however_late_they_are_asked_for():
    arrivals = Arrivals(rate=1_000)
    moments = [arrivals.next_ns() for _ in range(4)]
    assert [later - earlier for earlier, later in pairwise(moments)] == [1_000_000] * 3


def test_a_server_that_closes_after_each_answer_is_connected_anew(answering):
    answering.closes = True
    series = Series("send")
    with Load(answering.address, keeps_connections=False) as load:
        load.add_all(repeating(post(series), 3) for _ in range(2))
        load.run(LONG_SECONDS)
    assert series.latency.count == 6
    assert not series.errors
