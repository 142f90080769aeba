"""The fixed inputs of the fuzz targets, one of each kind of request, and inputs that once found something."""

import json
from collections.abc import Iterator
from typing import Any

from support.http1_streams import REFUSED, STREAMS
from support.transport import chunked, get, post

from .targets import FORQ, READERS, SASQUATCH
from .whole_app import SECRET

UUID = "01890a5d-ac96-774b-bcce-b302099a8057"
SEND = {
    "content": "x",
    "priority": 5,
    "attributes": {"a": "b"},
    "group": "g",
    "deduplicationId": "d",
    "deduplicationWindowMs": 1,
    "ttlMs": 1,
    "maxAttempts": 1,
    "deadLetterQueue": "z-dlq",
    "delayMs": 3,
}
FILTER = {
    "reason": "max_attempts_reached",
    "minAgeMs": 0,
    "maxAgeMs": 9,
    "attributes": {"a": "b"},
    "text": "d",
}
SETTINGS = {
    "leaseMs": 1,
    "delayMs": 1,
    "ttlMs": 1,
    "maxAttempts": 1,
    "backOff": {"firstMs": 1, "factor": 2, "maxMs": 9, "jitter": 0.5},
    "deadLetterQueue": None,
    "deduplicationWindowMs": 1,
    "maxMessages": 1,
    "maxBytes": 1,
    "overflow": "drop_oldest",
    "order": "lifo",
    "groupInFlightMax": 1,
    "inFlightMax": 1,
    "rate": {"count": 1, "periodMs": 1, "per": "group"},
}
FORQ_BODIES: dict[str, Any] = {
    "sendMessage": SEND,
    "sendMessages": {"messages": [SEND, {"content": "y", "processAfter": 1_700_000_000_000}, 1]},
    "receiveMessages": {"max": 2, "waitMs": 100, "leaseMs": 5, "order": "shuffle", "peek": True},
    "ackMessages": {"receipts": ["RECEIPT", UUID, "none"]},
    "nackMessages": {"receipts": ["RECEIPT"], "delayMs": 0, "reason": "r"},
    "extendLeases": {"receipts": ["RECEIPT"], "leaseMs": 0},
    "releaseMessages": {"receipts": ["RECEIPT"], "delayMs": 1},
    "changeSettings": SETTINGS,
    "redriveDeadLetters": {"ids": ["DEAD", UUID, "none"], "target": "q"},
    "deleteDeadLetters": {"ids": ["DEAD"]},
    "startRedrive": {"filter": FILTER, "target": "q", "ratePerSecond": 1, "dryRun": True},
    "resubmitDeadLetter": {"content": "c", "attributes": {"a": "b"}, "target": "q", "remove": True},
    "saveSchedule": {
        "queue": "q",
        "content": "x",
        "cron": "0 8 1,L * MON-FRI",
        "timeZone": "Europe/Paris",
        "jitter": "1 min 30",
        "start": 1,
        "end": 1_900_000_000_000,
        "missed": "all",
        "whilePending": "skip",
        "paused": True,
        "attributes": {"a": "b"},
    },
    "nextRuns": {"daily": ["02:30", "02:30:01"], "timeZone": "Europe/Paris", "end": 99},
    "timing": {"cron": "*/7 0 0 29 2 1#5", "timeZone": "America/St_Johns", "start": 1_800_000_000_000},
    "createToken": {"name": "t", "scopes": ["produce"], "queues": "q*", "expiresAt": 1_800_000_000_000},
}
QUERIES = {
    "receiveMessage": "order=shuffle&peek=true",
    "peekMessages": "limit=3",
    "searchDeadLetters": "reason=a&minAgeMs=0&maxAgeMs=99&attribute=k:v&text=t&before=9&limit=2",
}
MESSAGE = {
    "queue_name": "q",
    "message_body": "x",
    "priority": 0,
    "delay_seconds": 1,
    "message_retention_period": 60,
    "message_deduplication_id": "d1",
    "message_deduplication_time_period": 1,
    "message_attributes": {"a": "b"},
}
SASQUATCH_BODIES: dict[str, Any] = {
    "send": MESSAGE,
    "send_batch": {"messages": [MESSAGE, {}, {"queue_name": "", "message_body": None}]},
    "receive": {
        "queue_name": "q",
        "visibility_timeout": 0,
        "wait_time_seconds": 1,
        "max_number_of_messages": 10,
        "max_receives": 1,
        "dead_letter_queue_name": "z",
        "shuffle": True,
    },
    "dequeue": {"queue_name": "q", "peek": True},
    "delete": {"receipt_handles": ["RECEIPT", UUID, "none"]},
    "change_visibility": {"receipt_handles": ["RECEIPT"], "visibility_timeout": -1},
    "delete_all": {"queue_name": "q"},
    "queue_length": {"queue_name": "q"},
    "enqueue": "text",
}
TEXTS = (
    b"q",
    b"q-dlq",
    UUID.encode(),
    UUID.replace("-", "").encode(),
    b"order=fifo&order=shuffle",
    b"limit=1&limit=%31",
    b"peek=true;peek=false",
    b"0 8 1,L * MON-FRI",
    b"@daily",
)

