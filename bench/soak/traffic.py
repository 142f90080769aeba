"""Clients of Forq's API: senders on a timetable, consumers that wait, and some that misbehave.

A content starts with the time at which it was meant to be sent, so a consumer (in the same process) can tell its age. A
doomed message is refused by its consumer while it is young: it fails, the caretaker redrives it, and then it succeeds.
"""

import random
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.load.api import Delivered, decode_batch, decode_message
from bench.load.generator import Conversation, Request, Series
from bench.load.wire import encode_request
from bench.scenarios.handoff import STAMP_DIGITS, Arrivals
from bench.soak.record import Meters

PLAIN, BATCHES, MIXED, GROUPS = "soak.plain", "soak.batches", "soak.mixed", "soak.groups"
EXPIRING, BOUNDED, SILENT = "soak.expiring", "soak.bounded", "soak.silent"
CONSUMED = (BATCHES, MIXED, GROUPS)

SETTINGS: dict[str, dict[str, Any]] = {
    PLAIN: {"maxAttempts": 2, "backOff": [50]},
    MIXED: {"deduplicationWindowMs": 5_000},
    GROUPS: {"groupInFlightMax": 1},
    EXPIRING: {"ttlMs": 2_000, "deadLetterQueue": ""},
    BOUNDED: {"maxMessages": 100, "overflow": "drop_oldest"},
}

CONTENT_CHARACTERS = 200
LONG_CONTENT_CHARACTERS = 20_000
LONG_SHARE = 0.01
DOOMED, HEALTHY = "!", "."
DOOMED_NS = 1_000_000_000
BATCH = 10
TENANTS = 20
DEDUPLICATION_IDS = 1_000
DELAY_MS_MAX = 3_000
POLL_WAIT_MS = 10_000
LEASE_MS = 1_000
NACK_DELAY_MS = 200