# Inputs by target that once made a target fail, as the fuzzer found them or smaller.
_BAD_UPGRADE = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: A"
FOUND: dict[str, tuple[bytes, ...]] = {
    # Settings that are no base64 went unanswered while such upgrades were still taken.
    "connection": (
        b"\x0a" + get("/", *_BAD_UPGRADE, version="1.0") + get("/2"),
        b"\x00" + get("/", *_BAD_UPGRADE),
    ),
    # A repeated header whose second value is empty leaves a blank at the end; one that is repeated is measured once.
    "parser": (
        b"\x06" + get("/", "Accept: a", "accept: "),
        b"\x0f" + get("/", "A: " + "x" * 180, "a: " + "x" * 180),
    ),
}


def corpus(target: str) -> Iterator[bytes]:
    """The inputs of a target."""
    yield b""
    yield from FOUND.get(target, ())
    yield from {
        "parser": _streams,
        "connection": _streams,
        "readers": _reads,
        "forq": _forq_requests,
        "sasquatch": _sasquatch_requests,
    }[target]()


def _reads() -> Iterator[bytes]:
    bodies = {**FORQ_BODIES, **SASQUATCH_BODIES}
    for choice, name in enumerate(READERS):
        yield bytes([choice]) + _raw(bodies.get(name.partition(" ")[2] or name, SEND))
        for text in TEXTS:
            yield bytes([choice]) + text


def _forq_requests() -> Iterator[bytes]:
    for choice, route in enumerate(FORQ):
        name = route.operation.name
        queue = "q-dlq" if "Dead" in name or "Redrive" in name else "q"
        lines = f"{queue}/DEAD\n{QUERIES.get(name, '')}\n".encode()
        yield bytes([choice]) + lines + b"RECEIPT\n" + _raw(FORQ_BODIES.get(name, SEND))
        yield bytes([choice]) + lines + b"\n{}"


def _sasquatch_requests() -> Iterator[bytes]:
    for choice, route in enumerate(SASQUATCH):
        body = _raw(SASQUATCH_BODIES.get(route.operation.name, {}))
        yield bytes([choice]) + b"\nqueue_name=q&priority=3\n\n" + body


def _raw(body: Any) -> bytes:
    return json.dumps(body).encode()


def _streams() -> Iterator[bytes]:
    for size, stream in enumerate(STREAMS.values()):
        yield bytes([size]) + stream
    for size, (stream, _) in enumerate(REFUSED.values()):
        yield bytes([size]) + stream.encode()
    key = f"X-API-Key: {SECRET}"
    messages = "/api/v1/queues/q/messages"
    yield b"\x07" + get(messages, key) + post(b'{"content":"x"}', key, path=messages)
    yield b"\x00" + chunked(b'{"queue_name":', b'"q"}', headers=(key,)).replace(
        b"POST /", b"POST /receive", 1
    )
    yield b"\x20" + get("/healthcheck").replace(b"GET", b"HEAD") + get("/metrics", "Expect: 100-continue")


def dictionary() -> Iterator[bytes]:
    """Words that a fuzzer would take long to find by itself: members, headers, and what requests are made of."""
    words = {
        b'"',
        b"{",
        b"}",
        b":",
        b"null",
        b"1e400",
        b"\\ud800",
        b"-1",
        b"9223372036854775808",
        b"%00",
        b"\r\n",
    }
    words |= {
        b"Content-Length: ",
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Connection: close",
    }
    words |= {
        b"Upgrade: h2c",
        b"HTTP2-Settings: AA",
        b"HTTP/1.0",
        b"Host: ",
        b"RECEIPT",
        b"DEAD",
        UUID.encode(),
    }
    for body in (*FORQ_BODIES.values(), *SASQUATCH_BODIES.values(), FILTER, MESSAGE):
        if isinstance(body, dict):
            words |= {f'"{member}":'.encode() for member in body}
    yield from sorted(words)