class Calls:
    """Requests to one server as bytes."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self._host = urlsplit(url).netloc
        self._key = key

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        payload = b"" if body is None else msgspec.json.encode(body)
        return encode_request(method, self._host, path, {"X-API-Key": self._key, **headers}, payload)

    def queue(self, method: str, queue: str, path: str, body: object = None, **headers: str) -> bytes:
        """A request below /api/v1/queues/{queue}."""
        return self(method, f"/api/v1/queues/{queue}{path}", body, **headers)


class Senders:
    """What the senders send: each kind of message in proportion, at random."""

    def __init__(self, calls: Calls, meters: Meters, rng: random.Random) -> None:
        self._calls = calls
        self._sent = meters.timed("send")
        self._looked = meters.timed("look")
        self._rng = rng
        self._kinds: dict[Callable[[int], bytes], int] = {
            self._plain: 30,
            self._doomed: 4,
            self._with_attributes: 8,
            self._with_priority: 8,
            self._delayed: 8,
            self._deduplicated: 8,
            self._grouped: 14,
            self._batch: 4,
            self._expiring: 4,
            self._bounded: 4,
            self._look: 8,
        }

    def conversation(self, arrivals: Arrivals) -> Conversation:
        """One connection: a request at each moment of the timetable that no other one has taken."""
        kinds, weights = list(self._kinds), list(self._kinds.values())
        while True:
            due_ns = arrivals.next_ns()
            (kind,) = self._rng.choices(kinds, weights)
            series = self._looked if kind == self._look else self._sent
            yield Request(kind(due_ns), series, due_ns)

    def visit(self) -> Conversation:
        """A client that connects for one send."""
        yield Request(self._plain(perf_counter_ns()), self._sent)

    def _content(self, due_ns: int, mark: str = HEALTHY) -> str:
        long = self._rng.random() < LONG_SHARE
        length = LONG_CONTENT_CHARACTERS if long else CONTENT_CHARACTERS
        return f"{mark}{due_ns:0{STAMP_DIGITS}d}".ljust(length, "x")

    def _send(self, queue: str, due_ns: int, mark: str = HEALTHY, **members: object) -> bytes:
        body = {"content": self._content(due_ns, mark), **members}
        return self._calls.queue("POST", queue, "/messages", body)

    def _plain(self, due_ns: int) -> bytes:
        return self._send(PLAIN, due_ns)

    def _doomed(self, due_ns: int) -> bytes:
        return self._send(PLAIN, due_ns, DOOMED)

    def _with_attributes(self, due_ns: int) -> bytes:
        attributes = {"tenant": f"t{self._rng.randrange(TENANTS)}", "trace": f"{self._rng.getrandbits(64):x}"}
        return self._send(PLAIN, due_ns, attributes=attributes)

    def _with_priority(self, due_ns: int) -> bytes:
        return self._send(MIXED, due_ns, priority=self._rng.randint(0, 1_000))

    def _delayed(self, due_ns: int) -> bytes:
        return self._send(MIXED, due_ns, delayMs=self._rng.randint(1, DELAY_MS_MAX))

    def _deduplicated(self, due_ns: int) -> bytes:
        return self._send(MIXED, due_ns, deduplicationId=f"id-{self._rng.randrange(DEDUPLICATION_IDS)}")

    def _grouped(self, due_ns: int) -> bytes:
        # Low numbers are drawn far more often: some tenants are noisy.
        return self._send(GROUPS, due_ns, group=f"t{int(self._rng.expovariate(0.3)) % TENANTS}")

    def _batch(self, due_ns: int) -> bytes:
        messages = [{"content": self._content(due_ns)} for _ in range(BATCH)]
        return self._calls.queue("POST", BATCHES, "/messages/batch", {"messages": messages})

    def _expiring(self, due_ns: int) -> bytes:
        return self._send(EXPIRING, due_ns)

    def _bounded(self, due_ns: int) -> bytes:
        return self._send(BOUNDED, due_ns)

    def _look(self, due_ns: int) -> bytes:
        queue = self._rng.choice((PLAIN, *CONSUMED, EXPIRING, BOUNDED))
        path = self._rng.choice(("", "/peek?limit=10", "/peek?order=shuffle", "/settings"))
        return self._calls.queue("GET", queue, path)


class Consumers:
    """Consumers that wait for messages and settle them, in each of the ways there are."""

    def __init__(self, calls: Calls, meters: Meters, rng: random.Random) -> None:
        self._calls = calls
        self._waits = meters.waits
        self._handoff = meters.handoff
        self._settled = meters.timed("settle")
        self._rng = rng

    def single(self) -> Conversation:
        """Forq's own way: one long poll, one message, one ack or nack with its receipt."""
        poll = Request(self._calls.queue("GET", PLAIN, "/messages"), self._waits)
        while True:
            response = yield poll
            if response.status != 200:
                continue
            message = decode_message(response.body)
            age_ns = perf_counter_ns() - int(message.content[1 : STAMP_DIGITS + 1])
            if message.content[0] == DOOMED and age_ns < DOOMED_NS:
                yield self._settle(PLAIN, "nack", [message], delayMs=0, reason="too young")
                continue
            if message.content[0] != DOOMED:
                self._handoff.latency.record(age_ns)
            headers = {"X-Forq-Receipt": message.receipt}
            path = f"/messages/{message.id}/ack"
            yield Request(self._calls.queue("POST", PLAIN, path, **headers), self._settled)

    def several(self, queue: str) -> Conversation:
        """Up to ten at once: mostly acknowledged, now and then extended, given back, refused or forgotten."""
        body = {"max": BATCH, "waitMs": POLL_WAIT_MS, "leaseMs": LEASE_MS}
        poll = Request(self._calls.queue("POST", queue, "/messages/receive", body), self._waits)
        while True:
            response = yield poll
            messages = decode_batch(response.body) if response.status == 200 else []
            if not messages:
                continue
            dice = self._rng.random()
            if dice < 0.04:
                yield self._settle(queue, "extend", messages, leaseMs=2 * LEASE_MS)
            if dice < 0.94:
                yield self._settle(queue, "ack", messages)
            elif dice < 0.96:
                yield self._settle(queue, "release", messages)
            elif dice < 0.98:
                yield self._settle(queue, "nack", messages, delayMs=NACK_DELAY_MS, reason="bad luck")

    def _settle(self, queue: str, how: str, messages: Sequence[Delivered], **members: object) -> Request:
        body = {"receipts": [message.receipt for message in messages], **members}
        return Request(self._calls.queue("POST", queue, f"/messages/{how}", body), self._settled)


def repeating(
    payload: bytes, series: Series, interval_seconds: float, note: Callable[[bytes], None] | None = None
) -> Conversation:
    """The same request at fixed intervals; the body of each good answer goes to `note`."""
    arrivals = Arrivals(1 / interval_seconds)
    while True:
        response = yield Request(payload, series, arrivals.next_ns())
        if note is not None and response.status == 200:
            note(response.body)
